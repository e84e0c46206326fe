use formwork_core::{Capabilities, Enforcement};
use formwork_wire::Auth;
use serde_json::{Map, Value};

use crate::{Mode, Thinking};

/// The header that carries the key: `x-api-key: …`.
pub const API_KEY: Auth = Auth { header: "x-api-key", prefix: "" };

/// The limit of tokens for an answer where nothing else sets one.
pub const DEFAULT_MAX_TOKENS: u32 = 8192;

/// The protocol of the Messages API for one model. It knows neither address nor key; the transport does.
///
/// It promises enforced schemas in the dialect `anthropic`, and `prompt`. A temperature is not promised, because newer models
/// refuse it; [`with_capabilities`](Self::with_capabilities) adds it for models that take one.
///
/// ```
/// use formwork_anthropic::{Anthropic, Thinking};
///
/// let wire = Anthropic::new("claude-opus-4-6").with_thinking(Thinking::Adaptive).with_effort("low");
/// assert_eq!(wire.model(), "claude-opus-4-6");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Anthropic {
    pub(crate) model: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) mode: Mode,
    pub(crate) strict: bool,
    pub(crate) thinking: Option<Thinking>,
    pub(crate) effort: Option<String>,
    pub(crate) cache: bool,
    pub(crate) stream: bool,
    pub(crate) extra: Map<String, Value>,
}

impl Anthropic {
    /// Returns the protocol for this model, such as `claude-sonnet-4-6`.
    pub fn new(model: impl Into<String>) -> Self {
        let capabilities =
            Capabilities::new(Enforcement::Schema).with_dialect("anthropic").with_dialect("prompt");
        Self {
            model: model.into(),
            capabilities,
            mode: Mode::default(),
            strict: true,
            thinking: None,
            effort: None,
            cache: true,
            stream: true,
            extra: Map::new(),
        }
    }

    /// Sets the promises, the dialects included (default: schemas and no sampling). A temperature that is promised here is
    /// left out all the same while the model thinks.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self.without_refused_sampling()
    }

    /// Sets how schemas are enforced (default: [`Mode::Schema`]).
    #[must_use]
    pub const fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets whether the forced tool of [`Mode::Tool`] is strict (default: `true`). Models before Claude Opus 4.1 refuse strict
    /// tools.
    #[must_use]
    pub const fn with_strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Sets whether the model thinks (default: nothing is sent, and the model's own default holds).
    #[must_use]
    pub fn with_thinking(mut self, thinking: Thinking) -> Self {
        self.thinking = Some(thinking);
        self.without_refused_sampling()
    }

    /// Sets the effort that the model spends, thinking included: `low`, `medium`, `high`, and more with some models (default:
    /// nothing is sent). Models before Claude Opus 4.5 refuse it.
    #[must_use]
    pub fn with_effort(mut self, effort: impl Into<String>) -> Self {
        self.effort = Some(effort.into());
        self
    }

    /// Sets whether the system prompt is marked for the API's cache (default: `true`).
    ///
    /// Tools and the system prompt are the same in all calls of an extractor. Reading them from the cache costs a tenth of the
    /// usual price, and writing them a quarter more. A prefix of fewer than 1024 tokens (4096 with some models) is not cached
    /// and costs nothing more.
    #[must_use]
    pub const fn with_cache(mut self, cache: bool) -> Self {
        self.cache = cache;
        self
    }

    /// Sets the limit of tokens for answers of calls that have none (default: the model's own limit, else
    /// [`DEFAULT_MAX_TOKENS`]).
    #[must_use]
    pub const fn with_max_tokens(mut self, tokens: u32) -> Self {
        self.capabilities.default_max_tokens = Some(tokens);
        self
    }

    /// Sets whether answers are streamed (default: `true`).
    #[must_use]
    pub const fn with_stream(mut self, stream: bool) -> Self {
        self.stream = stream;
        self
    }

    /// Adds members to the body, such as `metadata` (default: none). They replace members of the same name.
    #[must_use]
    pub fn with_extra(mut self, extra: Map<String, Value>) -> Self {
        self.extra = extra;
        self
    }

    /// Returns the name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns whether the model is asked to think.
    pub(crate) fn thinks(&self) -> bool {
        self.thinking.is_some_and(Thinking::is_on)
    }

    fn without_refused_sampling(mut self) -> Self {
        if self.thinks() {
            self.capabilities.temperature = false;
            self.capabilities.top_p = false;
        }
        self
    }
}
