//! The dialect of xgrammar, the grammar engine of vLLM and SGLang.
//!
//! Sources: xgrammar 0.2.8 itself, which was asked to take the probes of this crate and their documents, and the checks that
//! vLLM and SGLang run before it (2026-11). For a server with another engine, set its dialect with
//! configuration (`dialects = ["llguidance"]`).

use crate::expand::MAX_SAFE;
use crate::profile::features::{
    BOUNDS, beside_properties, has, has_other_format, has_several, has_siblings, is_anchor, is_escaped,
    is_misread, is_remote, is_true, is_unsaid, looks_around, names_unknown,
};
use crate::profile::{Any, Engine, LLAMA_CPP, Lengths, LintRule, Optional, Profile};

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
    LintRule::forbids(&["anyOf", "oneOf"], beside_properties, SIBLINGS),
    LintRule::ignored(&["oneOf"], has, "read as anyOf: that only one fits is not enforced"),
    LintRule::ignored(&["allOf"], has_several, "several schemas are not merged: merge them"),
    LintRule::ignored(&["not", "if", "dependentRequired", "dependentSchemas", "dependencies"], has, UNKNOWN),
    LintRule::rejected(
        &["properties"],
        |place, keyword| place.named(keyword).any(|(_, schema)| *schema == false),
        "a member that no value satisfies",
    ),
    LintRule::ignored(&["$ref"], is_anchor, "anchors are not followed: refer to `#/$defs/name`"),
    LintRule::rejected(&["$ref"], is_remote, "nothing is fetched: put the schema into $defs"),
    LintRule::rejected(&["$ref"], is_escaped, "names of definitions cannot have `/`, `~` or `%` in them"),
    LintRule::ignored(
        &["$ref"],
        has_siblings,
        "what stands beside it does not count: merge it into the definition",
    ),
    LintRule::forbids(
        &["required"],
        names_unknown,
        "a required name that is not in properties cannot be written",
    ),
    LintRule::forbids(&["additionalProperties"], is_unsaid, "read as `false` where it is absent"),
    LintRule::forbids(&["patternProperties"], has, "write maps as arrays of key and value"),
    LintRule::rejected(&["propertyNames"], has, "refused by vLLM"),
    LintRule::ignored(&["minProperties", "maxProperties"], has, "holds for maps alone"),
    LintRule::rejected(
        &["items"],
        |place, keyword| place.schema[keyword].is_array(),
        "one schema alone: write `prefixItems`",
    ),
    LintRule::ignored(&["uniqueItems"], is_true, UNKNOWN),
    LintRule::ignored(&["contains", "multipleOf"], has, UNKNOWN),
    LintRule::forbids(
        &["minimum"],
        |place, _| place.schema["type"] == "number" && BOUNDS.iter().any(|name| place.has(name)),
        "a number with bounds has no exponent, and six digits after the point",
    ),
    LintRule::rejected(
        &["minimum"],
        |place, _| {
            let bound = |name: &&str| place.schema[*name].as_f64();
            BOUNDS.iter().filter_map(bound).any(|bound| bound.abs() > MAX_SAFE)
        },
        "over 2^53: no grammar comes of it",
    ),
    LintRule::forbids(
        &["minLength", "maxLength"],
        has,
        "a string with a length cannot have a quote, a backslash or a line break",
    ),
    LintRule::forbids(
        &["pattern"],
        is_misread,
        "matched with the whole text between the quotes: quotes, backslashes and line breaks cannot be written",
    ),
    LintRule::rejected(&["pattern"], looks_around, "look-around is not supported"),
    LintRule::ignored(
        &["format"],
        |place, keyword| has_other_format(place, keyword) && place.text(keyword) != Some("email"),
        "not one of the formats that are supported",
    ),
    LintRule::forbids(
        &["format"],
        |place, keyword| place.text(keyword) == Some("email"),
        "an address at a number in brackets cannot be written",
    ),
];
