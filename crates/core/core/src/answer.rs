use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Fault, LogProb, Original, RateLimit, Usage};

/// The reason why a model stopped.
///
/// A reason is a claim of the server and no proof: whether a document is complete is decided by its text. In JSON it is a string:
/// `"stop"`, or the server's own word for [`Finish::Other`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finish {
    /// The model ended its answer.
    #[default]
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
    /// The server gave a reason that its codec does not know, cut at 100 bytes, or none (an empty text).
    #[serde(untagged)]
    Other(Box<str>),
}

/// The maximum length of [`Finish::Other`], in bytes.
const MAX_REASON: usize = 100;

impl Finish {
    /// Creates the reason for a word that the codec does not know; an empty word for a missing reason. It is cut at 100 bytes.
    ///
    /// ```
    /// assert_eq!(formwork_core::Finish::other("pause_turn").name(), "pause_turn");
    /// ```
    pub fn other(reason: &str) -> Self {
        Self::Other(reason.get(..reason.floor_char_boundary(MAX_REASON)).unwrap_or_default().into())
    }

    /// Returns the name in JSON: `tool_call`; the server's own word for [`Finish::Other`].
    pub fn name(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Refused => "refused",
            Self::Filtered => "filtered",
            Self::ToolCall => "tool_call",
            Self::Stopped => "stopped",
            Self::Other(reason) => reason,
        }
    }

    /// Returns whether the server says that the model ended its answer by itself: [`Finish::Stop`] or [`Finish::ToolCall`].
    pub const fn is_by_model(&self) -> bool {
        matches!(self, Self::Stop | Self::ToolCall)
    }

    /// Returns the worse one of two reasons that a server gave for one answer: a refusal before a limit, a limit before an unknown
    /// reason, and that before an ordinary end.
    ///
    /// ```
    /// use formwork_core::Finish;
    ///
    /// assert_eq!(Finish::Length.worse(Finish::Stop), Finish::Length);
    /// assert_eq!(Finish::Stop.worse(Finish::other("unload")), Finish::other("unload"));
    /// ```
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        if other.rank() > self.rank() { other } else { self }
    }

    const fn rank(&self) -> u8 {
        match self {
            Self::Stop => 0,
            Self::ToolCall => 1,
            Self::Other(_) => 2,
            Self::Stopped => 3,
            Self::Length => 4,
            Self::Filtered => 5,
            Self::Refused => 6,
        }
    }
}

/// A call of one of [`Call::tools`](crate::Call::tools), as the model wrote it.
///
/// ```
/// use formwork_core::{Completion, Delta, ToolCall};
///
/// let mut completion = Completion::new("");
/// completion.push(Delta::ToolCall(ToolCall::new("call_1", "weather", r#"{"city": "Lisbon"}"#)));
/// assert_eq!(completion.tool_calls[0].name, "weather");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The provider's identifier of this call; empty if it has none.
    pub id: String,
    /// The tool's name; a model may invent one.
    pub name: String,
    /// The arguments: JSON if the model made no mistake.
    pub arguments: String,
}

impl ToolCall {
    /// Creates a call.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), arguments: arguments.into() }
    }
}

/// A whole answer.
///
/// ```
/// use formwork_core::{Completion, Finish, Usage};
///
/// let completion = Completion::new(r#"{"age": 3"#).with_finish(Finish::Length).with_usage(Usage::new(12, 5));
/// assert_eq!((completion.finish, completion.usage.output_tokens), (Finish::Length, 5));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Completion {
    /// The text; in tool mode, the arguments of the tool call that carries the answer.
    pub text: String,
    /// The model's reasoning; empty if the provider does not separate it from the text.
    #[serde(default)]
    pub reasoning: String,
    /// The calls of tools that the model requests beside or instead of a text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The turn with the tool calls in the API's own form, if it must be sent back like that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Box<Original>>,
    /// Remarks of layers and providers on this call, one sentence each: a weaker mode, a part of the answer that was not used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The tokens of the text with their log probabilities; empty if the provider does not return them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_probs: Vec<LogProb>,
    /// The reason why the model stopped.
    pub finish: Finish,
    /// The tokens of the call.
    pub usage: Usage,
    /// The byte of `text` from which on the provider, not the model, wrote the rest of the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<usize>,
    /// Whether the provider ended values that the schema allows to go on: a measure against endless repetition by tiny
    /// models.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restrained: bool,
    /// The model that answered, in the provider's notation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tokens of the calls before this one, which probed the server or requested a part of the document, and are not part of
    /// `usage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Box<Usage>>,
    /// The rate limits that the headers of the response report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<RateLimit>,
}

