//! The dialect of xAI's structured outputs.
//!
//! Sources: the vendor's page on structured outputs, and older models that answered 502 to bounds of lengths and items
//! (2026-11). The page calls all keywords but those below "best-effort". No probe was run against the vendor.

use serde_json::Value;

use crate::anthropic::contains_recursion;
use crate::azure::AZURE;
use crate::profile::{Any, Engine, LintRule, Optional, Profile, on};

const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// xAI's structured outputs.
pub(crate) const XAI: Profile = Profile {
    name: "xai",
    about: "structured outputs of xAI",
    engine: Engine::Other,
    rules: RULES,
    refers_to_root: false,
    recursion: false,
    any: Any::Leaves,
    optional: Optional::Native,
    formats: FORMATS,
    limits: None,
    ..AZURE
};

const BEST_EFFORT: &str = "best effort alone";

const RULES: &[LintRule] = &[
    LintRule::rejected("type", Value::is_boolean, "a schema has to be an object, not `true` or `false`"),
    LintRule::rejected("$ref", |schema| schema["$ref"] == "#", "references in a circle are not supported"),
    LintRule::rejected("$defs", contains_recursion, "references in a circle are not supported"),
    on!(ignored "oneOf", "read as anyOf"),
    LintRule::rejected(
        "allOf",
        |schema| schema["allOf"].as_array().is_some_and(|all| all.len() > 1),
        "one schema alone: merge them",
    ),
    LintRule::forbids(
        "additionalProperties",
        |schema| schema["properties"].is_object() && schema.get("additionalProperties").is_none(),
        "read as `false` where it is absent",
    ),
    on!(rejected "minLength", "refused by older models"),
    on!(rejected "maxLength", "refused by older models"),
    on!(rejected "minItems", "refused by older models"),
    on!(rejected "maxItems", "refused by older models"),
    on!(ignored "not", BEST_EFFORT),
    on!(ignored "patternProperties", BEST_EFFORT),
    on!(ignored "prefixItems", BEST_EFFORT),
    on!(ignored "pattern", BEST_EFFORT),
    LintRule::ignored(
        "format",
        |schema| schema["format"].as_str().is_some_and(|format| !FORMATS.contains(&format)),
        BEST_EFFORT,
    ),
    on!(ignored "minimum", BEST_EFFORT),
    on!(ignored "maximum", BEST_EFFORT),
    on!(ignored "exclusiveMinimum", BEST_EFFORT),
    on!(ignored "exclusiveMaximum", BEST_EFFORT),
    on!(ignored "multipleOf", BEST_EFFORT),
];
