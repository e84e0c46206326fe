//! The differences between schema files and schemas. Pure: reads and writes no files.

use std::collections::BTreeMap;
use std::fmt;

use formwork_schema::{Comparison, Compatibility, compare};
use serde_json::Value;
use similar::TextDiff;

use super::{File, document};

/// The differences between the files of a folder and their schemas.
///
/// `Display` writes the diffs, then the [`summary`](Self::summary).
///
/// ```
/// use formwork::golden::{Error, Folder};
///
/// let Err(Error::Outdated(report)) = Folder::new("no/such/folder").typed::<bool>("flag").check() else { panic!() };
/// assert_eq!((report.files()[0].file.as_str(), report.keeps_old_values()), ("flag.json", true));
/// assert!(report.diff().contains("boolean") && report.summary().contains("flag.json: added"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    folder: String,
    files: Vec<FileChange>,
    /// The instructions for writing the files; empty if writing does not help.
    advice: String,
}

/// A file that differs from its schema.
///
/// ```
/// use formwork::golden::{Error, FileChange, FileChangeKind, Folder};
///
/// let Err(Error::Outdated(report)) = Folder::new("no/such/folder").typed::<bool>("flag").check() else { panic!() };
/// let change: &FileChange = &report.files()[0];
/// assert!(matches!(change.kind, FileChangeKind::Added));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileChange {
    /// The name of the file.
    pub file: String,
    /// The kind of the change.
    pub kind: FileChangeKind,
    /// The unified diff from the file to the schema; empty for a stale file.
    pub diff: String,
}

/// The kind of a [`FileChange`].
///
/// ```
/// use formwork::golden::FileChangeKind;
///
/// let kind = FileChangeKind::Lowered { dialect: "openai".into() };
/// assert!(!matches!(kind, FileChangeKind::Altered(_)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileChangeKind {
    /// The file does not exist.
    Added,
    /// The file has another schema. The comparison goes from the file to the schema.
    Altered(Comparison),
    /// The file has another lowered schema. No program reads values by a lowered schema, so it is not compared.
    Lowered {
        /// The name of the dialect.
        dialect: String,
    },
    /// The file has no type.
    Removed,
}

impl Report {
    pub(super) fn new(
        folder: &str,
        expected: &BTreeMap<String, File>,
        there: &BTreeMap<String, String>,
        advice: String,
    ) -> Self {
        let changed = expected.iter().filter_map(|(name, file)| change(folder, name, file, there.get(name)));
        let mut files: Vec<FileChange> = changed.collect();
        // Writing the files does not remove stale files.
        let advice = if files.is_empty() { String::new() } else { advice };
        files.extend(there.keys().filter(|name| !expected.contains_key(*name)).cloned().map(stale));
        Self { folder: folder.to_owned(), files, advice }
    }

    pub(super) fn stale(folder: &str, names: Vec<String>) -> Self {
        Self {
            folder: folder.to_owned(),
            files: names.into_iter().map(stale).collect(),
            advice: String::new(),
        }
    }

    /// Returns the files that differ: those of schemas in alphabetical order, then stale files.
    pub fn files(&self) -> &[FileChange] {
        &self.files
    }

    /// Returns whether readers of old values are proved safe: every value that was valid by a file is still valid. A
    /// removed file counts as unsafe, because its values cannot be read at all.
    pub fn keeps_old_values(&self) -> bool {
        self.files.iter().all(|file| match &file.kind {
            FileChangeKind::Added | FileChangeKind::Lowered { .. } => true,
            FileChangeKind::Altered(comparison) => comparison.verdict.keeps_old_values(),
            FileChangeKind::Removed => false,
        })
    }

    /// Returns the unified diffs of all files.
    pub fn diff(&self) -> String {
        self.files.iter().map(|file| file.diff.as_str()).collect()
    }

    /// Returns a paragraph for each file with the kind of its change, and the command that writes the files.
    pub fn summary(&self) -> String {
        let mut lines: Vec<String> =
            self.files.iter().map(|file| format!("{}/{}", self.folder, paragraph(file))).collect();
        if !self.advice.is_empty() {
            lines.push(self.advice.clone());
        }
        lines.join("\n")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "schema files are not what the types say\n{}{}", self.diff(), self.summary())
    }
}

fn stale(file: String) -> FileChange {
    FileChange { file, kind: FileChangeKind::Removed, diff: String::new() }
}

/// Returns the difference between a file and its schema, if there is one.
fn change(folder: &str, name: &str, expected: &File, there: Option<&String>) -> Option<FileChange> {
    let text = document::text(&expected.document);
    let old = there.map_or("", String::as_str);
    if old == text {
        return None;
    }
    let relative = folder.trim_start_matches('/');
    let (before, after) = (format!("a/{relative}/{name}"), format!("b/{relative}/{name}"));
    let diff = TextDiff::from_lines(old, text.as_str());
    let diff = diff.unified_diff().header(&before, &after).to_string();
    let kind = match (there, &expected.dialect) {
        (None, _) => FileChangeKind::Added,
        (_, Some(dialect)) => FileChangeKind::Lowered { dialect: dialect.clone() },
        // A file that is not JSON counts as `null`, which is not a schema, so nothing can be proved.
        _ => {
            let old: Value = serde_json::from_str(old).unwrap_or_default();
            FileChangeKind::Altered(compare(&old, &expected.document))
        }
    };
    Some(FileChange { file: name.to_owned(), kind, diff })
}

fn paragraph(change: &FileChange) -> String {
    let file = &change.file;
    match &change.kind {
        FileChangeKind::Added => format!("{file}: added: the file does not exist yet"),
        FileChangeKind::Lowered { dialect } => {
            format!("{file}: the schema that is sent in the dialect `{dialect}` changed")
        }
        FileChangeKind::Removed => {
            format!("{file}: removed: no type owns the file; delete it, or add its type")
        }
        FileChangeKind::Altered(comparison) => {
            let mut lines = vec![format!("{file}: {}: {}", comparison.verdict, effect(comparison.verdict))];
            lines.extend(comparison.changes.iter().map(|change| format!("    {change}")));
            if comparison.keeps_named && !comparison.verdict.keeps_old_values() {
                lines.push(
                    "    values whose objects have only members that the old schema names stay valid".into(),
                );
            }
            lines.join("\n")
        }
    }
}

/// Returns the effect of a comparison on readers of values.
const fn effect(verdict: Compatibility) -> &'static str {
    match verdict {
        Compatibility::Unchanged => "the same values are valid",
        Compatibility::Widened => {
            "every old value is still valid; readers that keep the old schema may reject new values"
        }
        Compatibility::Narrowed => "breaks readers of old values: some of them are no longer valid",
        Compatibility::Mixed => {
            "breaks readers of old values: some of them are no longer valid, and values are valid that were not"
        }
        _ => "nothing proves that every old value is still valid",
    }
}
