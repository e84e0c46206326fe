use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Enforcement, Fault, Lowered, Message, Part, Rule, Time, Tool};

/// How a model is asked to choose its tokens. What is `None` is left to the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Sampling {
    /// 0 takes the most probable token; 1 samples from the model's own distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Samples from the most probable tokens that together have this probability, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The same seed asks for the same answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl Sampling {
    /// Sets the temperature (default: the provider's), from 0 on.
    #[must_use]
    pub const fn with_temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the probability of the tokens that are sampled from, 0 to 1 (default: the provider's).
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

/// One request to a model, in no provider's dialect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Call {
    /// The dialogue, complete: the schema is written into it already where it has to be.
    pub messages: Vec<Message>,
    /// The name of the schema.
    pub schema_name: String,
    /// How the schema is to be enforced, and the schema as this provider takes it.
    pub lowered: Arc<Lowered>,
    /// Rules that a provider with [`Capabilities::rules`](crate::Capabilities) keeps to while decoding.
    pub rules: Vec<Rule>,
    /// How to choose tokens; only what the provider promises to take.
    pub sampling: Sampling,
    /// The most tokens that the answer may have; the provider's own limit if `None`.
    pub max_tokens: Option<u32>,
    /// When the answer has to be there.
    pub deadline: Option<Time>,
    /// Tools that the model may call.
    pub tools: Vec<Tool>,
}

impl Call {
    /// A call with this dialogue and schema: named `answer`, without rules, tools, a limit or a deadline, with sampling left to
    /// the provider.
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

    /// Sets how to choose tokens (default: as the provider does).
    #[must_use]
    pub const fn with_sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// Sets the most tokens of the answer (default: the provider's own limit).
    #[must_use]
    pub const fn with_max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// Sets when the answer has to be there (default: at no time).
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Option<Time>) -> Self {
        self.deadline = deadline;
        self
    }

    /// How the schema is to be enforced.
    pub fn enforcement(&self) -> Enforcement {
        self.lowered.enforcement
    }

    /// The schema to enforce, if this call enforces one.
    pub fn schema(&self) -> Option<&Value> {
        self.lowered.schema.as_ref()
    }

    /// Returns the most tokens that its prompt can come to, with the schema: a token has at least one byte. A picture counts
    /// 6,000 tokens, which is more than the vendors' tables come to for the largest pictures that they take; a message
    /// counts 16 more for what stands around it.
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
    // Neither the writer nor a JSON value fails.
    _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finish {
    /// It was done.
    Stop,
    /// It ran into the limit of tokens.
    Length,
    /// It declined to answer.
    Refused,
    /// A filter removed the answer.
    Filtered,
    /// It wants a tool called.
    ToolCall,
    /// We stopped it.
    Stopped,
}

/// The tokens that a call used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Tokens of the answer, reasoning included.
    pub output_tokens: u64,
    /// Of the prompt's tokens, those that were kept from an earlier call.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Of the answer's tokens, those spent on reasoning.
    #[serde(default)]
    pub reasoning_tokens: u64,
    /// Not counted by the provider but estimated, as for a call that was broken off.
    #[serde(default)]
    pub estimated: bool,
}

impl Usage {
    /// So many tokens of prompt and answer, as the provider counted them: none of them cached, none spent on reasoning.
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self { input_tokens, output_tokens, cached_tokens: 0, reasoning_tokens: 0, estimated: false }
    }

    /// Sets how many tokens of the prompt were kept from an earlier call (default: none).
    #[must_use]
    pub const fn with_cached(mut self, tokens: u64) -> Self {
        self.cached_tokens = tokens;
        self
    }

    /// Sets how many tokens of the answer were spent on reasoning (default: none).
    #[must_use]
    pub const fn with_reasoning(mut self, tokens: u64) -> Self {
        self.reasoning_tokens = tokens;
        self
    }

    /// Sets whether the provider did not count all of them (default: `false`).
    #[must_use]
    pub const fn with_estimated(mut self, estimated: bool) -> Self {
        self.estimated = estimated;
        self
    }

    /// Both together; estimated if one of them is.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            estimated: self.estimated || other.estimated,
        }
    }

    /// A guess from lengths: one token for four bytes.
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

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Completion {
    /// The text: in tool mode the arguments of the tool that carries the answer.
    pub text: String,
    /// The model's reasoning, where the provider tells it apart; empty otherwise.
    #[serde(default)]
    pub reasoning: String,
    /// Why it stopped.
    pub finish: Finish,
    /// The tokens that it used up.
    pub usage: Usage,
    /// The byte of `text` from which on the provider closed the document without the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<usize>,
    /// Whether the provider kept the model from writing on where the schema would have let it: a policy for tiny models,
    /// which repeat themselves without end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restrained: bool,
    /// The model that answered, as the provider calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Completion {
    /// An answer that the model ended itself, with nothing known of its cost.
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

    /// Sets why the model stopped (default: [`Finish::Stop`]).
    #[must_use]
    pub const fn with_finish(mut self, finish: Finish) -> Self {
        self.finish = finish;
        self
    }

    /// Sets the tokens that it used up (default: none).
    #[must_use]
    pub const fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Sets the model that answered, as the provider calls it (default: not known).
    #[must_use]
    pub fn with_model(mut self, model: Option<String>) -> Self {
        self.model = model;
        self
    }

    /// Sets the model's reasoning (default: none that is known).
    #[must_use]
    pub fn with_reasoning(mut self, reasoning: impl Into<String>) -> Self {
        self.reasoning = reasoning.into();
        self
    }

    /// Takes the next piece of an answer; returns whether it was the last one.
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

    /// Returns its pieces, as a stream brings them: the reasoning and the text where there are any, and the end.
    pub fn into_deltas(self) -> impl Iterator<Item = Delta> + Send + use<> {
        let Self { text, reasoning, finish, usage, closed_at, restrained, model } = self;
        let reasoning = (!reasoning.is_empty()).then_some(Delta::Reasoning(reasoning));
        let text = (!text.is_empty()).then_some(Delta::Text(text));
        let end = Delta::End { finish, usage, closed_at, restrained, model };
        reasoning.into_iter().chain(text).chain([end])
    }
}

/// A piece of an [`Answer`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta {
    /// More text of the answer.
    Text(String),
    /// More of what the model thinks.
    Reasoning(String),
    /// The last piece: how it ended.
    End {
        /// Why the model stopped.
        finish: Finish,
        /// The tokens that it used up.
        usage: Usage,
        /// The byte of the answer's text from which on the provider closed the document without the model.
        closed_at: Option<usize>,
        /// Whether the provider kept the model from writing on; see [`Completion::restrained`].
        restrained: bool,
        /// The model that answered, as the provider calls it.
        model: Option<String>,
    },
}

/// An answer as it comes in: a stream of [`Delta`]s, the last of which is [`Delta::End`].
///
/// Dropping it stops the call. A stream that ends without [`Delta::End`] was cut off.
pub struct Answer(Pin<Box<dyn Stream<Item = Result<Delta, Fault>> + Send>>);

impl Answer {
    /// The answer that a stream brings.
    pub fn new(stream: impl Stream<Item = Result<Delta, Fault>> + Send + 'static) -> Self {
        Self(Box::pin(stream))
    }

    /// Waits for all of it.
    ///
    /// # Errors
    /// The fault that broke it off; [`FaultKind::Unreachable`](crate::FaultKind::Unreachable) if it ends without its end.
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

/// A stream of what is there already.
struct Ready<I>(I);

impl<I: Iterator<Item = Delta> + Unpin> Stream for Ready<I> {
    type Item = Result<Delta, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}
