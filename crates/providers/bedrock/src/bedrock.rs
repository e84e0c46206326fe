use formwork_core::{Capabilities, Enforcement, ModelSettings, PromptCache};
use formwork_wire::Members;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The API feature that enforces a schema.
///
/// ```
/// use formwork_bedrock::{Bedrock, Mode};
/// use formwork_core::{Call, Enforcement, Lowered, Message};
/// use formwork_wire::Wire;
///
/// let schema = serde_json::json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
/// let call = Call::new(vec![Message::user("Hi.")], Lowered::new(Enforcement::Schema, schema));
/// let request = Bedrock::new("amazon.nova-lite-v1:0").with_mode(Mode::Tool).encode(&call)?;
/// let body: serde_json::Value = serde_json::from_slice(request.body()).unwrap();
/// assert_eq!(body["toolConfig"]["tools"][0]["toolSpec"]["strict"], true);
/// # Ok::<(), formwork_core::Fault>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BedrockMode")]
pub enum Mode {
    /// The text format (`outputConfig.textFormat`).
    #[default]
    Schema,
    /// A strict tool that the model is forced to call. The input of the call is the document.
    Tool,
}

/// The codec of the Converse API for one model. The transport adds the server's address and the key.
///
/// The capabilities are enforced schemas in the dialect `anthropic`, the dialect `prompt`, temperature and top-p.
///
/// ```
/// use formwork_bedrock::Bedrock;
/// use formwork_wire::Wire;
///
/// let wire = Bedrock::new("amazon.nova-lite-v1:0");
/// assert_eq!(wire.model(), "amazon.nova-lite-v1:0");
/// assert_eq!(wire.capabilities().dialects, ["anthropic", "prompt"]);
/// ```
#[must_use]
#[derive(Debug, Clone, PartialEq)]
pub struct Bedrock {
    pub(crate) model: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) mode: Mode,
    pub(crate) stream: bool,
    /// The prompt cache that the settings ask for.
    pub(crate) prompt_cache: Option<PromptCache>,
    pub(crate) extra: Members,
}

impl Bedrock {
    /// Returns the codec for `model`: the identifier of a model or of an inference profile, or an ARN.
    pub fn new(model: impl Into<String>) -> Self {
        let capabilities = Capabilities::new(Enforcement::Schema)
            .with_tools()
            .with_required_tools()
            .with_dialect("anthropic")
            .with_dialect("prompt")
            .with_temperature()
            .with_max_temperature(1.0)
            .with_top_p();
        Self {
            model: model.into(),
            capabilities,
            mode: Mode::default(),
            stream: true,
            prompt_cache: None,
            extra: Members::default(),
        }
    }

    formwork_core::setters! {
        /// Sets the capabilities of the model, dialects included (default: schemas, temperature and top-p).
        pub fn with_capabilities(capabilities: Capabilities);

        /// Sets the API feature that enforces schemas (default: [`Mode::Schema`]).
        pub const fn with_mode(mode: Mode);

        /// Sets whether answers are streamed (default: `true`).
        pub const fn with_stream(stream: bool);

        /// Sets additional properties of the request body, for example `guardrailConfig` (default: none). They replace properties
        /// of the same name.
        pub fn with_extra(extra: impl Into<Members>);
    }

    /// Sets the settings of the model (default: none). Set the additional properties and the capabilities first.
    pub fn with_settings(mut self, settings: &ModelSettings) -> Self {
        self.prompt_cache = settings.prompt_cache.filter(|cache| *cache != PromptCache::Off);
        self.extra = self.extra.with_settings("bedrock", settings, &mut self.capabilities);
        self
    }

    /// Returns the name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }
}
