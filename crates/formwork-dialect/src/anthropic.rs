//! The dialect of Anthropic's structured outputs.
//!
//! Sources: the provider's documentation and reports of its responses (2026-11). No probe was run against the provider.

use serde_json::{Map, Value};

use crate::Verdict::Rejected;
use crate::pattern::is_simple;
use crate::profile::{
    Any, Engine, Lengths, Limits, LintRule, Maps, OPENAI, Optional, Patterns, Profile, Tuples,
};

/// The formats that are enforced in strings.
const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// Anthropic's structured outputs: `output_config.format` and strict tools.
pub(crate) const ANTHROPIC: Profile = Profile {
    name: "anthropic",
    about: "structured outputs and strict tools of Anthropic",
    engine: Engine::Other,
    rules: RULES,
    shown: false,
    wrap: Some("value"),
    refers_to_root: false,
    recursion: false,
    // The provider generates required members first.
    optional: Optional::RequiredFirst,
    maps: Maps::Pairs,
    any: Any::Text,
    tuples: Tuples::Object,
    lengths: Lengths::NotEmpty,
    patterns: Patterns::Simple,
    formats: FORMATS,
    integer_bounds: false,
    number_bounds: false,
    multiple_of: false,
    limits: Some(Limits { optional: 24, unions: 16, ..Limits::NONE }),
    ..OPENAI
};

/// Returns a rule for every schema with a keyword.
macro_rules! refused {
    ($keyword:literal, $words:literal) => {
        rule($keyword, |schema| schema.get($keyword).is_some(), $words)
    };
}

const fn rule(keyword: &'static str, when: fn(&Value) -> bool, words: &'static str) -> LintRule {
    LintRule { keyword, when, verdict: Rejected, words }
}

const BOUNDS: &str = "bounds of numbers are not supported";
const LENGTHS: &str = "lengths of strings are not supported";
const COUNTS: &str = "only a `minItems` of 0 or 1 is supported";

const RULES: &[LintRule] = &[
    rule("type", Value::is_boolean, "a schema has to be an object, not `true` or `false`"),
    refused!("oneOf", "not supported: write anyOf"),
    refused!("not", "not supported"),
    refused!("if", "conditions are not supported"),
    refused!("dependentRequired", "not supported"),
    refused!("dependentSchemas", "not supported"),
    refused!("dependencies", "not supported"),
    // references
    rule("$ref", is_remote, "nothing is fetched: put the schema into $defs"),
    rule("$ref", is_whole_document, "recursive schemas are not supported"),
    rule("$defs", is_recursive, "recursive schemas are not supported"),
    // objects
    rule("additionalProperties", is_open, "has to be `false`: write maps as arrays of key and value"),
    refused!("patternProperties", "write maps as arrays of key and value"),
    refused!("propertyNames", "not supported"),
    refused!("minProperties", "not supported"),
    refused!("maxProperties", "not supported"),
    refused!("unevaluatedProperties", "not supported"),
    // arrays
    rule("minItems", has_other_minimum, COUNTS),
    rule("maxItems", |schema| schema.get("maxItems").is_some(), COUNTS),
    refused!("prefixItems", "write tuples as objects"),
    rule("uniqueItems", |schema| schema.get("uniqueItems") == Some(&Value::Bool(true)), "not supported"),
    refused!("contains", "not supported"),
    refused!("minContains", "not supported"),
    refused!("maxContains", "not supported"),
    refused!("unevaluatedItems", "not supported"),
    // numbers
    rule("minimum", |schema| schema.get("minimum").is_some(), BOUNDS),
    rule("maximum", |schema| schema.get("maximum").is_some(), BOUNDS),
    rule("exclusiveMinimum", |schema| schema.get("exclusiveMinimum").is_some(), BOUNDS),
    rule("exclusiveMaximum", |schema| schema.get("exclusiveMaximum").is_some(), BOUNDS),
    rule("multipleOf", |schema| schema.get("multipleOf").is_some(), BOUNDS),
    // strings and values
    rule("minLength", |schema| schema.get("minLength").is_some(), LENGTHS),
    rule("maxLength", |schema| schema.get("maxLength").is_some(), LENGTHS),
    rule(
        "pattern",
        |schema| schema["pattern"].as_str().is_some_and(|pattern| !is_simple(pattern)),
        "only simple patterns from `^` to `$` are supported",
    ),
    rule(
        "format",
        |schema| schema["format"].as_str().is_some_and(|format| !FORMATS.contains(&format)),
        "not one of the formats that are supported",
    ),
    rule("enum", lists_containers, "objects and arrays cannot be listed"),
];

fn is_remote(schema: &Value) -> bool {
    schema["$ref"].as_str().is_some_and(|reference| !reference.starts_with('#'))
}

fn is_whole_document(schema: &Value) -> bool {
    schema["$ref"] == "#"
}

fn is_open(schema: &Value) -> bool {
    let is_object =
        schema["type"] == "object" || schema["type"].is_null() && schema["properties"].is_object();
    is_object && schema["additionalProperties"] != false
}

fn has_other_minimum(schema: &Value) -> bool {
    schema.get("minItems").is_some_and(|min| min.as_u64().is_none_or(|min| min > 1))
}

fn lists_containers(schema: &Value) -> bool {
    schema["enum"].as_array().is_some_and(|values| values.iter().any(|one| one.is_object() || one.is_array()))
}

/// Returns whether one of the definitions of a schema contains itself.
fn is_recursive(schema: &Value) -> bool {
    let definitions = ["$defs", "definitions"].iter().filter_map(|keyword| schema[*keyword].as_object());
    definitions
        .into_iter()
        .any(|definitions| definitions.keys().any(|name| contains_itself(name, definitions)))
}

fn contains_itself(name: &str, definitions: &Map<String, Value>) -> bool {
    let mut seen = vec![name];
    let mut next = 0;
    while let Some(current) = seen.get(next).copied() {
        next += 1;
        let mut found = Vec::new();
        definitions.get(current).into_iter().for_each(|definition| references(definition, &mut found));
        if found.contains(&name) {
            return true;
        }
        found.retain(|name| !seen.contains(name));
        seen.extend(found);
    }
    false
}

/// Collects the names of the definitions that a document refers to.
fn references<'s>(document: &'s Value, found: &mut Vec<&'s str>) {
    match document {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str).and_then(|reference| {
                reference.strip_prefix("#/$defs/").or_else(|| reference.strip_prefix("#/definitions/"))
            });
            found.extend(name);
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}
