use formwork_core::{Capabilities, Enforcement, ModelSettings};
use formwork_wire::{Auth, Members};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The amount of reasoning of models from Gemini 3 on (`thinkingLevel`).
///
/// ```
/// use formwork_gemini::{GeminiConfig, ThinkingLevel};
///
/// let config: GeminiConfig = serde_json::from_str(r#"{"model": "gemini-3-pro-preview", "thinking_level": "low"}"#)?;
/// assert_eq!(config.thinking_level, Some(ThinkingLevel::Low));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingLevel {
    /// The minimum that the model supports.
    Minimal,
    /// A low level.
    Low,
    /// A medium level.
    Medium,
    /// The maximum that the model supports.
    High,
}

/// The codec of the `generateContent` API for one model. The transport adds the server's address and the key.
///
/// The capabilities are enforced schemas, temperature, top-p and seed, in the dialects `gemini`, `gemini-openapi`,
/// `json-object` and `prompt`.
///
/// ```
/// use formwork_gemini::Gemini;
/// use formwork_wire::Wire;
///
/// let wire = Gemini::new("gemini-3.5-flash").with_stream(false);
/// assert_eq!(wire.capabilities().dialects, Gemini::DIALECTS);
/// ```
#[must_use]
#[derive(Debug, Clone, PartialEq)]
pub struct Gemini {
    pub(crate) model: String,
    /// The path of the model's resource, without `:generateContent`.
    pub(crate) resource: String,
    pub(crate) stream: bool,
    pub(crate) thinking: Thinking,
    /// Additional properties of `generationConfig`.
    pub(crate) generation: Map<String, Value>,
    /// Additional properties of the request body.
    pub(crate) extra: Members,
    pub(crate) capabilities: Capabilities,
}

/// The properties of `thinkingConfig`. `None`: not sent, which leaves the model's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Thinking {
    pub(crate) budget: Option<i32>,
    pub(crate) level: Option<ThinkingLevel>,
    pub(crate) include: Option<bool>,
}

impl Gemini {
    /// The request header that carries an API key of AI Studio. Vertex AI expects an access token as [`Auth::BEARER`].
    pub const AUTH: Auth = Auth { header: "x-goog-api-key", prefix: "" };

    /// The supported schema dialects, strictest first.
    pub const DIALECTS: [&str; 4] = ["gemini", "gemini-openapi", "json-object", "prompt"];

    /// Returns the codec for a model of the Gemini API (AI Studio): `gemini-3.5-flash`, or `tunedModels/NAME`.
    ///
    /// A leading `models/` is removed.
    pub fn new(model: impl Into<String>) -> Self {
        let model = model.into();
        let name = model.strip_prefix("models/").unwrap_or(&model);
        // A tuned model is the resource `tunedModels/NAME` and not below `models/`.
        let resource =
            if name.contains('/') { format!("/v1beta/{name}") } else { format!("/v1beta/models/{name}") };
        let capabilities = Capabilities::new(Enforcement::Schema)
            .with_tools()
            .with_required_tools()
            .with_temperature()
            .with_top_p()
            .with_seed();
        Self {
            resource,
            model: name.to_owned(),
            stream: true,
            thinking: Thinking::default(),
            generation: Map::new(),
            extra: Members::default(),
            capabilities,
        }
        .with_dialects(Self::DIALECTS)
    }

    /// Sets the Google Cloud project and location for Vertex AI (default: none, the Gemini API of AI Studio). A location is
    /// for example `global` or `europe-west4`.
    pub fn with_vertex(mut self, project: &str, location: &str) -> Self {
        let model = &self.model;
        self.resource =
            format!("/v1/projects/{project}/locations/{location}/publishers/google/models/{model}");
        self
    }

    formwork_core::setters! {
        /// Sets whether responses are streamed as server-sent events (default: `true`).
        pub const fn with_stream(stream: bool);

        /// Sets additional properties of `generationConfig`, for example `topK` or `stopSequences` (default: none). Properties
        /// that the call sets take precedence.
        pub fn with_generation(generation: Map<String, Value>);

        /// Sets additional properties of the request body, for example `safetySettings` (default: none). They replace properties of the
        /// same name.
        pub fn with_extra(extra: impl Into<Members>);

        /// Sets the capabilities of the model (default: see [`Gemini`]).
        pub fn with_capabilities(capabilities: Capabilities);
    }

    formwork_core::setters! {
        in thinking:
        /// Sets the maximum number of thinking tokens for models before Gemini 3 (default: not sent, which leaves the model's
        /// default). 0 turns thinking off, which some models refuse; -1 lets the model decide.
        pub const fn with_thinking_budget(Some(budget): i32);
        /// Sets how much a model from Gemini 3 on thinks (default: not sent, which leaves the model's default).
        pub const fn with_thinking_level(Some(level): ThinkingLevel);
        /// Sets whether the response includes summaries of the model's thoughts, which become
        /// [`Delta::Reasoning`](formwork_core::Delta) (default: not sent, which includes none).
        pub const fn with_thoughts(Some(include): bool);
    }

    /// Sets the dialects that calls to this model may use, strictest first (default: [`DIALECTS`](Self::DIALECTS)).
    ///
    /// The first dialect determines the enforcement in the capabilities: `prompt` has none, `json-object` has
    /// [`Enforcement::JsonObject`], every other dialect has [`Enforcement::Schema`].
    pub fn with_dialects<S: Into<String>>(mut self, dialects: impl IntoIterator<Item = S>) -> Self {
        let dialects: Vec<String> = dialects.into_iter().map(Into::into).collect();
        self.capabilities.enforcement = match dialects.first().map(String::as_str) {
            None => Enforcement::None,
            Some(name) if name.starts_with("prompt") => Enforcement::None,
            Some("json-object") => Enforcement::JsonObject,
            Some(_) => Enforcement::Schema,
        };
        self.capabilities.dialects = dialects;
        self
    }

    /// Sets the settings of the model (default: none). Set Vertex AI, the additional properties and the capabilities first.
    pub fn with_settings(mut self, settings: &ModelSettings) -> Self {
        let is_vertex = self.resource.starts_with("/v1/projects/");
        // Models before Gemini 3 refuse `thinkingLevel` and have a budget.
        let wire = match (is_vertex, self.version()) {
            (true, Some(..3)) => "vertex/2",
            (false, Some(..3)) => "gemini/2",
            (true, _) => "vertex",
            (false, _) => "gemini",
        };
        self.extra = self.extra.with_settings(wire, settings, &mut self.capabilities);
        self
    }

    /// Returns the major version in the name of the model, if it has one: `gemini-3.5-flash` is 3.
    pub(crate) fn version(&self) -> Option<u32> {
        let version = self.model.strip_prefix("gemini-")?;
        version.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    }

    /// Returns the name of the model without `models/`.
    pub fn model(&self) -> &str {
        &self.model
    }
}
