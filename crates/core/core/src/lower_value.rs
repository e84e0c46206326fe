use formwork_json::is_same;
use serde_json::{Map, Value, json};

use crate::accepts::Accepts;
use crate::keywords::{fits_type, item, target};
use crate::lift::{Lifter, leaves};
use crate::{Lift, Lowered};

/// Returns a document in the form in which a provider would write it under a lowered schema: the inverse of
/// [`lift`](crate::lift).
///
/// Members that the lowered schema does not allow, because it closes an object, are left out. Members are ordered as the
/// schema generates them. The result is `None` if the lowered schema allows no such answer, and if no schema is sent.
/// Formats are ignored. `matches` returns whether a text matches a pattern of the schema: patterns can distinguish
/// variants, and the core has no regular expressions.
///
/// ```
/// use formwork_core::{Enforcement, Lift, LiftOp, Lowered, lift, lower_value};
/// use serde_json::json;
///
/// let nick = json!({"type": ["string", "null"]});
/// let sent = json!({"type": "object", "properties": {"nick": nick}, "required": ["nick"], "additionalProperties": false});
/// let lowered = Lowered::new(Enforcement::Schema, sent)
///     .with_lift(vec![LiftOp { at: String::new(), lift: Lift::DropNull(vec!["nick".into()]) }]);
/// assert_eq!(lower_value(&json!({}), &lowered, &|_, _| true), Some(json!({"nick": null})));
/// assert_eq!(lower_value(&json!({"nick": 5}), &lowered, &|_, _| true), None);
/// ```
pub fn lower_value(value: &Value, lowered: &Lowered, matches: &dyn Fn(&str, &str) -> bool) -> Option<Value> {
    let schema = lowered.schema.as_ref()?;
    let lifter = Lifter::new(schema, lowered);
    [false, true].into_iter().find_map(|prunes| {
        let work = Writer { schema, lifter: &lifter, prunes, matches };
        let Written { sent, lifted } = work.checked(schema, value)?;
        (prunes || is_same(&lifted, value)).then_some(sent)
    })
}

struct Writer<'a> {
    schema: &'a Value,
    lifter: &'a Lifter<'a>,
    /// Whether members that a closed object does not name are left out.
    prunes: bool,
    matches: &'a dyn Fn(&str, &str) -> bool,
}

/// A value as it is sent, and the part of the document that it encodes.
struct Written {
    sent: Value,
    lifted: Value,
}

impl<'a> Writer<'a> {
    /// Writes a value in a form that satisfies the node and is mapped back to the same value.
    fn checked(&self, node: &'a Value, value: &Value) -> Option<Written> {
        let written = self.node(node, value, 0)?;
        let fits = Accepts::new(self.schema).with_patterns(self.matches).accepts(&written.sent, node);
        let back = self.lifter.lifted(written.sent.clone(), node).filter(|_| fits)?;
        is_same(&back, &written.lifted).then_some(written)
    }

