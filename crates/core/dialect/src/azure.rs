//! The dialect of Azure OpenAI.
//!
//! Sources: Microsoft's page on structured outputs, and schemas that deployments refused (2026-11): "6 levels of nesting exceeds limit of
//! 5". No probe was run against the vendor.

use crate::profile::features::{NUMBERS, has};
use crate::profile::{Lengths, Limits, LintRule, OPENAI, Patterns, Profile};

/// The strict mode of Azure OpenAI: OpenAI's of 2024, without bounds, lengths, patterns and formats.
pub(crate) const AZURE: Profile = Profile {
    name: "azure",
    about: "strict mode of Azure OpenAI",
    rules: RULES,
    lengths: Lengths::None,
    patterns: Patterns::None,
    formats: &[],
    integer_bounds: false,
    number_bounds: false,
    multiple_of: false,
    limits: Some(Limits {
        properties: 100,
        depth: 5,
        values: 500,
        characters: 15_000,
        list_characters: 7_500,
        ..Limits::NONE
    }),
    ..OPENAI
};

/// The keywords that the vendor's page lists as unsupported and that OpenAI itself takes today.
pub(crate) const RULES: &[LintRule] = &[
    LintRule::rejected(&["pattern"], has, UNSUPPORTED),
    LintRule::rejected(NUMBERS, has, UNSUPPORTED),
    LintRule::rejected(&["minItems", "maxItems"], has, UNSUPPORTED),
];

const UNSUPPORTED: &str = "not supported";
