//! The dialects that enforce a schema, as data: one row each.
//!
//! A dialect of your own is a row as well: the row of the nearest dialect with the fields that differ. Its name then works
//! wherever a dialect is named, once it is in the table of [`Dialects`](crate::Dialects):
//!
//! ```
//! use std::sync::Arc;
//!
//! use formwork_dialect::profile::{LLGUIDANCE, Profile};
//! use formwork_dialect::{Dialects, Native};
//! use serde_json::json;
//!
//! /// Enforced by Acme's grammar engine, which knows dates and no other format.
//! const ACME: Profile =
//!     Profile { name: "acme", about: "Acme's own API", formats: &["date"], multiple_of: false, ..LLGUIDANCE };
//!
//! let dialects = Dialects::builtin().with(Arc::new(Native::new(&ACME)));
//! let findings = dialects.get("acme")?.lint(&json!({"type": "string", "format": "time"}));
//! assert_eq!(findings[0].to_string(), "#: `format` rejected: not one of the formats that are supported");
//! # Ok::<(), String>(())
//! ```
//!
//! Sources: the providers' documentation, and probes that were run on the engines themselves (llguidance 1.9,
//! llama.cpp b11434, Ollama 0.17.4 and later; 2026-11). What a row cannot say is written in another shape and mapped back,
//! or left to the validator with a loss.

use serde_json::Value;

use crate::Verdict;
pub use crate::tighten::TokenBudget;

/// The abilities of a dialect, and its server's reaction to the rest.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The name in configurations and on the command line.
    pub name: &'static str,
    /// One line for people: which servers take the dialect.
    pub about: &'static str,
    /// The engine behind the server: it decides which keywords the [lint](crate::lint) reports.
    pub engine: Engine,
    /// Further rules of the lint, beside those of the engine.
    pub rules: &'static [LintRule],
    /// Whether the model has to be shown the schema: a grammar tells it nothing.
    pub shown: bool,
    /// The member that wraps a root that is no object; `None` if any root is taken.
    pub wrap: Option<&'static str>,
    /// How a schema that stands at several places is written.
    pub references: References,
    /// Whether `{"$ref": "#"}` is taken.
    pub refers_to_root: bool,
    /// Whether a definition may contain itself. Where it may not, the second one inside of a definition is JSON in a string.
    pub recursion: bool,
    /// How members are written that an object may leave out.
    pub optional: Optional,
    /// How members are written whose names the schema does not list.
    pub maps: Maps,
    /// How the schema is written that allows every value.
    pub any: Any,
    /// How arrays are written whose items have schemas by position.
    pub tuples: Tuples,
    /// Which lengths of strings and arrays are enforced.
    pub lengths: Lengths,
    /// Which patterns of strings are enforced.
    pub patterns: Patterns,
    /// The formats that it keeps to.
    pub formats: &'static [&'static str],
    /// Whether integers keep to bounds.
    pub integer_bounds: bool,
    /// Whether numbers that are no integers keep to bounds.
    pub number_bounds: bool,
    /// Whether `exclusiveMinimum` and `exclusiveMaximum` are enforced. Where they are not, a bound is written as the inclusive
    /// one beside it.
    pub exclusive_bounds: bool,
    /// Whether bounds beyond 2^53 are read as they stand.
    pub large_bounds: bool,
    /// Whether `multipleOf` is enforced.
    pub multiple_of: bool,
    /// Whether listed values stand beside their type, scalars only, and `const` is an `enum` of one.
    pub typed_literals: bool,
    /// Which values a list of values may have.
    pub enums: Enums,
    /// Whether an object without any members can be written.
    pub empty_objects: bool,
    /// Whether keys may come out in the order of the alphabet.
    pub sorts_keys: bool,
    /// The bounds of the policy [`Tighten::Bounded`](formwork_core::Tighten).
    pub token_budget: TokenBudget,
    /// How large a schema may be (default in the rows here: no limit).
    pub limits: Option<Limits>,
}

impl Profile {
    /// Returns whether numbers, or integers, keep to bounds.
    pub(crate) const fn bounds(&self, integer: bool) -> bool {
        if integer { self.integer_bounds } else { self.number_bounds }
    }
}

/// The engine that reads the schemas of a dialect. The lint has a column of verdicts for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// OpenAI's strict mode.
    OpenAi,
    /// The converter from JSON Schema to grammars of llama.cpp.
    LlamaCpp,
    /// The `llguidance` crate.
    Llguidance,
    /// Another one: the lint reports what the dialect's own [rules](Profile::rules) and [limits](Profile::limits) say.
    Other,
}

