use formwork_core::{Call, Capabilities, Enforcement, ModelSettings};
use formwork_wire::{Auth, Members};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LineBreaks, models};

/// The request header that carries the key of Azure OpenAI: `api-key: KEY`.
pub const AZURE: Auth = Auth { header: "api-key", prefix: "" };

// The definition is renamed because the JSON Schema of the configuration has those of all providers, and `Api` is Ollama's.
/// One of OpenAI's two APIs for the same models.
///
/// ```
/// use formwork_core::{Call, Lowered, Message};
/// use formwork_openai::{Api, OpenAi};
/// use formwork_wire::Wire;
///
/// let call = Call::new(vec![Message::user("Hello.")], Lowered::default());
/// let path = |api| OpenAi::new("gpt-5.6").with_api(api).encode(&call).map(|request| request.uri().path().to_owned());
/// assert_eq!(path(Api::Chat)?, "/chat/completions");
/// assert_eq!(path(Api::Responses)?, "/responses");
/// # Ok::<(), formwork_core::Fault>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "OpenAiApi")]
pub enum Api {
    /// Chat Completions, which every compatible server has.
    #[default]
    Chat,
    /// The Responses API, which OpenAI and a few other servers have.
    Responses,
}

impl Api {
    /// Returns the name of the protocol in the table of errors.
    pub(crate) const fn protocol(self) -> &'static str {
        match self {
            Self::Chat => "openai/chat",
            Self::Responses => "openai/responses",
        }
    }
}

/// The property of the request body that limits the tokens of the completion.
///
/// ```
/// use formwork_core::{Call, Lowered, Message};
/// use formwork_openai::{MaxTokensField, OpenAi};
/// use formwork_wire::Wire;
///
/// let call = Call::new(vec![Message::user("Hello.")], Lowered::default()).with_max_tokens(9);
/// let request = OpenAi::new("qwen3-8b").with_max_tokens_field(MaxTokensField::MaxTokens).encode(&call)?;
/// let body: serde_json::Value = serde_json::from_slice(request.body()).unwrap();
/// assert_eq!(body["max_tokens"], 9);
/// # Ok::<(), formwork_core::Fault>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// OpenAI requires it for reasoning models. Reasoning tokens count towards it.
    #[default]
    MaxCompletionTokens,
    /// The older property, which most compatible servers support alone.
    MaxTokens,
}

/// The role of instructions in a request.
///
/// ```
/// use formwork_core::{Call, Lowered, Message};
/// use formwork_openai::{OpenAi, SystemRole};
/// use formwork_wire::Wire;
///
/// let call = Call::new(vec![Message::system("Be brief."), Message::user("Hello.")], Lowered::default());
/// let request = OpenAi::new("gpt-5.6").with_system_role(SystemRole::Developer).encode(&call)?;
/// let body: serde_json::Value = serde_json::from_slice(request.body()).unwrap();
/// assert_eq!(body["messages"][0]["role"], "developer");
/// # Ok::<(), formwork_core::Fault>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SystemRole {
    /// Every server supports it.
    #[default]
    System,
    /// OpenAI's newer name, which other servers refuse.
    Developer,
}

/// The codec of Chat Completions, or of the Responses API ([`with_api`](Self::with_api)), for one model. The transport adds
/// the server's address and the key.
///
/// ```
/// use formwork_openai::{MaxTokensField, OpenAi};
/// use formwork_wire::Wire;
///
/// // The settings for llama.cpp's server.
/// let wire = OpenAi::new("qwen3-8b")
///     .with_dialects(["llama-cpp", "prompt"])
///     .with_max_tokens_field(MaxTokensField::MaxTokens);
/// assert_eq!(wire.capabilities().dialects, ["llama-cpp", "prompt"]);
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct OpenAi {
    pub(crate) model: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) max_tokens_field: MaxTokensField,
    pub(crate) system_role: SystemRole,
    pub(crate) stream: bool,
    pub(crate) stream_usage: bool,
    pub(crate) strict: bool,
    pub(crate) extra: Members,
    pub(crate) api_version: Option<String>,
    pub(crate) api: Api,
    pub(crate) line_breaks: LineBreaks,
}

