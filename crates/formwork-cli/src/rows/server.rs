use formwork_core::Enforcement;
use formwork_extract::Backend;
use schemars::JsonSchema;
use serde::Serialize;

/// A line of `formwork models --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ModelOutput {
    /// The name that `--model` takes.
    pub name: String,
    /// The model's kind and what it is good for.
    pub description: String,
    /// Its licence (SPDX).
    pub licence: String,
    /// The size of its file.
    pub bytes: u64,
    /// The file, if it is here.
    pub path: Option<String>,
}

/// A line of `formwork models --provider NAME --json`, and what `formwork models show` prints with `--provider`.
pub use formwork::ollama::{Model as ServerModelOutput, ModelDetails as ServerModelDetails};

/// A line of `formwork doctor --json`: one provider.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorOutput {
    /// Its name in the configuration.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// The model that is asked; empty if the provider could not be made.
    pub model: String,
    /// Whether it works.
    pub state: DoctorState,
    /// How answers are enforced in the dialect that it is asked in first; absent if it could not be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
    /// The dialects that it is asked in, the strictest first.
    pub dialects: Vec<String>,
    /// The tokens that prompt and answer may have together, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
    /// Whether it was seen to keep to a schema; absent if that was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforced: Option<bool>,
    /// A note for people; empty if there is nothing.
    pub note: String,
    /// The error; empty if there is none.
    pub error: String,
    /// The fix; empty if nothing is wrong, or nothing is known to help.
    pub fix: String,
}

/// The state of a provider, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DoctorState {
    /// It does what it promises.
    Works,
    /// It cannot be reached, or does not do what it promises.
    Unavailable,
    /// The configuration is wrong.
    Misconfigured,
}

impl DoctorOutput {
    pub(crate) fn new(name: &str, kind: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            model: String::new(),
            state: DoctorState::Works,
            enforcement: None,
            dialects: Vec::new(),
            context_tokens: None,
            enforced: None,
            note: String::new(),
            error: String::new(),
            fix: String::new(),
        }
    }

    pub(crate) fn with_backend(mut self, backend: &Backend) -> Self {
        let modes = backend.modes();
        self.enforcement = modes.first().map(|mode| mode.enforcement());
        self.dialects = modes.iter().map(|mode| mode.name().to_owned()).collect();
        self.context_tokens = backend.capabilities().context_tokens;
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
