//! The layers of the workspace: the allowed dependencies of each crate. docs/ARCHITECTURE.md has the purpose of each crate.

/// The layer of a crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    /// A numbered layer, which may depend on lower numbers only.
    Number(u8),
    /// A crate for tests. It may depend on everything up to the drivers, and others may have it only as a dev-dependency.
    Dev,
    /// A development task. It may depend on anything, and nothing may depend on it.
    Tool,
}

/// The allowed dependencies of a crate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) layer: Layer,
    /// Crates of the same layer that it may depend on nevertheless.
    pub(super) beside: &'static [&'static str],
    /// Crates that it must not depend on, directly or indirectly, with any features.
    pub(super) never: &'static [&'static str],
    /// Crates that it must not depend on with its default features.
    pub(super) never_by_default: &'static [&'static str],
    /// The only crates that it may depend on without a feature. `None`: no restriction.
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

/// A group of crates: a folder below `crates/`. Arrows between groups point to earlier ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub(super) folder: &'static str,
    /// The first and the last number of its layers.
    pub(super) layers: [u8; 2],
    /// Whether its crates may depend on crates that call models, directly or indirectly. Others use these through a trait.
    pub(super) vendors: bool,
    /// Crates that none of its crates may import.
    pub(super) never: &'static [&'static str],
}

const fn group(folder: &'static str, layers: [u8; 2]) -> Group {
    Group { folder, layers, vendors: true, never: &[] }
}

/// The crates that write to a terminal.
const TERMINAL: &[&str] = &["annotate-snippets", "clap", "formwork-cli", "indicatif"];

/// The groups, from the lowest. Crates for tests stand aside in `crates/dev`, tools outside of `crates/`.
pub(super) const GROUPS: &[Group] = &[
    Group { vendors: false, ..group("core", [0, 2]) },
    group("providers", [2, 3]),
    Group { vendors: false, ..group("run", [4, 6]) },
    Group { vendors: false, ..group("apps", [5, 6]) },
    group("formwork", [7, 7]),
    Group { never: TERMINAL, ..group("gateway", [8, 8]) },
    group("cli", [8, 8]),
];

/// The folder of the crates for tests.
pub(super) const DEV: &str = "dev";

/// The crates of `crates/providers` that call no model themselves: what all of them stand on.
pub(super) const SHARED: &[&str] = &["formwork-http", "formwork-layers", "formwork-wire"];

/// The runtime and the HTTP client, which crates without IO must not depend on.
const WAITS: &[&str] = &["reqwest", "tokio"];

/// The rules of all crates, from the lowest layer. A new crate needs a line here.
pub(super) const TABLE: &[Rule] = &[
    Rule::at("formwork-json", 0).only(&["memchr", "serde", "serde_json"]).never(&[
        "tokio",
        "http",
        "reqwest",
        "jsonschema",
    ]),
    Rule::at("formwork-keywords", 0).beside(&["formwork-json"]).never(WAITS),
    // The rule `grounded` of the core searches the input.
    Rule::at("formwork-evidence", 0).beside(&["formwork-json", "formwork-keywords"]).never(WAITS),
    Rule::at("formwork-core", 1).never(&["tokio", "http", "reqwest", "jsonschema"]),
    Rule::at("formwork-schema", 2).never(WAITS),
    Rule::at("formwork-dialect", 2).never(WAITS),
    Rule::at("formwork-wire", 2).never(WAITS),
    Rule::at("formwork-http", 3),
    Rule::at("formwork-layers", 3),
    Rule::at("formwork-openai", 3).never(&["reqwest"]),
    Rule::at("formwork-ollama", 3).never_by_default(&["reqwest"]),
    Rule::at("formwork-anthropic", 3).never(&["reqwest"]),
    Rule::at("formwork-gemini", 3).never(&["reqwest"]),
    Rule::at("formwork-bedrock", 3).never(&["reqwest"]),
    Rule::at("formwork-cohere", 3).never(&["reqwest"]),
    Rule::at("formwork-prompt", 3),
    Rule::at("formwork-local", 3).never(&["reqwest"]),
    Rule::at("formwork-extract", 4),
    Rule::at("formwork-eval", 5).never(WAITS),
    Rule::at("formwork-ledger", 5),
    Rule::at("formwork-review", 5),
    Rule::at("formwork-serve", 5),
    Rule::at("formwork-shape", 5),
    Rule::at("formwork-oracle", 6),
    Rule::at("formwork-chat", 6),
    Rule::at("formwork-skill", 6),
    Rule::at("formwork-batch", 6),
    Rule::at("formwork", 7).never_by_default(&["formwork-local", "candle-core", "llguidance", "tokenizers"]),
    Rule::at("formwork-gateway", 8).never_by_default(&["opentelemetry_sdk"]),
    // The binary starts the service.
    Rule::at("formwork-cli", 8).beside(&["formwork-gateway"]),
    Rule::new("formwork-testkit", Layer::Dev),
    // The laws of a dialect hold on generated schemas and documents.
    Rule::new("formwork-conformance", Layer::Dev).beside(&["formwork-testkit"]),
    Rule::new("formwork-features", Layer::Dev),
    Rule::new("formwork-measure", Layer::Tool),
    Rule::new("candle-peer", Layer::Tool),
    Rule::new("xtask", Layer::Tool),
];