    fn node(&self, node: &'a Value, value: &Value, jumps: usize) -> Option<Written> {
        match node {
            Value::Bool(true) => {
                let mut sent = value.clone();
                let ops = self.lifter.ops(node);
                for lift in ops.iter().rev() {
                    undo(lift, ops, node, &mut sent)?;
                }
                return Some(Written { sent, lifted: value.clone() });
            }
            Value::Object(_) if jumps <= MAX_JUMPS => {}
            _ => return None,
        }
        if node["$ref"].is_string() {
            return self.node(target(self.schema, node)?, value, jumps + 1);
        }
        if let Some(variants) = node["anyOf"].as_array() {
            return self.best(variants.iter().filter_map(|variant| self.checked(variant, value)));
        }
        if let [Lift::Choice { names, null }] = self.lifter.ops(node) {
            return self.choice(node, names, *null, value);
        }
        let is_text = self.lifter.ops(node).iter().any(|lift| **lift == Lift::ParseJson);
        if let Some(listed) = listed(node).find(|listed| !is_text && is_same(listed, value)) {
            return Some(Written { sent: listed.clone(), lifted: value.clone() });
        }
        let ops = self.lifter.ops(node);
        // A constant may be written as JSON in a string, and 1 and 1.0 are the same value.
        let written = |value: &Value| {
            let listed = listed(node).filter(|_| is_text).find(|listed| {
                let parsed = listed.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
                parsed.is_some_and(|parsed| is_same(&parsed, value))
            })?;
            Some(Written { sent: listed.clone(), lifted: value.clone() })
        };
        // A closed object that names no possible member is the constant `{}`.
        let empty = || written(&json!({})).filter(|_| self.prunes && value.is_object());
        if let Some(written) = written(value).or_else(empty) {
            return Some(written);
        }
        let mut sent = value.clone();
        for lift in ops.iter().rev() {
            undo(lift, ops, node, &mut sent)?;
        }
        if node["type"] == "integer"
            && let Some(whole) = sent.as_f64().filter(|number| sent.is_f64() && number.abs() < 9e15)
        {
            sent = json!(whole as i64);
        }
        // The members cannot correct a wrong type.
        if fits_type(node, &sent) == Some(false) || node.get("const").is_some() || node["enum"].is_array() {
            return None;
        }
        let mut has_pruned = false;
        match &mut sent {
            Value::Object(members) => has_pruned = self.members(node, members)?,
            Value::Array(items) => {
                for (index, value) in items.iter_mut().enumerate() {
                    let Some(part) = item(node, index) else { continue };
                    let written = self.node(part, value, 0)?;
                    has_pruned |= !is_same(&written.lifted, value);
                    *value = written.sent;
                }
            }
            _ => {}
        }
        let lifted = if has_pruned { self.lifter.lifted(sent.clone(), node)? } else { value.clone() };
        Some(Written { sent, lifted })
    }

    /// Writes a value into the list of the first variant that takes it, or of the one that leaves out least.
    fn choice(&self, node: &'a Value, names: &[String], null: bool, value: &Value) -> Option<Written> {
        let filled = |filled: Option<(&String, Value)>| {
            let mut lists: Map<_, _> = names.iter().map(|name| (name.clone(), json!([]))).collect();
            if let Some((name, item)) = filled {
                lists.insert(name.clone(), json!([item]));
            }
            Value::Object(lists)
        };
        if null && value.is_null() {
            return Some(Written { sent: filled(None), lifted: Value::Null });
        }
        self.best(names.iter().filter_map(|name| {
            let Written { sent, lifted } = self.checked(&node["properties"][name]["items"], value)?;
            Some(Written { sent: filled(Some((name, sent))), lifted })
        }))
    }

    /// Returns the variant that leaves out the fewest members, and of equal ones the first.
    fn best(&self, mut written: impl Iterator<Item = Written>) -> Option<Written> {
        if !self.prunes {
            return written.next();
        }
        written.min_by_key(|written| std::cmp::Reverse(size(&written.lifted)))
    }

    /// Writes the members of an object, in the order of the schema; whether something was left out.
    fn members(&self, node: &'a Value, members: &mut Map<String, Value>) -> Option<bool> {
        let mut ordered = Map::new();
        let mut has_pruned = false;
        let mut put = |name: &str, member: &Value, part: &'a Value| {
            let written = self.node(part, member, 0)?;
            has_pruned |= !is_same(&written.lifted, member);
            ordered.insert(name.to_owned(), written.sent);
            Some(())
        };
        for (name, part) in node["properties"].as_object().into_iter().flatten() {
            if let Some(member) = members.get(name) {
                put(name, member, part)?;
            }
        }
        let mut left_out = false;
        for (name, member) in std::mem::take(members) {
            if node["properties"].get(&name).is_some() {
                continue;
            }
            // Only a validator knows which pattern covers a name; the patterns of one object have the same operations.
            let patterns = node["patternProperties"].as_object().into_iter().flatten();
            let rest = node.get("additionalProperties").filter(|rest| **rest != Value::Bool(false));
            let mut parts = patterns.map(|(_, part)| part).chain(rest).peekable();
            if parts.peek().is_none() && node.get("additionalProperties").is_some() {
                left_out = true;
                if !self.prunes {
                    return None;
                }
                continue;
            }
            match parts.find_map(|part| self.checked(part, &member).map(|_| part)) {
                Some(part) => put(&name, &member, part)?,
                None => put(&name, &member, &Value::Bool(true))?,
            }
        }
        *members = ordered;
        Some(has_pruned || left_out)
    }
}

