use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ClientRequest, Enforcement, Lowered, Message, ModelSettings, Part, Rule, Sampling, Time, Tool};

/// One request to a model, independent of the provider's API.
///
/// ```
/// use formwork_core::{Call, Enforcement, Lowered, Message};
///
/// let schema = serde_json::json!({"type": "object", "properties": {"age": {"type": "integer"}}});
/// let call = Call::new(vec![Message::user("Maria is 34.")], Lowered::new(Enforcement::Schema, schema))
///     .with_schema_name("person")
///     .with_max_tokens(200);
/// assert_eq!((call.enforcement(), call.schema_name.as_str()), (Enforcement::Schema, "person"));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[must_use]
pub struct Call {
    /// The complete dialogue, with the schema in it if the model has to read it.
    pub messages: Vec<Arc<Message>>,
    /// The name of the schema.
    pub schema_name: String,
    /// The schema in the provider's dialect, and how it is enforced.
    pub lowered: Arc<Lowered>,
    /// The rules that a provider with [`Capabilities::rules`](crate::Capabilities::rules) enforces while decoding.
    pub rules: Vec<Rule>,
    /// The text that the answer is about, if one of the rules needs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Arc<str>>,
    /// The sampling parameters, limited to those that the provider supports.
    pub sampling: Sampling,
    /// The maximum number of tokens of the answer; `None` for the provider's own limit.
    pub max_tokens: Option<u32>,
    /// The time by which the answer is needed.
    pub deadline: Option<Time>,
    /// The tools that the model may call.
    pub tools: Vec<Tool>,
    /// Whether the model has to call one of the tools; see [`Capabilities::required_tools`](crate::Capabilities::required_tools).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requires_tool: bool,
    /// The settings of the model for this call, in the place of the same ones of the configuration; see
    /// [`Capabilities::settings`](crate::Capabilities::settings).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Arc<ModelSettings>>,
    /// The opening of the answer, for a provider whose model [continues](crate::Capabilities::prefill) it. The text of the answer
    /// includes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill: Option<Cow<'static, str>>,
    /// The number of leading messages that each call of a run repeats: the instructions, the examples and the text; 0 if it is not
    /// known.
    #[serde(default)]
    pub task_messages: usize,
    /// Whether a further call with the same [task](Self::task_messages) is so likely that writing it to a prompt cache pays.
    #[serde(default)]
    pub is_repeated: bool,
    /// Whether a value that repeats itself is ended early, because the model is tiny; see
    /// [`Watch::for_tiny_model`](crate::Watch::for_tiny_model).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_loops: bool,
    /// The request of a client that the call is made for, with the instructions of the schema before its dialogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Arc<ClientRequest>>,
}

impl Call {
    /// Creates a call with a schema named `answer`, without rules, tools, token limit or deadline, and with the provider's
    /// own sampling.
    pub fn new(
        messages: impl IntoIterator<Item = impl Into<Arc<Message>>>,
        lowered: impl Into<Arc<Lowered>>,
    ) -> Self {
        Self {
            messages: messages.into_iter().map(Into::into).collect(),
            schema_name: "answer".to_owned(),
            lowered: lowered.into(),
            rules: Vec::new(),
            source: None,
            sampling: Sampling::default(),
            max_tokens: None,
            deadline: None,
            tools: Vec::new(),
            requires_tool: false,
            settings: None,
            prefill: None,
            task_messages: 0,
            is_repeated: false,
            ends_loops: false,
            client: None,
        }
    }

    crate::setters! {
        /// Sets the name of the schema (default: `answer`).
        pub fn with_schema_name(schema_name: impl Into<String>);
        /// Sets the sampling parameters (default: the provider's).
        pub const fn with_sampling(sampling: Sampling);
        /// Sets the maximum number of tokens of the answer (default: the provider's own limit).
        pub const fn with_max_tokens(Some(max_tokens): u32);
        /// Requires a call of one of the tools (default: the model decides).
        pub const fn with_required_tool(requires_tool = true);
        /// Sets the time by which the answer is needed (default: none).
        pub const fn with_deadline(deadline: Option<Time>);
    }

    /// Returns how the schema is enforced.
    pub fn enforcement(&self) -> Enforcement {
        self.lowered.enforcement
    }

    /// Returns the schema that is sent to be enforced, if any.
    pub fn schema(&self) -> Option<&Value> {
        self.lowered.schema.as_ref()
    }

    /// Returns an upper bound on the tokens of the prompt, schema included: a token has at least one byte. A picture counts
    /// 6,000 tokens, which is more than the vendors' tables state for the largest pictures that they accept; each message
    /// adds 16 for its envelope.
    pub fn most_input_tokens(&self) -> u64 {
        self.most_input_tokens_with(self.schema().map_or(0, written))
    }

    /// The same where it is known how many bytes the schema has as JSON.
    pub(crate) fn most_input_tokens_with(&self, schema_bytes: usize) -> u64 {
        const PICTURE: usize = 6_000;
        const AROUND: usize = 16;

        let part = |part: &Part| match part {
            Part::Image { .. } => PICTURE,
            Part::Text { text } | Part::ToolResult { text, .. } | Part::Reasoning { text } => text.len(),
            Part::ToolCall { name, arguments, .. } => name.len() + written(arguments),
            Part::Original(original) => written(&original.content),
        };
        let message = |message: &Arc<Message>| AROUND + message.parts.iter().map(part).sum::<usize>();
        let tool = |tool: &Tool| AROUND + written(tool);
        let schema = self.schema().map_or(0, |_| schema_bytes + self.schema_name.len() + AROUND);
        let tools = self.tools.iter().map(tool).sum::<usize>();
        let prefill = self.prefill.as_ref().map_or(0, |prefill| AROUND + prefill.len());
        (self.messages.iter().map(message).sum::<usize>() + schema + tools + prefill) as u64
    }
}

/// Returns the length of a value as JSON, in bytes.
pub(crate) fn written(value: &impl Serialize) -> usize {
    struct Count(usize);

    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    // Neither the writer nor the serialisation of a JSON value can fail.
    _ = serde_json::to_writer(&mut count, value);
    count.0
}
