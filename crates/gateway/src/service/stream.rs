//! Answers as streams.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use formwork_core::{Delta, End, Finish as ModelFinish, Message, Usage};
use formwork_extract::{CancellationToken, Observer, RunId, Started};
use formwork_http::with_trace;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::job::Job;
use super::turns::Open;
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
}

impl Line {
    /// Sends events; returns whether the client is still there.
    pub(super) async fn send(&self, events: Vec<Value>) -> bool {
        self.send_bytes(written(&events, self.media_type)).await
    }

    /// Sends bytes; returns whether the client is still there.
    pub(super) async fn send_bytes(&self, bytes: Vec<u8>) -> bool {
        bytes.is_empty() || self.sender.send_timeout(bytes.into(), self.patience).await.is_ok()
    }

    /// Keeps the connection alive; returns whether the client is still there.
    pub(super) async fn keep_alive(&self) -> bool {
        match self.frames.keep_alive() {
            Some(event) => self.send(vec![event]).await,
            None => self.send_bytes(b": keep-alive\n\n".to_vec()).await,
        }
    }

    /// Returns the last events of a reply.
    fn close(&mut self, reply: &Reply) -> Vec<Value> {
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
        Line { sender, frames, media_type, keep_alive: limits.keep_alive, patience: limits.read_timeout },
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
    let digest = job.digest(&ready);
    if let Some(reply) = job.cached(digest.as_deref(), &ready) {
        let events = [line.frames.open(), line.close(&reply)].concat();
        job.record.cached().await;
        *response.body_mut() = written(&events, line.media_type).into();
        return Ok(response);
    }
    let trace = job.options.trace.clone();
    tokio::spawn(with_trace(trace, async move {
        let _guard = guard;
        let cancel = CancellationToken::new();
        let (eager, mut texts) = Eager::new();
        let observer = job.is_eager().then(|| Arc::new(eager) as Arc<dyn Observer>);
        let input = engine::input(&mut job.ask, instructions);
        let one =
            |nth| engine::extraction(&ready.extractor, input.clone(), nth, &cancel, observer.clone()).run();
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
        job.cache(digest, &results);
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
    let (Content::Text(text) | Content::Call { arguments: text, .. }) = &choice.content else {
        return Ok(reply);
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

/// Answers with a model's text as it comes.
pub(super) async fn text(mut job: Job) -> Result<Response, Problem> {
    if job.ask.count > 1 {
        let problem = Problem::invalid(
            "n",
            "`n`: a stream of text has one answer where the target has another protocol",
        );
        return job.record.checked(Err(problem)).await;
    }
    let opened = open(&job);
    let (mut line, guard, response) = job.record.checked(opened).await?;
    let trace = job.options.trace.clone();
    tokio::spawn(with_trace(trace, async move {
        let _guard = guard;
        let opening = line.frames.open();
        line.send(opening).await;
        let mut heard =
            Partial { target: job.targets.last().copied().unwrap_or_default(), ..Partial::default() };
        let deadline = job.shared.engine.deadline(job.options.bounds);
        let outcome = tokio::time::timeout(deadline, tell(&job, &mut line, &mut heard)).await;
        let late = || Problem::new(Kind::Deadline, "the answer was not complete in time");
        let Partial { text, target, usage, finish } = heard;
        // The received part of a completion was paid for, even if the call failed later.
        let estimate = Usage::new(job.prompt.estimate(), text.len().div_ceil(3) as u64).with_estimated(true);
        let is_unanswered = text.is_empty() && !matches!(outcome, Err(_) | Ok(Ok(_)));
        let usage = usage.unwrap_or(if is_unanswered { Usage::default() } else { estimate });
        match outcome.unwrap_or_else(|_| Err(late())) {
            Ok(true) => {
                let reply = job.shared.engine.text_reply(target, text, finish, usage);
                let last = line.close(&reply);
                job.record.call(target, usage, None).await;
                line.send(last).await;
            }
            Ok(false) => {
                let left = Problem::new(Kind::Busy, "the client left");
                job.record.call(target, usage, Some(&left)).await;
            }
            Err(problem) => {
                let last = line.frames.fail(&problem);
                job.record.call(target, usage, Some(&problem)).await;
                line.send(last).await;
            }
        }
    }));
    Ok(response)
}

/// The answer so far.
struct Partial {
    text: String,
    target: usize,
    usage: Option<Usage>,
    finish: ModelFinish,
}

impl Default for Partial {
    fn default() -> Self {
        Self { text: String::new(), target: 0, usage: None, finish: ModelFinish::Stop }
    }
}

/// Sends the text of an answer as it comes. Returns whether the client is still there.
async fn tell(job: &Job, line: &mut Line, heard: &mut Partial) -> Result<bool, Problem> {
    let completion = job.shared.engine.text(&job.ask, &job.targets);
    let (mut answer, target) = tokio::select! {
        completion = completion => completion.map_err(|fault| Problem::of_fault(&fault))?,
        () = line.sender.closed() => return Ok(false),
    };
    heard.target = target;
    let mut probed = Usage::default();
    loop {
        let delta = tokio::select! {
            delta = answer.next() => delta,
            () = line.sender.closed() => return Ok(false),
            () = tokio::time::sleep(line.keep_alive) => {
                line.keep_alive().await;
                continue;
            }
        };
        match delta {
            Some(Ok(Delta::Text(more))) => {
                let piece = line.frames.text(&more);
                heard.text.push_str(&more);
                if !line.send(piece).await {
                    return Ok(false);
                }
            }
            Some(Ok(Delta::End(End { finish, usage, .. }))) => {
                (heard.finish, heard.usage) = (finish, Some(usage.plus(probed)));
                return Ok(true);
            }
            Some(Ok(Delta::Probe { usage })) => probed = probed.plus(usage),
            Some(Ok(_)) => {}
            Some(Err(fault)) => return Err(Problem::of_fault(&fault)),
            None => return Ok(true),
        }
    }
}
