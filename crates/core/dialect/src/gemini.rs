//! The two dialects of Google's `generateContent`.
//!
//! Sources: the vendor's documentation and reports of rejected schemas (2026). No probe was run against the vendor.

use serde_json::Value;

use crate::profile::features::{has, is_boolean};
use crate::profile::{
    Any, Engine, Enums, Lengths, Limits, LintRule, Maps, OPENAI, Optional, Patterns, Profile, References,
    Tuples,
};

/// JSON Schema as the Gemini API accepts it (`responseJsonSchema`, models from 2.0 on).
///
/// The keywords are those of the vendor's documentation (2026-11). The limits come from reports of rejected schemas,
/// because the vendor documents none. The vendor adds the schema to the prompt.
pub(crate) const GEMINI: Profile = Profile {
    name: "gemini",
    about: "Gemini's JSON Schema mode",
    engine: Engine::Other,
    rules: GEMINI_RULES,
    wrap: None,
    refers_to_root: false,
    optional: Optional::Native,
    // `additionalProperties` is accepted, but the model seldom generates such members.
    maps: Maps::Pairs,
    // Recursive references are accepted in optional members only, and a schema without a type cannot be written.
    any: Any::Leaves,
    tuples: Tuples::Whole,
    lengths: Lengths::ListsOnly,
    patterns: Patterns::None,
    formats: &["date-time", "date", "time"],
    exclusive_bounds: false,
    large_bounds: false,
    multiple_of: false,
    limits: Some(Limits {
        depth: 10,
        values: 1000,
        characters: 120_000,
        list_characters: 15_000,
        // Schemas with more than about 960 were rejected (2026-03).
        max_items: 900,
        ..Limits::NONE
    }),
    ..OPENAI
};

/// The subset of OpenAPI's schemas that Gemini accepts for all of its models (`responseSchema`).
///
/// The lowered schema is JSON Schema with keywords that the subset can express; the provider renames them (`nullable`,
/// `propertyOrdering`). An unknown keyword fails the whole call.
pub(crate) const GEMINI_OPENAPI: Profile = Profile {
    name: "gemini-openapi",
    about: "Gemini's older mode, a subset of OpenAPI",
    rules: GEMINI_OPENAPI_RULES,
    references: References::Inlined,
    // An object of the leaves' unions cannot be written where no object is empty.
    any: Any::Text,
    tuples: Tuples::Object,
    lengths: Lengths::Any,
    patterns: Patterns::Anchored,
    formats: &["date-time"],
    enums: Enums::Strings,
    empty_objects: false,
    limits: Some(Limits {
        // Schemas with six levels were rejected (2026-03).
        depth: 5,
        values: 250,
        characters: 15_000,
        list_characters: 5_000,
        max_items: 900,
        ..Limits::NONE
    }),
    ..GEMINI
};

const GEMINI_RULES: &[LintRule] = &[
    LintRule::rejected(&["type"], is_boolean, "a schema has to be an object, not `true` or `false`"),
    LintRule::rejected(
        &["$ref"],
        |place, keyword| {
            // Recorded requests with a title were accepted.
            let beside = |name: &String| !name.starts_with('$') && name != "title";
            place.has(keyword) && place.schema.as_object().is_some_and(|all| all.keys().any(beside))
        },
        "nothing may stand beside it but keywords that begin with `$`",
    ),
    LintRule::ignored(&["exclusiveMinimum"], has, "write `minimum`"),
    LintRule::ignored(&["exclusiveMaximum"], has, "write `maximum`"),
];

const CONDITIONS: &[&str] =
    &["not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"];

const FURTHER: &[&str] = &[
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "patternProperties",
    "propertyNames",
    "multipleOf",
];

const GEMINI_OPENAPI_RULES: &[LintRule] = &[
    LintRule::rejected(&["type"], is_boolean, "a schema has to be an object, not `true` or `false`"),
    LintRule::rejected(
        &["type"],
        |place, keyword| place.schema[keyword].is_array(),
        "one type alone: write `nullable` or anyOf",
    ),
    LintRule::rejected(
        &["properties"],
        |place, keyword| place.schema["type"] == "object" && place.named(keyword).next().is_none(),
        "should not be empty for an object: write maps as arrays of key and value",
    ),
    LintRule::rejected(&["$ref"], has, "unknown: write the definition at each place"),
    LintRule::rejected(&["$defs"], |place, _| place.has("$defs") || place.has("definitions"), "unknown"),
    LintRule::rejected(&["const"], has, "unknown: write an enum of one string"),
    LintRule::rejected(
        &["enum"],
        |place, keyword| {
            place.schema[keyword].as_array().is_some_and(|all| !all.iter().all(Value::is_string))
        },
        "strings alone",
    ),
    LintRule::rejected(&["oneOf"], has, "unknown: write anyOf"),
    LintRule::rejected(&["allOf"], has, "unknown: merge the schemas"),
    LintRule::rejected(CONDITIONS, has, "unknown"),
    LintRule::rejected(&["prefixItems"], has, "unknown: write an object"),
    LintRule::rejected(FURTHER, has, "unknown"),
    LintRule::rejected(&["exclusiveMinimum"], has, "unknown: write `minimum`"),
    LintRule::rejected(&["exclusiveMaximum"], has, "unknown: write `maximum`"),
    LintRule::forbids(
        &["additionalProperties"],
        |place, keyword| !matches!(place.get(keyword), None | Some(Value::Bool(_))),
        "maps arrive empty: write an array of key and value",
    ),
];
