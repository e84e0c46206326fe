mod leaves;
mod numbers;
pub(crate) mod op;

use std::cmp::Ordering;
use std::collections::HashMap;

use formwork_json::{Candidate, JsonPath, Level, Rounded, Segment, read};
use serde_json::{Map, Value};

use crate::accepts::Accepts;
use crate::keywords::{self, target};
use crate::{Lowered, Stage, Violation, precision};

use numbers::{Inside, Numbers};
use op::Lift;

/// Maps an answer back to the original schema, inner values first, and returns the violations that it found.
///
/// The walk follows the lowered schema, through `$ref` and into the variant of `anyOf` that the value satisfies; if unknown
/// names are the only obstacle, into the first such variant. A value that cannot be mapped (a string that should contain
/// JSON and does not, a duplicate key) is left unchanged and reported at its path in the original document. A member for which
/// the original document has no place (beside `key` and `value` of a pair, beside the items of a tuple) is left out and reported
/// there. Nothing else is left out but the `null`s and markers that the sent schema offers for absent members. A value that
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
    let Lifted { value, mut problems, rounded, .. } = lift_exact(value, Vec::new(), lowered);
    problems.extend(precision(&rounded).0);
    (value, problems)
}

/// The result of mapping an answer back.
pub(crate) struct Lifted {
    pub(crate) value: Value,
    pub(crate) problems: Vec<Violation>,
    /// The rounded numbers, with their paths in the value.
    pub(crate) rounded: Vec<Rounded>,
    /// Whether a value exceeds an added bound, which the server therefore does not enforce.
    pub(crate) exceeds_bound: bool,
}

/// Maps an answer back as [`lift`], with its rounded numbers.
pub(crate) fn lift_exact(value: Value, rounded: Vec<Rounded>, lowered: &Lowered) -> Lifted {
    lift_marked(value, rounded, &[], lowered).0
}

/// Maps the beginning of an answer back: a document whose objects and lists at `open`, outermost first, have no end. Values that
/// cannot be mapped before they end are left out. Returns the paths of those that are open in the result, outermost first; `None`
/// if nothing can be mapped.
pub(crate) fn lift_begun(
    mut value: Value,
    mut rounded: Vec<Rounded>,
    mut open: Vec<JsonPath>,
    lowered: &Lowered,
) -> Option<(Lifted, Vec<JsonPath>)> {
    for _ in 0..MAX_LEFT_OUT {
        let (lifted, paths) = lift_marked(value.clone(), rounded.clone(), &open, lowered);
        let unknown = paths.iter().position(Option::is_none);
        let inner = || open.len().checked_sub(1).filter(|_| !lifted.problems.is_empty());
        let Some(from) = unknown.or_else(inner) else {
            let mut paths: Vec<JsonPath> = paths.into_iter().flatten().collect();
            paths.dedup();
            return Some((lifted, paths));
        };
        let path = open.get(from).filter(|path| remove_last(&mut value, path))?;
        rounded.retain(|number| !number.path.is_within(path));
        open.truncate(from);
    }
    None
}

/// The maximum number of open values that are left out, one after another, of the beginning of an answer.
const MAX_LEFT_OUT: usize = 16;

/// Removes the value at a path, the last one of its object or list; returns whether it was there.
pub(crate) fn remove_last(document: &mut Value, path: &JsonPath) -> bool {
    let Some(around) = path.parent().and_then(|around| around.get_mut(document)) else { return false };
    match (around, path.last()) {
        (Value::Object(members), Some(Segment::Key(name))) => members.shift_remove(name).is_some(),
        (Value::Array(items), Some(Segment::Index(index))) if index + 1 == items.len() => {
            items.pop().is_some()
        }
        _ => false,
    }
}

