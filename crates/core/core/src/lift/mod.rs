mod leaves;
pub(crate) mod op;

use std::cmp::Ordering;
use std::collections::HashMap;

use formwork_json::JsonPath;
use serde_json::{Map, Value};

use crate::accepts::Accepts;
use crate::keywords::{self, target};
use crate::{Lowered, Stage, Violation};

use op::Lift;

/// Maps an answer back to the original schema, inner values first, and returns the violations that it found.
///
/// The walk follows the lowered schema, through `$ref` and into the variant of `anyOf` that the value satisfies; if unknown
/// names are the only obstacle, into the first such variant. A value that cannot be mapped (a string that should contain
/// JSON and does not, a duplicate key) is left unchanged and reported at its path in the original document. A value that
/// fills an [added bound](Lowered::bounds) is reported as `truncated`, unless another value exceeds its bound, because then the
/// server does not enforce them. If no schema was sent, only the operations on the root are applied.
///
/// ```
/// use formwork_core::{Enforcement, Lift, LiftOp, Lowered, lift};
/// use serde_json::json;
///
/// let sent = json!({"type": "object", "properties": {"nick": {"type": ["string", "null"]}}, "required": ["nick"]});
/// let lowered = Lowered::new(Enforcement::Schema, sent)
///     .with_lift(vec![LiftOp { at: String::new(), lift: Lift::DropNull(vec!["nick".into()]) }]);
/// assert_eq!(lift(json!({"nick": null}), &lowered), (json!({}), vec![]));
/// ```
pub fn lift(value: Value, lowered: &Lowered) -> (Value, Vec<Violation>) {
    let Lifted { value, violations, .. } = lifted(value, lowered);
    (value, violations)
}

/// The result of [`lift`].
pub(crate) struct Lifted {
    pub(crate) value: Value,
    pub(crate) violations: Vec<Violation>,
    /// Whether a value exceeds an added bound, which the server therefore does not enforce.
    pub(crate) exceeds_bound: bool,
}

/// Lifts a value as [`lift`] does.
pub(crate) fn lifted(mut value: Value, lowered: &Lowered) -> Lifted {
    let mut problems = Vec::new();
    if !lowered.lift.is_empty() || !lowered.bounds.is_empty() {
        let schema = lowered.schema.as_ref().unwrap_or(&Value::Null);
        let lifter = Lifter::new(schema, lowered);
        let root = Place { node: schema, path: JsonPath::root(), is_pair: false };
        lifter.walk(&mut value, root, &mut problems, 0);
    }
    let exceeds_bound = problems.iter().any(|problem| problem.rule == EXCEEDED);
    problems.retain(|problem| problem.rule != EXCEEDED && !(exceeds_bound && problem.rule == FULL));
    Lifted { value, violations: problems, exceeds_bound }
}

/// The rule of the violation for a value that fills an added bound.
const FULL: &str = "truncated";

/// The rule of the mark for a value that exceeds an added bound, which is removed again.
const EXCEEDED: &str = "exceeded";

/// A position of the walk.
struct Place<'a> {
    /// The node of the lowered schema.
    node: &'a Value,
    /// The path of the value in the original document.
    path: JsonPath,
    /// Whether the value is a `{"key", "value"}` pair, whose members have the path of the member that it encodes.
    is_pair: bool,
}

pub(crate) struct Lifter<'a> {
    schema: &'a Value,
    /// The operations on each node, by its address.
    ops: HashMap<*const Value, Vec<&'a Lift>>,
    /// The bounds of each node, by its address.
    bounds: HashMap<*const Value, u64>,
}

impl<'a> Lifter<'a> {
    pub(crate) fn new(schema: &'a Value, lowered: &'a Lowered) -> Self {
        let mut ops: HashMap<_, Vec<_>> = HashMap::new();
        for op in &lowered.lift {
            if let Some(node) = schema.pointer(&op.at) {
                ops.entry(std::ptr::from_ref(node)).or_default().push(&op.lift);
            }
        }
        let bound =
            |bound: &crate::AddedBound| Some((std::ptr::from_ref(schema.pointer(&bound.at)?), bound.max));
        Self { schema, ops, bounds: lowered.bounds.iter().filter_map(bound).collect() }
    }

