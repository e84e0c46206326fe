use std::cell::Cell;
use std::sync::Arc;

use formwork_core::keywords::{keyword, target};
use formwork_core::normalise;
use formwork_schema::{Compiled, compile};
use proptest::prelude::*;
use proptest::strategy::Union;
use serde_json::{Map, Value, json};

/// Generates documents that satisfy a schema.
///
/// For schemas that are hard to satisfy by chance (`not`, look-around, several conditions at once) it generates fewer
/// documents: invalid ones are discarded.
///
/// # Panics
/// If the schema cannot be compiled.
///
/// ```
/// use proptest::prelude::*;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 150}}, "required": ["age"]});
/// proptest!(|(person in formwork_testkit::instance(&schema))| {
///     prop_assert!(person["age"].as_i64().is_some_and(|age| (0..=150).contains(&age)));
/// });
/// ```
pub fn instance(schema: &Value) -> BoxedStrategy<Value> {
    let compiled: Arc<Compiled> = match compile(schema) {
        Ok(compiled) => compiled,
        Err(error) => panic!("{error}"),
    };
    let root = Arc::new(normalise(schema));
    let draft = Generator { root: Arc::clone(&root), left: Cell::new(MAX_NODES) }.node(&root, MAX_DEPTH);
    draft.prop_filter("satisfies the schema", move |value| compiled.is_valid(value)).boxed()
}

/// The depth in references and containers from which on optional parts are left out.
const MAX_DEPTH: u32 = 8;

/// The maximum number of values of a document. Values beyond are `null`, which makes the document invalid if the schema
/// does not allow that.
const MAX_NODES: u32 = 20_000;

/// The maximum depth in references and containers of the search for the shortest document.
const MAX_SHORTEST: u32 = 8;

struct Generator {
    root: Arc<Value>,
    /// The number of values that may still be generated.
    left: Cell<u32>,
}

impl Generator {
    fn node(&self, schema: &Value, depth: u32) -> BoxedStrategy<Value> {
        let Some(left) = self.left.get().checked_sub(1) else { return Just(Value::Null).boxed() };
        self.left.set(left);
        if !schema.is_object() {
            return self.anything(depth.min(2));
        }
        if let Some(constant) = schema.get("const") {
            return Just(constant.clone()).boxed();
        }
        if let Some(values) = schema["enum"].as_array().filter(|values| !values.is_empty()) {
            return prop::sample::select(values.clone()).boxed();
        }
        if let Some(target) = target(&self.root, schema) {
            return self.node(&merged(target, schema), depth.saturating_sub(1));
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let whole = parts
                .iter()
                .fold(without(schema, "allOf"), |whole, part| merged(&whole, &self.resolved(part)));
            return self.node(&whole, depth);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(variants) = schema[keyword].as_array().filter(|variants| !variants.is_empty()) {
                let rest = without(schema, keyword);
                // Near the limit, only the variant with the fewest levels is used, and of equal ones the shortest.
                let fewest = variants.iter().min_by_key(|variant| {
                    let levels = (0..MAX_SHORTEST).find(|levels| self.ends_within(variant, *levels));
                    (levels.unwrap_or(MAX_SHORTEST), self.resolved(variant).to_string().len())
                });
                let chosen = if depth == 0 {
                    fewest.into_iter().collect()
                } else {
                    variants.iter().collect::<Vec<_>>()
                };
                let strategies = chosen
                    .into_iter()
                    .map(|variant| self.node(&merged(&rest, &self.resolved(variant)), depth));
                return Union::new(strategies).boxed();
            }
        }
        match &schema["type"] {
            Value::String(name) => self.typed(name, schema, depth),
            Value::Array(names) if !names.is_empty() => {
                let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
                Union::new(names.iter().map(|name| self.typed(name, schema, depth))).boxed()
            }
            _ => self.typed(guessed_type(schema), schema, depth),
        }
    }

    /// Returns whether a value of the schema can end within `levels` levels, judged by its required parts.
    fn ends_within(&self, schema: &Value, levels: u32) -> bool {
        let all = |schemas: &Value, levels: u32| {
            schemas.as_array().into_iter().flatten().all(|part| self.ends_within(part, levels))
        };
        if let Some(target) = target(&self.root, schema) {
            return levels > 0 && self.ends_within(target, levels - 1);
        }
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut inner: Vec<&Value> = required.filter_map(|name| schema["properties"].get(name)).collect();
        let needed = size(schema, "minItems").unwrap_or(0);
        let prefix = schema["prefixItems"].as_array().map(Vec::as_slice).unwrap_or_default();
        inner.extend(prefix.iter().take(needed));
        inner.extend(schema.get("items").filter(|_| needed > prefix.len()));
        let is_union = |keyword: &str| {
            schema[keyword].as_array().is_none_or(|variants| {
                variants.is_empty() || variants.iter().any(|variant| self.ends_within(variant, levels))
            })
        };
        (inner.is_empty() || levels > 0 && inner.iter().all(|part| self.ends_within(part, levels - 1)))
            && all(&schema["allOf"], levels)
            && is_union("anyOf")
            && is_union("oneOf")
    }

