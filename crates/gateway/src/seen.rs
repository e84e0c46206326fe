//! A request as logs, metrics and traces see it: one line of the log for each, when it is over.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::HeaderMap;
use axum::response::Response;
use formwork_core::Time;
use formwork_ledger::{RecordId, RunOutcome, RunRecord, format_usd};
use formwork_serve::RequestId;
use hyper::body::{Frame, SizeHint};

use crate::access::{Client, now};
use crate::metrics::Metrics;
use crate::options::Options;
use crate::trace;

tokio::task_local! {
    /// The request that the task works on.
    static SEEN: Arc<Seen>;
}

/// The status of requests whose client disconnected before there was a response, in logs and metrics.
const DISCONNECTED: u16 = 499;

/// The message of a run whose client disconnected.
pub(crate) const LEFT: &str = "the client left";

/// A request in progress. The log gets its line when the last part of the request is over: its response, and the record of its run.
pub(crate) struct Seen {
    metrics: Arc<Metrics>,
    /// Tells a collector of a request that came to no run.
    refuse: Option<Box<Refused>>,
    pub(crate) run: RecordId,
    pub(crate) request: RequestId,
    protocol: &'static str,
    method: &'static str,
    path: String,
    trace: HeaderMap,
    start: Instant,
    started: Time,
    facts: Mutex<Facts>,
}

/// Gets a request that came to no run, and its status.
pub(crate) type Refused = dyn Fn(&Seen, u16) + Send + Sync;

/// The parts of a request that become known while it is answered.
#[derive(Debug, Default)]
struct Facts {
    status: Option<u16>,
    problem: Option<String>,
    key: String,
    /// The model as the client names it.
    asked: String,
    /// The time until the head of the response, the first part of the answer in its body, and its end.
    head: Option<Duration>,
    first: Option<Duration>,
    took: Option<Duration>,
    ran: Option<Ran>,
}

/// The run of a request.
#[derive(Debug)]
struct Ran {
    contract: Option<String>,
    target: String,
    model: String,
    outcome: &'static str,
    /// The message of a run that failed; the outcome without one.
    problem: Option<String>,
    calls: usize,
    input_tokens: u64,
    output_tokens: u64,
    micro_usd: Option<u64>,
}

impl Seen {
    /// Returns a request that begins now.
    pub(crate) fn new(
        metrics: &Arc<Metrics>,
        refuse: Option<Box<Refused>>,
        request: RequestId,
        (protocol, method, path): (&'static str, &'static str, &str),
        trace: HeaderMap,
    ) -> Arc<Self> {
        Arc::new(Self {
            metrics: Arc::clone(metrics),
            refuse,
            run: RecordId::next(),
            request,
            protocol,
            method,
            // A path is ASCII.
            path: path.get(..64).unwrap_or(path).to_owned(),
            trace,
            start: Instant::now(),
            started: now(),
            facts: Mutex::default(),
        })
    }

    /// Works on the request in a task that [`Seen::current`] names it in.
    pub(crate) async fn scope<F: Future>(self: &Arc<Self>, work: F) -> F::Output {
        SEEN.scope(Arc::clone(self), work).await
    }

    /// Returns the request that this task works on; `None` outside of the service's routes.
    pub(crate) fn current() -> Option<Arc<Self>> {
        SEEN.try_with(Arc::clone).ok()
    }

    /// Returns the headers of the trace that the request belongs to.
    pub(crate) const fn trace(&self) -> &HeaderMap {
        &self.trace
    }

    fn note(&self, note: impl FnOnce(&mut Facts)) {
        note(&mut self.facts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Notes the head of the response, and watches its body.
    pub(crate) fn answered(self: Arc<Self>, response: Response, problem: Option<String>) -> Response {
        let status = response.status().as_u16();
        let head = self.start.elapsed();
        self.metrics.request(self.protocol, self.method, status);
        self.note(|facts| (facts.status, facts.head, facts.problem) = (Some(status), Some(head), problem));
        let begun = response.extensions().get().cloned();
        response.map(|body| Body::new(Watched { body, begun, seen: self }))
    }

    /// Notes the key of the client.
    pub(crate) fn asked_by(&self, client: &Client) {
        if client.0.is_some() {
            self.note(|facts| client.name().clone_into(&mut facts.key));
        }
    }

    /// Notes the model that the client names.
    pub(crate) fn asked_for(&self, model: &str) {
        let asked = match model.len() {
            ..=100 => model.to_owned(),
            _ => model.chars().take(100).collect(),
        };
        self.note(|facts| facts.asked = asked);
    }

    /// Notes the run of the request, which is over.
    pub(crate) fn ran(&self, run: &RunRecord) {
        let ran = Ran {
            contract: run.contract.clone(),
            target: run.target.clone(),
            model: run.model.clone(),
            outcome: run.outcome.name(),
            problem: matches!(run.outcome, RunOutcome::Failed(_))
                .then(|| run.message.clone().unwrap_or_else(|| run.outcome.name().to_owned())),
            calls: run.calls.len(),
            input_tokens: run.usage.input_tokens,
            output_tokens: run.usage.output_tokens,
            micro_usd: run.micro_usd,
        };
        self.note(|facts| facts.ran = Some(ran));
    }

    /// Returns whether its run failed in a way that another attempt may not.
    pub(crate) fn has_failed(&self) -> bool {
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = facts.ran.as_ref().map_or("", |ran| ran.outcome);
        matches!(outcome, "unavailable" | "deadline" | "cancelled" | "budget")
    }

    /// Returns the time until the first part of the answer; `None` before it.
    pub(crate) fn first(&self) -> Option<Duration> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).first
    }
}

