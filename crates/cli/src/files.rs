//! Reads the files that the command line names.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use formwork::contract::{NamedContract, read_contract};
use formwork_core::Validator;
use formwork_json::{Level, line_column, read_bytes};
use formwork_schema::{Compiled, Formats, compile_with};
use formwork_shape::Shape;
use serde_json::Value;

use crate::exit::Failed;
use crate::stderr::say;

/// Returns the bytes of a file, or of standard input for `-`.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Failed> {
    let read = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    read.map_err(|error| Failed::usage(format!("cannot read {}: {error}", name(path))))
}

/// Returns the text of a file, or of standard input for `-`.
pub(crate) fn text(path: &Path) -> Result<String, Failed> {
    String::from_utf8(bytes(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let (line, column) = line_column(&String::from_utf8_lossy(error.as_bytes()), at);
        let file = name(path);
        Failed::usage(format!("{file}:{line}:{column}: byte {at} is not UTF-8: save the text as UTF-8"))
    })
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
    let reading = read_bytes(bytes, Level::Strict).map_err(|error| {
        let text = String::from_utf8_lossy(bytes);
        let (line, column) = line_column(&text, error.at().unwrap_or(0));
        Failed::usage(format!("{}:{line}:{column}: {error}", name(path)))
    })?;
    Ok(reading.into_candidates().swap_remove(0).value)
}

/// Reads a contract: YAML, a JSON Schema or a shape.
pub(crate) fn contract(path: &Path) -> Result<NamedContract, Failed> {
    read_contract(path).map_err(|error| match path.exists() {
        true => Failed::usage(error),
        false => Failed::usage(format!("cannot read the contract {}: there is no such file", path.display())),
    })
}

/// Parses the text of a shape, or of a list of fields, and prints what its linter finds.
pub(crate) fn shape(name: &str, text: &str, is_fields: bool) -> Result<Shape, Failed> {
    let shape = if is_fields { Shape::parse_fields(text) } else { Shape::parse(text) };
    let shape = shape.map_err(|error| Failed::usage(error.pointed(name).trim_end()))?;
    shape.lint().iter().for_each(|finding| say!("warning: {name}: {finding}"));
    Ok(shape)
}

/// Compiles a schema that was read from a file.
pub(crate) fn compiled(path: &Path, schema: &Value, formats: Formats) -> Result<Arc<Compiled>, Failed> {
    compile_with(schema, formats).map_err(|error| Failed::usage(format!("{}: {error}", name(path))))
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

/// Returns a compiled schema as a validator.
pub(crate) fn violations(schema: &Compiled, value: &Value) -> Vec<formwork_core::Violation> {
    let mut report = formwork_core::Report::default();
    schema.validate(value, &formwork_core::Context::EMPTY, &mut report);
    report.violations().to_vec()
}