    fn resolved(&self, schema: &Value) -> Value {
        match target(&self.root, schema) {
            Some(target) => merged(target, &without(schema, "$ref")),
            None => schema.clone(),
        }
    }

    fn typed(&self, name: &str, schema: &Value, depth: u32) -> BoxedStrategy<Value> {
        match name {
            "null" => Just(Value::Null).boxed(),
            "boolean" => any::<bool>().prop_map(Value::from).boxed(),
            "integer" => integer(schema),
            "number" => number(schema),
            "string" => string(schema),
            "array" => self.array(schema, depth),
            "object" => self.object(schema, depth),
            _ => self.anything(depth.min(2)),
        }
    }

    fn array(&self, schema: &Value, depth: u32) -> BoxedStrategy<Value> {
        let inner = depth.saturating_sub(1);
        let prefix: Vec<_> = schema["prefixItems"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|item| self.node(item, inner))
            .collect();
        // The length is usually that of the prefix, and sometimes less where that is allowed.
        let min = size(schema, "minItems").unwrap_or(0);
        let most = size(schema, "maxItems").unwrap_or(usize::MAX);
        let shortest = min.min(prefix.len());
        let length = prefix.len().min(most);
        let kept = prop_oneof![4 => Just(length), 1 => shortest.min(length)..=length];
        let has_rest = depth > 0 && schema["items"] != false && most > prefix.len();
        let least = min.saturating_sub(prefix.len());
        let longest = most.saturating_sub(prefix.len()).min(least + 3).max(least);
        // In practice, lists of plain values are long.
        let plain =
            |item: &Value| item["type"].as_str().is_some_and(|name| !matches!(name, "array" | "object"));
        let long = most.saturating_sub(prefix.len()).min(if schema.get("items").is_some_and(plain) {
            100
        } else {
            6
        });
        let item = match schema.get("items") {
            Some(item) if has_rest || least > 0 => self.node(item, inner),
            _ => self.anything(inner.min(2)),
        };
        let rest = match (has_rest, schema.get("items").is_some() || prefix.is_empty()) {
            (true, _) if long > longest => prop_oneof![
                9 => prop::collection::vec(item.clone(), least..=longest),
                1 => prop::collection::vec(item, least..=long),
            ]
            .boxed(),
            (true, _) => prop::collection::vec(item, least..=longest).boxed(),
            (false, _) => prop::collection::vec(item, least).boxed(),
        };
        let unique = schema["uniqueItems"] == true;
        (prefix, kept, rest)
            .prop_map(move |(prefix, kept, rest)| {
                let has_all = kept == prefix.len();
                let mut items: Vec<Value> = prefix.into_iter().take(kept).collect();
                for item in rest.into_iter().filter(|_| has_all) {
                    if !unique || !items.contains(&item) {
                        items.push(item);
                    }
                }
                Value::Array(items)
            })
            .boxed()
    }

