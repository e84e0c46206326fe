//! Drops values that do not fit their schema, or replaces them by defaults.

use std::collections::BTreeMap;

use formwork_json::JsonPath;
use serde_json::Value;

use super::change::Coerced;
use super::declared::Coercion;
use super::places::Coercions;
use crate::keywords::target;
use crate::{Segment, Structure, Violation};

/// Returns the document without the members that may be dropped, and with defaults, where violations lie; `None` if there is nothing to
/// change.
pub(super) fn replaced(
    coercions: &Coercions,
    structure: &dyn Structure,
    value: &Value,
    found: &[Violation],
) -> Option<(Value, Vec<Coerced>)> {
    let mut changes: BTreeMap<JsonPath, Option<Value>> = BTreeMap::new();
    for violation in found {
        let around = coercions.along(&violation.path);
        // The innermost member around the violation that can be changed.
        for (depth, (coercion, parts)) in around.iter().enumerate().rev() {
            let at: JsonPath = violation.path.segments().iter().take(depth).cloned().collect();
            let Some(Segment::Key(_)) = at.last() else { continue };
            let change = match coercion {
                Coercion::Drop => {
                    let is_optional =
                        |path| structure.member(path, value).is_some_and(|one| !one.is_required);
                    (at.get(value).is_some() && is_optional(&at)).then_some(None)
                }
                Coercion::Default => {
                    let of_part = |part: &Value| {
                        let target = target(&coercions.schema, part);
                        part.get("default").or_else(|| target?.get("default")).cloned()
                    };
                    parts.iter().find_map(|part| of_part(part)).map(Some)
                }
                _ => continue,
            };
            if let Some(change) = change {
                changes.insert(at, change);
                break;
            }
        }
    }
    // A change of a value makes those inside of it needless.
    let paths: Vec<JsonPath> = changes.keys().cloned().collect();
    changes.retain(|path, _| !paths.iter().any(|other| other != path && path.is_within(other)));
    let mut out = value.clone();
    let mut made = Vec::new();
    for (path, change) in changes {
        let (Some(Segment::Key(name)), Some(parent)) = (path.last(), path.parent()) else { continue };
        let Some(members) = parent.get_mut(&mut out).and_then(Value::as_object_mut) else { continue };
        let name = name.clone();
        match (change, members.get(&name).cloned()) {
            (None, Some(before)) => {
                members.shift_remove(&name);
                made.push(Coerced::removed(path, &before, "does not fit the schema"));
            }
            (Some(default), Some(before)) if before != default => {
                made.push(Coerced::changed(path, &before, &default));
                members.insert(name, default);
            }
            (Some(default), None) => {
                made.push(Coerced::added(path, &default));
                members.insert(name, default);
            }
            _ => {}
        }
    }
    (!made.is_empty()).then_some((out, made))
}
