//! The layers of the house as data. docs/ARCHITECTURE.md says what each crate is for; this says what it may import.

/// Where a crate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    /// It imports lower numbers only.
    Number(u8),
    /// For tests: it imports up to the drivers, and nothing imports it but dev-dependencies.
    Dev,
    /// A chore: it imports anything, and nothing imports it.
    Tool,
}

/// What a crate may import.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) layer: Layer,
    /// Crates of its own layer that it may import all the same.
    pub(super) beside: &'static [&'static str],
    /// Crates that it never reaches, over any number of steps, whatever the workspace's features.
    pub(super) never: &'static [&'static str],
    /// Crates that it does not reach by its default features.
    pub(super) never_by_default: &'static [&'static str],
    /// The only crates that it imports without being asked to by a feature; `None` where any will do.
    pub(super) only: Option<&'static [&'static str]>,
}

impl Rule {
    pub(super) const fn new(name: &'static str, layer: Layer) -> Self {
        Self { name, layer, beside: &[], never: &[], never_by_default: &[], only: None }
    }

    const fn at(name: &'static str, number: u8) -> Self {
        Self::new(name, Layer::Number(number))
    }

    pub(super) const fn beside(self, beside: &'static [&'static str]) -> Self {
        Self { beside, ..self }
    }

    pub(super) const fn never(self, never: &'static [&'static str]) -> Self {
        Self { never, ..self }
    }

    pub(super) const fn never_by_default(self, never_by_default: &'static [&'static str]) -> Self {
        Self { never_by_default, ..self }
    }

    pub(super) const fn only(self, only: &'static [&'static str]) -> Self {
        Self { only: Some(only), ..self }
    }
}

/// What speaks to models. Everything above takes any of them through a trait.
const PROVIDERS: &[&str] = &[
    "formwork-anthropic",
    "formwork-bedrock",
    "formwork-cohere",
    "formwork-gemini",
    "formwork-local",
    "formwork-ollama",
    "formwork-openai",
    "formwork-prompt",
];

/// What waits and what fetches.
const WAITS: &[&str] = &["reqwest", "tokio"];

/// The crates that there are and will be, bottom up. A new crate gets its line here first.
pub(super) const TABLE: &[Rule] = &[
    Rule::at("formwork-json", 0).only(&["serde", "serde_json"]).never(&[
        "tokio",
        "http",
        "reqwest",
        "jsonschema",
    ]),
    Rule::at("formwork-core", 1).never(&["tokio", "http", "reqwest", "jsonschema"]),
    Rule::at("formwork-schema", 2).never(WAITS),
    Rule::at("formwork-dialect", 2).never(WAITS),
    Rule::at("formwork-wire", 2).never(WAITS),
    Rule::at("formwork-http", 3).never(PROVIDERS),
    Rule::at("formwork-layers", 3).never(PROVIDERS),
    Rule::at("formwork-openai", 3).never(&["reqwest"]),
    Rule::at("formwork-ollama", 3).never_by_default(&["reqwest"]),
    Rule::at("formwork-anthropic", 3).never(&["reqwest"]),
    Rule::at("formwork-gemini", 3).never(&["reqwest"]),
    Rule::at("formwork-bedrock", 3).never(&["reqwest"]),
    Rule::at("formwork-cohere", 3).never(&["reqwest"]),
    Rule::at("formwork-prompt", 3),
    Rule::at("formwork-local", 3).never(&["reqwest"]),
    Rule::at("formwork-extract", 4).never(PROVIDERS),
    Rule::at("formwork-ledger", 5).never(PROVIDERS),
    Rule::at("formwork-review", 5).never(PROVIDERS),
    Rule::at("formwork-serve", 5).never(PROVIDERS),
    Rule::at("formwork-shape", 5).never(PROVIDERS),
    Rule::at("formwork-oracle", 6).never(PROVIDERS),
    Rule::at("formwork-chat", 6).never(PROVIDERS),
    Rule::at("formwork-skill", 6).never(PROVIDERS),
    Rule::at("formwork-batch", 6).never(PROVIDERS),
    Rule::at("formwork", 7).never_by_default(&["formwork-local", "candle-core", "llguidance", "tokenizers"]),
    Rule::at("formwork-gateway", 8),
    // the binary may come to start the service
    Rule::at("formwork-cli", 8).beside(&["formwork-gateway"]),
    Rule::new("formwork-testkit", Layer::Dev),
    Rule::new("formwork-conformance", Layer::Dev),
    Rule::new("formwork-evals", Layer::Tool),
    Rule::new("xtask", Layer::Tool),
];
