//! The profile `docubench`: the rules of the scorer of DocuBench, a public benchmark of document extraction.
//!
//! - Numbers are floats of six decimals; texts have no case, white space and punctuation; empty values are removed, `null` is kept.
//! - The schema names the leaves. A leaf outside of lists is right or wrong, and has no effect if both sides are empty.
//! - The items of a list are paired greedily by their share of equal leaves. Inner lists are leaves.
//! - A list has as many leaves as its longer side has items, times the mean number of leaves of labelled items.
//! - The score of a document is the share of right leaves; 1 if there are none.
//! - Of several lists below one member of the root, the scorer counts the last one only, because it stores them by that member.

use formwork_core::keywords::target;
use formwork_evidence::{Pairing, greedy, is_stated, plain};
use formwork_json::is_same;
use serde_json::{Map, Number, Value};

use crate::tally::{Place, Sink, grade};

/// Compares a document with its gold, reports each leaf, and returns the score of the document.
pub(crate) fn compare(
    schema: Option<&Value>,
    expected: &Value,
    answer: Option<&Value>,
    sink: &mut Sink<'_>,
) -> f64 {
    let (expected, answer) = (prepared(expected), prepared(answer.unwrap_or(&Value::Null)));
    let sketched = schema.is_none().then(|| sketch(&[&expected, &answer]));
    let root = schema.or(sketched.as_ref()).unwrap_or(&Value::Null);
    let mut parts = Parts { root, right: 0.0, total: 0.0, lists: Vec::new() };
    parts.walk(&Place::Root, root, None, [Some(&expected), Some(&answer)], 0, sink);
    for (_, [right, total]) in parts.lists {
        parts.right += right;
        parts.total += total;
    }
    if parts.total > 0.0 { parts.right / parts.total } else { 1.0 }
}

struct Parts<'s> {
    root: &'s Value,
    right: f64,
    total: f64,
    /// The right and all leaves of lists, by the member of the root.
    lists: Vec<(Option<&'s str>, [f64; 2])>,
}

impl<'s> Parts<'s> {
    fn walk(
        &mut self,
        place: &Place<'_>,
        schema: &'s Value,
        top: Option<&'s str>,
        [expected, answer]: [Option<&Value>; 2],
        depth: usize,
        sink: &mut Sink<'_>,
    ) {
        let schema = resolved(self.root, schema);
        if is_list(schema) {
            let items = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
            let counts = lists(place, [&items(expected), &items(answer)], sink);
            self.lists.retain(|(name, _)| top.is_none() || *name != top);
            self.lists.push((top, counts));
            return;
        }
        let members = schema.get("properties").and_then(Value::as_object);
        let is_object = schema.get("type").is_some_and(|it| it == "object");
        if let Some(members) = members.filter(|_| depth < 64) {
            for (name, member) in members {
                let values = [expected, answer].map(|value| value.and_then(|value| value.get(name)));
                // An object that may be null is one leaf, but its lists are compared on their own.
                if is_object || has_list(self.root, member, depth) {
                    let place = Place::Key(place, name);
                    self.walk(&place, member, top.or(Some(name)), values, depth + 1, sink);
                }
            }
            let has_leaves = members.values().any(|member| !is_list(resolved(self.root, member)));
            if is_object || !has_leaves {
                return;
            }
        }
        if schema.as_object().is_some_and(Map::is_empty) {
            return;
        }
        let grade = grade(expected, answer, is_same);
        sink(place, grade, expected, answer);
        if is_stated(expected) || is_stated(answer) {
            self.total += 1.0;
            self.right += f64::from(u8::from(grade == crate::Grade::Right));
        }
    }
}

/// Compares two lists. Returns their right leaves, and all of their leaves.
fn lists(place: &Place<'_>, [expected, answer]: [&[Value]; 2], sink: &mut Sink<'_>) -> [f64; 2] {
    let each = Place::Each(place);
    let share = |one: &Value, other: &Value| {
        let (mut right, mut total) = (0.0, 0.0);
        leaves(&each, [Some(one), Some(other)], &mut |_, grade, one, other| {
            if is_stated(one) || is_stated(other) {
                total += 1.0;
                right += f64::from(u8::from(grade == crate::Grade::Right));
            }
        });
        if total > 0.0 { right / total } else { 1.0 }
    };
    let assign = |rows, columns, weight: &dyn Fn(usize, usize) -> f64| {
        greedy(rows, columns, weight).into_iter().map(|pair| pair.map(|(column, _)| column)).collect()
    };
    let pairing = Pairing::of([expected, answer], key, assign, share);
    let mut score = 0.0;
    for (one, other) in &pairing.pairs {
        if let (Some(one), Some(other)) = (expected.get(*one), answer.get(*other)) {
            score += share(one, other);
            leaves(&each, [Some(one), Some(other)], sink);
        }
    }
    pairing.expected.iter().for_each(|index| leaves(&each, [expected.get(*index), None], sink));
    pairing.answer.iter().for_each(|index| leaves(&each, [None, answer.get(*index)], sink));
    let counts = expected.iter().map(|item| {
        let mut count: usize = 0;
        leaves(&each, [Some(item), None], &mut |_, _, one, _| count += usize::from(is_stated(one)));
        count.max(1)
    });
    let mean = match expected.len() {
        0 => 1.0,
        items => counts.sum::<usize>() as f64 / items as f64,
    };
    let longer = expected.len().max(answer.len()) as f64;
    // The scorer counts the paired items of unequal lists among the items of the longer one.
    [score * mean, longer * mean]
}