impl OpenAi {
    /// Returns the codec for `model`, by its name on the server.
    ///
    /// The capabilities are the dialects `openai`, `json-object` and `prompt`, system messages at any position, a seed, and
    /// temperature and top-p, except for OpenAI models that are known to refuse them.
    pub fn new(model: impl Into<String>) -> Self {
        let model = model.into();
        let capabilities = models::capabilities(&model);
        let wire = Self {
            model,
            capabilities,
            max_tokens_field: MaxTokensField::default(),
            system_role: SystemRole::default(),
            stream: true,
            stream_usage: true,
            strict: true,
            extra: Members::default(),
            api_version: None,
            api: Api::default(),
            line_breaks: LineBreaks::default(),
        };
        wire.with_dialects(["openai", "json-object", "prompt"])
    }

    /// Sets the dialects that calls may use, strictest first (default: `openai`, `json-object`, `prompt`).
    ///
    /// A name is that of a [`Lower`](formwork_core::Lower) implementation: `openai`, `llama-cpp` for llama.cpp's server,
    /// `json-object`, `prompt`.
    pub fn with_dialects(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.capabilities.dialects = names.into_iter().map(Into::into).collect();
        let enforcements = self.capabilities.dialects.iter().map(|name| match name.as_str() {
            "prompt" | "prompt-outline" => Enforcement::None,
            "json-object" => Enforcement::JsonObject,
            _ => Enforcement::Schema,
        });
        self.capabilities.enforcement = enforcements.max().unwrap_or_default();
        self
    }

    formwork_core::setters! {
        /// Sets the capabilities of the model, dialects included (default: see [`OpenAi::new`]).
        pub fn with_capabilities(capabilities: Capabilities);

        /// Sets the property of the request body that limits the tokens of the completion (default:
        /// [`MaxTokensField::MaxCompletionTokens`]).
        pub const fn with_max_tokens_field(max_tokens_field: MaxTokensField);

        /// Sets the role of instructions (default: [`SystemRole::System`]).
        pub const fn with_system_role(system_role: SystemRole);

        /// Sets whether responses are streamed as server-sent events (default: `true`). The decoder reads streams and documents
        /// regardless of this setting.
        pub const fn with_stream(stream: bool);

        /// Sets whether usage is requested in streams (`stream_options.include_usage`, default: `true`). Use `false` for servers
        /// that refuse the property; the tokens are then estimated unless the server reports them.
        pub const fn with_stream_usage(stream_usage: bool);

        /// Sets the `strict` property of schemas (default: `true`). With `false` some servers do not guarantee conformance.
        pub const fn with_strict(strict: bool);

        /// Sets additional properties of the request body, for example OpenRouter's `provider` (default: none). They replace
        /// properties of the same name.
        pub fn with_extra(extra: impl Into<Members>);

        /// Sets the tokens of line breaks, which llama.cpp's server keeps from the documents of tiny models by `logit_bias` (default:
        /// none).
        pub fn with_line_breaks(line_breaks: LineBreaks);

        /// Sets the query parameter `api-version`, which Azure's dated API versions require (default: none).
        pub fn with_api_version(Some(api_version): impl Into<String>);
    }

    /// Sets the settings of the model (default: none) at a vendor, by the name of its preset. Set the API, the additional properties
    /// and the capabilities first.
    pub fn with_settings(mut self, settings: &ModelSettings, vendor: &str) -> Self {
        let wire = match (self.api, vendor) {
            (Api::Responses, _) | (_, "openai" | "azure") => self.api.protocol().to_owned(),
            (Api::Chat, vendor) => format!("openai/{vendor}"),
        };
        self.extra = self.extra.with_settings(&wire, settings, &mut self.capabilities);
        self
    }

    /// Sets the API (default: [`Api::Chat`]). [`Api::Responses`] removes the seed and the frequency penalty from the
    /// capabilities, because the Responses API has neither.
    pub const fn with_api(mut self, api: Api) -> Self {
        self.api = api;
        if matches!(api, Api::Responses) {
            self.capabilities.seed = false;
            self.capabilities.frequency_penalty = false;
        }
        self
    }

    /// Returns the name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns the token limit of a call, at most the model's output limit. `None`: no limit is sent.
    pub(crate) fn max_tokens(&self, call: &Call) -> Option<u32> {
        let max = self.capabilities.output_tokens.unwrap_or(u32::MAX);
        call.max_tokens.map(|requested| requested.min(max))
    }

    /// Returns a path relative to the base URL, with the query parameter `api-version` if one is set.
    pub(crate) fn path(&self, path: &str) -> String {
        let version = self.api_version.as_ref();
        version.map_or_else(|| path.to_owned(), |version| format!("{path}?api-version={version}"))
    }
}