impl Completion {
    /// Creates an answer that the model ended itself, with no usage.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    crate::setters! {
        /// Sets the reason why the model stopped (default: [`Finish::Stop`]).
        #[must_use]
        pub fn with_finish(finish: Finish);
        /// Sets the tokens of the call (default: 0).
        #[must_use]
        pub const fn with_usage(usage: Usage);
        /// Sets the model that answered, in the provider's notation (default: unknown).
        #[must_use]
        pub fn with_model(model: Option<String>);
        /// Sets the model's reasoning (default: empty).
        #[must_use]
        pub fn with_reasoning(reasoning: impl Into<String>);
        /// Sets the rate limits that the headers of the response report (default: none).
        #[must_use]
        pub fn with_limits(limits: Vec<RateLimit>);
    }

    /// Returns the part of the text that the model wrote.
    pub(crate) fn written(&self) -> &str {
        let end = self.closed_at.map_or(self.text.len(), |at| self.text.floor_char_boundary(at));
        self.text.get(..end).unwrap_or_default()
    }

    /// Appends the next piece of an answer, and returns whether it was the last one.
    pub fn push(&mut self, delta: Delta) -> bool {
        match delta {
            Delta::Text(text) => append(&mut self.text, text),
            Delta::Reasoning(text) => append(&mut self.reasoning, text),
            Delta::ToolCall(call) => self.tool_calls.push(call),
            Delta::Original(original) => self.original = Some(original),
            Delta::Note(note) => self.notes.push(note),
            Delta::Body(_) => {}
            Delta::LogProbs(more) => self.log_probs.extend(more),
            Delta::Probe { usage } => {
                self.probe = Some(Box::new(self.probe.take().map_or(usage, |before| before.plus(usage))));
            }
            Delta::Usage(usage) => self.usage = usage,
            Delta::End(End { finish, usage, closed_at, restrained, model, limits }) => {
                (self.finish, self.usage, self.model, self.limits) = (finish, usage, model, limits);
                (self.closed_at, self.restrained) = (closed_at, restrained);
                return true;
            }
        }
        false
    }

    /// Returns the pieces of the answer as a stream delivers them: probe, reasoning, text and calls of tools if there are any, and the
    /// end.
    pub fn into_deltas(self) -> impl Iterator<Item = Delta> + Send + use<> {
        let Self {
            text,
            reasoning,
            tool_calls,
            original,
            notes,
            log_probs,
            finish,
            usage,
            closed_at,
            restrained,
            model,
            probe,
            limits,
        } = self;
        let probe = probe.map(|usage| Delta::Probe { usage: *usage });
        let reasoning = (!reasoning.is_empty()).then_some(Delta::Reasoning(reasoning));
        let text = (!text.is_empty()).then_some(Delta::Text(text));
        let calls = tool_calls.into_iter().map(Delta::ToolCall);
        let original = original.map(Delta::Original);
        let notes = notes.into_iter().map(Delta::Note);
        let log_probs = (!log_probs.is_empty()).then_some(Delta::LogProbs(log_probs));
        let end = Delta::End(End { finish, usage, closed_at, restrained, model, limits });
        probe
            .into_iter()
            .chain(reasoning)
            .chain(text)
            .chain(calls)
            .chain(original)
            .chain(notes)
            .chain(log_probs)
            .chain([end])
    }
}

/// Appends a piece. The first one is moved: in a response that is not streamed, it is the whole text.
fn append(text: &mut String, more: String) {
    if text.is_empty() {
        *text = more;
    } else {
        text.push_str(&more);
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
    /// More tokens of the text with their log probabilities, which may come after the text.
    LogProbs(Vec<LogProb>),
    /// A whole call of a tool.
    ToolCall(ToolCall),
    /// The whole turn with its tool calls, after the last of them; see [`Completion::original`].
    Original(Box<Original>),
    /// A remark on the call; see [`Completion::notes`].
    Note(String),
    /// More bytes of the body of the response, before the deltas that they hold; only for calls with a
    /// [client's request](crate::Call::client).
    Body(Vec<u8>),
    /// Calls were made before this one; see [`Completion::probe`].
    Probe {
        /// Their tokens.
        usage: Usage,
    },
    /// The tokens that the server has reported before the end, for an answer that breaks off. The end has those of the whole call.
    Usage(Usage),
    /// The last piece: the end of the answer.
    End(End),
}

/// The end of an [`Answer`].
///
/// ```
/// use formwork_core::{Completion, Delta, End, Finish, Usage};
///
/// let mut completion = Completion::new("{}");
/// completion.push(Delta::End(End::new(Finish::Length, Usage::new(31, 9))));
/// assert_eq!(completion.finish, Finish::Length);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct End {
    /// The reason why the model stopped.
    pub finish: Finish,
    /// The tokens of the call.
    pub usage: Usage,
    /// The byte of the text from which on the provider closed the document (default: `None`); see [`Completion::closed_at`].
    pub closed_at: Option<usize>,
    /// Whether the provider ended values early (default: `false`); see [`Completion::restrained`].
    pub restrained: bool,
    /// The model that answered, in the provider's notation (default: unknown).
    pub model: Option<String>,
    /// The rate limits that the headers of the response report (default: none).
    pub limits: Vec<RateLimit>,
}

impl End {
    /// Creates the end of an answer that the provider neither closed nor shortened.
    pub const fn new(finish: Finish, usage: Usage) -> Self {
        Self { finish, usage, closed_at: None, restrained: false, model: None, limits: Vec::new() }
    }

    crate::setters! {
        /// Sets the model that answered, in the provider's notation (default: unknown).
        #[must_use]
        pub fn with_model(model: Option<String>);
        /// Sets the byte of the text from which on the provider closed the document (default: `None`).
        #[must_use]
        pub const fn with_closed_at(closed_at: Option<usize>);
        /// Sets whether the provider ended values early (default: `false`).
        #[must_use]
        pub const fn with_restrained(restrained: bool);
    }
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

crate::debug_fields!(Answer {});

/// A stream of items that are available at once.
struct Ready<I>(I);

impl<I: Iterator<Item = Delta> + Unpin> Stream for Ready<I> {
    type Item = Result<Delta, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().map(Ok))
    }
}
