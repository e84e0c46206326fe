use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use formwork_core::{
    Answer, Call, Capabilities, Completion, Delta, End, Enforcement, Fault, FaultKind, Finish, Provider,
    Usage,
};
use futures_util::stream;

/// The answer of a [`Scripted`] model to one call.
///
/// ```
/// use formwork_core::FaultKind;
/// use formwork_testkit::{Reply, Scripted};
///
/// let model = Scripted::new([
///     Reply::from(FaultKind::RateLimited),
///     Reply::truncated("{\"name\": \"Mar"),
///     Reply::pieces(["{\"name\": ", "\"Maria\"}"]),
/// ]);
/// # let _ = model;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Reply {
    deltas: Vec<Result<Delta, Fault>>,
    refused: Option<Fault>,
}

impl Reply {
    /// Answers with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::completion(Completion::new(text))
    }

    /// Answers with this completion.
    pub fn completion(completion: Completion) -> Self {
        let deltas = completion.into_deltas().map(Ok).collect();
        Self { deltas, refused: None }
    }

    /// Answers with this text in several pieces.
    pub fn pieces(pieces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let end = Delta::End(End::new(Finish::Stop, Usage::default()));
        let deltas = pieces.into_iter().map(|piece| Delta::Text(piece.into())).chain([end]).map(Ok).collect();
        Self { deltas, refused: None }
    }

    /// Answers with these pieces, as a provider streams them.
    pub fn deltas(deltas: impl IntoIterator<Item = Delta>) -> Self {
        Self { deltas: deltas.into_iter().map(Ok).collect(), refused: None }
    }

    /// Declines to answer, with this reason.
    pub fn refusal(reason: impl Into<String>) -> Self {
        Self::completion(Completion::new(reason).with_finish(Finish::Refused))
    }

    /// Answers with this text, which the token limit cuts off.
    pub fn truncated(text: impl Into<String>) -> Self {
        Self::completion(Completion::new(text).with_finish(Finish::Length))
    }

    /// Fails with this fault, without a response.
    pub fn fault(fault: Fault) -> Self {
        Self { deltas: Vec::new(), refused: Some(fault) }
    }

    /// Ends the answer with this fault instead of its end.
    pub fn broken_off(mut self, fault: Fault) -> Self {
        self.deltas.retain(|delta| !matches!(delta, Ok(Delta::End(_))));
        self.deltas.push(Err(fault));
        self
    }

    /// Ends the stream without its end marker.
    pub fn without_end(mut self) -> Self {
        self.deltas.retain(|delta| !matches!(delta, Ok(Delta::End(_))));
        self
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<FaultKind> for Reply {
    fn from(kind: FaultKind) -> Self {
        Self::fault(Fault::new(kind, "scripted"))
    }
}

/// A provider that answers from a script, one [`Reply`] for each call, and records the calls.
///
/// After the last reply it repeats that one. It promises every capability by default. It counts a token per four bytes of prompt
/// and answer for a reply without usage.
///
/// ```
/// use formwork_core::{Capabilities, FaultKind, Provider};
/// use formwork_testkit::{Reply, Scripted};
///
/// let model = Scripted::new([Reply::from(FaultKind::Overloaded), Reply::from("{}")])
///     .with_name("flaky")
///     .with_capabilities(Capabilities::default());
/// assert_eq!((model.name(), model.calls().len()), ("flaky", 0));
/// ```
#[derive(Debug)]
#[must_use]
pub struct Scripted {
    name: String,
    capabilities: Capabilities,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    replies: VecDeque<Reply>,
    calls: Vec<Call>,
}

impl Scripted {
    /// Creates a model that gives these replies in order. Without any it is unreachable.
    pub fn new(replies: impl IntoIterator<Item = impl Into<Reply>>) -> Self {
        let capabilities = Capabilities::new(Enforcement::Schema)
            .with_temperature()
            .with_top_p()
            .with_seed()
            .with_late_system();
        let replies = replies.into_iter().map(Into::into).collect();
        Self {
            name: "scripted".to_owned(),
            capabilities,
            state: Mutex::new(State { replies, calls: Vec::new() }),
        }
    }

    formwork_core::setters! {
        /// Sets the name of the provider (default: `scripted`).
        pub fn with_name(name: impl Into<String>);

        /// Sets the capabilities that it promises (default: all).
        pub fn with_capabilities(capabilities: Capabilities);
    }

    /// Returns every call so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).calls.clone()
    }
}

#[async_trait]
impl Provider for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.calls.push(call.clone());
        let next =
            if state.replies.len() > 1 { state.replies.pop_front() } else { state.replies.front().cloned() };
        let Some(reply) = next else { return Err(Fault::new(FaultKind::Unreachable, "the script is empty")) };
        match reply.refused {
            Some(fault) => Err(fault),
            None => Ok(Answer::new(stream::iter(counted(call, reply.deltas)))),
        }
    }
}

/// Adds the usage to the end of an answer that has none.
fn counted(call: &Call, mut deltas: Vec<Result<Delta, Fault>>) -> Vec<Result<Delta, Fault>> {
    let length = |delta: &Result<Delta, Fault>| match delta {
        Ok(Delta::Text(text) | Delta::Reasoning(text)) => text.len(),
        _ => 0,
    };
    let answered = deltas.iter().map(length).sum();
    if let Some(Ok(Delta::End(end))) = deltas.last_mut()
        && end.usage == Usage::default()
    {
        end.usage = end.usage.or_estimate(call, answered).with_estimated(false);
    }
    deltas
}
