use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Enforcement, Fault, Lowered, Message, Part, Rule, Time, Tool};

/// The sampling parameters of a call. The provider chooses those that are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Sampling {
    /// The temperature, from 0: 0 selects the most probable token, 1 samples from the model's own distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The nucleus threshold, from 0 to 1: sampling is limited to the most probable tokens with this cumulative
    /// probability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The seed: the same seed requests the same answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl Sampling {
    /// Sets the temperature, from 0 (default: the provider's).
    ///
    /// ```
    /// use formwork_core::Sampling;
    ///
    /// let sampling = Sampling::default().with_temperature(0.2).with_seed(7);
    /// assert_eq!((sampling.temperature, sampling.top_p, sampling.seed), (Some(0.2), None, Some(7)));
    /// ```
    #[must_use]
    pub const fn with_temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the nucleus threshold, from 0 to 1 (default: the provider's).
    #[must_use]
    pub const fn with_top_p(mut self, top_p: f64) -> Self {
        self.top_p = Some(top_p);
        self
    }

    /// Sets the seed (default: none, each answer may differ).
    #[must_use]
    pub const fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }
}

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
pub struct Call {
    /// The complete dialogue, with the schema in it if the model has to read it.
    pub messages: Vec<Message>,
    /// The name of the schema.
    pub schema_name: String,
    /// The schema in the provider's dialect, and how it is enforced.
    pub lowered: Arc<Lowered>,
    /// The rules that a provider with [`Capabilities::rules`](crate::Capabilities::rules) enforces while decoding.
    pub rules: Vec<Rule>,
    /// The sampling parameters, limited to those that the provider supports.
    pub sampling: Sampling,
    /// The maximum number of tokens of the answer; `None` for the provider's own limit.
    pub max_tokens: Option<u32>,
    /// The time by which the answer is needed.
    pub deadline: Option<Time>,
    /// The tools that the model may call.
    pub tools: Vec<Tool>,
}

impl Call {
    /// Creates a call with a schema named `answer`, without rules, tools, token limit or deadline, and with the provider's
    /// own sampling.
    pub fn new(messages: Vec<Message>, lowered: impl Into<Arc<Lowered>>) -> Self {
        Self {
            messages,
            schema_name: "answer".to_owned(),
            lowered: lowered.into(),
            rules: Vec::new(),
            sampling: Sampling::default(),
            max_tokens: None,
            deadline: None,
            tools: Vec::new(),
        }
    }

    /// Sets the name of the schema (default: `answer`).
    #[must_use]
    pub fn with_schema_name(mut self, name: impl Into<String>) -> Self {
        self.schema_name = name.into();
        self
    }

    /// Sets the sampling parameters (default: the provider's).
    #[must_use]
    pub const fn with_sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// Sets the maximum number of tokens of the answer (default: the provider's own limit).
    #[must_use]
    pub const fn with_max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets the time by which the answer is needed (default: none).
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Option<Time>) -> Self {
        self.deadline = deadline;
        self
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
        };
        let message = |message: &Message| AROUND + message.parts.iter().map(part).sum::<usize>();
        let tool = |tool: &Tool| AROUND + written(tool);
        let schema = self.schema().map_or(0, |_| schema_bytes + self.schema_name.len() + AROUND);
        let tools = self.tools.iter().map(tool).sum::<usize>();
        (self.messages.iter().map(message).sum::<usize>() + schema + tools) as u64
    }
}

/// How many bytes a value has as JSON.
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

/// The reason why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finish {
    /// The model ended its answer.
    Stop,
    /// The answer reached the token limit.
    Length,
    /// The model declined to answer.
    Refused,
    /// A filter removed the answer.
    Filtered,
    /// The model requests a tool call.
    ToolCall,
    /// The driver stopped the call.
    Stopped,
}

/// The tokens of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Tokens of the answer, reasoning included.
    pub output_tokens: u64,
    /// Tokens of the prompt that were read from the provider's cache; part of `input_tokens`.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Tokens of reasoning; part of `output_tokens`.
    #[serde(default)]
    pub reasoning_tokens: u64,
    /// Tokens of the calls that probed the server's features before this call, of prompts and answers together; part of
    /// `input_tokens` and `output_tokens`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub probe_tokens: u64,
    /// Whether the numbers are estimated instead of counted by the provider, as for a call that was cut off.
    #[serde(default)]
    pub estimated: bool,
}

