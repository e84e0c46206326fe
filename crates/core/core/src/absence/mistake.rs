//! Schemas with marks: their mistakes, and their text for prompts.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::declared::{Absent, KEYWORD, WRAPPED, declares_absence};
use super::mark::Marker;
use super::widen::strip;
use crate::coercion::declared::{self as coercion, declares_coercion};
use crate::keywords::find;
use crate::{PathPattern, normalise};

/// Returns the first mistake in the marks of a schema: its JSON Pointer and a message.
///
/// ```
/// use formwork_core::absence_mistake;
/// use serde_json::json;
///
/// let schema = json!({"properties": {"birth": {}}, "x-formwork-absent": ["$.brith"]});
/// let (pointer, message) = absence_mistake(&schema).unwrap();
/// assert_eq!(pointer, "/x-formwork-absent/0");
/// assert_eq!(message, "the schema names no member at `$.brith`");
/// ```
pub fn absence_mistake(schema: &Value) -> Option<(String, String)> {
    let root = match Absent::of(schema) {
        None => false,
        Some(Ok(Absent::All)) => true,
        Some(Ok(Absent::Paths(paths))) => {
            let unnamed = unnamed(schema, &paths);
            if let Some((nth, path)) = paths.iter().enumerate().find(|(nth, _)| unnamed.contains(nth)) {
                let message = format!("the schema names no member at `{path}`");
                return Some((format!("/{KEYWORD}/{nth}"), message));
            }
            true
        }
        Some(Err(message)) => return Some((format!("/{KEYWORD}"), message)),
    };
    let is_wrong =
        |node: &Value| node.get(KEYWORD).is_some_and(|mark| !mark.is_boolean() && *mark != WRAPPED);
    let mut at_root = root;
    let pointer = find(schema, |node| is_wrong(node) && !std::mem::take(&mut at_root))?;
    Some((
        format!("{pointer}/{KEYWORD}"),
        "expected true: `all` and paths stand in the root of the schema".to_owned(),
    ))
}

/// Returns a schema as a prompt shows it: marked members are required, nullable and described, and all marks of Formwork
/// are left out.
pub fn without_marks(schema: &Value) -> Cow<'_, Value> {
    if !declares_absence(schema) {
        if !declares_coercion(schema) {
            return Cow::Borrowed(schema);
        }
        let mut plain = schema.clone();
        coercion::strip(&mut plain);
        return Cow::Owned(plain);
    }
    let mut normal = normalise(schema);
    strip(&mut normal);
    Cow::Owned(normal)
}

/// Returns the indices of the paths at which a schema names no member.
fn unnamed(schema: &Value, paths: &[PathPattern]) -> BTreeSet<usize> {
    let mut plain = schema.clone();
    if let Some(keywords) = plain.as_object_mut() {
        keywords.shift_remove(KEYWORD);
    }
    let normal = normalise(&plain);
    let mut marker = Marker::new(&normal, paths);
    marker.mark(&mut BTreeMap::new());
    (0..paths.len()).filter(|nth| !marker.named.contains(nth)).collect()
}