    /// Generates any value up to a depth.
    fn anything(&self, depth: u32) -> BoxedStrategy<Value> {
        let plain = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1000i32..1000).prop_map(|number| json!(f64::from(number) / 8.0)),
            prop::collection::vec(character(), 0..8)
                .prop_map(|text| Value::from(text.into_iter().collect::<String>())),
        ];
        plain
            .prop_recursive(depth, 12, 3, |inner| {
                prop_oneof![
                    prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                    prop::collection::vec((name(), inner), 0..3)
                        .prop_map(|members| Value::Object(members.into_iter().collect())),
                ]
            })
            .boxed()
    }

    fn object(&self, schema: &Value, depth: u32) -> BoxedStrategy<Value> {
        let inner = depth.saturating_sub(1);
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut members: Vec<BoxedStrategy<Option<(String, Value)>>> = Vec::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let needed = required.contains(&name.as_str());
            if depth == 0 && !needed {
                continue;
            }
            let member = (Just(name.clone()), self.node(property, inner));
            members.push(if needed {
                member.prop_map(Some).boxed()
            } else {
                prop::option::of(member).boxed()
            });
        }
        let open = schema.get("additionalProperties").unwrap_or(&Value::Bool(true));
        for name in required.iter().filter(|name| schema["properties"].get(**name).is_none()) {
            members.push((Just((*name).to_owned()), self.node(open, inner)).prop_map(Some).boxed());
        }
        let declared = members.len();
        let least = size(schema, "minProperties").unwrap_or(0).saturating_sub(required.len());
        let mut extras: Vec<BoxedStrategy<(String, Value)>> = Vec::new();
        for (pattern, part) in schema["patternProperties"].as_object().into_iter().flatten() {
            if let Ok(names) = proptest::string::string_regex(&bounded(pattern)) {
                extras.push((names, self.node(part, inner)).boxed());
            }
        }
        let names = schema["propertyNames"]["pattern"].as_str().map(bounded);
        let names = names.and_then(|pattern| Some(proptest::string::string_regex(&pattern).ok()?.boxed()));
        let names = names.unwrap_or_else(|| name().boxed());
        match open {
            Value::Object(_) => extras.push((names, self.node(open, inner)).boxed()),
            Value::Bool(true) if extras.is_empty() || least > 0 => {
                extras.push((names, self.anything(inner.min(2))).boxed());
            }
            _ => {}
        }
        let is_open =
            schema.get("additionalProperties").is_some() || schema.get("patternProperties").is_some();
        let usual = if is_open || least > 0 { least + 2 } else { 1 };
        let extra = match extras.is_empty() || depth == 0 && least == 0 {
            true => Just(Vec::new()).boxed(),
            false => {
                let one = Union::new(extras);
                let some = prop::collection::vec(one, least..=usual);
                if least == 0 { prop_oneof![1 => Just(Vec::new()), 1 => some].boxed() } else { some.boxed() }
            }
        };
        let most = size(schema, "maxProperties").unwrap_or(usize::MAX);
        (members, extra)
            .prop_map(move |(members, extra)| {
                let mut object: Map<String, Value> = members.into_iter().flatten().collect();
                for (name, value) in extra {
                    if object.len() < most.max(declared) {
                        object.entry(name).or_insert(value);
                    }
                }
                Value::Object(object)
            })
            .boxed()
    }
}

/// Generates names of members: usually short words, and sometimes unusual keys.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-z]{1,6}",
        1 => "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}",
        1 => "0x[0-9a-f]{40}",
        1 => prop::sample::select(vec!["", " ", "a b", "é", "a\"b", "a/b~c", "key", "value", "$ref"]).prop_map(str::to_owned),
    ]
}

fn integer(schema: &Value) -> BoxedStrategy<Value> {
    let bound = |keyword: &str| schema[keyword].as_f64();
    let low = [bound("minimum").map(f64::ceil), bound("exclusiveMinimum").map(|low| low.floor() + 1.0)];
    let high = [bound("maximum").map(f64::floor), bound("exclusiveMaximum").map(|high| high.ceil() - 1.0)];
    let low = low.into_iter().flatten().reduce(f64::max);
    let high = high.into_iter().flatten().reduce(f64::min);
    let (low, high) = match (low, high) {
        (Some(low), Some(high)) => (low as i64, high as i64),
        (Some(low), None) => (low as i64, (low as i64).saturating_add(10_000)),
        (None, Some(high)) => ((high as i64).saturating_sub(10_000), high as i64),
        // Identifiers have 19 digits.
        (None, None) => {
            return prop_oneof![9 => -10_000i64..10_000, 1 => any::<i64>()].prop_map(Value::from).boxed();
        }
    };
    let step = schema["multipleOf"]
        .as_f64()
        .filter(|step| step.fract() == 0.0 && *step >= 1.0)
        .map_or(1, |step| step as i64);
    if low > high {
        return Just(json!(low)).boxed();
    }
    // Mistakes are most likely at the ends of the range.
    let anywhere = (low..=high).prop_map(move |number| number - number.rem_euclid(step));
    let ends = prop::sample::select(vec![low, high]).prop_map(move |number| number - number.rem_euclid(step));
    let up = move |number: i64| if number < low { number.saturating_add(step) } else { number };
    prop_oneof![4 => anywhere, 1 => ends].prop_map(move |number| json!(up(number))).boxed()
}

fn number(schema: &Value) -> BoxedStrategy<Value> {
    let bound = |inclusive: &str, exclusive: &str| schema[inclusive].as_f64().or(schema[exclusive].as_f64());
    let (low, high) = match (bound("minimum", "exclusiveMinimum"), bound("maximum", "exclusiveMaximum")) {
        (Some(low), Some(high)) => (low, high),
        (Some(low), None) => (low, low + 1000.0),
        (None, Some(high)) => (high - 1000.0, high),
        (None, None) => (-1000.0, 1000.0),
    };
    if low >= high {
        return Just(json!(low)).boxed();
    }
    let step = schema["multipleOf"].as_f64();
    (low..=high)
        .prop_map(move |number| match step {
            Some(step) => json!((number / step).round() * step),
            None => json!((number * 100.0).round() / 100.0),
        })
        .boxed()
}

