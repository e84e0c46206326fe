//! The profiles of the engines that were measured, and of OpenAI.

use super::{
    Any, Engine, Enums, Lengths, Limits, LintRule, Maps, Optional, Patterns, Profile, References,
    TokenBudget, Tuples, features,
};

/// The profile of the `llguidance` crate.
///
/// ```
/// assert_eq!(formwork_dialect::profile::LLGUIDANCE.name, "llguidance");
/// ```
pub const LLGUIDANCE: Profile = Profile {
    name: "llguidance",
    about: "the model in this process, vLLM, SGLang",
    engine: Engine::Llguidance,
    rules: &[],
    describes_schema: true,
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

/// The profile of the strict mode of OpenAI and Azure.
///
/// ```
/// assert_eq!(formwork_dialect::profile::OPENAI.name, "openai");
/// ```
pub const OPENAI: Profile = Profile {
    name: "openai",
    about: "strict mode of OpenAI",
    engine: Engine::OpenAi,
    rules: &[],
    describes_schema: false,
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

/// The profile of llama.cpp's server.
///
/// ```
/// assert_eq!(formwork_dialect::profile::LLAMA_CPP.name, "llama-cpp");
/// ```
pub const LLAMA_CPP: Profile = Profile {
    name: "llama-cpp",
    about: "llama.cpp's server",
    engine: Engine::LlamaCpp,
    optional: Optional::RequiredFirst,
    maps: Maps::Plain,
    any: Any::Spelled,
    tuples: Tuples::Whole,
    // The grammar fails to parse from 2000 repetitions on, and nested repetitions multiply.
    lengths: Lengths::UpTo(1000),
    patterns: Patterns::Plain,
    formats: &["date-time", "time", "date", "uuid"],
    number_bounds: false,
    multiple_of: false,
    token_budget: TokenBudget::SERVED,
    ..LLGUIDANCE
};

/// The profile of Ollama, which passes schemas to llama.cpp, for some models with sorted keys.
///
/// ```
/// use formwork_dialect::profile::{LLAMA_CPP, OLLAMA};
///
/// assert!(OLLAMA.sorts_keys && !LLAMA_CPP.sorts_keys);
/// ```
pub const OLLAMA: Profile = Profile {
    name: "ollama",
    about: "Ollama, which is llama.cpp",
    rules: &[LintRule::rejected(
        &["pattern"],
        features::looks_around,
        "the whole server has died of look-around (0.17.4)",
    )],
    sorts_keys: true,
    ..LLAMA_CPP
};
