//! Conversions that may be wrong. They are made only where a contract says `guess`.

use std::collections::HashMap;

use formwork_json::{Level, is_same, read};
use serde_json::{Map, Value, json};

use super::change::Coerced;
use super::part::{Place, number, types};
use crate::keywords::{is_type, target};

/// Returns the values of a type that a value may stand for.
pub(super) fn converted(value: &Value, name: &str) -> Vec<Value> {
    let text = value.as_str().map(str::trim);
    let list = |value: Value| if value.is_array() { Some(value) } else { None };
    let found = match (name, text) {
        ("number" | "integer", Some(text)) => loose_number(text, name == "integer"),
        ("boolean", Some(text)) => truth(text),
        ("boolean", None) => value.as_f64().and_then(|number| match number {
            0.0 => Some(json!(false)),
            1.0 => Some(json!(true)),
            _ => None,
        }),
        ("null", Some(text)) => {
            let words = ["", "null", "none", "n/a", "nil", "undefined"];
            words.iter().any(|word| text.eq_ignore_ascii_case(word)).then_some(Value::Null)
        }
        ("string", None) if !value.is_null() => Some(Value::from(value.to_string())),
        ("array", Some(text)) => lenient(text).and_then(list),
        ("object", Some(text)) => lenient(text).filter(Value::is_object),
        _ => None,
    };
    // Of several objects or lists none is likelier.
    let unwrapped =
        value.as_array().filter(|items| name != "array" && (name != "object" || items.len() == 1));
    let unwrapped = unwrapped.into_iter().flatten().filter(|item| is_type(item, name) == Some(true));
    // A list in a text is likelier than a text in a list.
    found.into_iter().chain(unwrapped.take(1).cloned()).collect()
}

/// Returns the document that a text is or holds.
fn lenient(text: &str) -> Option<Value> {
    let reading = read(text, Level::Lenient).ok()?;
    let candidate = reading.into_candidates().into_iter().next()?;
    (candidate.span.start == 0 && candidate.span.end == text.len()).then_some(candidate.value)
}

/// Returns the number in a text with separators of thousands, a sign of currency, per cent or a fraction.
fn loose_number(text: &str, is_integer: bool) -> Option<Value> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || "$€£¥%*".contains(c));
    let text = text.strip_suffix('.').unwrap_or(text);
    let text = text.strip_prefix('+').unwrap_or(text);
    if let Some((above, below)) = text.split_once('/') {
        let (above, below) = (number(above.trim())?.as_f64()?, number(below.trim())?.as_f64()?);
        return serde_json::Number::from_f64(above / below).filter(|_| !is_integer).map(Value::Number);
    }
    let (whole, fraction) = text.rsplit_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let mut digits = first.to_owned();
    for group in groups {
        if group.len() != 3 || !group.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        digits.push_str(group);
    }
    if let Some(fraction) = fraction {
        digits = format!("{digits}.{fraction}");
    }
    let number = Value::Number(number(&digits)?);
    (!is_integer || is_type(&number, "integer") == Some(true)).then_some(number)
}