/// Reports the leaves of two items: inner objects have leaves of their own, inner lists are leaves.
fn leaves(place: &Place<'_>, values: [Option<&Value>; 2], sink: &mut Sink<'_>) {
    let [one, other] = values;
    let [members, others] = values.map(|value| value.and_then(Value::as_object));
    if members.is_none() && others.is_none() {
        sink(place, grade(one, other, is_same), one, other);
        return;
    }
    for (value, members, side) in [(one, members, 0), (other, others, 1)] {
        if members.is_none() && is_stated(value) {
            let values = if side == 0 { [value, None] } else { [None, value] };
            leaves(place, values, sink);
        }
    }
    let names = members.into_iter().chain(others).flat_map(Map::keys);
    let mut seen = std::collections::HashSet::new();
    for name in names.filter(|name| seen.insert(name.as_str())) {
        let values = [members, others].map(|members| members.and_then(|members| members.get(name)));
        leaves(&Place::Key(place, name), values, sink);
    }
}

/// Returns a text that is the same for two items exactly if all leaves that they state are equal.
fn key(item: &Value) -> String {
    let mut stated = Vec::new();
    leaves(&Place::Root, [Some(item), None], &mut |place, _, value, _| {
        if let Some(value) = value.filter(|value| is_stated(Some(value))) {
            stated.push(format!("{place} {value}"));
        }
    });
    stated.sort_unstable();
    stated.join("\n")
}

/// Returns a value in the form in which the scorer compares values.
fn prepared(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let members =
                members.iter().map(|(name, member)| (name.clone(), prepared(member), is_empty(member)));
            members.filter(|(_, _, is_empty)| !is_empty).map(|(name, member, _)| (name, member)).collect()
        }
        Value::Array(items) => items.iter().map(prepared).collect(),
        Value::String(text) => plain(text).into(),
        // A double does not tell apart long integers.
        Value::Number(number) if !number.is_f64() => value.clone(),
        Value::Number(number) => {
            let rounded = number.as_f64().and_then(|float| format!("{float:.6}").parse().ok());
            rounded.and_then(Number::from_f64).map_or_else(|| value.clone(), |float| canonical(&float))
        }
        _ => value.clone(),
    }
}

/// Returns a number as an integer if it has no fraction, so that equal numbers have equal texts.
fn canonical(float: &Number) -> Value {
    match float.as_f64() {
        Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => (value as i64).into(),
        _ => float.clone().into(),
    }
}

/// Returns whether the scorer removes a member: an empty text, list or object, or an object of removed members.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        _ => false,
    }
}

fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    target(root, schema).unwrap_or(schema)
}

/// Returns whether a schema describes a list, alone or as one of its types or variants.
fn is_list(schema: &Value) -> bool {
    let is_array = |kind: &Value| kind == "array";
    let stated = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is_array),
        Some(kind) => is_array(kind),
        None => false,
    };
    let variants = ["anyOf", "oneOf"].into_iter().filter_map(|name| schema.get(name)?.as_array()).flatten();
    stated || variants.into_iter().any(|variant| variant.get("type").is_some_and(is_array))
}

fn has_list(root: &Value, schema: &Value, depth: usize) -> bool {
    let schema = resolved(root, schema);
    let mut members = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    depth < 64 && (is_list(schema) || members.any(|(_, member)| has_list(root, member, depth + 1)))
}

/// Returns a schema of the objects and lists of some values, for rows without a schema.
fn sketch(values: &[&Value]) -> Value {
    if values.iter().any(|value| value.is_array()) {
        return serde_json::json!({"type": "array"});
    }
    let objects: Vec<&Map<String, Value>> = values.iter().filter_map(|value| value.as_object()).collect();
    if objects.is_empty() {
        return serde_json::json!({"type": "string"});
    }
    let mut members = Map::new();
    for name in objects.iter().flat_map(|object| object.keys()) {
        if !members.contains_key(name) {
            let inner: Vec<&Value> = objects.iter().filter_map(|object| object.get(name)).collect();
            members.insert(name.clone(), sketch(&inner));
        }
    }
    serde_json::json!({"type": "object", "properties": members})
}
