//! Checks in schema files of your own types, and keeps them up to date in CI.
//!
//! A [`Folder`] lists the types whose JSON Schema has a file in a folder of your repository, and the dialects in which
//! they are sent to models. [`Folder::write`] writes the files. [`Folder::check`] fails if a file differs from its
//! type. The error has a diff of each file, states whether readers of old values break, lists files without a type, and
//! names the command that writes the files. A change of a type is thus visible in code review.
//!
//! ```
//! use formwork::golden::Folder;
//!
//! #[derive(schemars::JsonSchema, serde::Deserialize)]
//! struct Ticket {
//!     title: String,
//!     urgent: bool,
//! }
//!
//! # let place = std::env::temp_dir().join(format!("formwork-golden-doc-{}", std::process::id()));
//! # let root = place.as_path();
//! let folder = || {
//!     Folder::new(root.join("schemas"))
//!         .typed::<Ticket>("ticket")      // schemas/ticket.json
//!         .lowered("openai")              // schemas/ticket.openai.json
//!         .with_command("cargo xtask schema")
//! };
//! let written = folder().write()?;
//! assert_eq!(written.files, ["ticket.json", "ticket.openai.json"]);
//! folder().check()?;
//!
//! // The type changed, the file did not: here by an edit of the file.
//! let file = root.join("schemas/ticket.json");
//! std::fs::write(&file, std::fs::read_to_string(&file)?.replace(r#""type": "boolean""#, r#""type": ["boolean", "null"]"#))?;
//! let error = folder().check().unwrap_err().to_string();
//! assert!(error.contains("$.urgent: narrowed") && error.contains("run `cargo xtask schema`"), "{error}");
//! # std::fs::remove_dir_all(root)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! For a test without a separate program there is [`Folder::check_or_write`]. `examples/team` in Formwork's repository
//! is a workspace with both.

mod document;
mod error;
mod report;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};

use formwork_core::{Inline, LowerRequest, Schema as _};
use formwork_dialect::Dialects;
use schemars::JsonSchema;
use serde_json::Value;

pub use error::Error;
pub use report::{FileChange, FileChangeKind, Report};

/// The environment variable that makes [`Folder::check_or_write`] write.
const VARIABLE: &str = "FORMWORK_WRITE";

/// A folder of schema files, with the schemas that belong there.
///
/// A schema `ticket` has the file `ticket.json`, and its form in the dialect `openai` has `ticket.openai.json`. A
/// version is part of the name: `ticket.v1`. Every other `.json` file of the folder is stale. Subfolders and other
/// files are ignored.
///
/// ```
/// use formwork::golden::Folder;
///
/// let folder = Folder::new("schemas").typed::<Vec<u8>>("bytes").written::<String>("text").lowered("openai");
/// assert_eq!(folder.files()?.into_keys().collect::<Vec<_>>(), ["bytes.json", "text.json", "text.openai.json"]);
/// # Ok::<(), formwork::golden::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing is checked or written before `check`, `write` or `check_or_write`"]
pub struct Folder {
    path: PathBuf,
    command: Option<String>,
    /// The dialects that `lowered` knows.
    dialects: Dialects,
    /// The last added schema: its name, and the document that [`lowered`](Self::lowered) starts from.
    last: Option<(String, Value)>,
    files: BTreeMap<String, File>,
    /// The first mistake in the list of schemas.
    mistake: Option<Error>,
}

/// The intended content of a file.
#[derive(Debug)]
struct File {
    document: Value,
    /// The dialect, if the file is a lowered schema.
    dialect: Option<String>,
}

/// The result of [`Folder::write`].
///
/// ```
/// use formwork::golden::{Folder, Written};
///
/// let place = std::env::temp_dir().join(format!("formwork-written-{}", std::process::id()));
/// let written: Written = Folder::new(&place).typed::<bool>("flag").write()?;
/// assert_eq!((written.files, written.stale.len()), (vec!["flag.json".to_owned()], 0));
/// # std::fs::remove_dir_all(place)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// The names of the written files, in alphabetical order.
    pub files: Vec<String>,
    /// The names of the files without a type. They are not deleted.
    pub stale: Vec<String>,
}

