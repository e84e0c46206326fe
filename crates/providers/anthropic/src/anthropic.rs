use formwork_core::{Capabilities, Enforcement, ModelSettings, PromptCache};
use formwork_wire::{Auth, Members};

use crate::{Mode, Thinking};

/// The request header that carries the API key: `x-api-key: KEY`.
pub const API_KEY: Auth = Auth { header: "x-api-key", prefix: "" };

/// The `max_tokens` of a request if neither the call, the configuration nor the registry sets a limit.
pub const DEFAULT_MAX_TOKENS: u32 = 8192;

/// The codec of the Messages API for one model. The transport adds the server's address and the key.
///
/// The capabilities are enforced schemas in the dialect `anthropic`, and the dialect `prompt`. A temperature is not among
/// them, because newer models refuse it; [`with_capabilities`](Self::with_capabilities) adds it for a model that accepts one.
///
/// ```
/// use formwork_anthropic::{Anthropic, Thinking};
///
/// let wire = Anthropic::new("claude-opus-4-6").with_thinking(Thinking::Adaptive).with_effort("low");
/// assert_eq!(wire.model(), "claude-opus-4-6");
/// ```
#[must_use]
#[derive(Debug, Clone, PartialEq)]
pub struct Anthropic {
    pub(crate) model: String,
    /// The path of the model on Vertex AI.
    pub(crate) resource: Option<String>,
    pub(crate) capabilities: Capabilities,
    pub(crate) mode: Mode,
    pub(crate) strict: bool,
    pub(crate) thinking: Option<Thinking>,
    pub(crate) effort: Option<String>,
    pub(crate) cache: bool,
    pub(crate) stream: bool,
    /// The prompt cache that the settings ask for.
    pub(crate) prompt_cache: Option<PromptCache>,
    pub(crate) extra: Members,
}

/// The API refuses a higher temperature.
const MAX_TEMPERATURE: f64 = 1.0;

impl Anthropic {
    /// Returns the codec for `model`, for example `claude-sonnet-4-6`.
    pub fn new(model: impl Into<String>) -> Self {
        let capabilities = Capabilities::new(Enforcement::Schema)
            .with_tools()
            .with_required_tools()
            .with_max_temperature(MAX_TEMPERATURE)
            .with_dialect("anthropic")
            .with_dialect("prompt");
        Self {
            model: model.into(),
            resource: None,
            capabilities,
            mode: Mode::default(),
            strict: true,
            thinking: None,
            effort: None,
            cache: true,
            stream: true,
            prompt_cache: None,
            extra: Members::default(),
        }
    }