/// Returns the boolean that a text names: a word for it, or the only one of `true` and `false` in a sentence.
fn truth(text: &str) -> Option<Value> {
    let text = text.to_lowercase();
    match text.as_str() {
        "yes" | "y" | "on" | "1" => return Some(json!(true)),
        "no" | "n" | "off" | "0" => return Some(json!(false)),
        _ => {}
    }
    let has = |word: &str| words(&text).any(|one| one == word);
    (has("true") != has("false")).then(|| json!(has("true")))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Returns the listed value that a value names: by the letters and digits alone, by an alias (`x-alias`, `x-enum-aliases`), as the
/// first such item of a list, or as the only one that a text names most often.
pub(super) fn in_list(value: &Value, listed: &[Value], part: &Value) -> Option<Value> {
    if let Value::Array(items) = value {
        return items.iter().find(|item| listed.iter().any(|one| is_same(one, item))).cloned();
    }
    let text = value.as_str()?;
    let mut names: Vec<(String, &Value)> = Vec::new();
    for one in listed {
        let own = one.as_str().map_or_else(|| one.to_string(), str::to_owned);
        let alias = part["x-enum-aliases"].get(&own).or_else(|| part.get("x-alias"));
        let alias = alias.and_then(Value::as_str).unwrap_or_default();
        names.extend(
            [own.as_str(), alias, alias.split(": ").next().unwrap_or_default()]
                .map(|name| (name.to_owned(), one)),
        );
    }
    names.retain(|(name, _)| !letters(name).is_empty());
    let same = names.iter().filter(|(name, _)| letters(name) == letters(text));
    if let Some(only) = only(same.map(|(_, one)| *one)) {
        return Some(only);
    }
    // Of several numbers in a text, none is likelier.
    let parts = text.split(|c: char| !c.is_alphanumeric() && c != '.');
    let numbers = parts.filter(|part| number(part.trim_matches('.')).is_some()).count();
    names.retain(|(_, one)| !one.is_number() || numbers < 2);
    // A value that is named in its own case is named on purpose.
    [|text: &str| text.to_owned(), str::to_lowercase].into_iter().find_map(|cased| {
        let mut counts: HashMap<String, (usize, &Value)> = HashMap::new();
        for (name, one) in &names {
            let count = occurrences(&cased(text), &cased(name));
            let known = counts.entry(one.to_string()).or_insert((0, one));
            known.0 = known.0.max(count);
        }
        let most = counts.values().map(|(count, _)| *count).max().filter(|most| *most > 0)?;
        only(counts.values().filter(|(count, _)| *count == most).map(|(_, one)| *one)).map(Some)
    })?
}

/// Returns the value, if all are the same.
fn only<'v>(mut values: impl Iterator<Item = &'v Value>) -> Option<Value> {
    let first = values.next()?;
    values.all(|other| is_same(first, other)).then(|| first.clone())
}

/// Returns how often a name stands in a text as words of their own.
fn occurrences(text: &str, name: &str) -> usize {
    let is_end = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    let stands_alone = |at: usize| {
        is_end(text.get(..at).and_then(|before| before.chars().next_back()))
            && is_end(text.get(at + name.len()..).and_then(|after| after.chars().next()))
    };
    text.match_indices(name).filter(|(at, _)| stands_alone(*at)).count()
}

/// Returns the letters and digits of a text in lower case.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Gives members the names that the schema has for them, by `x-alias` or by their letters and digits, and removes members that a closed
/// object does not name.
pub(super) fn names(
    members: &mut Map<String, Value>,
    part: &Value,
    place: &Place,
    changes: &mut Vec<Coerced>,
) {
    let Some(named) = part["properties"].as_object() else { return };
    let unnamed: Vec<String> = members.keys().filter(|name| !named.contains_key(*name)).cloned().collect();
    let is_closed = part["additionalProperties"] == false && part.get("patternProperties").is_none();
    for name in unnamed {
        let free = |(own, _): &(&String, &Value)| !members.contains_key(*own);
        let is_alias = |schema: &Value| schema["x-alias"] == *name;
        let fits = |(own, schema): &(&String, &Value)| {
            is_alias(schema) || is_closed && letters(own) == letters(&name)
        };
        let mut fitting = named.iter().filter(free).filter(fits);
        let own = fitting.next().filter(|_| fitting.next().is_none()).map(|(own, _)| own.clone());
        let at = place.at.key(name.as_str());
        match own {
            Some(own) => {
                let Some(member) = members.shift_remove(&name) else { continue };
                changes.push(Coerced::renamed(place.at.key(own.as_str()), &name));
                members.insert(own, member);
            }
            None if is_closed => {
                let Some(member) = members.shift_remove(&name) else { continue };
                changes.push(Coerced::removed(at, &member, "is not named by the schema"));
            }
            None => {}
        }
    }
}

/// Adds required members whose only value, default or empty container the schema tells.
pub(super) fn missing(
    members: &mut Map<String, Value>,
    part: &Value,
    root: &Value,
    place: &Place,
    changes: &mut Vec<Coerced>,
) {
    let required = part["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in required {
        let schema = &part["properties"][name];
        let schema = target(root, schema).unwrap_or(schema);
        if members.contains_key(name) || !schema.is_object() {
            continue;
        }
        let is = |wanted: &str, keyword: &str| {
            types(schema) == [wanted] || schema.get("type").is_none() && schema.get(keyword).is_some()
        };
        let value = match () {
            () if schema.get("default").is_some() => schema["default"].clone(),
            () if schema.get("const").is_some() => schema["const"].clone(),
            () if is("array", "items") => json!([]),
            () if is("object", "properties") => json!({}),
            () => continue,
        };
        changes.push(Coerced::added(place.at.key(name), &value));
        members.insert(name.to_owned(), value);
    }
}