impl Folder {
    /// Creates a list of schemas for a folder. A relative path starts at the current directory, which is the package's
    /// folder in `cargo test`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            command: None,
            dialects: Dialects::builtin(),
            last: None,
            files: BTreeMap::new(),
            mistake: None,
        }
    }

    /// Adds the schema of a type that your program reads, as an [`Extractor`](crate::Extractor) does: fields with a
    /// default are optional.
    pub fn typed<T: JsonSchema>(self, name: impl Into<String>) -> Self {
        let sent = Inline::of::<T>().document().clone();
        self.add(name.into(), document::for_type(&document::read::<T>()), sent)
    }

    /// Adds the schema of a type that your program writes: fields that are always written are required.
    pub fn written<T: JsonSchema>(self, name: impl Into<String>) -> Self {
        let document = document::written::<T>();
        self.add(name.into(), document::for_type(&document), document)
    }

    /// Adds a schema without a type.
    pub fn document(self, name: impl Into<String>, schema: Value) -> Self {
        self.add(name.into(), document::for_file(&schema), schema)
    }

    /// Adds a JSON document that is written as it is: one that is no schema itself, such as a document of OpenAPI.
    pub fn verbatim(self, name: impl Into<String>, document: Value) -> Self {
        self.add(name.into(), document.clone(), document)
    }

    /// Adds the form of the last added schema in a dialect, as an extractor sends it by default.
    ///
    /// The dialects that enforce a schema are `openai`, `anthropic`, `ollama`, `llama-cpp`, `llguidance` and those of
    /// [`with_dialects`](Self::with_dialects). Another name, and a schema that the dialect cannot lower, is an error of [`check`](Self::check) and
    /// [`write`](Self::write).
    pub fn lowered(self, dialect: &str) -> Self {
        let Some((_, schema)) = self.last.clone() else { return self.without_schema(dialect) };
        self.lowered_by(dialect, &LowerRequest::new(&schema))
    }

    /// Adds the lowered form of a request's schema, under the name of the last added schema: for requests with rules, a
    /// token limit or another tightening than the default.
    pub fn lowered_by(mut self, dialect: &str, request: &LowerRequest<'_>) -> Self {
        let Some((name, _)) = &self.last else { return self.without_schema(dialect) };
        let file = format!("{name}.{dialect}.json");
        match lower(&self.dialects, dialect, request) {
            Ok(schema) => {
                let content =
                    File { document: document::with_draft(&schema), dialect: Some(dialect.to_owned()) };
                self.insert(file, content);
            }
            Err(message) => self.fail(Error::Lowering { file, message }),
        }
        self
    }

    formwork_core::setters! {
        /// Sets the dialects that the following [`lowered`](Self::lowered) calls know (default: [`Dialects::builtin`]).
        pub fn with_dialects(dialects: Dialects);
        /// Sets the command that writes the files, for the error of a check (default: `FORMWORK_WRITE=1 cargo test` for
        /// [`check_or_write`](Self::check_or_write), [`write`](Self::write) itself for [`check`](Self::check)).
        pub fn with_command(Some(command): impl Into<String>);
    }

    /// Returns the content of every file by its name. Reads no files.
    ///
    /// # Errors
    /// [`Error::Lowering`] and [`Error::Duplicate`]: the first mistake in the list of schemas.
    pub fn files(self) -> Result<BTreeMap<String, String>, Error> {
        let texts = |files: BTreeMap<String, File>| {
            files.into_iter().map(|(name, file)| (name, document::text(&file.document))).collect()
        };
        self.mistake.map_or(Ok(texts(self.files)), Err)
    }

    /// Checks that every file equals its schema, and that no file is missing or stale. Writes nothing. Line ends of
    /// Windows are equal to those of Unix.
    ///
    /// # Errors
    /// [`Error::Outdated`] with all differences, [`Error::Io`] if the folder cannot be read, and the errors of
    /// [`files`](Self::files).
    pub fn check(self) -> Result<(), Error> {
        let advice = match &self.command {
            Some(command) => format!("run `{command}` to write the schema files"),
            None => "call `Folder::write` to write the schema files".to_owned(),
        };
        self.checked(advice)
    }

    /// Writes the files that differ from their schemas. Deletes nothing: [`Written::stale`] lists stale files.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be read or written, and the errors of [`files`](Self::files) before anything is
    /// written.
    pub fn write(self) -> Result<Written, Error> {
        let path = self.path.clone();
        let (files, there) = (self.files()?, read(&path)?);
        fs::create_dir_all(&path).map_err(|error| Error::io(&path, error))?;
        let mut written = Written {
            files: Vec::new(),
            stale: there.keys().filter(|name| !files.contains_key(*name)).cloned().collect(),
        };
        for (name, text) in files {
            if there.get(&name) != Some(&text) {
                let path = path.join(&name);
                fs::write(&path, text).map_err(|error| Error::io(&path, error))?;
                written.files.push(name);
            }
        }
        Ok(written)
    }

    /// Checks the files, or writes them if the environment variable `FORMWORK_WRITE` is set to anything but `0` and the
    /// empty string. It suits a test without a separate program.
    ///
    /// # Errors
    /// The errors of [`check`](Self::check); after writing, [`Error::Outdated`] for stale files only.
    pub fn check_or_write(self) -> Result<(), Error> {
        let folder = display_path(&self.path);
        if std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty() && value != "0") {
            let stale = self.write()?.stale;
            return match Report::stale(&folder, stale) {
                report if report.files().is_empty() => Ok(()),
                report => Err(Error::Outdated(report)),
            };
        }
        let command = self.command.clone().unwrap_or_else(|| format!("{VARIABLE}=1 cargo test"));
        self.checked(format!("run `{command}` to write the schema files"))
    }

    fn checked(self, advice: String) -> Result<(), Error> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        let report = Report::new(&display_path(&self.path), &self.files, &read(&self.path)?, advice);
        if report.files().is_empty() { Ok(()) } else { Err(Error::Outdated(report)) }
    }

    fn add(mut self, name: String, document: Value, sent: Value) -> Self {
        self.insert(format!("{name}.json"), File { document, dialect: None });
        self.last = Some((name, sent));
        self
    }

    fn insert(&mut self, file: String, content: File) {
        match self.files.entry(file) {
            Entry::Vacant(entry) => {
                entry.insert(content);
            }
            Entry::Occupied(entry) => {
                let file = entry.key().clone();
                self.fail(Error::Duplicate { file });
            }
        }
    }

    fn without_schema(mut self, dialect: &str) -> Self {
        let message = "add a schema first: `lowered` is about the schema before it".to_owned();
        self.fail(Error::Lowering { file: format!("{dialect}.json"), message });
        self
    }

    fn fail(&mut self, mistake: Error) {
        self.mistake.get_or_insert(mistake);
    }
}

