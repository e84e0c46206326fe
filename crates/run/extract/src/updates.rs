use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use formwork_core::{
    Ask, CallRecord, Delta, Error, ErrorKind, External, Item, JsonPath, Outcome, Progress, Violation,
};
use futures_core::Stream;
use serde_json::Value;

use crate::items::{Change, SentItems};
use crate::observer::{Next, Observer, Paced, RunId, Started};
use crate::partial::Partial;

/// An event of a run, as an item of [`Updates`].
///
/// ```
/// use formwork_extract::Update;
///
/// fn line<T>(update: &Update<T>) -> Option<String> {
///     match update {
///         Update::Started { attempt, target, .. } => Some(format!("attempt {attempt} of {target}")),
///         Update::Partial(document) => Some(document.value().to_string()),
///         Update::Item(item) => Some(format!("{}: {}", item.path, item.value)),
///         Update::Replaced { path } => Some(format!("{path} was replaced")),
///         _ => None,
///     }
/// }
/// let path = "$.sizes[0]".parse()?;
/// assert_eq!(line::<()>(&Update::Replaced { path }).as_deref(), Some("$.sizes[0] was replaced"));
/// # Ok::<(), formwork_core::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "the large variants come once in a call or run")]
pub enum Update<T> {
    /// A call is about to be made. Discard the texts and partial documents of the previous call.
    Started {
        /// The number of the attempt that the call belongs to, from 1.
        attempt: u32,
        /// The name of the target.
        target: String,
        /// The requested part of the document.
        ask: Ask,
    },
    /// A chunk of the answer: the unchanged text of the model.
    Text(String),
    /// A chunk of the reasoning of the model.
    Reasoning(String),
    /// The partial document of the open call. It is sent only if the call requests the whole document, and only if the type of the
    /// root matches the schema.
    Partial(Partial<T>),
    /// An item of a list is valid: it has just ended, or it is part of the accepted document. Items of a list inside of another list's
    /// item are parts of that item. The item stands until an update [`Replaced`](Self::Replaced) with its path, also when another call
    /// is made. When [`Done`](Self::Done) comes, the items that stand are those of the accepted document.
    Item(Item),
    /// The item at a path, which was sent before, no longer stands: a patch, another answer or a check changed or removed it. Another
    /// [`Item`](Self::Item) with the path follows, unless the item was removed.
    Replaced {
        /// The path of the item.
        path: JsonPath,
    },
    /// A call has ended. The verdict contains its violations or its fault.
    Finished(CallRecord),
    /// The last answer was rejected or the last call failed, and the run makes another call.
    Asking {
        /// The number of the attempt that the call belongs to, from 1. A repeated call keeps the number.
        attempt: u32,
        /// The name of the target.
        target: String,
        /// The requested part of the document.
        ask: Ask,
        /// The delay before the call.
        wait: Duration,
    },
    /// The async checks or the fallback have started.
    ExternalStarted(External),
    /// The async checks or the fallback have ended.
    ExternalFinished {
        /// The part that has ended.
        who: External,
        /// The violations that the validators found.
        violations: Vec<Violation>,
    },
    /// A value was accepted. This is the last update.
    Done(Outcome<T>),
}

/// The updates of one run, as a stream. The last item is [`Update::Done`] or the error.
///
/// Reading the stream drives the run: the next chunk is requested only when all earlier updates were read. Dropping the
/// stream cancels the open call at once. [`next`](Self::next) and [`outcome`](Self::outcome) read the stream without
/// another crate.
///
/// ```
/// use std::sync::Arc;
///
/// use formwork_extract::{Extractor, Update, block_on};
/// use formwork_testkit::Scripted;
/// use serde_json::json;
///
/// let extractor = Extractor::for_document("person", json!({"type": "object"}))
///     .with_target(Arc::new(Scripted::new([r#"{"age": 34}"#])))
///     .build()?;
/// let mut updates = extractor.stream("Maria, 34");
/// let value = block_on(async {
///     while let Some(update) = updates.next().await {
///         if let Update::Done(outcome) = update? {
///             return Ok(Some(outcome.value));
///         }
///     }
///     Ok::<_, formwork_core::Error>(None)
/// })??;
/// assert_eq!(value, Some(json!({"age": 34})));
/// # Ok::<(), formwork_core::Error>(())
/// ```
pub struct Updates<T> {
    tap: Arc<Tap<T>>,
    run: Running<T>,
}

enum Running<T> {
    Going(Pin<Box<dyn Future<Output = Result<Outcome<T>, Error>> + Send>>),
    Ended(Option<Box<Result<Outcome<T>, Error>>>),
}

