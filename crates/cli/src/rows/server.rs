use formwork_core::{Enforcement, Restriction};
use formwork_extract::Backend;
use schemars::JsonSchema;
use serde::Serialize;

/// A row of `formwork models --json`.
///
/// ```
/// use formwork_cli::rows::ModelOutput;
///
/// let (name, description) = ("smollm2-135m-instruct".to_owned(), "a small model".to_owned());
/// let row = ModelOutput { name, description, licence: "Apache-2.0".into(), bytes: 144_811_456, path: None };
/// assert_eq!(serde_json::to_value(row)?["licence"], "Apache-2.0");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Serialize, JsonSchema)]
pub struct ModelOutput {
    /// The name for `--model`.
    pub name: String,
    /// A description of the model.
    pub description: String,
    /// The licence as an SPDX expression.
    pub licence: String,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The path of the file, if it is on this machine.
    pub path: Option<String>,
}

/// A row of `formwork models --provider NAME --json`, and the output of `formwork models show` with `--provider`.
pub use formwork::ollama::{Model as ServerModelOutput, ModelDetails as ServerModelDetails};

/// A row of `formwork doctor --json`: one provider.
///
/// ```json
/// {"name": "primary", "kind": "ollama", "model": "qwen3:8b", "state": "works", "enforcement": "schema", "dialects": ["ollama",
///  "json-object", "prompt"], "context_tokens": 40960, "enforced": true, "note": "", "error": "", "fix": ""}
/// ```
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct DoctorOutput {
    /// The name in the configuration.
    pub name: String,
    /// The kind of provider.
    pub kind: String,
    /// The model; empty if the provider could not be created.
    pub model: String,
    /// The state of the provider.
    pub state: DoctorState,
    /// The enforcement in the first output mode; absent if the provider could not be created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
    /// The output modes, the strictest first.
    pub dialects: Vec<String>,
    /// The maximum number of tokens of prompt and answer together; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
    /// Whether a test call showed that the provider enforces schemas; absent if there was no test call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforced: Option<bool>,
    /// The observations about the provider that are in force.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_force: Vec<Restriction>,
    /// A note for people; empty if there is none.
    pub note: String,
    /// The error; empty if there is none.
    pub error: String,
    /// The suggested fix; empty if there is no error, or no known fix.
    pub fix: String,
}

/// The state of a provider, from the best to the worst.
///
/// ```
/// use formwork_cli::rows::DoctorState;
///
/// assert!(DoctorState::Works < DoctorState::Misconfigured);
/// assert_eq!(serde_json::to_value(DoctorState::Unavailable)?, "unavailable");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DoctorState {
    /// No call was made, because observations were removed.
    Untested,
    /// The provider works, with the enforcement that it declares.
    #[default]
    Works,
    /// The provider cannot be reached, or does not enforce as it declares.
    Unavailable,
    /// The configuration is wrong.
    Misconfigured,
}

impl DoctorOutput {
    pub(crate) fn new(name: &str, kind: &str) -> Self {
        Self { name: name.to_owned(), kind: kind.to_owned(), ..Self::default() }
    }

    pub(crate) fn with_backend(mut self, backend: &Backend) -> Self {
        let modes = backend.modes();
        self.enforcement = modes.first().map(|mode| mode.enforcement());
        self.dialects = modes.iter().map(|mode| mode.name().to_owned()).collect();
        self.context_tokens = backend.capabilities().context_tokens;
        if let (Some(store), Some(identity)) = (backend.observation_store(), backend.identity()) {
            self.in_force = store.in_force().into_iter().filter(|one| one.target == identity).collect();
        }
        self
    }

    pub(crate) fn enforced(mut self, enforced: bool) -> Self {
        self.enforced = Some(enforced);
        self
    }

    pub(crate) fn failed(mut self, state: DoctorState, error: &str, fix: &str) -> Self {
        (self.state, self.error, self.fix) = (state, error.to_owned(), fix.to_owned());
        self
    }
}
