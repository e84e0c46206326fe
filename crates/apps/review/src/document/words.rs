//! Turns schema violations into messages for the author of the file.

use formwork_core::keywords::member_names;
use formwork_core::{JsonPath, Segment, Structure as _, Violation};
use formwork_schema::{Compiled, nearest};

use super::{Document, Finding};

/// Returns the mistake for a violation of the document's schema.
pub(super) fn finding(document: &Document, schema: &Compiled, violation: &Violation) -> Finding {
    let path = &violation.path;
    match (violation.rule.as_str(), path.last()) {
        ("additionalProperties" | "unevaluatedProperties", Some(Segment::Key(name))) => {
            let known = known(document, schema, path);
            let message = match nearest(name, known.iter().map(String::as_str)) {
                Some(meant) => format!("there is no `{name}` here: did you mean `{meant}`?"),
                None => format!("there is no `{name}` here; there are {}", known.join(", ")),
            };
            document.finding_at_key(path, message)
        }
        ("required", Some(Segment::Key(name))) => {
            let owner = path.parent().unwrap_or_default();
            document.finding(&owner, format!("required field `{name}` is missing"))
        }
        _ => document.finding(path, violation.to_string()),
    }
}

/// Returns the member names that the schema knows for an object.
fn known(document: &Document, schema: &Compiled, path: &JsonPath) -> Vec<String> {
    let owner = path.parent().unwrap_or_default();
    let subschema = schema.subschema(&owner, document.value()).unwrap_or_default();
    member_names(&subschema, &subschema).into_iter().map(str::to_owned).collect()
}

/// Converts a path of `serde_path_to_error`.
pub(super) fn path(path: &serde_path_to_error::Path) -> JsonPath {
    use serde_path_to_error::Segment as At;
    let segments = path.iter().filter_map(|segment| match segment {
        At::Seq { index } => Some(Segment::Index(*index)),
        At::Map { key } => Some(Segment::Key(key.clone())),
        At::Enum { .. } | At::Unknown => None,
    });
    segments.collect()
}
