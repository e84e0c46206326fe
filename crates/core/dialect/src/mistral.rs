//! The dialect of Mistral's structured outputs.
//!
//! Sources: the vendor's page and its Python client, which closes all objects and leaves optional members as they are
//! (2026-11). Nothing is documented about further keywords, so none is sent. No probe was run against the vendor.

use serde_json::Value;

use crate::azure::AZURE;
use crate::profile::{Engine, LintRule, Optional, Profile, on};

/// Mistral's structured outputs.
pub(crate) const MISTRAL: Profile = Profile {
    name: "mistral",
    about: "structured outputs of Mistral",
    engine: Engine::Other,
    rules: RULES,
    refers_to_root: false,
    optional: Optional::Native,
    limits: None,
    ..AZURE
};

const UNKNOWN: &str = "nothing says that it is enforced";

const RULES: &[LintRule] = &[
    LintRule::rejected("type", Value::is_boolean, "a schema has to be an object, not `true` or `false`"),
    LintRule::rejected(
        "additionalProperties",
        |schema| schema["type"] == "object" && schema["additionalProperties"] != false,
        "the vendor's client writes `false`: write maps as arrays of key and value",
    ),
    on!(ignored "oneOf", UNKNOWN),
    on!(ignored "allOf", UNKNOWN),
    on!(ignored "not", UNKNOWN),
    on!(ignored "patternProperties", UNKNOWN),
    on!(ignored "prefixItems", UNKNOWN),
    on!(ignored "pattern", UNKNOWN),
    on!(ignored "format", UNKNOWN),
    on!(ignored "minLength", UNKNOWN),
    on!(ignored "maxLength", UNKNOWN),
    on!(ignored "minItems", UNKNOWN),
    on!(ignored "maxItems", UNKNOWN),
    on!(ignored "minimum", UNKNOWN),
    on!(ignored "maximum", UNKNOWN),
    on!(ignored "exclusiveMinimum", UNKNOWN),
    on!(ignored "exclusiveMaximum", UNKNOWN),
    on!(ignored "multipleOf", UNKNOWN),
];