/// Maps an answer back, and the paths of values of it; `None` for values that have no place of their own in the result.
fn lift_marked(
    mut value: Value,
    mut rounded: Vec<Rounded>,
    marks: &[JsonPath],
    lowered: &Lowered,
) -> (Lifted, Vec<Option<JsonPath>>) {
    if lowered.lift.is_empty() && lowered.bounds.is_empty() {
        let paths = marks.iter().cloned().map(Some).collect();
        return (Lifted { value, problems: Vec::new(), rounded, exceeds_bound: false }, paths);
    }
    let schema = lowered.schema.as_ref().unwrap_or(&Value::Null);
    rounded.extend(marks.iter().map(|path| Rounded { path: path.clone(), text: String::new() }));
    let mut found = Found { problems: Vec::new(), numbers: Numbers::new(rounded) };
    let root = Place { numbers: found.numbers.inside(), ..Place::root(schema) };
    Lifter::new(schema, lowered).walk(&mut value, root, &mut found, 0);
    let Found { mut problems, mut numbers } = found;
    let exceeds_bound = problems.iter().any(|problem| problem.rule == EXCEEDED);
    problems.retain(|problem| problem.rule != EXCEEDED && !(exceeds_bound && problem.rule == FULL));
    let paths = numbers.take_marks(marks.len(), &value);
    let rounded = numbers.lifted(&value);
    (Lifted { value, problems, rounded, exceeds_bound }, paths)
}

/// The rule of the violation for a value that fills an added bound.
const FULL: &str = "truncated";

/// The rule of the mark for a value that exceeds an added bound, which is removed again.
const EXCEEDED: &str = "exceeded";

/// The findings of a walk.
struct Found {
    problems: Vec<Violation>,
    numbers: Numbers,
}

/// A position of the walk.
struct Place<'a> {
    /// The node of the lowered schema.
    node: &'a Value,
    /// The path of the value in the original document.
    path: JsonPath,
    /// Whether the value is a `{"key", "value"}` pair, whose members have the path of the member that it encodes.
    is_pair: bool,
    /// The rounded numbers within the value.
    numbers: Inside,
}