/// A rule of the lint that holds for one dialect.
#[derive(Debug, Clone, Copy)]
pub struct LintRule {
    /// The keyword that a finding names.
    pub keyword: &'static str,
    /// Returns whether the rule applies to a schema. It is called for each schema within a document.
    pub when: fn(schema: &Value) -> bool,
    /// The server's reaction to the keyword.
    pub verdict: Verdict,
    /// Why, for people.
    pub words: &'static str,
}

impl LintRule {
    /// A rule about schemas that the server answers with an error.
    pub const fn rejected(keyword: &'static str, when: fn(&Value) -> bool, words: &'static str) -> Self {
        Self { keyword, when, verdict: Verdict::Rejected, words }
    }

    /// A rule about a keyword that the server does not enforce.
    pub const fn ignored(keyword: &'static str, when: fn(&Value) -> bool, words: &'static str) -> Self {
        Self { keyword, when, verdict: Verdict::Ignored, words }
    }

    /// A rule about schemas that the server reads so that valid answers cannot be given.
    pub const fn forbids(keyword: &'static str, when: fn(&Value) -> bool, words: &'static str) -> Self {
        Self { keyword, when, verdict: Verdict::Forbids, words }
    }
}

/// A rule about every schema that has a keyword: `on!(rejected "oneOf", "write anyOf")`.
macro_rules! on {
    ($verdict:ident $keyword:literal, $words:expr) => {
        $crate::profile::LintRule::$verdict($keyword, |schema| schema.get($keyword).is_some(), $words)
    };
}
pub(crate) use on;

/// How members are written that an object may leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Optional {
    /// Members may be left out, and all stand in the order of `properties`.
    Native,
    /// As before, but those that are required come first.
    RequiredFirst,
    /// Every member is required: what is optional may be `null`.
    Nullable,
}

/// How members are written whose names the schema does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maps {
    /// `patternProperties`, `additionalProperties`, and bounds on the number of members where no named one is optional.
    Native,
    /// `additionalProperties` for any name. Patterns of names, and bounds on their number, only in an array of
    /// `{"key", "value"}`.
    Plain,
    /// An array of `{"key", "value"}`.
    Pairs,
}

/// How the schema is written that allows every value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Any {
    /// `{}`.
    Native,
    /// Each kind of value by itself, in a definition that refers to itself.
    Spelled,
    /// JSON in a string.
    Text,
}

/// How a schema that stands at several places is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum References {
    /// Once, in `$defs`, with a `$ref` at each place; a schema may contain itself.
    Native,
    /// At each place anew. Where a schema would contain itself stands JSON in a string.
    Inlined,
}

/// Which values a list of values may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enums {
    /// Any values, or any scalars where [`typed_literals`](Profile::typed_literals) is set.
    Any,
    /// Strings alone. A list with other values is written as a list of strings that hold JSON.
    Strings,
}

/// How arrays are written whose items have schemas by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tuples {
    /// `prefixItems`, `items` and any length.
    Native,
    /// `prefixItems` alone, all of them.
    Whole,
    /// An object `{"_0", "_1"}`.
    Object,
}

/// Which lengths of strings and arrays are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lengths {
    /// All of them.
    Any,
    /// Up to this many characters and items.
    UpTo(u64),
    /// Strings have none; lists do.
    ListsOnly,
    /// Strings have none, and of lists only whether they may be empty (`minItems` of 1).
    NotEmpty,
    /// None, of strings and of lists.
    None,
}

impl Lengths {
    /// Returns whether an upper bound of lists is enforced.
    pub(crate) const fn of_lists(self) -> bool {
        !matches!(self, Self::NotEmpty | Self::None)
    }

    /// Returns whether lengths of strings are enforced.
    pub(crate) const fn of_strings(self) -> bool {
        matches!(self, Self::Any | Self::UpTo(_))
    }
}

/// Which patterns of strings are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patterns {
    /// All that `regex-syntax` takes, several of them, with lengths.
    All,
    /// One without look-around, in the schema's own words.
    One,
    /// As before, from `^` to `$` alone: another one might be read as if these stood around it.
    Anchored,
    /// None.
    None,
    /// One in plain form (characters, `[…]`, `(…)`, `|` and counts between `^` and `$`), alone: no length or format beside
    /// it is enforced.
    Plain,
    /// One from `^` to `$` without look-around, word boundaries, references to groups and large counts, in the schema's own
    /// words, alone: no format beside it is enforced.
    Simple,
}

