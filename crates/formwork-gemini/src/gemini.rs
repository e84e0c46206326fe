use formwork_core::{Capabilities, Enforcement};
use formwork_wire::Auth;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The amount of thinking before an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingLevel {
    /// As little as the model can.
    Minimal,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// As much as the model can.
    High,
}

/// The `generateContent` protocol for one model.
///
/// It promises schemas enforced while decoding, temperature, top-p and a seed, and takes the dialects `gemini`,
/// `gemini-openapi`, `json-object` and `prompt`.
///
/// ```
/// use formwork_gemini::Gemini;
/// use formwork_wire::Wire;
///
/// let wire = Gemini::new("gemini-2.5-flash").with_stream(false);
/// assert_eq!(wire.capabilities().dialects, Gemini::DIALECTS);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Gemini {
    pub(crate) model: String,
    /// The path of the model's resource, without the method.
    pub(crate) resource: String,
    pub(crate) stream: bool,
    pub(crate) thinking: Thinking,
    /// Further members of `generationConfig`.
    pub(crate) generation: Map<String, Value>,
    pub(crate) capabilities: Capabilities,
}

/// The members of `thinkingConfig`; what is `None` is left to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Thinking {
    pub(crate) budget: Option<i32>,
    pub(crate) level: Option<ThinkingLevel>,
    pub(crate) include: Option<bool>,
}

impl Gemini {
    /// The header that carries an API key of AI Studio. Vertex AI takes a token as [`Auth::BEARER`].
    pub const AUTH: Auth = Auth { header: "x-goog-api-key", prefix: "" };

    /// The dialects of schemas that the protocol takes, the strictest first.
    pub const DIALECTS: [&str; 4] = ["gemini", "gemini-openapi", "json-object", "prompt"];

    /// Asks a model of the Gemini API (AI Studio), such as `gemini-2.5-flash` or `models/gemini-2.5-flash`.
    pub fn new(model: impl Into<String>) -> Self {
        let model = model.into();
        let name = model.strip_prefix("models/").unwrap_or(&model);
        // Tuned models are resources of their own.
        let resource =
            if name.contains('/') { format!("/v1beta/{name}") } else { format!("/v1beta/models/{name}") };
        let capabilities = Capabilities::new(Enforcement::Schema).with_temperature().with_top_p().with_seed();
        Self {
            resource,
            model: name.to_owned(),
            stream: true,
            thinking: Thinking::default(),
            generation: Map::new(),
            capabilities,
        }
        .with_dialects(Self::DIALECTS)
    }

    /// Asks the model through Vertex AI, in a project and a location such as `global` or `europe-west4` (default: the Gemini
    /// API).
    #[must_use]
    pub fn with_vertex(mut self, project: &str, location: &str) -> Self {
        let model = &self.model;
        self.resource =
            format!("/v1/projects/{project}/locations/{location}/publishers/google/models/{model}");
        self
    }

    /// Sets whether answers are streamed (default: they are).
    #[must_use]
    pub const fn with_stream(mut self, stream: bool) -> Self {
        self.stream = stream;
        self
    }

    /// Limits the tokens that the model thinks with: 0 for none, -1 for as many as it likes (default: nothing is sent). For
    /// models before 3; some cannot do without thinking and refuse 0.
    #[must_use]
    pub const fn with_thinking_budget(mut self, tokens: i32) -> Self {
        self.thinking.budget = Some(tokens);
        self
    }

    /// Sets how much the model thinks (default: nothing is sent). For models from 3 on.
    #[must_use]
    pub const fn with_thinking_level(mut self, level: ThinkingLevel) -> Self {
        self.thinking.level = Some(level);
        self
    }

    /// Sets whether summaries of the model's thoughts come with the answer, as reasoning (default: nothing is sent, and none
    /// come).
    #[must_use]
    pub const fn with_thoughts(mut self, include: bool) -> Self {
        self.thinking.include = Some(include);
        self
    }

    /// Sets further members of `generationConfig`, such as `topK` or `stopSequences` (default: none). What a call sets goes
    /// before them.
    #[must_use]
    pub fn with_generation(mut self, members: Map<String, Value>) -> Self {
        self.generation = members;
        self
    }

    /// Sets the dialects that the model is asked in, the strictest first (default:
    /// [`DIALECTS`](Self::DIALECTS)). Without a dialect that sends a schema, or an object, no such enforcement is promised.
    #[must_use]
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

    /// Sets the promises (default: those of the protocol).
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// The model, without `models/`.
    pub fn model(&self) -> &str {
        &self.model
    }
}