fn string(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(pattern) = schema["pattern"].as_str()
        && let Ok(strategy) = proptest::string::string_regex(&bounded(pattern))
    {
        return strategy.prop_map(Value::from).boxed();
    }
    let least = size(schema, "minLength").unwrap_or(0);
    let most = size(schema, "maxLength").unwrap_or(least + 12).min(least + 24).max(least);
    let formatted = match schema["format"].as_str() {
        Some("date") => Some("20[0-4][0-9]-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])"),
        Some("time") => Some("([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"),
        Some("date-time") => Some(
            "20[0-4][0-9]-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z",
        ),
        Some("uuid") => Some("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
        Some("email" | "idn-email") => Some("[a-z]{1,8}@[a-z]{1,8}\\.(com|org)"),
        Some("ipv4") => Some("(1?[0-9]?[0-9])\\.(1?[0-9]?[0-9])\\.(1?[0-9]?[0-9])\\.(1?[0-9]?[0-9])"),
        Some("ipv6") => Some("([1-9a-f][0-9a-f]{0,3}:){7}[1-9a-f][0-9a-f]{0,3}"),
        Some("uri" | "iri" | "uri-reference" | "iri-reference" | "url") => {
            Some("https://[a-z]{1,8}\\.(com|org)/[a-z]{0,8}")
        }
        Some("hostname" | "idn-hostname") => Some("[a-z]{1,8}\\.(com|org)"),
        Some("duration") => Some("P[1-9]D(T[1-9]H)?"),
        Some("json-pointer") => Some("(/[a-z]{1,4}){0,3}"),
        Some("regex") => Some("\\^[a-z]{1,6}\\$"),
        _ => None,
    };
    if let Some(strategy) = formatted.and_then(|pattern| proptest::string::string_regex(pattern).ok()) {
        return strategy.prop_map(Value::from).boxed();
    }
    prop::collection::vec(character(), least..=most)
        .prop_map(|text| Value::from(text.into_iter().collect::<String>()))
        .boxed()
}

/// Generates letters, and sometimes characters with a special role in JSON or UTF-8.
fn character() -> impl Strategy<Value = char> {
    prop_oneof![
        12 => prop::char::range('a', 'z'),
        3 => Just(' '),
        1 => prop::sample::select(vec!['"', '\\', '\n', '/', '{', '}', 'é', '🦀', '\u{7f}', '\u{2028}']),
    ]
}

/// Removes the anchors of a pattern, which proptest does not support.
fn bounded(pattern: &str) -> String {
    pattern.trim_start_matches('^').trim_end_matches('$').to_owned()
}

fn size(schema: &Value, keyword: &str) -> Option<usize> {
    schema[keyword].as_f64().map(|number| number as usize)
}

fn without(schema: &Value, keyword: &str) -> Value {
    let mut rest = schema.clone();
    if let Value::Object(rest) = &mut rest {
        rest.remove(keyword);
    }
    rest
}

/// Merges two schemas: members of both, required names of both, and the second one's keyword where both have one.
fn merged(a: &Value, b: &Value) -> Value {
    let (Value::Object(a), Value::Object(b)) = (a, b) else {
        return if a.is_object() { a.clone() } else { b.clone() };
    };
    let mut out = a.clone();
    for (keyword, value) in b {
        match (keyword.as_str(), out.get_mut(keyword), value) {
            ("$ref", _, _) => {}
            ("properties", Some(Value::Object(into)), Value::Object(more)) => {
                for (name, schema) in more {
                    let both = into.get(name).map_or_else(|| schema.clone(), |one| merged(one, schema));
                    into.insert(name.clone(), both);
                }
            }
            ("required", Some(Value::Array(into)), Value::Array(more)) => into.extend(more.iter().cloned()),
            ("minimum" | "minLength" | "minItems", Some(one), more) if one.as_f64() > more.as_f64() => {}
            ("maximum" | "maxLength" | "maxItems", Some(one), more) if one.as_f64() < more.as_f64() => {}
            _ => {
                out.insert(keyword.clone(), value.clone());
            }
        }
    }
    if let (Some(Value::Object(_)), Some(_)) = (a.get("properties"), a.get("$ref")) {
        out.remove("$ref");
    }
    Value::Object(out)
}

/// Returns the type that the keywords of a schema without `type` suggest.
fn guessed_type(schema: &Value) -> &'static str {
    let is_about = |kind: &&str| {
        let mut about = schema.as_object().into_iter().flatten().filter_map(|(name, _)| keyword(name)?.about);
        about.any(|about| about == *kind)
    };
    ["object", "array", "string", "number"].into_iter().find(is_about).unwrap_or("anything")
}
