//! Reads the files that the command line names.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use formwork::contract::{NamedContract, read_contract};
use formwork_core::{Report, Violation, Warning, WarningKind, cut, precision};
use formwork_json::{Candidate, EditKind, ReadError, Rounded, line_column, read_exact};
use formwork_review::document::{Document, Format};
use formwork_schema::{Compiled, Formats, SaysNothing, SchemaError, compile_with, says_nothing};
use formwork_shape::Shape;
use serde_json::Value;

use crate::exit::Failed;
use crate::stderr::say;

/// Returns a text without a byte order mark at its start, which Windows and spreadsheets write and which is no part of the text.
pub(crate) fn unmarked(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Returns the bytes of a file, or of standard input for `-`, without a byte order mark.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Failed> {
    let read = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    let mut bytes = read.map_err(|error| Failed::usage(format!("cannot read {}: {error}", name(path))))?;
    bytes.drain(..bytes.len() - unmarked(&bytes).len());
    Ok(bytes)
}

/// Returns the text of a file, or of standard input for `-`.
///
/// # Errors
/// [`Failed`] for a file that cannot be read, a PDF, and a text that is not UTF-8.
pub(crate) fn text(path: &Path) -> Result<String, Failed> {
    let bytes = bytes(path)?;
    if bytes.trim_ascii_start().starts_with(b"%PDF-") {
        let (name, file) = (name(path), path.display());
        return Err(Failed::usage(format!(
            "{name} is a PDF, not a text: convert it first, for example with `pdftotext {file} -`"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let place = place(&name(path), error.as_bytes(), at);
        Failed::usage(format!("{place}: byte {at} is not UTF-8: save the text as UTF-8"))
    })
}

/// Returns an error if the folder of a file that is written later does not exist.
pub(crate) fn can_be_written(path: &Path) -> Result<(), Failed> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir());
    folder.map_or(Ok(()), |folder| {
        let (path, folder) = (path.display(), folder.display());
        Err(Failed::usage(format!("cannot write {path}: there is no folder {folder}")))
    })
}

/// Returns the place of a byte of a text for messages: the file with line and column.
pub(crate) fn place(name: &str, text: &[u8], at: usize) -> String {
    let (line, column) = line_column(&String::from_utf8_lossy(text), at);
    format!("{name}:{line}:{column}")
}

/// Returns the name of an input for messages.
pub(crate) fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// Reads a file as one JSON document.
pub(crate) fn json(path: &Path) -> Result<Value, Failed> {
    json_of(path, &bytes(path)?)
}

/// Parses the bytes of a file as one JSON document.
pub(crate) fn json_of(path: &Path, bytes: &[u8]) -> Result<Value, Failed> {
    json_of_text(&name(path), bytes)
}

/// Parses a text as one JSON document, and prints its [`warnings`].
///
/// # Errors
/// [`Failed`] with line and column of a mistake, or of an integer that cannot be kept exactly.
pub(crate) fn json_of_text(name: &str, text: &[u8]) -> Result<Value, Failed> {
    let document = read_exact(text)
        .map_err(|error| Failed::usage(format!("{}: {error}", place(name, text, error.at().unwrap_or(0)))))?;
    warn_of(name, text, &document);
    Ok(document.value)
}

/// Returns a text as JSON if it is a JSON document, and as a string otherwise.
///
/// # Errors
/// [`Failed`] for a document with an integer that cannot be kept exactly.
pub(crate) fn json_or_text(name: &str, text: String) -> Result<Value, Failed> {
    match read_exact(&text) {
        Err(ReadError::Inexact { .. }) | Ok(_) => json_of_text(name, text.as_bytes()),
        Err(_) => Ok(Value::String(text)),
    }
}

/// Prints the [`warnings`] of a document.
pub(crate) fn warn_of(name: &str, text: &[u8], document: &Candidate) {
    let warnings = warnings(&String::from_utf8_lossy(text), document);
    warnings.iter().for_each(|warning| say!("warning: {name}: {warning}"));
}

/// Returns a warning for each repeated name of a document and each number that was rounded, up to the limit of warnings of an
/// answer.
pub(crate) fn warnings(text: &str, document: &Candidate) -> Vec<Warning> {
    let repeated = document.edits.iter().filter(|edit| edit.kind == EditKind::DuplicateKey);
    let repeated = repeated.take(Report::CAP).map(|edit| {
        let (line, column) = line_column(text, edit.span.start);
        let message = format!(
            "the name {} in line {line}, column {column} is repeated: the last one counts",
            Value::from(cut(&edit.with, MAX_NAME))
        );
        Warning::new(WarningKind::DuplicateKey, message)
    });
    repeated.chain(precision(&document.rounded).1).collect()
}

/// The maximum length of a name in a warning.
const MAX_NAME: usize = 80;

/// Prints a warning for each number that was rounded, up to the limit of warnings of an answer.
pub(crate) fn warn_of_rounded(name: &str, rounded: &[Rounded]) {
    precision(rounded).1.iter().for_each(|warning| say!("warning: {name}: {warning}"));
}

/// Reads a contract: YAML, a JSON Schema or a shape. Prints a warning for each number that was rounded.
pub(crate) fn contract(path: &Path) -> Result<NamedContract, Failed> {
    let contract = read_contract(path).map_err(|error| match path.exists() {
        true => Failed::usage(error),
        false => Failed::usage(format!("cannot read the contract {}: there is no such file", path.display())),
    })?;
    warn_of_rounded(&name(path), &contract.rounded);
    Ok(contract)
}

/// Parses a YAML or TOML file. Prints a warning for each number that was rounded.
pub(crate) fn document(path: &Path) -> Result<Document, Failed> {
    let name = name(path);
    let document = Document::parse(&name, &text(path)?, Format::of(path));
    let document = document.map_err(|error| Failed::usage(format!("{error:#}")))?;
    warn_of_rounded(&name, document.rounded());
    Ok(document)
}

/// Parses the text of a shape, or of a list of fields, and prints what its linter finds. A text without a bracket at its start is a list
/// of fields; in a file it may also be a type.
pub(crate) fn shape(name: &str, text: &str, is_argument: bool) -> Result<Shape, Failed> {
    let mut begun = text.trim_start();
    while begun.starts_with("//") || begun.starts_with('#') {
        begun = begun.split_once('\n').map_or("", |(_, after)| after.trim_start());
    }
    let is_fields = !begun.starts_with(['{', '[']) && (is_argument || Shape::parse(text).is_err());
    let shape = if is_fields { Shape::parse_fields(text) } else { Shape::parse(text) };
    let shape = shape.map_err(|error| Failed::usage(error.pointed(name).trim_end()))?;
    shape.lint().iter().for_each(|finding| say!("warning: {name}: {finding}"));
    Ok(shape)
}

/// Compiles a schema that was read from a file.
pub(crate) fn compiled(path: &Path, schema: &Value, formats: Formats) -> Result<Arc<Compiled>, Failed> {
    compile_with(schema, formats).map_err(|error| Failed::usage(format!("{}: {error}", name(path))))
}

/// Returns the schema inside of a vendor's wrapper with the warning, or the document itself.
pub(crate) fn unwrapped(document: Value) -> (Value, Option<Warning>) {
    match formwork_schema::unwrapped(&document) {
        Some((schema, warning)) => (schema.clone(), Some(warning)),
        None => (document, None),
    }
}

/// Checks that the schema of a request says something about values. With `any`, its root may allow any value.
///
/// # Errors
/// [`SchemaError`] with the reason, and the option that allows any value.
pub(crate) fn says_something(schema: &Value, any: bool) -> Result<(), SchemaError> {
    match says_nothing(schema) {
        None => Ok(()),
        Some(SaysNothing::Root) if any => Ok(()),
        Some(reason) => {
            let fix = if reason == SaysNothing::Root { ", or add --any to accept any value" } else { "" };
            let SchemaError { pointer, message } = reason.into();
            Err(SchemaError { pointer, message: message + fix })
        }
    }
}

/// Checks that at most one input is standard input, which can be read only once.
pub(crate) fn one_standard_input(paths: &[&Path]) -> Result<(), Failed> {
    if paths.iter().filter(|path| **path == Path::new("-")).count() > 1 {
        return Err(Failed::usage(
            "standard input can be used for one input only: name a file for the other",
        ));
    }
    Ok(())
}

/// Returns a violation for each number that cannot be kept, in the place of the capped list of [`precision`].
pub(crate) fn unkept(rounded: &[Rounded]) -> impl Iterator<Item = Violation> {
    rounded.iter().filter(|number| !number.is_tolerable()).map(Violation::from)
}
