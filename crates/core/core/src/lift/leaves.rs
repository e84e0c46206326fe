//! Values as lists of their leaves, for dialects that can write neither any value nor recursive schemas.

use formwork_json::Segment;
use serde_json::{Map, Value, json};

/// The maximum number of steps to a leaf. Parsers of JSON accept no deeper values, and a path is longer than a nested text would be.
const MAX_STEPS: usize = 120;

/// Returns the leaves of a value; `None` if it is nested deeper than [`MAX_STEPS`].
pub(crate) fn leaves(value: &Value) -> Option<Value> {
    let mut found = Vec::new();
    collect(value, &mut Vec::new(), &mut found)?;
    Some(Value::Array(found))
}

fn collect(value: &Value, path: &mut Vec<Value>, found: &mut Vec<Value>) -> Option<()> {
    if path.len() > MAX_STEPS {
        return None;
    }
    let inner: Vec<(Value, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, member)| (json!(name), member)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, item)| (json!(index), item)).collect(),
        _ => Vec::new(),
    };
    if inner.is_empty() {
        found.push(json!({"path": path, "value": value}));
    }
    for (step, inner) in inner {
        path.push(step);
        collect(inner, path, found)?;
        path.pop();
    }
    Some(())
}

/// Returns the steps to a leaf; `None` if the item is no leaf.
pub(super) fn steps(leaf: &Value) -> Option<Vec<Segment>> {
    let step = |step: &Value| match step {
        Value::String(name) => Some(Segment::Key(name.clone())),
        step => index(step).map(Segment::Index),
    };
    leaf.get("path")?.as_array()?.iter().map(step).collect()
}

/// Returns whether a list has the form of leaves.
pub(super) fn are_leaves(list: &[Value]) -> bool {
    let is_leaf = |leaf: &Value| {
        let members = leaf.as_object();
        members.is_some_and(|leaf| {
            leaf.len() == 2 && leaf.contains_key("value") && leaf.get("path").is_some_and(Value::is_array)
        })
    };
    !list.is_empty() && list.iter().all(is_leaf)
}

/// Returns the value with these leaves, or a description of the first leaf that contradicts those before it.
pub(super) fn assemble(list: &[Value]) -> Result<Value, String> {
    let mut value = None;
    for leaf in list {
        let content = leaf["value"].clone();
        let path = leaf["path"].as_array().map(Vec::as_slice).unwrap_or_default();
        let wrong = |reason: &str| format!("{reason} at {}", Value::from(path));
        if path.len() > MAX_STEPS {
            return Err(format!("a path of {} steps", path.len()));
        }
        match &mut value {
            None => value = Some(grown(path, content).map_err(wrong)?),
            Some(value) => attach(value, path, content).map_err(wrong)?,
        }
    }
    value.ok_or_else(|| "no leaf".to_owned())
}

/// Adds a leaf to a value.
fn attach(mut value: &mut Value, path: &[Value], content: Value) -> Result<(), &'static str> {
    let mut path = path.iter();
    while let Some(step) = path.next() {
        value = match (value, step) {
            (Value::Object(members), Value::String(name)) => {
                if !members.contains_key(name) {
                    members.insert(name.clone(), grown(path.as_slice(), content)?);
                    return Ok(());
                }
                &mut members[name.as_str()]
            }
            (Value::Array(items), step) => {
                let index = index(step).ok_or("a name in an array")?;
                if index == items.len() {
                    items.push(grown(path.as_slice(), content)?);
                    return Ok(());
                }
                items.get_mut(index).ok_or("an item before the one in front of it")?
            }
            _ => return Err("a value inside of another kind of value"),
        };
    }
    Err("a second value")
}

/// Returns a value with one leaf.
fn grown(path: &[Value], content: Value) -> Result<Value, &'static str> {
    path.iter().rev().try_fold(content, |inner, step| match step {
        Value::String(name) => Ok(Value::Object(Map::from_iter([(name.clone(), inner)]))),
        step if index(step) == Some(0) => Ok(Value::Array(vec![inner])),
        _ => Err("an item before the one in front of it"),
    })
}

fn index(step: &Value) -> Option<usize> {
    step.as_u64().and_then(|index| usize::try_from(index).ok())
}