    /// Returns the operations on a node.
    pub(crate) fn ops(&self, node: &Value) -> &[&'a Lift] {
        self.ops.get(&std::ptr::from_ref(node)).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the value that a node's value maps back to; `None` if it cannot be mapped.
    pub(crate) fn lifted(&self, mut value: Value, node: &'a Value) -> Option<Value> {
        let mut problems = Vec::new();
        self.walk(&mut value, Place { node, path: JsonPath::root(), is_pair: false }, &mut problems, 0);
        problems.is_empty().then_some(value)
    }

    fn walk(&self, value: &mut Value, place: Place<'a>, problems: &mut Vec<Violation>, jumps: usize) {
        let Place { node, path, is_pair } = place;
        let at = std::ptr::from_ref(node);
        let ops = self.ops(node);
        if let Some(key) = ops.iter().find_map(|lift| lift.unwraps_nothing(value)) {
            if let Some(node) = node["properties"].get(key) {
                self.walk(value, Place { node, path, is_pair: false }, problems, 0);
            }
            return;
        }
        if let Some((max, rule)) = self.bounds.get(&at).and_then(|max| Some((max, fills(value, *max)?))) {
            let problem = Violation::new(path.clone(), rule, Stage::Read);
            let found = format!("the bound of {max} that this model is given");
            problems.push(problem.with_expected("a complete value").with_found(found));
        }
        if jumps < MAX_JUMPS {
            if let Some(node) = target(self.schema, node) {
                self.walk(value, Place { node, path: path.clone(), is_pair }, problems, jumps + 1);
            }
            for keyword in ["anyOf", "oneOf"] {
                let Some(variants) = node[keyword].as_array() else { continue };
                if let Some(node) = self.taken(value, variants) {
                    self.walk(value, Place { node, path: path.clone(), is_pair }, problems, jumps + 1);
                }
            }
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let inner = if is_pair {
                        path.clone()
                    } else {
                        ops.iter()
                            .find_map(|lift| lift.path_below(&path, name))
                            .unwrap_or_else(|| path.key(name.as_str()))
                    };
                    let governing = node["properties"].get(name).or_else(|| node.get("additionalProperties"));
                    if let Some(node) = governing {
                        let is_pair = member.is_array() && ops.iter().any(|lift| lift.lists(name));
                        self.walk(member, Place { node, path: inner, is_pair }, problems, 0);
                    }
                }
            }
            Value::Array(items) => {
                let are_pairs = ops.iter().any(|lift| **lift == Lift::PairsToMap);
                for (index, item) in items.iter_mut().enumerate() {
                    let key = item["key"].as_str().filter(|_| are_pairs);
                    let outer = || if is_pair { path.clone() } else { path.index(index) };
                    let inner = key.map_or_else(outer, |key| path.key(key));
                    let is_pair = key.is_some();
                    if let Some(node) = keywords::item(node, index) {
                        self.walk(item, Place { node, path: inner, is_pair }, problems, 0);
                    }
                }
            }
            _ => {}
        }
        for lift in ops {
            if let Err((rule, expected, found)) = lift.apply(value) {
                let problem = Violation::new(path.clone(), rule, Stage::Read);
                problems.push(problem.with_expected(expected).with_found(found));
            }
        }
    }

    /// Returns the variant that a value most likely follows.
    fn taken(&self, value: &Value, variants: &'a [Value]) -> Option<&'a Value> {
        let mut strict = Accepts::new(self.schema);
        if let Some(taken) = variants.iter().find(|variant| strict.accepts(value, variant)) {
            return Some(taken);
        }
        // An answer whose schema was not enforced may have names that no variant defines.
        let mut tolerant = Accepts::tolerant(self.schema);
        variants.iter().find(|variant| tolerant.accepts(value, variant))
    }
}

/// The maximum number of references and variants that are followed without a step into the value: it ends `{"$ref": "#"}`.
const MAX_JUMPS: usize = 32;

/// Returns whether a value fills a bound or exceeds it.
fn fills(value: &Value, max: u64) -> Option<&'static str> {
    let size = match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => return None,
    };
    match (size as u64).cmp(&max) {
        Ordering::Less => None,
        Ordering::Equal => Some(FULL),
        Ordering::Greater => Some(EXCEEDED),
    }
}

impl Lift {
    /// Returns the member that the value should be wrapped in, if it is not.
    fn unwraps_nothing(&self, value: &Value) -> Option<&str> {
        match self {
            Self::Unwrap(key) if value.get(key).is_none() || value.as_object()?.len() != 1 => Some(key),
            _ => None,
        }
    }

    /// Whether a member of an object is a list that holds the member.
    fn lists(&self, name: &str) -> bool {
        match self {
            Self::Unlist(names) | Self::Choice { names, .. } => names.iter().any(|key| key == name),
            _ => false,
        }
    }

    /// The path in the original document of an object's member, where it is another than its name says.
    fn path_below(&self, path: &JsonPath, name: &str) -> Option<JsonPath> {
        match self {
            Self::Unwrap(key) | Self::Spread(key) if key == name => Some(path.clone()),
            Self::Choice { names, .. } if names.iter().any(|key| key == name) => Some(path.clone()),
            Self::Tuple { items, .. } => {
                items.iter().position(|key| key == name).map(|index| path.index(index))
            }
            Self::Rename(names) => {
                names.iter().find(|(sent, _)| sent == name).map(|(_, original)| path.key(original.as_str()))
            }
            _ => None,
        }
    }

