use formwork_core::{Call, Capabilities, Enforcement, Fault, FaultKind};
use formwork_wire::Auth;
use formwork_wire::http::uri::{InvalidUri, Uri};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::models;

/// The header of Azure OpenAI: `api-key: …`.
pub const AZURE: Auth = Auth { header: "api-key", prefix: "" };

/// The API of a server: OpenAI has two for the same models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
// The schema of the configuration has the definitions of all providers in one object, and Ollama's is `Api`.
#[schemars(rename = "OpenAiApi")]
pub enum Api {
    /// Chat Completions (`/chat/completions`), which every compatible server has.
    #[default]
    Chat,
    /// The Responses API (`/responses`), which OpenAI and a few others have.
    Responses,
}

/// The member of the body that limits the tokens of the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// The member that OpenAI takes since its models reason: the tokens of reasoning count.
    #[default]
    MaxCompletionTokens,
    /// The older one, which is all that most compatible servers take.
    MaxTokens,
}

/// The name of the role of instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SystemRole {
    /// The name that every server takes.
    #[default]
    System,
    /// The newer name, which only OpenAI takes.
    Developer,
}

/// The protocol of Chat Completions, or of the Responses API ([`with_api`](Self::with_api)). It knows neither address
/// nor key; the transport does.
///
/// ```
/// use formwork_openai::{MaxTokensField, OpenAi};
///
/// // llama.cpp's server
/// let wire = OpenAi::new("qwen3-8b")
///     .with_dialects(["llama-cpp", "prompt"])
///     .with_max_tokens_field(MaxTokensField::MaxTokens);
/// ```
#[derive(Debug, Clone)]
pub struct OpenAi {
    pub(crate) model: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) max_tokens_field: MaxTokensField,
    pub(crate) system_role: SystemRole,
    pub(crate) stream: bool,
    pub(crate) stream_usage: bool,
    pub(crate) strict: bool,
    pub(crate) extra: Map<String, Value>,
    pub(crate) api_version: Option<String>,
    pub(crate) api: Api,
}

impl OpenAi {
    /// Asks this model, under the name that the server has for it.
    ///
    /// It promises the dialects `openai`, `json-object` and `prompt`, system messages anywhere, a seed, and temperature
    /// and top-p unless the name is of an OpenAI model that refuses them.
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
            extra: Map::new(),
            api_version: None,
            api: Api::default(),
        };
        wire.with_dialects(["openai", "json-object", "prompt"])
    }

    /// Sets the dialects, the strictest first (default: those that the preset names). The names are those of
    /// [`Lower`](formwork_core::Lower)s: `openai`, `llama-cpp` for llama.cpp's server, `json-object`, `prompt`.
    #[must_use]
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

    /// Sets its promises, the dialects included (default: those of the model's name).
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Sets the member of the body that limits the tokens of an answer (default: that of the model's name).
    #[must_use]
    pub const fn with_max_tokens_field(mut self, field: MaxTokensField) -> Self {
        self.max_tokens_field = field;
        self
    }

    /// Sets the name of the role of instructions (default: that of the model's name).
    #[must_use]
    pub const fn with_system_role(mut self, role: SystemRole) -> Self {
        self.system_role = role;
        self
    }

    /// Asks for a stream, which is the default, or for one document. Whatever comes back is read.
    #[must_use]
    pub const fn with_stream(mut self, stream: bool) -> Self {
        self.stream = stream;
        self
    }

    /// Asks for the usage in a stream by `stream_options`, which is the default. Servers that refuse the member get
    /// `false`; without usage the tokens are estimated.
    #[must_use]
    pub const fn with_stream_usage(mut self, ask: bool) -> Self {
        self.stream_usage = ask;
        self
    }

    /// Asks for schemas to be enforced strictly, which is the default. Without it some servers only try.
    #[must_use]
    pub const fn with_strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Adds members to the body, such as OpenRouter's `provider` (default: none). They win over those that are sent otherwise.
    #[must_use]
    pub fn with_extra(mut self, extra: Map<String, Value>) -> Self {
        self.extra = extra;
        self
    }

    /// Sets the query `api-version`, which Azure's dated API asks for (default: none).
    #[must_use]
    pub fn with_api_version(mut self, version: impl Into<String>) -> Self {
        self.api_version = Some(version.into());
        self
    }

    /// Sets the API that requests go to (default: [`Api::Chat`]). The Responses API has no seed, so it is not promised any
    /// more.
    #[must_use]
    pub const fn with_api(mut self, api: Api) -> Self {
        self.api = api;
        if matches!(api, Api::Responses) {
            self.capabilities.seed = false;
        }
        self
    }

    /// The model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns the limit of tokens for the answer to a call; `None` to send none.
    pub(crate) fn max_tokens(&self, call: &Call) -> Option<u32> {
        let most = self.capabilities.output_tokens.unwrap_or(u32::MAX);
        call.max_tokens.map(|wanted| wanted.min(most))
    }

    /// A path below the base URL.
    pub(crate) fn path(&self, path: &'static str) -> Result<Uri, Fault> {
        let Some(version) = &self.api_version else { return Ok(Uri::from_static(path)) };
        let uri = format!("{path}?api-version={version}").try_into();
        uri.map_err(|error: InvalidUri| {
            Fault::new(FaultKind::BadRequest, format!("the request cannot be written: {error}"))
        })
    }
}
