//! Converts the values of a document that do not fit their schemas.

use std::borrow::Cow;
use std::collections::HashMap;

use formwork_json::{JsonPath, Level, is_same, read};
use serde_json::{Number, Value, json};

use super::change::Coerced;
use super::declared::Coercion;
use super::guess;
use super::part::{Place, number, types};
use super::places::{Coercions, inside};
use crate::Segment;
use crate::accepts::Accepts;
use crate::keywords::{fits_type, item, target, type_name};

/// Converts one document. The places whose value fits the schema stay as they are.
pub(super) struct Converter<'a> {
    pub(super) coercions: &'a Coercions,
    /// The text of numbers of the document, by their paths.
    pub(super) raw: &'a HashMap<JsonPath, String>,
    /// The paths of the numbers whose text is needed.
    pub(super) wanted: Vec<JsonPath>,
    /// The number of values that may still be visited.
    pub(super) left: usize,
}

/// A converted value, with the changes inside of it.
type Made = (Value, Vec<Coerced>);

/// The maximum number of references and variants that are followed for one value.
const MAX_JUMPS: usize = 16;

impl<'a> Converter<'a> {
    pub(super) fn root(&mut self, value: &Value) -> Option<Made> {
        let coercion = self.coercions.base();
        let place = Place { at: JsonPath::root(), origin: Some(JsonPath::root()), coercion };
        let coercions = self.coercions;
        self.place(value, &coercions.schema, place, 0)
    }

    /// Converts the value at a place for a schema; `None` if nothing is changed.
    fn place(&mut self, value: &Value, part: &'a Value, mut place: Place, jumps: usize) -> Option<Made> {
        self.left = self.left.checked_sub(1)?;
        if !part.is_object() || jumps > MAX_JUMPS {
            return None;
        }
        place.coercion = self.coercions.below(place.coercion, part, &place.at);
        let mut made: Made = (Value::Null, Vec::new());
        let mut current = Cow::Borrowed(value);
        if place.coercion.converts()
            && let Some(own) = self.own(value, part, &place, jumps)
        {
            current = Cow::Owned(own.0);
            made.1.extend(own.1);
        }
        if let Some((value, changes)) = self.inner(&current, part, &place) {
            current = Cow::Owned(value);
            made.1.extend(changes);
        }
        let included = part["allOf"].as_array().into_iter().flatten();
        for inner in target(&self.coercions.schema, part).into_iter().chain(included) {
            if let Some((value, changes)) = self.place(&current, inner, place.clone(), jumps + 1) {
                current = Cow::Owned(value);
                made.1.extend(changes);
            }
        }
        for keyword in ["anyOf", "oneOf"] {
            let Some(variants) = part[keyword].as_array() else { continue };
            if let Some((value, changes)) = self.union(&current, variants, &place, jumps) {
                current = Cow::Owned(value);
                made.1.extend(changes);
            }
        }
        made.0 = current.into_owned();
        (!made.1.is_empty()).then_some(made)
    }

    /// Converts a value that fits no variant, if one conversion makes it fit, or all that do have the same result.
    fn union(&mut self, value: &Value, variants: &'a [Value], place: &Place, jumps: usize) -> Option<Made> {
        if variants.iter().any(|variant| self.fits(value, variant)) {
            return None;
        }
        let mut found: Vec<Made> = Vec::new();
        for variant in variants {
            let Some(made) = self.place(value, variant, place.clone(), jumps + 1) else { continue };
            if self.fits(&made.0, variant) && !found.iter().any(|(known, _)| is_same(known, &made.0)) {
                found.push(made);
            }
        }
        if found.len() > 1 && place.coercion == Coercion::Guess {
            // The variant that keeps the type, then the one that needs the fewest changes, and the first of several.
            found.sort_by_key(|(made, changes)| (type_name(made) != type_name(value), changes.len()));
            found.truncate(1);
        }
        found.pop().filter(|_| found.is_empty())
    }

    pub(super) fn fits(&self, value: &Value, part: &Value) -> bool {
        Accepts::new(&self.coercions.schema).accepts(value, part)
    }