/// Returns the values that `const` and `enum` of a node list.
fn listed(node: &Value) -> impl Iterator<Item = &Value> {
    node.get("const").into_iter().chain(node["enum"].as_array().into_iter().flatten())
}

/// The maximum number of references that are followed without a step into the value.
const MAX_JUMPS: usize = 32;

/// Returns the number of values in a value, itself included.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// Applies the inverse of one operation; `None` if the operation cannot have produced the value.
fn undo(lift: &Lift, all: &[&Lift], node: &Value, value: &mut Value) -> Option<()> {
    match lift {
        Lift::Unwrap(key) => *value = json!({key: value}),
        Lift::ParseJson => *value = json!(value.to_string()),
        Lift::Leaves => *value = leaves(value)?,
        Lift::PairsToMap => {
            let members = value.as_object()?;
            *value = members.iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
        }
        Lift::Tuple { items: names, rest } => {
            let items = value.as_array()?;
            let split = items.len().min(names.len());
            let (first, further) = items.split_at(split);
            let mut members: Map<_, _> = names.iter().cloned().zip(first.iter().cloned()).collect();
            match rest {
                Some(rest) => drop(members.insert(rest.clone(), json!(further))),
                None if further.is_empty() => {}
                None => return None,
            }
            *value = Value::Object(members);
        }
        Lift::DropNull(names) => {
            let members = value.as_object_mut()?;
            for name in names {
                members.entry(name.clone()).or_insert(Value::Null);
            }
        }
        Lift::DropAbsent { names, marker } => {
            let members = value.as_object_mut()?;
            for name in names {
                members.entry(name.clone()).or_insert_with(|| marker.clone());
            }
        }
        Lift::Rename(names) => {
            let members = value.as_object_mut()?;
            for (name, member) in std::mem::take(members) {
                let sent = names.iter().find(|(_, original)| *original == name).map(|(sent, _)| sent.clone());
                members.insert(sent.unwrap_or(name), member);
            }
        }
        Lift::Spread(key) => {
            let renamed = all.iter().find_map(|lift| match lift {
                Lift::Rename(names) => Some(names.iter().map(|(_, original)| original.clone()).collect()),
                _ => None,
            });
            let known: Vec<String> = renamed.unwrap_or_else(|| {
                node["properties"].as_object().into_iter().flat_map(Map::keys).cloned().collect()
            });
            let members = value.as_object_mut()?;
            let (mine, others): (Map<_, _>, Map<_, _>) = std::mem::take(members)
                .into_iter()
                .partition(|(name, _)| known.contains(name) && name != key);
            *members = mine;
            let is_required = node["required"]
                .as_array()
                .is_some_and(|names| names.iter().any(|name| name == key.as_str()));
            if is_required || !others.is_empty() {
                members.insert(key.clone(), Value::Object(others));
            }
        }
        Lift::Unlist(names) => {
            let members = value.as_object_mut()?;
            for name in names {
                let items: Vec<Value> = members.remove(name).into_iter().collect();
                members.insert(name.clone(), Value::Array(items));
            }
        }
        // Only the caller knows which list of a choice accepts the value.
        Lift::Choice { .. } => return None,
        Lift::Reorder(_) => drop(value.as_object()?),
    }
    Some(())
}
