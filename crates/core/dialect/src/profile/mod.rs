//! The dialects with enforcement as data: one profile each.
//!
//! A dialect of your own can be a profile as well: the profile of the most similar dialect, with other values. Once it is in
//! the table of [`Dialects`](crate::Dialects), its name works wherever a dialect is named:
//!
//! ```
//! use std::sync::Arc;
//!
//! use formwork_dialect::profile::{LLGUIDANCE, Profile};
//! use formwork_dialect::{Dialects, Native};
//! use serde_json::json;
//!
//! /// Enforced by Acme's grammar engine, which knows dates and no other format.
//! const ACME: Profile = {
//!     let mut acme = LLGUIDANCE.named("acme", "Acme's own API");
//!     acme.formats = &["date"];
//!     acme.multiple_of = false;
//!     acme
//! };
//!
//! let dialects = Dialects::builtin().with(Arc::new(Native::new(&ACME)));
//! let findings = dialects.get("acme")?.lint(&json!({"type": "string", "format": "time"}));
//! assert_eq!(findings[0].to_string(), "#: `format` rejected: not one of the formats that are supported");
//! # Ok::<(), String>(())
//! ```
//!
//! Sources: the providers' documentation, and probes of the engines (llguidance 1.9, llama.cpp b11434, Ollama 0.17.4
//! and later; 2026-11). Keywords that a profile lacks are expressed in another shape and lifted back, or left to
//! validation and reported as a loss.

mod budget;
mod engines;
pub(crate) mod features;
mod place;

use crate::Reaction;
pub use budget::TokenBudget;
pub use engines::{LLAMA_CPP, LLGUIDANCE, OLLAMA, OPENAI};
pub use place::Place;

/// The features of a dialect, and the reactions of its server to other keywords.
///
/// ```
/// use formwork_dialect::profile::{OPENAI, Optional};
///
/// assert!(matches!(OPENAI.optional, Optional::Nullable) && OPENAI.formats.contains(&"uuid"));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Profile {
    /// The dialect's name in configurations and on the command line.
    pub name: &'static str,
    /// The servers that accept the dialect, in one line for people.
    pub about: &'static str,
    /// The engine of the server, which determines the keywords in the [lint](crate::lint).
    pub engine: Engine,
    /// The rules of the lint in addition to those of the engine.
    pub rules: &'static [LintRule],
    /// Whether the prompt has to describe the schema, because enforcement tells the model nothing about it.
    pub describes_schema: bool,
    /// The member that wraps a root of another type than object; `None` if the dialect accepts every root.
    pub wrap: Option<&'static str>,
    /// The notation of a schema that is used in several places.
    pub references: References,
    /// Whether `{"$ref": "#"}` is accepted.
    pub refers_to_root: bool,
    /// Whether definitions may be recursive. Otherwise the second nesting of a definition in itself becomes JSON in a
    /// string.
    pub recursion: bool,
    /// The notation of optional members.
    pub optional: Optional,
    /// The notation of members whose names the schema does not enumerate.
    pub maps: Maps,
    /// The notation of the schema that allows every value.
    pub any: Any,
    /// The notation of arrays whose items have schemas by position.
    pub tuples: Tuples,
    /// The enforced lengths of strings and arrays.
    pub lengths: Lengths,
    /// The enforced patterns of strings.
    pub patterns: Patterns,
    /// The enforced formats of strings.
    pub formats: &'static [&'static str],
    /// Whether bounds of integers are enforced.
    pub integer_bounds: bool,
    /// Whether bounds of fractional numbers are enforced.
    pub number_bounds: bool,
    /// Whether `exclusiveMinimum` and `exclusiveMaximum` are enforced. Otherwise they become inclusive bounds.
    pub exclusive_bounds: bool,
    /// Whether bounds beyond 2^53 are read exactly.
    pub large_bounds: bool,
    /// Whether `multipleOf` is enforced.
    pub multiple_of: bool,
    /// Whether enumerated values need a `type`, are scalars only, and `const` becomes an `enum` of one value.
    pub typed_literals: bool,
    /// The allowed values of an `enum`.
    pub enums: Enums,
    /// Whether an object without properties can be written.
    pub empty_objects: bool,
    /// Whether the server may generate keys in alphabetical order.
    pub sorts_keys: bool,
    /// The bounds of the policy [`Tighten::Bounded`](formwork_core::Tighten).
    pub token_budget: TokenBudget,
    /// The maximum size of a schema (default in the profiles here: no limit).
    pub limits: Option<Limits>,
}

