//! Makes marked members of a normalised schema required and nullable.

use serde_json::{Map, Value, json};

use super::{KEYWORD, WRAPPED, is_marked};
use crate::keywords::parts_mut;

/// The words for the model about `null` in a marked member.
const NOTE: &str = "null if the text does not state it";

/// The keywords that may reject `null` besides `type`, `enum` and `const`.
const DECIDING: [&str; 6] = ["$ref", "allOf", "anyOf", "oneOf", "not", "if"];

/// The annotations that describe a member as a whole.
const ANNOTATIONS: [&str; 5] = ["title", "description", "default", "examples", "deprecated"];

/// Returns whether a value of [`KEYWORD`] marks members from the root of a schema.
pub(crate) fn is_directive(mark: &Value) -> bool {
    !mark.is_boolean() && *mark != WRAPPED
}

/// Makes every marked member required and nullable. The change of a schema that was changed before is none.
pub(crate) fn widen(schema: &mut Value) {
    parts_mut(schema).for_each(widen);
    let Some(keywords) = schema.as_object_mut() else { return };
    let Some(Value::Object(members)) = keywords.get_mut("properties") else { return };
    let marked = members.iter_mut().filter(|(_, member)| is_marked(member));
    let mut names = Vec::new();
    for (name, member) in marked {
        nullable(member);
        names.push(Value::from(name.as_str()));
    }
    if names.is_empty() {
        return;
    }
    if let Value::Array(required) = keywords.entry("required").or_insert_with(|| json!([])) {
        names.retain(|name| !required.contains(name));
        required.append(&mut names);
    }
}

/// Removes the marks.
pub(super) fn strip(schema: &mut Value) {
    if let Some(keywords) = schema.as_object_mut() {
        keywords.shift_remove(KEYWORD);
    }
    parts_mut(schema).for_each(strip);
}

/// Allows `null` beside the values of a marked schema, and describes its meaning.
fn nullable(schema: &mut Value) {
    let Value::Object(keywords) = schema else { return };
    let no_value = json!({"type": "null"});
    let deciding = DECIDING.iter().filter(|keyword| keywords.contains_key(**keyword)).count();
    let has_branch =
        keywords.get("anyOf").and_then(Value::as_array).is_some_and(|all| all.contains(&no_value));
    let is_typed = ["type", "enum", "const"].iter().any(|keyword| keywords.contains_key(*keyword));
    if deciding == 0 {
        add_null(keywords);
    } else if deciding > 1 || is_typed || !has_branch {
        let mut outer = Map::new();
        for name in ANNOTATIONS {
            outer.extend(keywords.shift_remove_entry(name));
        }
        keywords.shift_remove(KEYWORD);
        let inner = Value::Object(std::mem::take(keywords));
        outer.insert("anyOf".to_owned(), json!([inner, no_value]));
        outer.insert(KEYWORD.to_owned(), json!(WRAPPED));
        *keywords = outer;
    }
    let words = match keywords.get("description").and_then(Value::as_str) {
        Some(words) if words.contains(NOTE) => return,
        Some(words) => format!("{words} ({NOTE})"),
        None => NOTE.to_owned(),
    };
    keywords.insert("description".to_owned(), Value::String(words));
}

/// Adds `null` to the values of `type`, `enum` and `const`.
fn add_null(keywords: &mut Map<String, Value>) {
    if let Some(types) = keywords.get_mut("type") {
        let mut all = match types.take() {
            Value::Array(all) => all,
            one => vec![one],
        };
        if !all.iter().any(|one| one == "null") {
            all.push(json!("null"));
        }
        *types = if let [only] = all.as_slice() { only.clone() } else { Value::Array(all) };
    }
    if let Some(constant) = keywords.shift_remove("const") {
        keywords.entry("enum").or_insert_with(|| json!([constant]));
    }
    if let Some(Value::Array(listed)) = keywords.get_mut("enum")
        && !listed.contains(&Value::Null)
    {
        listed.push(Value::Null);
    }
}