    /// Converts the members and items of a value.
    fn inner(&mut self, value: &Value, part: &'a Value, place: &Place) -> Option<Made> {
        let mut changes = Vec::new();
        let value = match value {
            Value::Object(members) => {
                let mut members = members.clone();
                if place.coercion == Coercion::Guess {
                    if let Some(made) = implied(self, value, part, place) {
                        return Some(made);
                    }
                    guess::names(&mut members, part, place, &mut changes);
                }
                for (name, member) in &mut members {
                    let segment = Segment::Key(name.clone());
                    let Some(inner) = inside(part, &segment) else { continue };
                    if let Some((value, inner)) = self.place(member, inner, place.below(segment), 0) {
                        *member = value;
                        changes.extend(inner);
                    }
                }
                if place.coercion == Coercion::Guess {
                    guess::missing(&mut members, part, &self.coercions.schema, place, &mut changes);
                }
                Value::Object(members)
            }
            Value::Array(items) => {
                let mut out = Vec::with_capacity(items.len());
                for (index, value) in items.iter().enumerate() {
                    let inner = item(part, index);
                    let below = place.below(Segment::Index(index));
                    let made = inner.and_then(|inner| self.place(value, inner, below.clone(), 0));
                    let (new, of_item) = made.unwrap_or_else(|| (value.clone(), Vec::new()));
                    if place.coercion == Coercion::Guess && inner.is_some_and(|inner| !self.fits(&new, inner))
                    {
                        changes.push(Coerced::removed(below.at, value, "does not fit the list"));
                        continue;
                    }
                    changes.extend(of_item);
                    out.push(new);
                }
                Value::Array(out)
            }
            _ => return None,
        };
        (!changes.is_empty()).then_some((value, changes))
    }

    /// Converts a value whose type, or whose text, the keywords of a schema itself do not allow.
    fn own(&mut self, value: &Value, part: &'a Value, place: &Place, jumps: usize) -> Option<Made> {
        let listed = listed(part);
        if let Some(listed) = &listed {
            if listed.iter().any(|one| is_same(one, value)) {
                return None;
            }
        } else if fits_type(part, value) != Some(false) {
            return None;
        }
        let mut found: Vec<Made> = Vec::new();
        let mut add = |made: Made| {
            if !found.iter().any(|(known, _)| is_same(known, &made.0)) {
                found.push(made);
            }
        };
        let changed = |to: Value| {
            let change = Coerced::changed(place.at.clone(), value, &to);
            (to, vec![change])
        };
        match &listed {
            Some(listed) => {
                let guesses = place.coercion == Coercion::Guess;
                let to = in_list(value, listed)
                    .or_else(|| guess::in_list(value, listed, part).filter(|_| guesses));
                if let Some(to) = to {
                    add(changed(to));
                }
            }
            None => {
                for name in types(part) {
                    for to in self.converted(value, name, place) {
                        let made = match &to {
                            Value::Array(_) | Value::Object(_) => {
                                self.contained(to, value, part, place, jumps)
                            }
                            _ => Some(changed(to)),
                        };
                        if let Some(made) = made.filter(|made| self.fits(&made.0, part)) {
                            add(made);
                            break;
                        }
                    }
                }
            }
        }
        if found.is_empty() && place.coercion == Coercion::Guess {
            return other(self, value, part, place);
        }
        if place.coercion == Coercion::Guess {
            found.truncate(1);
        }
        found.pop().filter(|_| found.is_empty())
    }

    /// Converts the parts of a list or object that was made of a value.
    pub(super) fn contained(
        &mut self,
        to: Value,
        from: &Value,
        part: &'a Value,
        place: &Place,
        jumps: usize,
    ) -> Option<Made> {
        if jumps > MAX_JUMPS {
            return None;
        }
        // The items of a list of one value are at its place in the text.
        let is_wrapped = to.as_array().is_some_and(|items| items.len() == 1 && items.first() == Some(from));
        let mut change = Coerced::changed(place.at.clone(), from, &to);
        if is_wrapped {
            change.message = format!("one value stood for a list: {}", change.original);
            let wrapped = Place { origin: None, ..place.clone() };
            let mut below = wrapped.below(Segment::Index(0));
            below.origin = place.origin.clone();
            let inner = item(part, 0);
            let made = inner.and_then(|inner| self.place(from, inner, below, jumps + 1));
            let (item, changes) = made.unwrap_or_else(|| (from.clone(), Vec::new()));
            return Some((Value::Array(vec![item]), std::iter::once(change).chain(changes).collect()));
        }
        let place = Place { origin: None, ..place.clone() };
        let (value, changes) = self.inner(&to, part, &place).unwrap_or_else(|| (to, Vec::new()));
        Some((value, std::iter::once(change).chain(changes).collect()))
    }