impl Profile {
    /// Returns this profile with the name and description of another dialect. The caller assigns the fields that differ.
    #[must_use]
    pub const fn named(mut self, name: &'static str, about: &'static str) -> Self {
        self.name = name;
        self.about = about;
        self
    }

    /// Returns whether bounds of integers, or of fractional numbers, are enforced.
    pub(crate) const fn bounds(&self, integer: bool) -> bool {
        if integer { self.integer_bounds } else { self.number_bounds }
    }
}

/// The engine that compiles the schemas of a dialect. The lint has a column of reactions for each.
///
/// ```
/// use formwork_dialect::profile::{Engine, OLLAMA};
///
/// assert!(matches!(OLLAMA.engine, Engine::LlamaCpp));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// OpenAI's strict mode.
    OpenAi,
    /// llama.cpp's converter from JSON Schema to grammars.
    LlamaCpp,
    /// The `llguidance` crate.
    Llguidance,
    /// Another engine: the lint uses only the dialect's own [rules](Profile::rules) and [limits](Profile::limits).
    Other,
}

/// A rule of the lint for one dialect.
///
/// ```
/// use formwork_dialect::profile::{LLGUIDANCE, LintRule, Profile};
/// use formwork_dialect::{Dialect, Native, Reaction};
///
/// const TITLES: LintRule = LintRule {
///     keywords: &["title"],
///     when: |place, keyword| place.schema.get(keyword).is_some(),
///     reaction: Reaction::Rejected,
///     words: "leave it out",
/// };
/// const ACME: Profile = {
///     let mut acme = LLGUIDANCE.named("acme", "Acme's own API");
///     acme.rules = &[TITLES];
///     acme
/// };
///
/// let findings = Native::new(&ACME).lint(&serde_json::json!({"title": "A", "type": "string"}));
/// assert_eq!(findings[0].to_string(), "#: `title` rejected: leave it out");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct LintRule {
    /// The keywords in findings: the rule is one about each of them.
    pub keywords: &'static [&'static str],
    /// Returns whether the rule applies to a schema; called for each subschema of a document and each of the keywords.
    pub when: Feature,
    /// The server's reaction to the keyword.
    pub reaction: Reaction,
    /// The reason, for people.
    pub words: &'static str,
}

impl LintRule {
    /// A rule about schemas that the server answers with an error.
    pub const fn rejected(keywords: &'static [&'static str], when: Feature, words: &'static str) -> Self {
        Self { keywords, when, reaction: Reaction::Rejected, words }
    }

    /// A rule about keywords that the server does not enforce.
    pub const fn ignored(keywords: &'static [&'static str], when: Feature, words: &'static str) -> Self {
        Self { keywords, when, reaction: Reaction::Ignored, words }
    }

    /// A rule about schemas that the server reads so that valid answers cannot be given.
    pub const fn forbids(keywords: &'static [&'static str], when: Feature, words: &'static str) -> Self {
        Self { keywords, when, reaction: Reaction::Forbids, words }
    }
}

/// Returns whether a subschema has a feature; called with a keyword of the rule.
pub type Feature = fn(place: &Place<'_>, keyword: &str) -> bool;

/// The representation of optional members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Optional {
    /// Members may be left out, and all are generated in the order of `properties`.
    Native,
    /// Members may be left out, and required ones are generated first.
    RequiredFirst,
    /// Every member is required, and optional ones may be `null`.
    Nullable,
}

/// The notation of members whose names the schema does not enumerate.
///
/// ```
/// use formwork_dialect::profile::{Maps, OPENAI};
///
/// assert!(matches!(OPENAI.maps, Maps::Pairs));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maps {
    /// `patternProperties`, `additionalProperties`, and bounds of the number of members if all named ones are required.
    Native,
    /// `additionalProperties` for any name. Patterns of names, and bounds of their number, need an array of `{"key",
    /// "value"}`.
    Plain,
    /// An array of `{"key", "value"}`.
    Pairs,
}

