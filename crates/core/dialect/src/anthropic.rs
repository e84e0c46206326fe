//! The dialect of Anthropic's structured outputs.
//!
//! Sources: the provider's documentation and reports of its responses (2026-11). No probe was run against the provider.

use serde_json::{Map, Value};

use crate::pattern::is_simple;
use crate::profile::features::{
    NUMBERS, has, has_other_format, is_boolean, is_remote, is_true, is_whole_document,
};
use crate::profile::{
    Any, Engine, Lengths, Limits, LintRule, Maps, OPENAI, Optional, Patterns, Place, Profile, Tuples,
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
    describes_schema: false,
    wrap: Some("value"),
    refers_to_root: false,
    recursion: false,
    // The provider generates required members first.
    optional: Optional::RequiredFirst,
    maps: Maps::Pairs,
    any: Any::Leaves,
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

const BOUNDS: &str = "bounds of numbers are not supported";
const LENGTHS: &str = "lengths of strings are not supported";
const COUNTS: &str = "only a `minItems` of 0 or 1 is supported";

const RULES: &[LintRule] = &[
    LintRule::rejected(&["type"], is_boolean, "a schema has to be an object, not `true` or `false`"),
    LintRule::rejected(&["oneOf"], has, "not supported: write anyOf"),
    LintRule::rejected(&["not"], has, "not supported"),
    LintRule::rejected(&["if"], has, "conditions are not supported"),
    LintRule::rejected(&["dependentRequired", "dependentSchemas", "dependencies"], has, "not supported"),
    LintRule::rejected(&["$ref"], is_remote, "nothing is fetched: put the schema into $defs"),
    LintRule::rejected(&["$ref"], is_whole_document, "recursive schemas are not supported"),
    LintRule::rejected(&["$defs"], contains_recursion, "recursive schemas are not supported"),
    LintRule::rejected(
        &["additionalProperties"],
        is_open,
        "has to be `false`: write maps as arrays of key and value",
    ),
    LintRule::rejected(&["patternProperties"], has, "write maps as arrays of key and value"),
    LintRule::rejected(
        &["propertyNames", "minProperties", "maxProperties", "unevaluatedProperties"],
        has,
        "not supported",
    ),
    LintRule::rejected(&["minItems"], has_other_minimum, COUNTS),
    LintRule::rejected(&["maxItems"], has, COUNTS),
    LintRule::rejected(&["prefixItems"], has, "write tuples as objects"),
    LintRule::rejected(&["uniqueItems"], is_true, "not supported"),
    LintRule::rejected(&["contains", "minContains", "maxContains", "unevaluatedItems"], has, "not supported"),
    LintRule::rejected(NUMBERS, has, BOUNDS),
    LintRule::rejected(&["minLength", "maxLength"], has, LENGTHS),
    LintRule::rejected(&["pattern"], is_complex, "only simple patterns from `^` to `$` are supported"),
    LintRule::rejected(&["format"], has_other_format, "not one of the formats that are supported"),
    LintRule::rejected(&["enum"], lists_containers, "objects and arrays cannot be listed"),
];

fn is_open(place: &Place<'_>, keyword: &str) -> bool {
    let Place { schema, .. } = place;
    let is_object =
        schema["type"] == "object" || schema["type"].is_null() && schema["properties"].is_object();
    is_object && schema[keyword] != false
}

fn has_other_minimum(place: &Place<'_>, keyword: &str) -> bool {
    place.get(keyword).is_some_and(|min| min.as_u64().is_none_or(|min| min > 1))
}

fn is_complex(place: &Place<'_>, keyword: &str) -> bool {
    place.text(keyword).is_some_and(|pattern| !is_simple(pattern))
}

fn lists_containers(place: &Place<'_>, keyword: &str) -> bool {
    let values = place.get(keyword).and_then(Value::as_array);
    values.is_some_and(|values| values.iter().any(|one| one.is_object() || one.is_array()))
}

/// Whether one of the definitions of a schema contains itself.
pub(crate) fn contains_recursion(place: &Place<'_>, _: &str) -> bool {
    let definitions = ["$defs", "definitions"].iter().filter_map(|keyword| place.get(keyword)?.as_object());
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