impl Usage {
    /// Creates the usage of a call from the provider's counts, without cached and reasoning tokens.
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            cached_tokens: 0,
            reasoning_tokens: 0,
            probe_tokens: 0,
            estimated: false,
        }
    }

    /// Sets the number of prompt tokens that were read from the provider's cache (default: 0).
    #[must_use]
    pub const fn with_cached(mut self, tokens: u64) -> Self {
        self.cached_tokens = tokens;
        self
    }

    /// Sets the number of reasoning tokens (default: 0).
    #[must_use]
    pub const fn with_reasoning(mut self, tokens: u64) -> Self {
        self.reasoning_tokens = tokens;
        self
    }

    /// Marks all of the tokens as those of a probe (default: none of them).
    ///
    /// ```
    /// use formwork_core::Usage;
    ///
    /// let (call, probe) = (Usage::new(900, 40), Usage::new(30, 6).of_a_probe());
    /// assert_eq!(call.plus(probe).input_tokens, 930);
    /// assert_eq!(call.plus(probe).probe_tokens, 36);
    /// ```
    #[must_use]
    pub const fn of_a_probe(mut self) -> Self {
        self.probe_tokens = self.input_tokens.saturating_add(self.output_tokens);
        self
    }

    /// Sets whether the numbers are estimated (default: `false`).
    #[must_use]
    pub const fn with_estimated(mut self, estimated: bool) -> Self {
        self.estimated = estimated;
        self
    }

    /// Returns the sum of both; it is estimated if one of them is.
    ///
    /// ```
    /// use formwork_core::Usage;
    ///
    /// let sum = Usage::new(900, 40).plus(Usage::new(100, 60).with_cached(80));
    /// assert_eq!(sum, Usage::new(1_000, 100).with_cached(80));
    /// ```
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            probe_tokens: self.probe_tokens.saturating_add(other.probe_tokens),
            estimated: self.estimated || other.estimated,
        }
    }

    /// Estimates the usage of a call from lengths, at four bytes per token. `answered` is the length of the answer in
    /// bytes.
    pub fn estimate(call: &Call, answered: usize) -> Self {
        let asked: usize = call.messages.iter().flat_map(Message::texts).map(str::len).sum();
        Self {
            input_tokens: asked.div_ceil(4) as u64,
            output_tokens: answered.div_ceil(4) as u64,
            estimated: true,
            ..Self::default()
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

/// A whole answer.
///
/// ```
/// use formwork_core::{Completion, Finish, Usage};
///
/// let completion = Completion::new(r#"{"age": 3"#).with_finish(Finish::Length).with_usage(Usage::new(12, 5));
/// assert_eq!((completion.finish, completion.usage.output_tokens), (Finish::Length, 5));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Completion {
    /// The text; in tool mode, the arguments of the tool call that carries the answer.
    pub text: String,
    /// The model's reasoning; empty if the provider does not separate it from the text.
    #[serde(default)]
    pub reasoning: String,
    /// The reason why the model stopped.
    pub finish: Finish,
    /// The tokens of the call.
    pub usage: Usage,
    /// The byte of `text` from which on the provider, not the model, wrote the rest of the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<usize>,
    /// Whether the provider ended values earlier than the schema required: a measure against endless repetition by tiny
    /// models.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restrained: bool,
    /// The model that answered, in the provider's notation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Completion {
    /// Creates an answer that the model ended itself, with no usage.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            reasoning: String::new(),
            finish: Finish::Stop,
            usage: Usage::default(),
            closed_at: None,
            restrained: false,
            model: None,
        }
    }

    /// Sets the reason why the model stopped (default: [`Finish::Stop`]).
    #[must_use]
    pub const fn with_finish(mut self, finish: Finish) -> Self {
        self.finish = finish;
        self
    }

    /// Sets the tokens of the call (default: 0).
    #[must_use]
    pub const fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets the model that answered, in the provider's notation (default: unknown).
    #[must_use]
    pub fn with_model(mut self, model: Option<String>) -> Self {
        self.model = model;
        self
    }

    /// Sets the model's reasoning (default: empty).
    #[must_use]
    pub fn with_reasoning(mut self, reasoning: impl Into<String>) -> Self {
        self.reasoning = reasoning.into();
        self
    }

    /// Appends the next piece of an answer, and returns whether it was the last one.
    pub fn push(&mut self, delta: Delta) -> bool {
        match delta {
            Delta::Text(text) => self.text.push_str(&text),
            Delta::Reasoning(text) => self.reasoning.push_str(&text),
            Delta::End { finish, usage, closed_at, restrained, model } => {
                let (text, reasoning) = (std::mem::take(&mut self.text), std::mem::take(&mut self.reasoning));
                *self = Self { text, reasoning, finish, usage, closed_at, restrained, model };
                return true;
            }
        }
        false
    }

    /// Returns the pieces of the answer as a stream delivers them: reasoning and text if there are any, and the end.
    pub fn into_deltas(self) -> impl Iterator<Item = Delta> + Send + use<> {
        let Self { text, reasoning, finish, usage, closed_at, restrained, model } = self;
        let reasoning = (!reasoning.is_empty()).then_some(Delta::Reasoning(reasoning));
        let text = (!text.is_empty()).then_some(Delta::Text(text));
        let end = Delta::End { finish, usage, closed_at, restrained, model };
        reasoning.into_iter().chain(text).chain([end])
    }
}

