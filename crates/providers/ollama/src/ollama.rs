use formwork_core::{Capabilities, Enforcement, ModelSettings};
use formwork_wire::{Auth, Members};
use serde_json::{Map, Value};

use crate::capabilities::enforcing;
use crate::{Api, KeepAlive, Probed, Think};

/// The codec of Ollama's native API for one model. The transport adds the server's address and the key.
///
/// The capabilities are schemas enforced by constrained decoding, temperature, top-p and a seed, in the dialects `ollama`,
/// `json-object` and `prompt`. Tools are not supported.
///
/// ```
/// use formwork_ollama::Ollama;
/// use formwork_wire::Wire;
///
/// let ollama = Ollama::new("qwen3:8b").with_num_ctx(8192).with_keep_alive("30m").with_think(false);
/// assert_eq!((ollama.model(), ollama.capabilities().context_tokens), ("qwen3:8b", Some(8192)));
/// ```
#[must_use]
#[derive(Debug, Clone, PartialEq)]
pub struct Ollama {
    pub(crate) model: String,
    pub(crate) api: Api,
    pub(crate) num_ctx: Option<u32>,
    pub(crate) keep_alive: Option<KeepAlive>,
    pub(crate) think: Option<Think>,
    pub(crate) options: Map<String, Value>,
    /// Additional properties of the request body.
    pub(crate) extra: Members,
    pub(crate) stream: bool,
    pub(crate) capabilities: Capabilities,
}

/// The token limit of calls without a limit of their own. Ollama has no default limit, so a model that repeats itself would
/// never stop.
const DEFAULT_MAX_TOKENS: u32 = 8192;

impl Ollama {
    /// The request header that carries the API key. Only Ollama's cloud and servers behind a proxy need one.
    pub const AUTH: Auth = Auth::BEARER;

    /// Returns the codec for `model`, by its name in `ollama list`, over `/api/chat`.
    pub fn new(model: impl Into<String>) -> Self {
        let capabilities = Capabilities::new(Enforcement::Schema)
            .with_tools()
            .with_temperature()
            .with_top_p()
            .with_seed()
            .with_frequency_penalty()
            .with_late_system()
            .with_default_max_tokens(DEFAULT_MAX_TOKENS);
        Self {
            model: model.into(),
            api: Api::Chat,
            num_ctx: None,
            keep_alive: None,
            think: None,
            options: Map::new(),
            extra: Members::default(),
            stream: true,
            capabilities: enforcing(capabilities, Enforcement::Schema),
        }
    }

    /// Uses `/api/generate` (default: `/api/chat`), for models without a chat template.
    ///
    /// System messages at the beginning become `system`. A single user message is the prompt. A longer dialogue is written as
    /// text with the prefixes `User:`, `Assistant:` and `System:`. A user's text could imitate such a turn; use the chat API
    /// if that is a risk.
    pub fn with_generate(mut self) -> Self {
        self.api = Api::Generate;
        self.capabilities.tools = false;
        self.capabilities.late_system = false;
        self
    }

    /// Sets the context size in tokens, for prompt and completion together (default: computed for each call).
    ///
    /// The default is an upper bound on the tokens of the prompt plus those of the completion (2048 without a token limit),
    /// rounded up to a power of two, at least 4096, and at most the [context of the model](Self::with_context_tokens), or 131,072 where it
    /// is not known. Ollama reloads a model whenever this number changes: if short and long prompts alternate, set the larger number
    /// here.
    ///
    /// The upper bound is half the bytes of the prompt, plus half a token for each digit and punctuation mark, plus 16 for
    /// each message, 64 for the template and 2048 for each image. A word has about four bytes per token; digits and the
    /// punctuation of JSON have one. For texts of rare characters the bound can be too small; the call then fails with a
    /// message that names `num_ctx`, and the prompt is not truncated.
    pub const fn with_num_ctx(mut self, tokens: u32) -> Self {
        self.num_ctx = Some(tokens);
        self.capabilities.context_tokens = Some(tokens);
        self
    }

    /// Sets the context of the model in tokens (default: unknown; a probe finds it): the maximum that a call requests, and the limit
    /// above which an input is refused before the call.
    ///
    /// ```
    /// use formwork_ollama::Ollama;
    /// use formwork_wire::Wire as _;
    ///
    /// let ollama = Ollama::new("qwen3:8b").with_context_tokens(40_960);
    /// assert_eq!(ollama.capabilities().context_tokens, Some(40_960));
    /// ```
    pub const fn with_context_tokens(mut self, tokens: u32) -> Self {
        self.capabilities.context_tokens = Some(tokens);
        self
    }

    formwork_core::setters! {
        /// Sets the time for which the model stays loaded after a call: `"5m"`, seconds, or a [`Duration`](std::time::Duration)
        /// (default: the server's, which is five minutes).
        pub fn with_keep_alive(Some(keep_alive): impl Into<KeepAlive>);

        /// Sets whether the model reasons (`true`, `false`) or how much (`"low"`) (default: not sent; a model that can reason
        /// does).
        ///
        /// For a model that cannot reason, every value except `false` fails with status 400.
        ///
        /// For a call with a schema, the chat API runs a reasoning model twice: unconstrained until it begins to answer, then
        /// again with the schema. If the model does not reason, the unconstrained text is returned. The value `false` avoids both
        /// if the chat template supports it, but a model with its own parser in Ollama is then never constrained (source of
        /// 0.17.4). Because no value is right for all models, [`examine`](Self::examine) tries `false`, and
        /// [`with_probed`](Self::with_probed) applies it if it works.
        pub fn with_think(Some(think): impl Into<Think>);

        /// Sets additional options of the model, for example `top_k`, `repeat_penalty` or `stop` (default: none). Options of a call
        /// and [`with_num_ctx`](Self::with_num_ctx) take precedence.
        pub fn with_options(options: Map<String, Value>);

        /// Sets additional properties of the request body, for example `logprobs` (default: none). They replace properties of the
        /// same name.
        pub fn with_extra(extra: impl Into<Members>);

        /// Sets whether responses are streamed as lines of JSON (default: `true`).
        pub const fn with_stream(stream: bool);
    }

    /// Sets the capabilities to the result of a probe (default: those of [`new`](Self::new)).
    ///
    /// It also sets `think` to `false` if schemas were enforced only with that setting, unless
    /// [`with_think`](Self::with_think) was called.
    pub fn with_probed(mut self, probed: &Probed) -> Self {
        let ignored = std::mem::replace(&mut self.capabilities, probed.capabilities.clone()).ignored_settings;
        self.capabilities.ignored_settings = ignored;
        if probed.better_without_thinking && self.think.is_none() {
            self.think = Some(Think::Switch(false));
        }
        self
    }

    /// Sets the settings of the model (default: none). Set the additional properties first.
    pub fn with_settings(mut self, settings: &ModelSettings) -> Self {
        // Ollama refuses a level of reasoning for all models but these (`server/routes.go`).
        let wire = if self.model.contains("gpt-oss") { "ollama/gpt-oss" } else { "ollama" };
        self.extra = self.extra.with_settings(wire, settings, &mut self.capabilities);
        self
    }

    /// Returns the name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }
}
