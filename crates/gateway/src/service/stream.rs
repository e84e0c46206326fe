//! Answers as streams.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use formwork_core::{Delta, Message};
use formwork_extract::{CancellationToken, Observer, RunId, Started};
use formwork_http::with_trace;
use formwork_serve::Pace;
use futures_util::stream;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::job::{Job, from_cache};
use super::open::Open;
use crate::contracts::Spec;
use crate::engine;
use crate::problem::{Kind, Problem};
use crate::protocol::{Frames, written};
use crate::reply::{Content, Finish, Reply};

/// The number of pieces that are buffered for a slow client; after that, the answer is not read further.
const AHEAD: usize = 16;

/// Writes to a client.
pub(super) struct Line {
    pub(super) sender: mpsc::Sender<Bytes>,
    pub(super) frames: Box<dyn Frames>,
    media_type: &'static str,
    pub(super) keep_alive: Duration,
    /// The time after which a client that does not read counts as disconnected.
    patience: Duration,
    pace: Arc<Pace>,
}

impl Line {
    /// Sends events; returns whether the client is still there.
    pub(super) async fn send(&self, events: Vec<Value>) -> bool {
        self.send_bytes(written(&events, self.media_type)).await
    }

    /// Sends bytes; returns whether the client is still there.
    pub(super) async fn send_bytes(&self, bytes: Vec<u8>) -> bool {
        if bytes.is_empty() {
            return true;
        }
        let bytes = match self.sender.try_send(bytes.into()) {
            Ok(()) => return true,
            Err(error) => error.into_inner(),
        };
        self.pace.rest();
        let is_sent = self.sender.send_timeout(bytes, self.patience).await.is_ok();
        self.pace.work();
        is_sent
    }

    /// Keeps the connection alive; returns whether the client is still there.
    pub(super) async fn keep_alive(&self) -> bool {
        match self.frames.keep_alive() {
            Some(event) => self.send(vec![event]).await,
            None => self.send_bytes(b": keep-alive\n\n".to_vec()).await,
        }
    }

    /// Returns the last events of a reply.
    pub(super) fn close(&mut self, reply: &Reply) -> Vec<Value> {
        reply.choices.first().map(|choice| self.frames.close(choice, reply)).unwrap_or_default()
    }
}

/// Returns the body of the pieces that are sent through a channel.
pub(super) fn body_of(receiver: mpsc::Receiver<Bytes>) -> Body {
    Body::from_stream(stream::unfold(receiver, |mut receiver| async {
        let piece = receiver.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), receiver))
    }))
}

/// Starts a response whose body is written by a task.
pub(super) fn open(job: &Job) -> Result<(Line, Open, Response), Problem> {
    let guard = Open::new(&job.shared, job.client.name())?;
    let (sender, receiver) = mpsc::channel(AHEAD);
    let media_type = job.protocol.stream_type();
    let mut response = ([(header::CONTENT_TYPE, media_type)], body_of(receiver)).into_response();
    job.head(&mut response);
    // Proxies that collect a response would hold it back.
    response.headers_mut().insert("x-accel-buffering", axum::http::HeaderValue::from_static("no"));
    let frames = job.protocol.frames(&job.ask, &job.meta);
    let limits = &job.shared.engine.limits;
    Ok((
        Line {
            sender,
            frames,
            media_type,
            keep_alive: limits.keep_alive,
            patience: limits.write_timeout,
            pace: Arc::clone(job.turn.pace()),
        },
        guard,
        response,
    ))
}