/// How large a schema may be.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Named members, all together.
    pub properties: usize,
    /// Objects and arrays inside each other.
    pub depth: usize,
    /// Listed values, all together.
    pub values: usize,
    /// Characters of names and listed values, all together.
    pub characters: usize,
    /// Characters of one list of more than 250 values.
    pub list_characters: usize,
    /// The sum of all `maxItems`. An upper bound of a list that does not fit any more is left to the validator.
    pub max_items: u64,
    /// Members that objects may leave out, all together.
    pub optional: usize,
    /// Schemas with `anyOf` or several types, all together.
    pub unions: usize,
}

impl Limits {
    /// No limit at all.
    pub const NONE: Self = Self {
        properties: usize::MAX,
        depth: usize::MAX,
        values: usize::MAX,
        characters: usize::MAX,
        list_characters: usize::MAX,
        max_items: u64::MAX,
        optional: usize::MAX,
        unions: usize::MAX,
    };
}

/// The `llguidance` crate.
pub const LLGUIDANCE: Profile = Profile {
    name: "llguidance",
    about: "the model in this process, vLLM, SGLang",
    engine: Engine::Llguidance,
    rules: &[],
    shown: true,
    wrap: None,
    references: References::Native,
    refers_to_root: false,
    recursion: true,
    optional: Optional::Native,
    maps: Maps::Native,
    any: Any::Native,
    tuples: Tuples::Native,
    lengths: Lengths::Any,
    patterns: Patterns::All,
    formats: &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"],
    integer_bounds: true,
    number_bounds: true,
    exclusive_bounds: true,
    large_bounds: false,
    multiple_of: true,
    typed_literals: false,
    enums: Enums::Any,
    empty_objects: true,
    sorts_keys: false,
    token_budget: TokenBudget::SMALL_MODEL,
    limits: None,
};

/// The strict mode of OpenAI.
pub const OPENAI: Profile = Profile {
    name: "openai",
    about: "strict mode of OpenAI",
    engine: Engine::OpenAi,
    rules: &[],
    shown: false,
    wrap: Some("value"),
    references: References::Native,
    refers_to_root: true,
    recursion: true,
    optional: Optional::Nullable,
    maps: Maps::Pairs,
    any: Any::Spelled,
    tuples: Tuples::Object,
    lengths: Lengths::ListsOnly,
    patterns: Patterns::One,
    formats: &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"],
    integer_bounds: true,
    number_bounds: true,
    exclusive_bounds: true,
    large_bounds: true,
    multiple_of: true,
    typed_literals: true,
    enums: Enums::Any,
    empty_objects: true,
    sorts_keys: false,
    token_budget: TokenBudget::HOSTED,
    limits: Some(Limits {
        properties: 5000,
        depth: 10,
        values: 1000,
        characters: 120_000,
        list_characters: 15_000,
        ..Limits::NONE
    }),
};

/// The server of llama.cpp.
pub const LLAMA_CPP: Profile = Profile {
    name: "llama-cpp",
    about: "llama.cpp's server",
    engine: Engine::LlamaCpp,
    rules: &[],
    shown: true,
    wrap: None,
    references: References::Native,
    refers_to_root: false,
    recursion: true,
    optional: Optional::RequiredFirst,
    maps: Maps::Plain,
    any: Any::Spelled,
    tuples: Tuples::Whole,
    // From 2000 repetitions on the grammar does not parse; they multiply.
    lengths: Lengths::UpTo(1000),
    patterns: Patterns::Plain,
    formats: &["date-time", "time", "date", "uuid"],
    integer_bounds: true,
    number_bounds: false,
    exclusive_bounds: true,
    large_bounds: false,
    multiple_of: false,
    typed_literals: false,
    enums: Enums::Any,
    empty_objects: true,
    sorts_keys: false,
    token_budget: TokenBudget::SERVED,
    limits: None,
};

/// Ollama hands schemas to llama.cpp, for some models after sorting their keys.
pub const OLLAMA: Profile = Profile {
    name: "ollama",
    about: "Ollama, which is llama.cpp",
    rules: &[LintRule::rejected(
        "pattern",
        |schema| schema["pattern"].as_str().is_some_and(looks_around),
        "the whole server has died of look-around (0.17.4)",
    )],
    sorts_keys: true,
    ..LLAMA_CPP
};

/// Returns whether a pattern asserts something about the text around it.
pub(crate) fn looks_around(pattern: &str) -> bool {
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|sign| pattern.contains(sign))
}
