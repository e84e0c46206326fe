//! Which schemas a model may be asked about: told before one is loaded, or fetched.

use formwork_core::{Error, ErrorKind, Severity};
use formwork_schema::{compile, lint};
use serde_json::Value;

/// Refuses a schema that cannot be compiled, and one that every answer to would be rejected.
pub(super) fn usable(schema: &Value) -> Result<(), Error> {
    let refused = |message: String| Err(Error::new(ErrorKind::Schema, message));
    if let Err(error) = compile(schema) {
        return refused(format!("#{}: {}", error.pointer, error.message));
    }
    match lint(schema).into_iter().find(|finding| finding.severity == Severity::Error) {
        Some(finding) => refused(format!("#{}: {}", finding.pointer, finding.message)),
        None => Ok(()),
    }
}