/// A piece of an [`Answer`].
///
/// ```
/// use formwork_core::{Completion, Delta};
///
/// let mut completion = Completion::new("");
/// assert!(!completion.push(Delta::Text("{\"age\": 34}".to_owned())));
/// assert_eq!(completion.text, "{\"age\": 34}");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta {
    /// More text of the answer.
    Text(String),
    /// More of the model's reasoning.
    Reasoning(String),
    /// The last piece: the end of the answer.
    End {
        /// The reason why the model stopped.
        finish: Finish,
        /// The tokens of the call.
        usage: Usage,
        /// The byte of the text from which on the provider closed the document; see [`Completion::closed_at`].
        closed_at: Option<usize>,
        /// Whether the provider ended values early; see [`Completion::restrained`].
        restrained: bool,
        /// The model that answered, in the provider's notation.
        model: Option<String>,
    },
}

/// An answer in progress: a stream of [`Delta`]s, the last of which is [`Delta::End`].
///
/// Dropping it stops the call. A stream that ends without [`Delta::End`] was cut off.
///
/// ```
/// use formwork_core::{Call, Fault, Provider};
///
/// async fn text(provider: &dyn Provider, call: &Call) -> Result<String, Fault> {
///     let answer = provider.call(call).await?;
///     Ok(answer.collect().await?.text)
/// }
/// ```
pub struct Answer(Pin<Box<dyn Stream<Item = Result<Delta, Fault>> + Send>>);

impl Answer {
    /// Creates an answer from a stream of its pieces.
    pub fn new(stream: impl Stream<Item = Result<Delta, Fault>> + Send + 'static) -> Self {
        Self(Box::pin(stream))
    }

    /// Waits for the whole answer.
    ///
    /// # Errors
    /// The fault that ended the stream; [`FaultKind::Unreachable`](crate::FaultKind::Unreachable) if the stream ends
    /// without [`Delta::End`].
    pub async fn collect(mut self) -> Result<Completion, Fault> {
        let mut completion = Completion::new("");
        loop {
            match std::future::poll_fn(|cx| Pin::new(&mut self).poll_next(cx)).await {
                Some(Ok(delta)) => {
                    if completion.push(delta) {
                        return Ok(completion);
                    }
                }
                Some(Err(fault)) => return Err(fault),
                None => {
                    return Err(Fault::cut_off("its end marker is missing"));
                }
            }
        }
    }
}

impl From<Completion> for Answer {
    fn from(completion: Completion) -> Self {
        Self::new(Ready(completion.into_deltas()))
    }
}

impl Stream for Answer {
    type Item = Result<Delta, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}

/// A stream of items that are available at once.
struct Ready<I>(I);

impl<I: Iterator<Item = Delta> + Unpin> Stream for Ready<I> {
    type Item = Result<Delta, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}