    /// Sets the capabilities of the model, dialects included (default: schemas, no sampling parameters).
    ///
    /// `temperature` and `top_p` are switched off again while thinking is on, because the API refuses the combination.
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self.capabilities.max_temperature.get_or_insert(MAX_TEMPERATURE);
        self.without_refused_sampling()
    }

    formwork_core::setters! {
        /// Sets how schemas are enforced (default: [`Mode::Schema`]).
        pub const fn with_mode(mode: Mode);

        /// Sets whether the forced tool of [`Mode::Tool`] is `strict` (default: `true`). Models before Claude Opus 4.1 refuse
        /// strict tools.
        pub const fn with_strict(strict: bool);

        /// Sets `output_config.effort`: `low`, `medium`, `high`, and further values for some models (default: not sent). Models
        /// before Claude Opus 4.5 refuse it.
        pub fn with_effort(Some(effort): impl Into<String>);

        /// Sets whether prompts are marked for prompt caching (default: `true`): the system prompt in each call, and the text where
        /// it is likely to be repeated ([`Call::is_repeated`](formwork_core::Call::is_repeated)) or `prompt_cache` is on.
        ///
        /// Tools and the system prompt are the same in all calls of an extractor. A cache read costs a tenth of the input price,
        /// a cache write 25 % more than it. The API does not cache a prefix of fewer than 1024 tokens (4096 for some models), and
        /// then charges nothing extra.
        pub const fn with_cache(cache: bool);

        /// Sets whether responses are streamed as server-sent events (default: `true`).
        pub const fn with_stream(stream: bool);

        /// Sets additional properties of the request body, for example `metadata` (default: none). They replace properties of the
        /// same name.
        pub fn with_extra(extra: impl Into<Members>);
    }

    /// Sets whether and how much the model thinks (default: not sent, which leaves the model's default).
    pub fn with_thinking(mut self, thinking: Thinking) -> Self {
        self.thinking = Some(thinking);
        // The API requires a token limit above the budget for thinking.
        self.capabilities.reasoning_tokens = match thinking {
            Thinking::Budget { budget_tokens } => Some(budget_tokens),
            _ => None,
        };
        self.without_refused_sampling()
    }

    /// Sets `max_tokens` for calls without a limit of their own (default: the model's output limit, else
    /// [`DEFAULT_MAX_TOKENS`]).
    pub const fn with_max_tokens(mut self, tokens: u32) -> Self {
        self.capabilities.default_max_tokens = Some(tokens);
        self
    }

    /// Sets the project and the location of Google Cloud whose Vertex AI has the model (default: Anthropic's own API).
    ///
    /// ```
    /// use formwork_anthropic::Anthropic;
    /// use formwork_core::{Call, Lowered, Message};
    /// use formwork_wire::Wire;
    ///
    /// let wire = Anthropic::new("claude-haiku-4-5@20251001").with_vertex("p-1", "global");
    /// let request = wire.encode(&Call::new(vec![Message::user("Hello.")], Lowered::default()))?;
    /// let path = "/v1/projects/p-1/locations/global/publishers/anthropic/models/claude-haiku-4-5@20251001:streamRawPredict";
    /// assert_eq!(request.uri().path(), path);
    /// let body: serde_json::Value = serde_json::from_slice(request.body()).unwrap();
    /// assert_eq!((&body["anthropic_version"], &body["model"]), (&"vertex-2023-10-16".into(), &serde_json::Value::Null));
    /// # Ok::<(), formwork_core::Fault>(())
    /// ```
    pub fn with_vertex(mut self, project: &str, location: &str) -> Self {
        let resource =
            format!("/v1/projects/{project}/locations/{location}/publishers/anthropic/models/{}", self.model);
        self.resource = Some(resource);
        self
    }

    /// Sets the settings of the model (default: none). Set the additional properties and the capabilities first.
    pub fn with_settings(mut self, settings: &ModelSettings) -> Self {
        self.cache &= settings.prompt_cache != Some(PromptCache::Off);
        self.prompt_cache = settings.prompt_cache;
        // Opus 4.5 was the first model with an effort, `max` came with 4.6 and `xhigh` with Opus 4.7.
        let wire = match self.version() {
            Some((4, 6)) => "anthropic/4.6",
            Some((4, 5)) if self.model.contains("opus") => "anthropic/4.5",
            Some((..4, _) | (4, ..6)) => "anthropic/4",
            _ => "anthropic",
        };
        self.extra = self.extra.with_settings(wire, settings, &mut self.capabilities);
        self
    }

    /// Returns the version in the name of one of Anthropic's models, if it has one: `claude-sonnet-4-20250514` is 4.0.
    fn version(&self) -> Option<(u32, u32)> {
        let name = self.model.strip_prefix("claude-")?;
        let is_part = |part: &&str| part.len() <= 2 && part.starts_with(|first: char| first.is_ascii_digit());
        let mut parts = name.split(['-', '.', '@']).filter(is_part).map_while(|part| part.parse().ok());
        Some((parts.next()?, parts.next().unwrap_or(0)))
    }

    /// Returns the name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns whether thinking is on.
    pub(crate) fn thinks(&self) -> bool {
        self.thinking.is_some_and(Thinking::is_on)
    }

    fn without_refused_sampling(mut self) -> Self {
        if self.thinks() {
            self.capabilities.temperature = false;
            self.capabilities.top_p = false;
            self.capabilities.prefill = false;
            self.capabilities.required_tools = false;
        }
        self
    }
}
