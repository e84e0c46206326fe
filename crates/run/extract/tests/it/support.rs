//! A type to extract, a dialect that does not change the schema, and models that misbehave.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use formwork_core::*;
use formwork_extract::{Backend, Extractor, ExtractorBuilder};
use formwork_testkit::VirtualClock;
use futures_core::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub(crate) struct Person {
    pub(crate) name: String,
    #[schemars(range(max = 150))]
    pub(crate) age: u8,
}

pub(crate) const MARIA: &str = r#"{"name": "Maria", "age": 34}"#;
pub(crate) const TOO_OLD: &str = r#"{"name": "Maria", "age": 340}"#;
pub(crate) const TEXT: &str = "Maria, 34, moved to Lisbon.";

pub(crate) fn maria() -> Person {
    Person { name: "Maria".to_owned(), age: 34 }
}

/// A dialect that sends the unchanged schema.
#[derive(Debug)]
pub(crate) struct AsIs;

impl Lower for AsIs {
    fn name(&self) -> &str {
        "as-is"
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement::Schema
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        let (schema, enforcement) = (Some(request.schema.clone()), Enforcement::Schema);
        Ok(Lowered::new(enforcement, schema))
    }
}

pub(crate) fn backend(provider: &Arc<impl Provider + 'static>) -> Backend {
    Backend::from(Arc::clone(provider)).with_mode(Arc::new(AsIs))
}

/// Returns the builder of an extractor of persons with a virtual clock.
pub(crate) fn persons(
    provider: &Arc<impl Provider + 'static>,
) -> (ExtractorBuilder<Person>, Arc<VirtualClock>) {
    let clock = Arc::new(VirtualClock::starting_at(Time(1_000)));
    let builder = Extractor::<Person>::builder().with_target(backend(provider)).with_clock(clock.clone());
    (builder, clock)
}

pub(crate) fn faults(calls: &[CallRecord]) -> Vec<FaultKind> {
    let faults = calls.iter().filter_map(|call| match &call.verdict {
        CallResult::Failed { failure: Failure::Fault(fault) } => Some(fault.kind),
        _ => None,
    });
    faults.collect()
}

/// Returns the class of each failure, and `accepted` or `cancelled` for other calls.
pub(crate) fn classes(calls: &[CallRecord]) -> Vec<&'static str> {
    let classes = calls.iter().map(|call| match &call.verdict {
        CallResult::Accepted => "accepted",
        CallResult::Cancelled => "cancelled",
        CallResult::Probe => "probe",
        CallResult::Failed { failure } => failure.class(),
    });
    classes.collect()
}

/// A model that streams some chunks at once and then never ends, in one of several ways.
#[derive(Debug)]
pub(crate) struct Endless {
    pub(crate) pieces: Vec<&'static str>,
    pub(crate) then: Then,
    pub(crate) dropped: Arc<AtomicBool>,
    capabilities: Capabilities,
}

#[derive(Debug, Clone)]
pub(crate) enum Then {
    /// The answer never begins.
    NeverBegin,
    /// The stream stalls.
    Hang,
    /// The stream repeats a chunk, one per millisecond.
    Repeat(&'static str, Arc<VirtualClock>),
    /// The stream stalls until its own time limit.
    TimeOut(Duration, Arc<VirtualClock>),
}

impl Endless {
    pub(crate) fn new(pieces: &[&'static str], then: Then) -> Arc<Self> {
        let capabilities = Capabilities::new(Enforcement::Schema);
        Arc::new(Self { pieces: pieces.to_vec(), then, dropped: Arc::default(), capabilities })
    }
}

#[async_trait::async_trait]
impl Provider for Endless {
    fn name(&self) -> &str {
        "endless"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, _: &Call) -> Result<Answer, Fault> {
        let open = Open(Arc::clone(&self.dropped));
        if matches!(self.then, Then::NeverBegin) {
            std::future::pending::<()>().await;
        }
        let pieces = self.pieces.clone().into_iter();
        Ok(Answer::new(EndlessAnswer { pieces, then: self.then.clone(), _open: open }))
    }
}

struct EndlessAnswer {
    pieces: std::vec::IntoIter<&'static str>,
    then: Then,
    _open: Open,
}

impl Stream for EndlessAnswer {
    type Item = Result<Delta, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match (self.pieces.next(), &self.then) {
            (Some(piece), _) => Poll::Ready(Some(Ok(Delta::Text(piece.to_owned())))),
            (None, Then::Repeat(piece, clock)) => {
                clock.advance(Duration::from_millis(1));
                Poll::Ready(Some(Ok(Delta::Text((*piece).to_owned()))))
            }
            (None, Then::TimeOut(after, clock)) => {
                clock.advance(*after);
                Poll::Ready(Some(Err(Fault::new(FaultKind::Timeout, "no next piece in time"))))
            }
            (None, _) => Poll::Pending,
        }
    }
}

/// Reports when a call is dropped.
struct Open(Arc<AtomicBool>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
