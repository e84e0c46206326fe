//! The dialect of Mistral's structured outputs.
//!
//! Sources: the vendor's page and its Python client, which closes all objects and leaves optional members as they are
//! (2026-11). Nothing is documented about further keywords, so none is sent. No probe was run against the vendor.

use crate::azure::AZURE;
use crate::profile::features::{NUMBERS, has, is_boolean};
use crate::profile::{Engine, LintRule, Optional, Profile};

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

const UNSAID: &[&str] = &[
    "oneOf",
    "allOf",
    "not",
    "patternProperties",
    "prefixItems",
    "pattern",
    "format",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
];

const RULES: &[LintRule] = &[
    LintRule::rejected(&["type"], is_boolean, "a schema has to be an object, not `true` or `false`"),
    LintRule::rejected(
        &["additionalProperties"],
        |place, keyword| place.schema["type"] == "object" && place.schema[keyword] != false,
        "the vendor's client writes `false`: write maps as arrays of key and value",
    ),
    LintRule::ignored(UNSAID, has, UNKNOWN),
    LintRule::ignored(NUMBERS, has, UNKNOWN),
];