impl<T: Send> Updates<T> {
    pub(crate) fn new<F>(start: impl FnOnce(Arc<Tap<T>>) -> F) -> Self
    where
        F: Future<Output = Result<Outcome<T>, Error>> + Send + 'static,
    {
        let tap =
            Arc::new(Tap(Mutex::new(Pending { updates: VecDeque::new(), items: SentItems::default() })));
        Self { run: Running::Going(Box::pin(start(Arc::clone(&tap)))), tap }
    }

    /// Returns the next update; `None` after the last one.
    pub async fn next(&mut self) -> Option<Result<Update<T>, Error>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Reads the stream to its end and returns the outcome.
    ///
    /// # Errors
    /// The error of the run; [`ErrorKind::Cancelled`] if the last update was read before.
    pub async fn outcome(mut self) -> Result<Outcome<T>, Error> {
        while let Some(update) = self.next().await {
            if let Update::Done(outcome) = update? {
                return Ok(outcome);
            }
        }
        Err(Error::new(
            ErrorKind::Cancelled,
            "the stream has ended: its last update was read before `outcome` was called",
        ))
    }
}

// No field is pinned in place: the future is in a box of its own.
impl<T> Unpin for Updates<T> {}

impl<T: Send> Stream for Updates<T> {
    type Item = Result<Update<T>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(update) = self.tap.take() {
                return Poll::Ready(Some(Ok(update)));
            }
            match &mut self.run {
                Running::Ended(result) => {
                    return Poll::Ready(result.take().map(|result| result.map(Update::Done)));
                }
                Running::Going(run) => match run.as_mut().poll(cx) {
                    Poll::Ready(result) => self.run = Running::Ended(Some(Box::new(result))),
                    Poll::Pending if self.tap.is_drained() => return Poll::Pending,
                    Poll::Pending => {}
                },
            }
        }
    }
}

formwork_core::debug_fields!(Updates<T> {});

/// Converts the events of an observer into updates.
pub(crate) struct Tap<T>(Mutex<Pending<T>>);

struct Pending<T> {
    updates: VecDeque<Update<T>>,
    items: SentItems,
}

impl<T> Pending<T> {
    fn change(&mut self, changes: impl IntoIterator<Item = Change>) {
        self.updates.extend(changes.into_iter().map(|change| match change {
            Change::Replaced(path) => Update::Replaced { path },
            Change::Sent(item) => Update::Item(item),
        }));
    }
}

impl<T> Tap<T> {
    fn take(&self) -> Option<Update<T>> {
        self.pending().updates.pop_front()
    }

    fn push(&self, update: Update<T>) {
        self.pending().updates.push_back(update);
    }

    fn pending(&self) -> MutexGuard<'_, Pending<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send> Paced for Tap<T> {
    fn is_drained(&self) -> bool {
        self.pending().updates.is_empty()
    }

    fn progress(&self, Progress { snapshot, items }: Progress) {
        let mut pending = self.pending();
        pending.updates.extend(snapshot.map(|snapshot| Update::Partial(Partial::new(snapshot))));
        for item in items {
            let changes = pending.items.add(item);
            pending.change(changes);
        }
    }
}

impl<T: Send> Observer for Tap<T> {
    fn call_started(&self, _: RunId, started: &Started<'_>) {
        self.push(Update::Started {
            attempt: started.attempt,
            target: started.target.to_owned(),
            ask: started.ask.clone(),
        });
    }

    fn delta(&self, _: RunId, delta: &Delta) {
        match delta {
            Delta::Text(text) => self.push(Update::Text(text.clone())),
            Delta::Reasoning(text) => self.push(Update::Reasoning(text.clone())),
            _ => {}
        }
    }

    fn call_finished(&self, _: RunId, call: &CallRecord) {
        self.push(Update::Finished(call.clone()));
    }

    fn asking(&self, _: RunId, next: &Next<'_>) {
        let Next { attempt, target, ask, wait, .. } = *next;
        self.push(Update::Asking { attempt, target: target.to_owned(), ask: ask.clone(), wait });
    }

    fn external_started(&self, _: RunId, who: External, _: &Value) {
        self.push(Update::ExternalStarted(who));
    }

    fn external_finished(&self, _: RunId, who: External, violations: &[Violation], _: Option<&Value>) {
        self.push(Update::ExternalFinished { who, violations: violations.to_vec() });
    }

    fn done(&self, _: RunId, result: &Result<Outcome<Value>, Error>) {
        if let Ok(outcome) = result {
            let mut pending = self.pending();
            let changes = pending.items.accept(&outcome.value);
            pending.change(changes);
        }
    }
}
