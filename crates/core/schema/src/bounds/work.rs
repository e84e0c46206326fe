//! Counts the work of validating one value whose members can be reached in several ways.
//!
//! In a union whose variants refer back to it, the errors of a member are collected once for each variant, at each level:
//! ten million times for 5 variants and 10 levels. Counting the work takes only as many steps as there are pairs of a part
//! and a value.

use std::collections::HashMap;

use formwork_core::keywords::{At, Part, definition_name};
use serde_json::Value;

use super::graph::parts;
use super::guard::is_ruled_out;

/// The number of comparisons from which on errors are searched for step by step instead: about 100 ms.
pub(crate) const MAX_REPORTED: u64 = 50_000;

/// The number of comparisons from which on a value is not validated at all.
pub(crate) const MAX_VALIDATED: u64 = 20_000_000;

/// The maximum number of counted pairs of a part and a value; a value with more is not validated either.
const MAX_COUNTED: usize = 1_000_000;

/// Returns whether a validator may make more comparisons than a limit: those that find every error, or those of a
/// [`guarded`](crate::guard) schema, which skips variants that are `ruled_out` by their tags.
pub(crate) fn is_more_work(normal: &Value, value: &Value, ruled_out: bool, limit: u64) -> bool {
    Work { normal, ruled_out, limit, known: HashMap::new() }
        .of((normal, value))
        .is_none_or(|work| work > limit)
}

/// A part of a schema, and a value that is compared with it.
type Pair<'s, 'v> = (&'s Value, &'v Value);

struct Work<'s> {
    normal: &'s Value,
    ruled_out: bool,
    limit: u64,
    known: HashMap<(*const Value, *const Value), u64>,
}

/// A pair whose work is being counted.
struct Open<'s, 'v> {
    pair: Pair<'s, 'v>,
    inner: Vec<Pair<'s, 'v>>,
    total: u64,
}

impl<'s> Work<'s> {
    /// Returns the number of comparisons for a pair; `None` as soon as there are too many. It does not recurse, because its
    /// purpose is to find out how deep the recursion may be.
    fn of<'v>(&mut self, pair: Pair<'s, 'v>) -> Option<u64> {
        let mut open = vec![self.open(pair)];
        loop {
            let here = open.last_mut()?;
            if here.total > self.limit || self.known.len() > MAX_COUNTED {
                return None;
            }
            if let Some(inner) = here.inner.pop() {
                match self.known.get(&key(inner)) {
                    Some(known) => here.total = here.total.saturating_add(*known),
                    None if is_leaf(inner.0) => here.total += 1,
                    None => open.push(self.open(inner)),
                }
                continue;
            }
            let (total, pair) = (here.total, here.pair);
            self.known.insert(key(pair), total);
            open.pop();
            match open.last_mut() {
                Some(outer) => outer.total = outer.total.saturating_add(total),
                None => return Some(total),
            }
        }
    }

    fn open<'v>(&mut self, pair: Pair<'s, 'v>) -> Open<'s, 'v> {
        // A schema that refers back to itself for the same value is followed only once.
        self.known.insert(key(pair), 1);
        let inner = self.inner(pair);
        Open { pair, inner, total: 1 }
    }

    /// Returns the pairs that a pair depends on.
    fn inner<'v>(&self, (schema, value): Pair<'s, 'v>) -> Vec<Pair<'s, 'v>> {
        let mut inner = Vec::new();
        let referred = definition_name(schema).and_then(|name| self.normal.get("$defs")?.get(name));
        inner.extend(referred.map(|unit| (unit, value)));
        let listed = schema.get("prefixItems").and_then(Value::as_array);
        for Part { keyword, schema: part, .. } in parts(schema) {
            match (keyword.name, value) {
                ("properties" | "prefixItems", _) => {}
                (name, _) if keyword.at == At::Here => {
                    let is_variant = self.ruled_out && matches!(name, "anyOf" | "oneOf");
                    if !(is_variant && is_ruled_out(self.normal, part, value)) {
                        inner.push((part, value));
                    }
                }
                (name, Value::Array(items)) if keyword.about == Some("array") => {
                    let from = if name == "items" { listed.map_or(0, Vec::len) } else { 0 };
                    inner.extend(items.iter().skip(from).map(|item| (part, item)));
                }
                (name, Value::Object(members)) if keyword.about == Some("object") => {
                    let named = schema.get("properties").filter(|_| name == "additionalProperties");
                    let all = members
                        .iter()
                        .filter(|(name, _)| named.is_none_or(|named| named.get(name).is_none()));
                    inner.extend(all.map(|(_, member)| (part, member)));
                }
                _ => {}
            }
        }
        let properties = schema.get("properties");
        let members = value.as_object().into_iter().flatten();
        inner.extend(members.filter_map(|(name, member)| Some((properties?.get(name)?, member))));
        inner.extend(listed.into_iter().flatten().zip(value.as_array().into_iter().flatten()));
        inner
    }
}

fn key((schema, value): Pair<'_, '_>) -> (*const Value, *const Value) {
    (std::ptr::from_ref(schema), std::ptr::from_ref(value))
}

/// Returns whether a schema has no subschemas and references. Most parts have none and need not be recorded.
fn is_leaf(schema: &Value) -> bool {
    definition_name(schema).is_none() && parts(schema).next().is_none()
}
