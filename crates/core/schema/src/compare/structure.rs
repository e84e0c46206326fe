//! A comparison keyword by keyword, for schemas whose canonical form is too expensive or not exact.
//!
//! It proves that every constraint of the outer schema follows from the inner schema. It never proves the opposite.

use std::cmp::Ordering;

use formwork_core::keywords::{definition_name, type_name};
use serde_json::{Map, Number, Value};

/// The maximum number of pairs of schemas that are compared before the proof is given up: milliseconds, in dev builds too.
const MAX_PAIRS: u32 = 20_000;

/// The maximum depth of recursion before the proof is given up.
const MAX_DEPTH: u32 = 100;

/// Returns whether `outer` is proved to accept every value that `inner` accepts. References have the form `#/$defs/name`.
pub(super) fn contains(outer: &Value, inner: &Value) -> bool {
    let mut proof = Attempt { outer, inner, left: MAX_PAIRS, assumed: Vec::new() };
    proof.node(outer, inner, Depth { calls: 0, descents: 0 })
}

#[derive(Clone, Copy)]
struct Depth {
    /// The number of recursive calls.
    calls: u32,
    /// The number of steps from a value to its members or items.
    descents: u32,
}

impl Depth {
    const fn here(self) -> Self {
        Self { calls: self.calls + 1, ..self }
    }

    const fn inside(self) -> Self {
        Self { calls: self.calls + 1, descents: self.descents + 1 }
    }
}

struct Attempt<'s> {
    outer: &'s Value,
    inner: &'s Value,
    left: u32,
    /// The pairs that are being proved, each with its number of descents. A pair that is met again further inside of a
    /// value may be assumed: values are finite, so this is induction over their depth.
    assumed: Vec<(*const Value, *const Value, u32)>,
}

impl<'s> Attempt<'s> {
    fn node(&mut self, outer: &'s Value, inner: &'s Value, depth: Depth) -> bool {
        if *inner == Value::Bool(false) || accepts_all(outer) {
            return true;
        }
        let Some(left) = self.left.checked_sub(1).filter(|_| depth.calls < MAX_DEPTH) else { return false };
        self.left = left;
        let pair = (std::ptr::from_ref(outer), std::ptr::from_ref(inner));
        if let Some((_, _, descents)) = self.assumed.iter().find(|(a, b, _)| (*a, *b) == pair) {
            return *descents < depth.descents;
        }
        self.assumed.push((pair.0, pair.1, depth.descents));
        let proved = self.keywords(outer, inner, depth) || self.applied(outer, inner, depth);
        self.assumed.pop();
        proved
    }

    /// Proves the claim from the schemas that `inner` applies to the same value.
    fn applied(&mut self, outer: &'s Value, inner: &'s Value, depth: Depth) -> bool {
        if let Some(next) = definition(self.inner, inner)
            && self.node(outer, next, depth.here())
        {
            return true;
        }
        let list = |keyword: &str| inner.get(keyword).and_then(Value::as_array);
        if list("allOf").is_some_and(|all| all.iter().any(|part| self.node(outer, part, depth.here()))) {
            return true;
        }
        ["anyOf", "oneOf"].into_iter().any(|keyword| {
            list(keyword).is_some_and(|variants| {
                !variants.is_empty() && variants.iter().all(|part| self.node(outer, part, depth.here()))
            })
        })
    }

    /// Proves every keyword of `outer` on its own.
    fn keywords(&mut self, outer: &'s Value, inner: &'s Value, depth: Depth) -> bool {
        let (Value::Object(outer_keywords), Value::Object(inner_keywords)) = (outer, inner) else {
            return false;
        };
        outer_keywords.iter().all(|(keyword, value)| match (keyword.as_str(), value) {
            ("$defs", _) => true,
            ("$ref", _) => {
                definition(self.outer, outer).is_some_and(|next| self.node(next, inner, depth.here()))
            }
            ("allOf", Value::Array(all)) => all.iter().all(|part| self.node(part, inner, depth.here())),
            ("anyOf", Value::Array(any)) => self.any_of(any, inner, depth),
            ("properties", Value::Object(members)) => members
                .iter()
                .all(|(name, member)| self.inside(member, member_of(inner_keywords, name), depth)),
            ("patternProperties", Value::Object(patterns)) => patterns.iter().all(|(pattern, member)| {
                let own = inner_keywords.get("patternProperties").and_then(|own| own.get(pattern));
                self.inside(member, own, depth)
            }),
            ("additionalProperties", rest) => self.further(outer_keywords, rest, inner_keywords, depth),
            ("items", items) => {
                let prefixes = |keywords: &Map<String, Value>| {
                    keywords.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len)
                };
                prefixes(outer_keywords) == prefixes(inner_keywords)
                    && self.inside(items, inner_keywords.get("items"), depth)
            }
            ("prefixItems", Value::Array(items)) => {
                let own = inner_keywords.get("prefixItems").and_then(Value::as_array);
                own.is_some_and(|own| {
                    items.len() <= own.len()
                        && items.iter().zip(own).all(|(item, own)| self.inside(item, Some(own), depth))
                })
            }
            (keyword, value) => implied(keyword, value, outer_keywords, inner_keywords),
        })
    }

    /// Compares the schemas of a member or an item; `inner` is `None` if the inner schema certainly says nothing about it.
    fn inside(&mut self, outer: &'s Value, inner: Option<&'s Value>, depth: Depth) -> bool {
        inner.map_or_else(|| accepts_all(outer), |inner| self.node(outer, inner, depth.inside()))
    }

    fn any_of(&mut self, any: &'s [Value], inner: &'s Value, depth: Depth) -> bool {
        any.iter().any(|part| self.node(part, inner, depth.here()))
            || inner.get("anyOf").and_then(Value::as_array).is_some_and(|own| {
                !own.is_empty()
                    && own.iter().all(|own| any.iter().any(|part| self.node(part, own, depth.here())))
            })
    }

    /// Proves that the members that `outer` does not name satisfy `rest`.
    fn further(
        &mut self,
        outer: &'s Map<String, Value>,
        rest: &'s Value,
        inner: &'s Map<String, Value>,
        depth: Depth,
    ) -> bool {
        let names = |keywords: &'s Map<String, Value>| keywords.get("properties").and_then(Value::as_object);
        let named = |name: &String| names(outer).is_some_and(|members| members.contains_key(name));
        // A pattern excludes members from `additionalProperties`: only equal patterns are compared.
        outer.get("patternProperties") == inner.get("patternProperties")
            && self.inside(rest, inner.get("additionalProperties"), depth)
            && names(inner)
                .into_iter()
                .flatten()
                .filter(|(name, _)| !named(name))
                .all(|(_, member)| self.inside(rest, Some(member), depth))
    }
}