/// The notation of the schema that allows every value.
///
/// ```
/// use formwork_dialect::profile::{Any, LLGUIDANCE};
///
/// assert!(matches!(LLGUIDANCE.any, Any::Native));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Any {
    /// `{}`.
    Native,
    /// A recursive definition with a union of all types.
    Spelled,
    /// JSON in a string.
    Text,
    /// A list of the value's leaves, each with its path. The same list replaces values that are nested too often in a recursive
    /// definition.
    Leaves,
}

/// The notation of a schema that is used in several places.
///
/// ```
/// use formwork_dialect::profile::{OPENAI, References};
///
/// assert!(matches!(OPENAI.references, References::Native));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum References {
    /// Once in `$defs`, with a `$ref` at each place; recursion is possible.
    Native,
    /// A copy at each place. Recursion becomes JSON in a string.
    Inlined,
}

/// The allowed values of an `enum`.
///
/// ```
/// use formwork_dialect::profile::{Enums, OPENAI};
///
/// assert!(matches!(OPENAI.enums, Enums::Any) && OPENAI.typed_literals);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enums {
    /// Any values, or any scalars if [`typed_literals`](Profile::typed_literals) is set.
    Any,
    /// Strings only. Other values become strings that hold JSON.
    Strings,
}

/// The notation of arrays whose items have schemas by position.
///
/// ```
/// use formwork_dialect::profile::{OPENAI, Tuples};
///
/// assert!(matches!(OPENAI.tuples, Tuples::Object));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tuples {
    /// `prefixItems`, `items` and any length.
    Native,
    /// `prefixItems` only, of which all are required.
    Whole,
    /// An object `{"_0", "_1"}`.
    Object,
}

/// The enforced lengths of strings and arrays.
///
/// ```
/// use formwork_dialect::profile::{LLAMA_CPP, Lengths};
///
/// assert!(matches!(LLAMA_CPP.lengths, Lengths::UpTo(1000)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lengths {
    /// All lengths.
    Any,
    /// Up to this many characters and items.
    UpTo(u64),
    /// The lengths of arrays, not of strings.
    ListsOnly,
    /// Only whether arrays may be empty (`minItems` of 1).
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

/// The enforced patterns of strings.
///
/// ```
/// use formwork_dialect::profile::{LLGUIDANCE, Patterns};
///
/// assert!(matches!(LLGUIDANCE.patterns, Patterns::All));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patterns {
    /// All patterns that `regex-syntax` supports, several at once, combined with lengths.
    All,
    /// One pattern without look-around, in the schema's own notation.
    One,
    /// One pattern without look-around from `^` to `$`, because the server may read any other one as anchored.
    Anchored,
    /// No pattern.
    None,
    /// One pattern in plain form (characters, `[…]`, `(…)`, `|` and counts between `^` and `$`), without a length or
    /// format beside it.
    Plain,
    /// One pattern from `^` to `$` without look-around, word boundaries, references to groups and large counts, in the
    /// schema's own notation, without a format beside it.
    Simple,
}

/// The maximum size of a schema. A larger one is an error before the call.
///
/// ```
/// use formwork_core::{Lower, LowerRequest};
/// use formwork_dialect::Native;
/// use formwork_dialect::profile::{LLGUIDANCE, Limits, Profile};
///
/// const SMALL: Profile = {
///     let mut small = LLGUIDANCE.named("small", "one property");
///     small.limits = Some(Limits { properties: 1, ..Limits::NONE });
///     small
/// };
///
/// let schema = serde_json::json!({"type": "object", "properties": {"a": {}, "b": {}}});
/// assert!(Native::new(&SMALL).lower(&LowerRequest::new(&schema)).is_err());
/// ```
#[derive(Debug, Clone)]
pub struct Limits {
    /// The number of properties in the whole schema.
    pub properties: usize,
    /// The number of nested objects and arrays.
    pub depth: usize,
    /// The number of enumerated values in the whole schema.
    pub values: usize,
    /// The number of characters of names and enumerated values in the whole schema.
    pub characters: usize,
    /// The number of characters of a single list with more than 250 values.
    pub list_characters: usize,
    /// The sum of all `maxItems`. Validation alone checks the lists beyond it.
    pub max_items: u64,
    /// The number of optional members in the whole schema.
    pub optional: usize,
    /// The number of schemas with `anyOf` or several types.
    pub unions: usize,
}

impl Limits {
    /// Unlimited size.
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