/// Answers with the value of a contract: the head at once, the value when it is certain; or the first attempt as it comes.
pub(super) async fn contract(
    mut job: Job,
    spec: Spec,
    instructions: Option<Message>,
) -> Result<Response, Problem> {
    let ready = job.ready(&spec).await;
    let ready = job.record.checked(ready).await?;
    let opened = open(&job);
    let (mut line, guard, mut response) = job.record.checked(opened).await?;
    job.note(&spec, &ready);
    let digests = job.digests(&spec, &ready);
    let is_kept = digests.is_some();
    if let Some(reply) = job.cached(digests.as_ref(), &ready) {
        let events = [line.frames.open(), line.close(&reply)].concat();
        job.record.cached().await;
        *response.body_mut() = written(&events, line.media_type).into();
        return Ok(from_cache(response, true));
    }
    if is_kept {
        response = from_cache(response, false);
    }
    let trace = job.options.trace.clone();
    tokio::spawn(with_trace(trace, async move {
        let _guard = guard;
        let cancel = CancellationToken::new();
        let (eager, mut texts) = Eager::new();
        let observer = job.is_eager().then(|| Arc::new(eager) as Arc<dyn Observer>);
        let input = engine::input(&mut job.ask, instructions);
        let one = |nth| {
            let extraction = ready.extraction(input.clone(), nth, &cancel);
            match observer.clone() {
                Some(observer) => extraction.with_observer(observer),
                None => extraction,
            }
            .run()
        };
        let mut run = pin!(futures_util::future::join_all((0..job.ask.count).map(one)));
        let mut ticks = interval(line.keep_alive);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.reset();
        let mut sent = String::new();
        let mut is_there = {
            let opening = line.frames.open();
            line.send(opening).await
        };
        let mut results = loop {
            tokio::select! {
                biased;
                Some(text) = texts.recv(), if is_there => {
                    let piece = line.frames.text(&text);
                    sent.push_str(&text);
                    is_there = line.send(piece).await;
                }
                results = run.as_mut() => break results,
                () = line.sender.closed(), if is_there => is_there = false,
                _ = ticks.tick(), if is_there => is_there = line.keep_alive().await,
            }
            if !is_there {
                // The run ends at its next check for a cancellation, so that it is recorded.
                cancel.cancel();
            }
        };
        while let Ok(text) = texts.try_recv() {
            let piece = line.frames.text(&text);
            sent.push_str(&text);
            is_there = is_there && line.send(piece).await;
        }
        let reply = job.finish(&mut results);
        job.cache(digests, &results);
        let last = match reply.and_then(|reply| held(&sent, reply)) {
            Ok(reply) => line.close(&reply),
            Err(problem) => line.frames.fail(&problem),
        };
        job.record.runs(&results).await;
        line.send(last).await;
    }));
    Ok(response)
}

/// Returns the reply, if it agrees with the part that was already sent.
fn held(sent: &str, reply: Reply) -> Result<Reply, Problem> {
    let Some(choice) = reply.choices.first().filter(|_| !sent.is_empty()) else { return Ok(reply) };
    let text = match &choice.content {
        Content::Refusal(_) => return Ok(reply),
        content => content.calls().first().map_or(content.text(), |call| &call.arguments),
    };
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    if choice.finish == Finish::Length || value(sent) == value(text) {
        return Ok(reply);
    }
    let message =
        "the answer that was shown is not the one that holds: ask without `x-formwork-stream: eager`";
    Err(Problem::new(Kind::Unmendable, message))
}

/// Shows the first call's text as it comes.
struct Eager {
    calls: AtomicU32,
    texts: mpsc::UnboundedSender<String>,
}

impl Eager {
    fn new() -> (Self, mpsc::UnboundedReceiver<String>) {
        let (texts, receiver) = mpsc::unbounded_channel();
        (Self { calls: AtomicU32::new(0), texts }, receiver)
    }
}

impl Observer for Eager {
    fn call_started(&self, _: RunId, _: &Started<'_>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    fn delta(&self, _: RunId, delta: &Delta) {
        if let Delta::Text(text) = delta
            && self.calls.load(Ordering::Relaxed) == 1
        {
            // An error means that the client disconnected.
            _ = self.texts.send(text.clone());
        }
    }
}
