use formwork::dialect::Reaction;
use formwork::dialect::profile::{Engine, LLGUIDANCE, LintRule, Profile};

/// The JSON Schema that Acme takes: what llguidance takes, with dates as the only format and without `multipleOf`.
pub const ACME: Profile = {
    let mut acme = LLGUIDANCE.named("acme", "Acme's own API");
    acme.engine = Engine::Other;
    acme.rules = RULES;
    acme.formats = FORMATS;
    acme.multiple_of = false;
    acme
};

/// The reactions of Acme's server to keywords that it does not enforce.
const RULES: &[LintRule] = &[
    LintRule {
        keywords: &["multipleOf"],
        when: |place, keyword| place.schema.get(keyword).is_some(),
        reaction: Reaction::Ignored,
        words: "numbers of any step come back",
    },
    LintRule {
        keywords: &["format"],
        when: |place, keyword| {
            place.schema[keyword].as_str().is_some_and(|format| !place.profile.formats.contains(&format))
        },
        reaction: Reaction::Rejected,
        words: "`date` is the only format",
    },
];

/// The formats that Acme enforces.
const FORMATS: &[&str] = &["date"];
