use formwork_core::{Call, Enforcement, Usage};

/// The facts of a call that are needed to read its response.
///
/// ```
/// use formwork_core::{Call, Enforcement, Lowered, Message};
/// use formwork_wire::RequestInfo;
///
/// let lowered = Lowered::new(Enforcement::Tool, serde_json::json!({"type": "object"}));
/// let call = Call::new(vec![Message::user("Hello.")], lowered).with_schema_name("person");
/// let request = RequestInfo::new("openai/chat", "gpt-5.6", &call);
/// assert!(request.has_schema() && request.carrier.is_none());
/// assert!(request.estimate(400).estimated);
/// ```
#[derive(Debug, Clone, Default)]
pub struct RequestInfo {
    /// The protocol, by which the table of errors recognizes messages: `openai/chat`.
    pub protocol: &'static str,
    /// The name of the model.
    pub model: String,
    /// The enforcement that the call asks for.
    pub enforcement: Enforcement,
    /// The name of the tool whose arguments are the document (default: none).
    pub carrier: Option<String>,
    /// Whether the model can call tools of the caller.
    pub has_tools: bool,
    /// Whether the schema has a `pattern`, which crashes some servers (default: `false`).
    pub has_pattern: bool,
    /// The token limit of the call.
    pub max_tokens: Option<u32>,
    /// The estimated tokens of the prompt, for servers that report no usage.
    pub input_tokens: u64,
}

impl RequestInfo {
    /// Returns the facts of a call.
    pub fn new(protocol: &'static str, model: &str, call: &Call) -> Self {
        Self {
            protocol,
            model: model.to_owned(),
            enforcement: call.enforcement(),
            carrier: None,
            has_tools: !call.tools.is_empty(),
            has_pattern: false,
            max_tokens: call.max_tokens,
            input_tokens: Usage::estimate(call, 0).input_tokens,
        }
    }

    /// Sets the name of the tool whose arguments are the document (default: none).
    #[must_use]
    pub fn with_carrier(mut self, name: Option<String>) -> Self {
        self.carrier = name;
        self
    }

    /// Returns whether the request has an enforced schema or another enforced format.
    pub fn has_schema(&self) -> bool {
        self.enforcement != Enforcement::None
    }

    /// Returns the estimated usage of a call whose completion has `answered` bytes.
    pub fn estimate(&self, answered: usize) -> Usage {
        let output_tokens = answered.div_ceil(4) as u64;
        Usage::new(self.input_tokens, output_tokens).with_estimated(true)
    }
}
