//! The dialect of xgrammar, the grammar engine of vLLM and SGLang.
//!
//! Sources: xgrammar 0.2.8 itself, which was asked to take the probes of this crate and their documents, and the checks that
//! vLLM and SGLang run before it (2026-11). For a server with another engine, set its dialect with
//! configuration (`dialects = ["llguidance"]`).

use serde_json::Value;

use crate::expand::MAX_SAFE;
use crate::plain::is_plain;
use crate::profile::{Any, Engine, LLAMA_CPP, Lengths, LintRule, Optional, Profile, looks_around, on};

/// The formats that the engine enforces and that exclude no valid text. It knows `email` as well, without addresses in
/// brackets, and `date-time` and `time`, which are written as patterns because it takes capital letters alone.
const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "hostname", "ipv4", "ipv6", "uuid", "uri"];

/// xgrammar, as vLLM and SGLang use it.
///
/// Like llama.cpp it matches a pattern against the text between the quotes, so that a pattern can only be sent if no
/// character of its strings is escaped in JSON.
pub(crate) const XGRAMMAR: Profile = Profile {
    name: "xgrammar",
    about: "xgrammar, in vLLM and SGLang",
    engine: Engine::Other,
    rules: RULES,
    refers_to_root: true,
    optional: Optional::Native,
    any: Any::Native,
    // A string with a length cannot have a character that JSON escapes.
    lengths: Lengths::ListsOnly,
    formats: FORMATS,
    // A number with bounds has no exponent there, and six digits after the point.
    number_bounds: false,
    ..LLAMA_CPP
};

const UNKNOWN: &str = "not supported: ignored by the engine, refused by vLLM and SGLang";
const SIBLINGS: &str = "the properties beside it cannot be written: move them into the branches";

const RULES: &[LintRule] = &[
    LintRule::forbids("anyOf", |schema| beside_properties(schema, "anyOf"), SIBLINGS),
    LintRule::forbids("oneOf", |schema| beside_properties(schema, "oneOf"), SIBLINGS),
    on!(ignored "oneOf", "read as anyOf: that only one fits is not enforced"),
    LintRule::ignored(
        "allOf",
        |schema| schema["allOf"].as_array().is_some_and(|all| all.len() > 1),
        "several schemas are not merged: merge them",
    ),
    on!(ignored "not", UNKNOWN),
    on!(ignored "if", UNKNOWN),
    on!(ignored "dependentRequired", UNKNOWN),
    on!(ignored "dependentSchemas", UNKNOWN),
    on!(ignored "dependencies", UNKNOWN),
    LintRule::rejected(
        "properties",
        |schema| {
            let named = schema["properties"].as_object();
            named.is_some_and(|named| named.values().any(|schema| *schema == false))
        },
        "a member that no value satisfies",
    ),
    LintRule::ignored(
        "$ref",
        |schema| {
            let name = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
            name.is_some_and(|name| !name.is_empty() && !name.starts_with('/'))
        },
        "anchors are not followed: refer to `#/$defs/name`",
    ),
    LintRule::rejected(
        "$ref",
        |schema| schema["$ref"].as_str().is_some_and(|reference| !reference.starts_with('#')),
        "nothing is fetched: put the schema into $defs",
    ),
    LintRule::rejected(
        "$ref",
        |schema| schema["$ref"].as_str().is_some_and(|one| one.starts_with("#/") && one.contains(['~', '%'])),
        "names of definitions cannot have `/`, `~` or `%` in them",
    ),
    LintRule::ignored(
        "$ref",
        |schema| {
            let annotations = [
                "title",
                "description",
                "examples",
                "$defs",
                "definitions",
                "$schema",
                "$id",
                "$comment",
                "$ref",
            ];
            schema["$ref"].is_string()
                && schema
                    .as_object()
                    .is_some_and(|all| all.keys().any(|name| !annotations.contains(&name.as_str())))
        },
        "what stands beside it does not count: merge it into the definition",
    ),
    LintRule::forbids(
        "required",
        |schema| {
            let known =
                |name: &Value| name.as_str().is_some_and(|name| schema["properties"].get(name).is_some());
            schema["required"].as_array().is_some_and(|names| !names.iter().all(known))
        },
        "a required name that is not in properties cannot be written",
    ),
    LintRule::forbids(
        "additionalProperties",
        |schema| schema["properties"].is_object() && schema.get("additionalProperties").is_none(),
        "read as `false` where it is absent",
    ),
    on!(forbids "patternProperties", "write maps as arrays of key and value"),
    on!(rejected "propertyNames", "refused by vLLM"),
    on!(ignored "minProperties", "holds for maps alone"),
    on!(ignored "maxProperties", "holds for maps alone"),
    LintRule::rejected("items", |schema| schema["items"].is_array(), "one schema alone: write `prefixItems`"),
    LintRule::ignored("uniqueItems", |schema| schema["uniqueItems"] == true, UNKNOWN),
    on!(ignored "contains", UNKNOWN),
    on!(ignored "multipleOf", UNKNOWN),
    LintRule::forbids(
        "minimum",
        |schema| {
            let bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
            schema["type"] == "number" && bounds.iter().any(|name| schema.get(name).is_some())
        },
        "a number with bounds has no exponent, and six digits after the point",
    ),
    LintRule::rejected(
        "minimum",
        |schema| {
            let bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
            bounds.iter().any(|name| schema[*name].as_f64().is_some_and(|bound| bound.abs() > MAX_SAFE))
        },
        "over 2^53: no grammar comes of it",
    ),
    on!(forbids "minLength", "a string with a length cannot have a quote, a backslash or a line break"),
    on!(forbids "maxLength", "a string with a length cannot have a quote, a backslash or a line break"),
    LintRule::forbids(
        "pattern",
        |schema| {
            schema["pattern"].as_str().is_some_and(|pattern| !looks_around(pattern) && !is_plain(pattern))
        },
        "matched with the whole text between the quotes: quotes, backslashes and line breaks cannot be written",
    ),
    LintRule::rejected(
        "pattern",
        |schema| schema["pattern"].as_str().is_some_and(looks_around),
        "look-around is not supported",
    ),
    LintRule::ignored(
        "format",
        |schema| {
            schema["format"].as_str().is_some_and(|format| format != "email" && !FORMATS.contains(&format))
        },
        "not one of the formats that are supported",
    ),
    LintRule::forbids(
        "format",
        |schema| schema["format"] == "email",
        "an address at a number in brackets cannot be written",
    ),
];

fn beside_properties(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword).is_some() && schema["properties"].is_object()
}
