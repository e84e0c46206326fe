//! The dialects that enforce a schema, as data: one row each.
//!
//! Sources: the providers' documentation, and probes that were run on the engines themselves (llguidance 1.9,
//! llama.cpp b11434, Ollama 0.17.4 and later; 2026-11). What a row cannot say is written in another shape and mapped back,
//! or left to the validator with a loss.

use crate::tighten::Room;

/// What a dialect can say.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) name: &'static str,
    /// Whether the model has to be shown the schema: a grammar tells it nothing.
    pub(crate) shown: bool,
    /// The member that wraps a root that is no object; `None` if any root is taken.
    pub(crate) wrap: Option<&'static str>,
    /// Whether `{"$ref": "#"}` is taken.
    pub(crate) refers_to_root: bool,
    pub(crate) optional: Optional,
    pub(crate) maps: Maps,
    pub(crate) any: Any,
    pub(crate) tuples: Tuples,
    pub(crate) lengths: Lengths,
    pub(crate) patterns: Patterns,
    /// The formats that it keeps to.
    pub(crate) formats: &'static [&'static str],
    /// Whether numbers that are no integers keep to bounds; integers do everywhere.
    pub(crate) number_bounds: bool,
    /// Whether bounds beyond 2^53 are read as they stand.
    pub(crate) large_bounds: bool,
    pub(crate) multiple_of: bool,
    /// Whether listed values stand beside their type, scalars only, and `const` is an `enum` of one.
    pub(crate) typed_literals: bool,
    /// Whether keys may come out in the order of the alphabet.
    pub(crate) sorts_keys: bool,
    /// The bounds of the policy [`Tighten::Bounded`](formwork_core::Tighten).
    pub(crate) room: Room,
    pub(crate) limits: Option<Limits>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Optional {
    /// Members may be left out, and all stand in the order of `properties`.
    Native,
    /// As before, but those that are required come first.
    RequiredFirst,
    /// Every member is required: what is optional may be `null`.
    Nullable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maps {
    /// `patternProperties`, `additionalProperties`, and bounds on the number of members where no named one is optional.
    Native,
    /// `additionalProperties` for any name. Patterns of names, and bounds on their number, only in an array of
    /// `{"key", "value"}`.
    Plain,
    /// An array of `{"key", "value"}`.
    Pairs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Any {
    /// `{}`.
    Native,
    /// Each kind of value by itself, in a definition that refers to itself.
    Spelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tuples {
    /// `prefixItems`, `items` and any length.
    Native,
    /// `prefixItems` alone, all of them.
    Whole,
    /// An object `{"_0", "_1"}`.
    Object,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lengths {
    Any,
    /// Up to this many characters and items.
    UpTo(u64),
    /// Strings have none; lists do.
    ListsOnly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patterns {
    /// All that `regex-syntax` takes, several of them, with lengths.
    All,
    /// One without look-around, in the schema's own words.
    One,
    /// One in [plain](crate::plain) form, alone: no length or format beside it is enforced.
    Plain,
}

/// How large a schema may be.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Named members, all together.
    pub(crate) properties: usize,
    /// Objects and arrays inside each other.
    pub(crate) depth: usize,
    /// Listed values, all together.
    pub(crate) values: usize,
    /// Characters of names and listed values, all together.
    pub(crate) characters: usize,
    /// Characters of one list of more than [`LONG_LIST`](crate::limits::LONG_LIST) values.
    pub(crate) list_characters: usize,
}

pub(crate) const LLGUIDANCE: Profile = Profile {
    name: "llguidance",
    shown: true,
    wrap: None,
    refers_to_root: false,
    optional: Optional::Native,
    maps: Maps::Native,
    any: Any::Native,
    tuples: Tuples::Native,
    lengths: Lengths::Any,
    patterns: Patterns::All,
    formats: &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"],
    number_bounds: true,
    large_bounds: false,
    multiple_of: true,
    typed_literals: false,
    sorts_keys: false,
    room: Room::SMALL_MODEL,
    limits: None,
};

pub(crate) const OPENAI: Profile = Profile {
    name: "openai",
    shown: false,
    wrap: Some("value"),
    refers_to_root: true,
    optional: Optional::Nullable,
    maps: Maps::Pairs,
    any: Any::Spelled,
    tuples: Tuples::Object,
    lengths: Lengths::ListsOnly,
    patterns: Patterns::One,
    formats: &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"],
    number_bounds: true,
    large_bounds: true,
    multiple_of: true,
    typed_literals: true,
    sorts_keys: false,
    room: Room::HOSTED,
    limits: Some(Limits {
        properties: 5000,
        depth: 10,
        values: 1000,
        characters: 120_000,
        list_characters: 15_000,
    }),
};

pub(crate) const LLAMA_CPP: Profile = Profile {
    name: "llama-cpp",
    shown: true,
    wrap: None,
    refers_to_root: false,
    optional: Optional::RequiredFirst,
    maps: Maps::Plain,
    any: Any::Spelled,
    tuples: Tuples::Whole,
    // From 2000 repetitions on the grammar does not parse; they multiply.
    lengths: Lengths::UpTo(1000),
    patterns: Patterns::Plain,
    formats: &["date-time", "time", "date", "uuid"],
    number_bounds: false,
    large_bounds: false,
    multiple_of: false,
    typed_literals: false,
    sorts_keys: false,
    room: Room::SERVED,
    limits: None,
};

/// Ollama hands schemas to llama.cpp, for some models after sorting their keys.
pub(crate) const OLLAMA: Profile = Profile { name: "ollama", sorts_keys: true, ..LLAMA_CPP };
