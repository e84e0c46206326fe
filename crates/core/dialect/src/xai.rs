//! The dialect of xAI's structured outputs.
//!
//! Sources: the vendor's page on structured outputs, and older models that answered 502 to bounds of lengths and items
//! (2026-11). The page calls all keywords but those below "best-effort". No probe was run against the vendor.

use crate::anthropic::contains_recursion;
use crate::azure::AZURE;
use crate::profile::features::{
    NUMBERS, has, has_other_format, has_several, is_boolean, is_unsaid, is_whole_document,
};
use crate::profile::{Any, Engine, LintRule, Optional, Profile};

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
    LintRule::rejected(&["type"], is_boolean, "a schema has to be an object, not `true` or `false`"),
    LintRule::rejected(&["$ref"], is_whole_document, "references in a circle are not supported"),
    LintRule::rejected(&["$defs"], contains_recursion, "references in a circle are not supported"),
    LintRule::ignored(&["oneOf"], has, "read as anyOf"),
    LintRule::rejected(&["allOf"], has_several, "one schema alone: merge them"),
    LintRule::forbids(&["additionalProperties"], is_unsaid, "read as `false` where it is absent"),
    LintRule::rejected(&["minLength", "maxLength", "minItems", "maxItems"], has, "refused by older models"),
    LintRule::ignored(&["not", "patternProperties", "prefixItems", "pattern"], has, BEST_EFFORT),
    LintRule::ignored(&["format"], has_other_format, BEST_EFFORT),
    LintRule::ignored(NUMBERS, has, BEST_EFFORT),
];