/// Returns the lowered schema of a request, or the reason why there is none.
fn lower(dialects: &Dialects, dialect: &str, request: &LowerRequest<'_>) -> Result<Value, String> {
    let lower = dialects.get(dialect)?;
    let lowered = lower.lower(request).map_err(|refused| refused.to_string())?;
    lowered.schema.ok_or_else(|| format!("`{dialect}` sends no schema that is enforced: it has no file"))
}

/// Reads the `.json` files of a folder by name; a missing folder has none.
fn read(folder: &Path) -> Result<BTreeMap<String, String>, Error> {
    let mut files = BTreeMap::new();
    if !folder.exists() {
        return Ok(files);
    }
    for entry in fs::read_dir(folder).map_err(|error| Error::io(folder, error))? {
        let path = entry.map_err(|error| Error::io(folder, error))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if name.ends_with(".json") && path.is_file() {
            let bytes = fs::read(&path).map_err(|error| Error::io(&path, error))?;
            // Git may check out files with line ends of Windows.
            files.insert(name.to_owned(), String::from_utf8_lossy(&bytes).replace("\r\n", "\n"));
        }
    }
    Ok(files)
}

/// Returns the path of the folder for messages: relative to the current directory if it is inside.
fn display_path(folder: &Path) -> String {
    let here = std::env::current_dir().ok();
    let inside = here.as_ref().and_then(|here| folder.strip_prefix(here).ok());
    inside.unwrap_or(folder).display().to_string()
}