/// Returns the headers of the trace that the request of this task belongs to.
pub(crate) fn trace_here() -> HeaderMap {
    SEEN.try_with(|seen| seen.trace.clone()).unwrap_or_default()
}

/// Returns the run of a request of a client that begins: with the identifier that the response names, and with tags if it is kept.
pub(crate) fn begun(path: String, client: &Client, options: &Options, is_kept: bool) -> RunRecord {
    let seen = Seen::current();
    let mut tags = options.tags.clone();
    if let Some(seen) = seen.as_ref().filter(|_| is_kept) {
        tags.extend(trace::id(&seen.trace).map(|id| format!("trace:{id}")));
        tags.push(format!("request:{}", seen.request.as_str()));
    }
    let mut run = RunRecord::new(path, now()).with_key(client.id()).with_labels(options.user.clone(), tags);
    if let Some(seen) = seen {
        run.id = seen.run;
    }
    run
}

impl Drop for Seen {
    fn drop(&mut self) {
        let facts = std::mem::take(self.facts.get_mut().unwrap_or_else(PoisonError::into_inner));
        let status = facts.status.unwrap_or_else(|| {
            self.metrics.request(self.protocol, self.method, DISCONNECTED);
            DISCONNECTED
        });
        let is_api = self.path.starts_with("/v1/") || self.path.starts_with("/api/");
        if let (Some(refuse), None, true) = (&self.refuse, &facts.ran, is_api) {
            refuse(self, status);
        }
        let ms = |duration: Duration| (duration.as_secs_f64() * 1e6).round() / 1e3;
        let took_ms = ms(facts.took.unwrap_or_else(|| self.start.elapsed()));
        let (head_ms, first_ms) = (facts.head.map(ms), facts.first.map(ms));
        let ran = facts.ran.as_ref();
        let number = |number: fn(&Ran) -> u64| ran.map(number);
        let text = |text: fn(&Ran) -> &str| ran.map(text).filter(|text| !text.is_empty());
        let usd = ran.and_then(|ran| ran.micro_usd).map(format_usd);
        // A stream that fails has the status of its beginning, 200.
        let failed = ran.and_then(|ran| ran.problem.as_deref());
        let problem = facts.problem.as_deref().or(failed);
        macro_rules! line {
            ($level:ident, $message:expr) => {
                tracing::$level!(
                    target: "formwork_gateway",
                    request_id = self.request.as_str(),
                    run = %self.run,
                    key = Some(facts.key.as_str()).filter(|key| !key.is_empty()),
                    protocol = self.protocol,
                    method = self.method,
                    path = self.path,
                    status,
                    outcome = text(|ran| ran.outcome),
                    contract = ran.and_then(|ran| ran.contract.as_deref()),
                    asked = Some(facts.asked.as_str()).filter(|asked| !asked.is_empty()),
                    target_name = text(|ran| &ran.target),
                    model = text(|ran| &ran.model),
                    calls = number(|ran| ran.calls as u64),
                    input_tokens = number(|ran| ran.input_tokens),
                    output_tokens = number(|ran| ran.output_tokens),
                    usd = usd.as_deref(),
                    head_ms,
                    first_ms,
                    took_ms,
                    problem,
                    $message
                )
            };
        }
        match problem {
            _ if facts.problem.is_some() => line!(warn, "refused"),
            _ if status == DISCONNECTED || problem == Some(LEFT) => line!(warn, "the client disconnected"),
            Some(_) => line!(warn, "failed"),
            None => line!(info, "answered"),
        }
    }
}

/// The parts of a trace of a request without a run.
#[cfg_attr(not(feature = "otlp"), expect(dead_code, reason = "traces need the feature"))]
impl Seen {
    /// Returns the model that the client names; empty before the request was read.
    pub(crate) fn asked(&self) -> String {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).asked.clone()
    }

    pub(crate) const fn method(&self) -> &'static str {
        self.method
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) const fn started(&self) -> Time {
        self.started
    }
}

/// Says whether a body that begins with other events has come to the answer: an extension of its response.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnswerBegun(Arc<AtomicBool>);

impl AnswerBegun {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The body of a response, whose first part and end are noted.
struct Watched {
    body: Body,
    /// `None` for a body that is an answer from its beginning.
    begun: Option<AnswerBegun>,
    seen: Arc<Seen>,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && self.begun.as_ref().is_none_or(|begun| begun.0.load(Ordering::Relaxed))
            // Comments of a target's stream that waits are no answer.
            && frame.data_ref().is_some_and(|data| !data.starts_with(b":"))
        {
            let seen = &self.seen;
            seen.note(|facts| {
                facts.first.get_or_insert_with(|| seen.start.elapsed());
            });
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let seen = &self.seen;
        let took = seen.start.elapsed();
        let first = seen.first();
        seen.note(|facts| facts.took = Some(took));
        seen.metrics.ended(seen.protocol, first, took);
    }
}