fn accepts_all(schema: &Value) -> bool {
    *schema == Value::Bool(true)
        || schema.as_object().is_some_and(|keywords| keywords.keys().all(|keyword| keyword == "$defs"))
}

fn definition<'s>(document: &'s Value, node: &Value) -> Option<&'s Value> {
    document.get("$defs")?.get(definition_name(node)?)
}

/// Returns the schema that a member with this name has to satisfy; `None` if the object's schema certainly requires
/// nothing.
fn member_of<'s>(object: &'s Map<String, Value>, name: &str) -> Option<&'s Value> {
    if let Some(member) = object.get("properties").and_then(|members| members.get(name)) {
        return Some(member);
    }
    if object.contains_key("patternProperties") {
        return None;
    }
    object.get("additionalProperties")
}

/// Returns whether the keywords of `inner` imply one constraint of `outer`, without a look at subschemas.
fn implied(keyword: &str, value: &Value, outer: &Map<String, Value>, inner: &Map<String, Value>) -> bool {
    let own = inner.get(keyword);
    let bound = |expected: Ordering| {
        own.and_then(Value::as_number)
            .zip(value.as_number())
            .and_then(|(own, value)| order(own, value))
            .is_some_and(|found| found == expected || found == Ordering::Equal)
    };
    match keyword {
        "type" => types(inner).is_some_and(|own| {
            let allowed = listed(value);
            own.iter().all(|own| allowed.contains(own) || (*own == "integer" && allowed.contains(&"number")))
        }),
        "enum" => finite(inner).is_some_and(|own| {
            own.iter().all(|own| value.as_array().is_some_and(|values| values.contains(own)))
        }),
        "const" => finite(inner).is_some_and(|own| own.iter().all(|own| *own == value)),
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
            bound(Ordering::Greater)
        }
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => bound(Ordering::Less),
        "required" => {
            let own = own.map(listed).unwrap_or_default();
            listed(value).iter().all(|name| own.contains(name))
        }
        "uniqueItems" => *value == Value::Bool(false) || own == Some(value),
        "format" | "pattern" | "multipleOf" => own == Some(value),
        "contentEncoding" | "contentMediaType" | "contentSchema" | "dependentRequired"
        | "dependentSchemas" | "not" | "oneOf" | "propertyNames" => equal(&[keyword], outer, inner),
        "if" | "then" | "else" => equal(&["if", "then", "else"], outer, inner),
        "contains" | "minContains" | "maxContains" => {
            equal(&["contains", "minContains", "maxContains"], outer, inner)
        }
        // The unevaluated members and items depend on all other keywords.
        "unevaluatedItems" | "unevaluatedProperties" => {
            outer == inner && !outer.iter().any(|(keyword, value)| keyword.starts_with('$') || refers(value))
        }
        _ => false,
    }
}

/// Returns whether these keywords are equal as text and refer to nothing: equal references may lead to different schemas.
fn equal(keywords: &[&str], outer: &Map<String, Value>, inner: &Map<String, Value>) -> bool {
    keywords.iter().all(|keyword| {
        let (outer, inner) = (outer.get(*keyword), inner.get(*keyword));
        outer == inner && !outer.is_some_and(refers)
    })
}

fn refers(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(name, value)| name.starts_with('$') || refers(value)),
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}

/// Returns the names in a string or in a list of strings.
fn listed(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        value => value.as_str().into_iter().collect(),
    }
}

/// Returns the types that a schema's own keywords allow, if they restrict them.
fn types(schema: &Map<String, Value>) -> Option<Vec<&str>> {
    if let Some(types) = schema.get("type") {
        return Some(listed(types));
    }
    let name = |value: &&Value| match value {
        Value::Number(number) if !number.is_f64() => "integer",
        other => type_name(other),
    };
    finite(schema).map(|values| values.iter().map(name).collect())
}

/// Returns the values of `enum` or `const`.
fn finite(schema: &Map<String, Value>) -> Option<Vec<&Value>> {
    match schema.get("const") {
        Some(value) => Some(vec![value]),
        None => Some(schema.get("enum")?.as_array()?.iter().collect()),
    }
}

/// Orders two numbers; `None` where 64-bit floating point cannot represent one of them exactly.
fn order(a: &Number, b: &Number) -> Option<Ordering> {
    if let (Some(a), Some(b)) = (a.as_i128(), b.as_i128()) {
        return Some(a.cmp(&b));
    }
    let exact = |number: &Number| number.as_f64().filter(|float| number.is_f64() || float.abs() < 9e15);
    exact(a)?.partial_cmp(&exact(b)?)
}