    /// Changes the value, or returns the violation as (rule, expected, found) if that is impossible.
    fn apply(&self, value: &mut Value) -> Result<(), (&'static str, &'static str, String)> {
        match (self, &mut *value) {
            (Self::Unwrap(key), Value::Object(members)) if members.len() == 1 => {
                if let Some(inner) = members.remove(key) {
                    *value = inner;
                }
            }
            (Self::Tuple { items, rest }, Value::Object(members)) => {
                let count = items.iter().take_while(|key| members.contains_key(*key)).count();
                let rest = rest.as_ref().and_then(|rest| members.get(rest));
                let has_rest = rest.and_then(Value::as_array).is_some_and(|rest| !rest.is_empty());
                let later = items.iter().skip(count).find(|key| members.contains_key(*key));
                if let Some(later) = later.or_else(|| items.get(count).filter(|_| has_rest)) {
                    let gap = format!("item {count} is missing before `{later}`");
                    return Err(("prefixItems", "items without a gap", gap));
                }
                let mut array: Vec<Value> =
                    items.iter().take(count).filter_map(|key| members.remove(key)).collect();
                if let (Self::Tuple { rest: Some(rest), .. }, true) = (self, has_rest)
                    && let Some(Value::Array(mut further)) = members.remove(rest)
                {
                    array.append(&mut further);
                }
                *value = Value::Array(array);
            }
            (Self::Spread(key), Value::Object(members)) => {
                let Some(Value::Object(further)) = members.get(key) else { return Ok(()) };
                if let Some(double) = further.keys().find(|name| *name != key && members.contains_key(*name))
                {
                    return Err(("uniqueKeys", "each key once", double.clone()));
                }
                if let Some(Value::Object(mut further)) = members.shift_remove(key) {
                    members.append(&mut further);
                }
            }
            (Self::Rename(names), Value::Object(members)) => {
                for (name, member) in std::mem::take(members) {
                    let original = names.iter().find(|(sent, _)| *sent == name).map(|(_, original)| original);
                    members.insert(original.cloned().unwrap_or(name), member);
                }
            }
            (Self::DropNull(keys), Value::Object(members)) => {
                members.retain(|name, member| !(member.is_null() && keys.contains(name)));
            }
            (Self::DropAbsent { names, marker }, Value::Object(members)) => {
                members.retain(|name, member| !(member == marker && names.contains(name)));
            }
            // Any other answer, which was not enforced, may be the value itself.
            (Self::Leaves, Value::Array(list)) if leaves::are_leaves(list) => {
                *value =
                    leaves::assemble(list).map_err(|found| ("leaves", "the leaves of one value", found))?;
            }
            (Self::PairsToMap, Value::Array(pairs)) => {
                let mut members = Map::new();
                for pair in pairs {
                    let (Some(key), Some(inner)) = (pair["key"].as_str(), pair.get("value")) else {
                        return Ok(());
                    };
                    if members.insert(key.to_owned(), inner.clone()).is_some() {
                        return Err(("uniqueKeys", "each key once", key.to_owned()));
                    }
                }
                *value = Value::Object(members);
            }
            (Self::ParseJson, Value::String(text)) => match serde_json::from_str(text) {
                Ok(parsed) => *value = parsed,
                Err(error) => return Err(("json", "a string that holds JSON", error.to_string())),
            },
            (Self::Unlist(names), Value::Object(members)) => {
                for name in names {
                    let Some(Value::Array(items)) = members.get_mut(name) else { continue };
                    match (items.pop(), items.len()) {
                        (None, _) => drop(members.shift_remove(name)),
                        (Some(item), 0) => drop(members.insert(name.clone(), item)),
                        (Some(_), more) => {
                            return Err((
                                "maxItems",
                                "at most one item",
                                format!("{} in `{name}`", more + 1),
                            ));
                        }
                    }
                }
            }
            (Self::Choice { names, null }, Value::Object(members)) => {
                if !members.iter().all(|(name, list)| names.contains(name) && list.is_array()) {
                    return Ok(());
                }
                let mut items: Vec<Value> = Vec::new();
                for list in members.values_mut().filter_map(Value::as_array_mut) {
                    items.append(list);
                }
                *value = match (items.pop(), items.len()) {
                    (Some(item), 0) => item,
                    (None, _) if *null => Value::Null,
                    (last, more) => {
                        let count = more + usize::from(last.is_some());
                        return Err(("oneOf", "one item in all of the lists", count.to_string()));
                    }
                };
            }
            (Self::Reorder(keys), Value::Object(members)) => {
                let mut ordered = Map::new();
                for key in keys {
                    ordered.extend(members.shift_remove_entry(key));
                }
                ordered.append(members);
                *members = ordered;
            }
            _ => {}
        }
        Ok(())
    }
}

pub(crate) use leaves::leaves;

#[cfg(test)]
mod tests;