impl<'a> Place<'a> {
    fn root(node: &'a Value) -> Self {
        Self { node, path: JsonPath::root(), is_pair: false, numbers: Inside::default() }
    }
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
        let mut found = Found { problems: Vec::new(), numbers: Numbers::new(Vec::new()) };
        self.walk(&mut value, Place::root(node), &mut found, 0);
        found.problems.is_empty().then_some(value)
    }

    fn walk(&self, value: &mut Value, place: Place<'a>, found: &mut Found, jumps: usize) {
        let Place { node, path, is_pair, numbers } = place;
        let at = std::ptr::from_ref(node);
        let ops = self.ops(node);
        if let Some(key) = ops.iter().find_map(|lift| lift.unwraps_nothing(value)) {
            if let Some(node) = node["properties"].get(key) {
                self.walk(value, Place { node, path, is_pair: false, numbers }, found, 0);
            }
            return;
        }
        if let Some((max, rule)) = self.bounds.get(&at).and_then(|max| Some((max, fills(value, *max)?))) {
            let problem = Violation::new(path.clone(), rule, Stage::Read);
            let bound = format!("the bound of {max} that this model is given");
            found.problems.push(problem.with_expected("a complete value").with_found(bound));
        }
        if jumps < MAX_JUMPS {
            if let Some(node) = target(self.schema, node) {
                let place = Place { node, path: path.clone(), is_pair, numbers: numbers.clone() };
                self.walk(value, place, found, jumps + 1);
            }
            for keyword in ["anyOf", "oneOf"] {
                let Some(variants) = node[keyword].as_array() else { continue };
                if let Some(node) = self.taken(value, variants) {
                    let place = Place { node, path: path.clone(), is_pair, numbers: numbers.clone() };
                    self.walk(value, place, found, jumps + 1);
                }
            }
        }
        if ops.iter().any(|lift| lift.hides(value)) {
            found.numbers.hide(&numbers);
        }
        let mut below = found.numbers.by_step(&numbers);
        let mut numbers_at = |step: &dyn Fn() -> Segment, path: &JsonPath, found: &mut Found| {
            let inside = if below.is_empty() { None } else { below.remove(&step()) };
            inside.inspect(|inside| found.numbers.place(inside, path)).unwrap_or_default()
        };
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
                    let numbers = numbers_at(&|| Segment::Key(name.clone()), &inner, found);
                    let governing = node["properties"].get(name).or_else(|| node.get("additionalProperties"));
                    if let Some(node) = governing {
                        let is_pair = member.is_array() && ops.iter().any(|lift| lift.lists(name));
                        self.walk(member, Place { node, path: inner, is_pair, numbers }, found, 0);
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let encoded = ops.iter().find_map(|lift| lift.path_of_item(&path, item));
                    let outer = || if is_pair { path.clone() } else { path.index(index) };
                    let is_pair = encoded.is_some();
                    let inner = encoded.unwrap_or_else(outer);
                    let numbers = numbers_at(&|| Segment::Index(index), &inner, found);
                    if ops.iter().any(|lift| lift.lacks(item)) {
                        found.numbers.hide(&numbers);
                    }
                    if let Some(node) = keywords::item(node, index) {
                        self.walk(item, Place { node, path: inner, is_pair, numbers }, found, 0);
                    }
                }
            }
            _ => {}
        }
        for lift in ops {
            let parsed = lift.apply(value, &path, &mut found.problems);
            found.numbers.add(&path, parsed);
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

    /// Whether the parts of an unfinished value have no places of their own: the leaves of a value end with the list, and a union of
    /// lists may still get its item.
    fn hides(&self, value: &Value) -> bool {
        match self {
            Self::Leaves => value.is_array(),
            Self::Choice { .. } => {
                let lists = value.as_object().into_iter().flat_map(Map::values);
                lists.filter_map(Value::as_array).all(Vec::is_empty)
            }
            _ => false,
        }
    }

    /// Whether an item of a list is a pair that has not got its value yet.
    fn lacks(&self, item: &Value) -> bool {
        matches!(self, Self::PairsToMap) && (item.get("key").is_none() || item.get("value").is_none())
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

    /// The path in the original document of the value that an item of a list encodes.
    fn path_of_item(&self, path: &JsonPath, item: &Value) -> Option<JsonPath> {
        match self {
            Self::PairsToMap => Some(path.key(item["key"].as_str()?)),
            Self::Leaves => leaves::steps(item).map(|steps| path.join(&steps)),
            _ => None,
        }
    }

    /// Changes the value at a path and returns the rounded numbers of JSON in a string. Adds a violation for content that the operation
    /// cannot keep; if it cannot change the value at all, the value is left unchanged.
    fn apply(&self, value: &mut Value, path: &JsonPath, problems: &mut Vec<Violation>) -> Vec<Rounded> {
        if let (Self::ParseJson, Value::String(text)) = (self, &*value) {
            let (parsed, rounded) = parse_json(text, path, problems);
            if let Some(parsed) = parsed {
                *value = parsed;
            }
            return rounded;
        }
        self.reshape(value, path, problems);
        Vec::new()
    }

    /// Changes the shape of the value at a path; see [`Lift::apply`].
    fn reshape(&self, value: &mut Value, path: &JsonPath, problems: &mut Vec<Violation>) {
        let mut problem = |path: JsonPath, rule: &str, expected: &str, found: String| {
            let violation = Violation::new(path, rule, Stage::Read);
            problems.push(violation.with_expected(expected).with_found(found));
        };
        match (self, &mut *value) {
            (Self::Unwrap(key), Value::Object(members)) if members.len() == 1 => {
                if let Some(inner) = members.remove(key) {
                    *value = inner;
                }
            }
            (Self::Tuple { items, rest }, Value::Object(members)) => {
                let count = items.iter().take_while(|key| members.contains_key(*key)).count();
                let further = rest.as_ref().and_then(|rest| members.get(rest)).and_then(Value::as_array);
                let has_further = further.is_some_and(|further| !further.is_empty());
                let later = items.iter().skip(count).find(|key| members.contains_key(*key));
                if let Some(later) = later.or_else(|| items.get(count).filter(|_| has_further)) {
                    let gap = format!("item {count} is missing before `{later}`");
                    return problem(path.clone(), "prefixItems", "items without a gap", gap);
                }
                let mut array: Vec<Value> =
                    items.iter().filter_map(|key| members.shift_remove(key)).collect();
                for (name, member) in std::mem::take(members) {
                    match member {
                        Value::Array(mut further) if rest.as_ref() == Some(&name) => {
                            array.append(&mut further)
                        }
                        member => problem(path.clone(), "items", "items alone", beside(&name, &member)),
                    }
                }
                *value = Value::Array(array);
            }
            (Self::Spread(key), Value::Object(members)) => {
                let Some(Value::Object(further)) = members.get(key) else { return };
                if let Some(double) = further.keys().find(|name| *name != key && members.contains_key(*name))
                {
                    return problem(path.clone(), "uniqueKeys", "each key once", double.clone());
                }
                if let Some(Value::Object(mut further)) = members.shift_remove(key) {
                    members.append(&mut further);
                }
            }
            (Self::Rename(names), Value::Object(members)) => {
                let is_double = |(sent, original): &&(String, String)| {
                    let renamed = names.iter().any(|(sent, _)| sent == original);
                    members.contains_key(sent) && members.contains_key(original) && !renamed
                };
                if let Some((_, double)) = names.iter().find(is_double) {
                    return problem(path.clone(), "uniqueKeys", "each key once", double.clone());
                }
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
            (Self::Leaves, Value::Array(list)) if leaves::are_leaves(list) => match leaves::assemble(list) {
                Ok(assembled) => *value = assembled,
                Err(found) => problem(path.clone(), "leaves", "the leaves of one value", found),
            },
            (Self::PairsToMap, Value::Array(pairs)) => {
                let mut members = Map::new();
                let mut further = Vec::new();
                for pair in pairs {
                    let (Some(key), Some(inner)) = (pair["key"].as_str(), pair.get("value")) else { return };
                    if members.insert(key.to_owned(), inner.clone()).is_some() {
                        return problem(path.clone(), "uniqueKeys", "each key once", key.to_owned());
                    }
                    let others = pair.as_object().into_iter().flatten();
                    let others = others.filter(|(name, _)| !["key", "value"].contains(&name.as_str()));
                    further.extend(others.map(|(name, member)| (path.key(key), beside(name, member))));
                }
                for (path, found) in further {
                    problem(path, "additionalProperties", "`key` and `value` alone", found);
                }
                *value = Value::Object(members);
            }
            (Self::Unlist(names), Value::Object(members)) => {
                for name in names {
                    let Some(Value::Array(items)) = members.get_mut(name) else { continue };
                    match items.len() {
                        0 => drop(members.shift_remove(name)),
                        1 => {
                            if let (Some(item), Some(member)) = (items.pop(), members.get_mut(name)) {
                                *member = item;
                            }
                        }
                        more => {
                            let found = format!("{more} in `{name}`");
                            problem(path.clone(), "maxItems", "at most one item", found);
                        }
                    }
                }
            }
            (Self::Choice { names, null }, Value::Object(members)) => {
                if !members.iter().all(|(name, list)| names.contains(name) && list.is_array()) {
                    return;
                }
                let lists = || members.values().filter_map(Value::as_array);
                let count = lists().map(Vec::len).sum::<usize>();
                *value = match lists().flatten().next() {
                    Some(item) if count == 1 => item.clone(),
                    None if *null => Value::Null,
                    _ => {
                        let expected = "one item in all of the lists";
                        return problem(path.clone(), "oneOf", expected, count.to_string());
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
    }
}

/// Reads JSON in a string, with its rounded numbers; no value if the text is no JSON, which is a violation.
fn parse_json(text: &str, path: &JsonPath, problems: &mut Vec<Violation>) -> (Option<Value>, Vec<Rounded>) {
    let mut problem = |rule: &str, expected: &str, found: String| {
        let violation = Violation::new(path.clone(), rule, Stage::Read);
        problems.push(violation.with_expected(expected).with_found(found));
    };
    match read(text, Level::Strict).map(|reading| reading.into_candidates().into_iter().next()) {
        Ok(Some(Candidate { value, edits, rounded, .. })) => {
            edits.iter().for_each(|edit| problem("uniqueKeys", "each key once", edit.with.clone()));
            (Some(value), rounded)
        }
        Ok(None) => (None, Vec::new()),
        Err(error) => {
            problem("json", "a string that holds JSON", error.to_string());
            (None, Vec::new())
        }
    }
}

/// Returns the description of a member that lifting cannot keep.
fn beside(name: &str, member: &Value) -> String {
    format!("`{name}` as well: {member}")
}

pub(crate) use leaves::leaves;

#[cfg(test)]
mod tests;
