//! Drops values that do not fit their schema, or replaces them by defaults.

use std::collections::BTreeMap;

use formwork_json::JsonPath;
use serde_json::Value;

use super::change::Coerced;
use super::declared::Coercion;
use super::places::Coercions;
use crate::keywords::target;
use crate::{Segment, Structure, Violation};

/// Returns the document without the members and items that may be dropped, and with defaults, where violations lie; `None` if there is
/// nothing to change.
pub(super) fn replaced(
    coercions: &Coercions,
    structure: &dyn Structure,
    value: &Value,
    found: &[Violation],
) -> Option<(Value, Vec<Coerced>)> {
    let mut changes: BTreeMap<JsonPath, Option<Value>> = BTreeMap::new();
    for violation in found {
        let around = coercions.along(&violation.path);
        // The innermost member or item around the violation that can be changed.
        for (depth, (coercion, parts)) in around.iter().enumerate().rev() {
            let at: JsonPath = violation.path.segments().iter().take(depth).cloned().collect();
            let Some(last) = at.last() else { continue };
            let is_member = matches!(last, Segment::Key(_));
            let change = match coercion {
                Coercion::Drop => {
                    let may_be_left_out = match is_member {
                        true => structure.member(&at, value).is_some_and(|one| !one.is_required),
                        false => coercions.drops_item(&at, parts),
                    };
                    (at.get(value).is_some() && may_be_left_out).then_some(None)
                }
                Coercion::Default if is_member => {
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
    // The last items of a list first, so that the indexes of the others stay.
    for (path, change) in changes.into_iter().rev() {
        let Some(parent) = path.parent() else { continue };
        match (parent.get_mut(&mut out), path.last(), change) {
            (Some(Value::Object(members)), Some(Segment::Key(name)), None) => {
                let removed = members.shift_remove(name);
                made.extend(
                    removed.map(|before| Coerced::removed(path, &before, "does not fit the contract")),
                );
            }
            (Some(Value::Array(items)), Some(Segment::Index(index)), None) if *index < items.len() => {
                let before = items.remove(*index);
                made.push(Coerced::removed(path, &before, "does not fit the contract"));
            }
            (Some(Value::Object(members)), Some(Segment::Key(name)), Some(default)) => {
                match members.insert(name.clone(), default.clone()) {
                    Some(before) if before == default => {}
                    Some(before) => made.push(Coerced::changed(path, &before, &default)),
                    None => made.push(Coerced::added(path, &default)),
                }
            }
            _ => {}
        }
    }
    made.reverse();
    (!made.is_empty()).then_some((out, made))
}
