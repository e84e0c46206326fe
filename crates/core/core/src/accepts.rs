use std::collections::HashMap;

use formwork_json::is_same;
use serde_json::Value;

use crate::keywords::{fits_type, target};

/// Decides whether values satisfy parts of a lowered schema, by structure, `enum`, `const` and plain bounds.
///
/// Formats are ignored, and patterns are too unless a matcher is set: variants that differ in nothing else are lifted in
/// the same way.
pub(crate) struct Accepts<'s> {
    schema: &'s Value,
    /// Returns whether a text matches a pattern; `None` ignores patterns.
    matches: Option<&'s PatternMatcher<'s>>,
    /// Whether a closed object accepts members that it does not name.
    is_tolerant: bool,
    /// Results that were computed before, by the addresses of value and part.
    known: HashMap<(*const Value, *const Value), bool>,
}

/// A function of a pattern and a text that returns whether the text matches.
type PatternMatcher<'s> = dyn Fn(&str, &str) -> bool + 's;

/// The maximum number of references and variants that are followed without a step into the value.
const MAX_JUMPS: usize = 32;

impl<'s> Accepts<'s> {
    pub(crate) fn new(schema: &'s Value) -> Self {
        Self { schema, matches: None, is_tolerant: false, known: HashMap::new() }
    }

    pub(crate) fn tolerant(schema: &'s Value) -> Self {
        Self { is_tolerant: true, ..Self::new(schema) }
    }

    /// Sets a matcher for patterns (default: none, patterns are ignored).
    pub(crate) fn with_patterns(self, matches: &'s dyn Fn(&str, &str) -> bool) -> Self {
        Self { matches: Some(matches), ..self }
    }

    /// Returns whether a value satisfies a part of the schema. A part that refers only to itself accepts no value.
    pub(crate) fn accepts(&mut self, value: &Value, part: &Value) -> bool {
        self.node(value, part, 0)
    }

    fn node(&mut self, value: &Value, part: &Value, jumps: usize) -> bool {
        let keywords = match part {
            Value::Object(keywords) => keywords,
            Value::Bool(allowed) => return *allowed,
            _ => return true,
        };
        if jumps > MAX_JUMPS {
            return false;
        }
        let key = (std::ptr::from_ref(value), std::ptr::from_ref(part));
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let fits = keywords.iter().all(|(keyword, expected)| match (keyword.as_str(), expected) {
            ("$ref", Value::String(_)) => {
                target(self.schema, part).is_some_and(|target| self.node(value, target, jumps + 1))
            }
            ("const", constant) => is_same(constant, value),
            ("enum", Value::Array(values)) => values.iter().any(|one| is_same(one, value)),
            ("type", Value::String(_) | Value::Array(_)) => fits_type(part, value) == Some(true),
            ("anyOf" | "oneOf", Value::Array(variants)) => {
                variants.iter().any(|variant| self.node(value, variant, jumps + 1))
            }
            ("allOf", Value::Array(parts)) => parts.iter().all(|part| self.node(value, part, jumps + 1)),
            _ => match value {
                Value::Number(number) => bounds(number, keyword, expected),
                Value::String(text) if keyword == "pattern" => {
                    let matches = self.matches.zip(expected.as_str());
                    matches.is_none_or(|(matches, pattern)| matches(pattern, text))
                }
                Value::String(text) => lengths(text.chars().count() as u64, keyword, expected, "Length"),
                Value::Array(items) => {
                    lengths(items.len() as u64, keyword, expected, "Items")
                        && self.items(items, keyword, part)
                }
                Value::Object(members) => {
                    lengths(members.len() as u64, keyword, expected, "Properties")
                        && self.members(members, keyword, part)
                }
                _ => true,
            },
        });
        self.known.insert(key, fits);
        fits
    }

    fn items(&mut self, items: &[Value], keyword: &str, part: &Value) -> bool {
        let prefix = part["prefixItems"].as_array().map(Vec::as_slice).unwrap_or_default();
        match keyword {
            "prefixItems" => items.iter().zip(prefix).all(|(item, part)| self.node(item, part, 0)),
            "items" => items.iter().skip(prefix.len()).all(|item| self.node(item, &part["items"], 0)),
            _ => true,
        }
    }

    fn members(&mut self, members: &serde_json::Map<String, Value>, keyword: &str, part: &Value) -> bool {
        match keyword {
            "required" => {
                let names = part["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                names.into_iter().all(|name| members.contains_key(name))
            }
            "properties" => members.iter().all(|(name, member)| {
                part["properties"].get(name).is_none_or(|part| self.node(member, part, 0))
            }),
            "patternProperties" => {
                part["patternProperties"].as_object().into_iter().flatten().all(|(pattern, part)| {
                    let matches = self.matches;
                    let covered = |name: &str| matches.is_some_and(|matches| matches(pattern, name));
                    members
                        .iter()
                        .filter(|(name, _)| covered(name))
                        .all(|(_, member)| self.node(member, part, 0))
                })
            }
            "additionalProperties" => {
                let rest = &part["additionalProperties"];
                let is_closed = rest == &Value::Bool(false);
                let patterns: Vec<&String> =
                    part["patternProperties"].as_object().into_iter().flat_map(|all| all.keys()).collect();
                let matches = self.matches;
                // A pattern may cover every name when there is no matcher to evaluate it.
                let is_other = |name: &str| {
                    part["properties"].get(name).is_none()
                        && !patterns
                            .iter()
                            .any(|pattern| matches.is_none_or(|matches| matches(pattern, name)))
                };
                members
                    .iter()
                    .filter(|(name, _)| is_other(name))
                    .all(|(_, member)| if is_closed { self.is_tolerant } else { self.node(member, rest, 0) })
            }
            _ => true,
        }
    }
}

fn bounds(number: &serde_json::Number, keyword: &str, expected: &Value) -> bool {
    let (Some(number), Some(bound)) = (number.as_f64(), expected.as_f64()) else { return true };
    match keyword {
        "minimum" => number >= bound,
        "maximum" => number <= bound,
        "exclusiveMinimum" => number > bound,
        "exclusiveMaximum" => number < bound,
        _ => true,
    }
}

fn lengths(size: u64, keyword: &str, expected: &Value, of: &str) -> bool {
    match (keyword.strip_suffix(of), expected.as_u64()) {
        (Some("min"), Some(min)) => size >= min,
        (Some("max"), Some(max)) => size <= max,
        _ => true,
    }
}