    /// Returns the values of a type that a value may stand for, the likeliest first.
    fn converted(&mut self, value: &Value, name: &str, place: &Place) -> Vec<Value> {
        let mut found = Vec::new();
        match (name, value) {
            ("integer" | "number", Value::String(text)) => {
                found.extend(number(text.trim()).map(Value::Number))
            }
            ("boolean", Value::String(text)) => {
                let is = |word: &str| text.trim().eq_ignore_ascii_case(word);
                found.extend([true, false].into_iter().find(|one| is(&one.to_string())).map(Value::Bool));
            }
            ("string", Value::Bool(one)) => found.push(Value::from(one.to_string())),
            ("string", Value::Number(number)) => found.extend(self.digits(number, place).map(Value::from)),
            ("array", Value::String(text)) => found.extend(document(text).filter(Value::is_array)),
            ("object", Value::String(text)) => found.extend(document(text).filter(Value::is_object)),
            _ => {}
        }
        if place.coercion == Coercion::Guess {
            found.extend(guess::converted(value, name));
        }
        if name == "array" && !value.is_array() && !value.is_null() {
            found.push(Value::Array(vec![value.clone()]));
        }
        found
    }

    /// Returns the text of a number as the model wrote it. Without it, only integers are known exactly.
    fn digits(&mut self, number: &Number, place: &Place) -> Option<String> {
        if let Some(origin) = &place.origin {
            if let Some(raw) = self.raw.get(origin) {
                return Some(raw.clone());
            }
            self.wanted.push(origin.clone());
        }
        (number.is_i64() || number.is_u64()).then(|| number.to_string())
    }
}

/// Returns the values that `enum` or `const` of a schema allow.
fn listed(part: &Value) -> Option<Vec<Value>> {
    match (part.get("const"), part["enum"].as_array()) {
        (Some(constant), _) => Some(vec![constant.clone()]),
        (None, Some(listed)) => Some(listed.clone()),
        (None, None) => None,
    }
}

/// Returns the only listed value that a value names: a text in other case or with other spaces, or the text of a number, literal or
/// text that is listed.
fn in_list(value: &Value, listed: &[Value]) -> Option<Value> {
    let plain = |text: &str| -> String {
        text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
    };
    let text_of = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if number.is_f64() => None,
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    let text = plain(&text_of(value)?);
    let is_text = value.is_string();
    let names = |one: &&Value| {
        (is_text || one.is_string()) && text_of(one).is_some_and(|other| plain(&other) == text)
    };
    let mut found = listed.iter().filter(names);
    let only = found.next()?;
    found.next().is_none().then(|| only.clone())
}

/// Returns the list or object that a text is as strict JSON.
fn document(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let candidate = read(text.trim(), Level::Strict).ok()?.into_candidates().into_iter().next()?;
    (candidate.is_exact() && candidate.rounded.is_empty()).then_some(candidate.value)
}

/// Makes an object of a value that can be its only required member, or of a list with one value for each member.
fn other<'a>(
    converter: &mut Converter<'a>,
    value: &Value,
    part: &'a Value,
    place: &Place,
) -> Option<(Value, Vec<Coerced>)> {
    if let Value::Array(items) = value
        && let [only] = items.as_slice()
    {
        let change = Coerced::changed(place.at.clone(), value, only);
        let fits = converter.fits(only, part);
        if fits {
            return Some((only.clone(), vec![change]));
        }
        let made =
            only.is_object().then(|| converter.contained(only.clone(), value, part, place, 0)).flatten();
        return made.filter(|(made, _)| converter.fits(made, part));
    }
    let named = part["properties"].as_object().filter(|_| types(part).contains(&"object"))?;
    let made: Value = match value {
        Value::Array(items)
            if items.len() == named.len()
                && items.iter().zip(named.values()).all(|(item, schema)| converter.fits(item, schema)) =>
        {
            Value::Object(named.keys().cloned().zip(items.iter().cloned()).collect())
        }
        Value::Array(_) | Value::Object(_) => return None,
        _ => {
            let [name] = part["required"].as_array()?.as_slice() else { return None };
            json!({name.as_str()?: value})
        }
    };
    converter.contained(made, value, part, place, 0).filter(|(made, _)| converter.fits(made, part))
}

/// Makes an object of another one that can be the value of its only required member.
fn implied<'a>(
    converter: &mut Converter<'a>,
    value: &Value,
    part: &'a Value,
    place: &Place,
) -> Option<(Value, Vec<Coerced>)> {
    let [name] = part["required"].as_array()?.as_slice() else { return None };
    let name = name.as_str()?;
    let schema = part["properties"].get(name).filter(|_| value.get(name).is_none())?;
    // A schema that allows anything implies nothing.
    if !converter.fits(value, schema) || converter.fits(&Value::Null, schema) {
        return None;
    }
    let made = json!({name: value});
    let change = Coerced::changed(place.at.clone(), value, &made);
    converter.fits(&made, part).then(|| (made, vec![change]))
}
