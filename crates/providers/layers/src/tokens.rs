use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use formwork_core::{Answer, Call, Delta, End, Fault, Layer, SharedProvider, Usage};
use futures_core::Stream;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::around::{Around, around};

/// Limits the tokens of the calls that begin within any minute, prompts and answers together. The others wait for their turn,
/// in order.
///
/// A call reserves an estimate: one token for four bytes of its prompt, and its token limit or, without one, the mean of the
/// answers so far (256 tokens at first). The end of the answer settles the reservation with the tokens that were really used.
/// A call that fails, or is dropped before its answer ends, gives back the answer's share and keeps the prompt's, which the
/// server may have read. A call that is expected to use more than the limit begins once no other call counts.
///
/// Every provider that one value wraps shares the limit. A run's deadline counts the time that a call waits.
///
/// ```
/// use std::sync::Arc;
///
/// use formwork_core::Layer;
/// use formwork_layers::Tokens;
///
/// let limited = Tokens::per_minute(30_000).wrap(Arc::new(formwork_testkit::Scripted::new(["{}"])));
/// assert_eq!(limited.name(), "scripted");
/// ```
#[derive(Clone)]
pub struct Tokens(Arc<Gate>);

/// The expected tokens of an answer before any answer has ended.
const FIRST_ANSWER: u64 = 256;

/// The time that a call counts.
const MINUTE: Duration = Duration::from_secs(60);

struct Gate {
    per_minute: u64,
    /// The calls that wait stand in the queue of this mutex, which is fair.
    queue: tokio::sync::Mutex<()>,
    /// Wakes the first of them when a call is settled.
    settled: Notify,
    log: Mutex<Log>,
}

/// The calls of the last minute.
struct Log {
    calls: VecDeque<Entry>,
    next: u64,
    /// The mean of the answers, in which the newest counts an eighth.
    answer: u64,
}

struct Entry {
    id: u64,
    began: Instant,
    tokens: u64,
}

impl Tokens {
    /// Limits calls to this number of tokens within any minute (at least 1).
    pub fn per_minute(tokens: u64) -> Self {
        let log = Log { calls: VecDeque::new(), next: 0, answer: FIRST_ANSWER };
        let (queue, settled) = (tokio::sync::Mutex::new(()), Notify::new());
        Self(Arc::new(Gate { per_minute: tokens.max(1), queue, settled, log: Mutex::new(log) }))
    }
}

impl Gate {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the tokens of a call are free, and takes them.
    async fn reserve(self: &Arc<Self>, call: &Call) -> Reserved {
        let _first = self.queue.lock().await;
        let prompt = Usage::estimate(call, 0).input_tokens;
        loop {
            let wait = {
                let mut log = self.log();
                let tokens = prompt + call.max_tokens.map_or(log.answer, u64::from);
                match log.wait(tokens, self.per_minute) {
                    None => return Reserved { gate: Arc::clone(self), id: log.enter(tokens), prompt },
                    Some(wait) => wait,
                }
            };
            // After the notification and after the time-out, the budget is checked again.
            _ = timeout(wait, self.settled.notified()).await;
        }
    }

    fn set(&self, id: u64, change: impl FnOnce(&mut u64)) {
        let mut log = self.log();
        if let Some(entry) = log.calls.iter_mut().find(|entry| entry.id == id) {
            change(&mut entry.tokens);
        }
        self.settled.notify_one();
    }
}

impl Log {
    /// Returns the time until this number of tokens is free, as far as known; `None` if they are free now.
    fn wait(&mut self, tokens: u64, per_minute: u64) -> Option<Duration> {
        let now = Instant::now();
        let counts = |entry: &Entry| now.saturating_duration_since(entry.began) < MINUTE;
        while self.calls.front().is_some_and(|entry| !counts(entry)) {
            self.calls.pop_front();
        }
        let mut used: u64 = self.calls.iter().map(|entry| entry.tokens).sum();
        let mut until = None;
        for entry in &self.calls {
            if used == 0 || used.saturating_add(tokens) <= per_minute {
                break;
            }
            used -= entry.tokens;
            until = Some(entry.began + MINUTE);
        }
        until.map(|until| until.saturating_duration_since(now))
    }

    fn enter(&mut self, tokens: u64) -> u64 {
        let id = self.next;
        self.next += 1;
        self.calls.push_back(Entry { id, began: Instant::now(), tokens });
        id
    }
}

/// The tokens of one call. Dropping it gives back those of an answer that did not end.
struct Reserved {
    gate: Arc<Gate>,
    id: u64,
    prompt: u64,
}

impl Reserved {
    /// Replaces the expected number of tokens by the number that the call used. A provider that counts nothing leaves the estimate in
    /// force.
    fn settle(mut self, usage: Usage) {
        self.prompt = u64::MAX;
        if usage != Usage::default() {
            let mut log = self.gate.log();
            log.answer = (log.answer * 7 + usage.output_tokens) / 8;
            drop(log);
            self.gate.set(self.id, |tokens| *tokens = usage.input_tokens.saturating_add(usage.output_tokens));
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.gate.set(self.id, |tokens| *tokens = self.prompt.min(*tokens));
    }
}

impl Layer for Tokens {
    fn wrap(&self, inner: SharedProvider) -> SharedProvider {
        around(inner, self.clone())
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("per_minute", &self.0.per_minute).finish_non_exhaustive()
    }
}

impl Around for Tokens {
    async fn call(&self, inner: &SharedProvider, call: &Call) -> Result<Answer, Fault> {
        let reserved = self.0.reserve(call).await;
        let answer = inner.call(call).await?;
        Ok(Answer::new(Counted { answer, reserved: Some(reserved) }))
    }
}

/// An answer whose end settles its reservation.
struct Counted {
    answer: Answer,
    reserved: Option<Reserved>,
}

impl Stream for Counted {
    type Item = Result<Delta, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.answer).poll_next(cx);
        if let Poll::Ready(Some(Ok(Delta::End(End { usage, .. })))) = &next
            && let Some(reserved) = self.reserved.take()
        {
            reserved.settle(*usage);
        }
        next
    }
}
