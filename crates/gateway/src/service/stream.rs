//! Answers as streams.

use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use formwork_core::{Delta, Message};
use formwork_extract::{CancellationToken, Observer, RunId, Started};
use formwork_http::with_trace;
use formwork_serve::{Pace, Turn};
use futures_util::stream::{self, Stream, StreamExt as _};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::Shared;
use super::job::{Job, from_cache};
use super::open::Open;
use crate::contracts::Spec;
use crate::limits::Limits;
use crate::problem::{Kind, Problem};
use crate::protocol::{Frames, written};
use crate::reply::{Content, Finish, Reply};
use crate::seen::{AnswerBegun, trace_here};

/// The number of pieces that are buffered for a slow client; after that, the answer is not read further.
const AHEAD: usize = 16;

/// A comment, which readers of Server-Sent Events skip.
pub(super) const COMMENT: &[u8] = b": keep-alive\n\n";

/// The client of a stream.
pub(super) struct Client {
    sender: mpsc::Sender<Bytes>,
    /// The event that says nothing.
    comment: Vec<u8>,
    keep_alive: Duration,
    /// The time of the next comment.
    due: Instant,
    /// The time after which a client that does not read counts as disconnected.
    patience: Duration,
    pace: Arc<Pace>,
    begun: AnswerBegun,
    /// The events before the answer, until anything is sent.
    opening: Vec<u8>,
    /// Tells of a failure while nothing was sent; dropped with the first bytes.
    start: Option<oneshot::Sender<Problem>>,
}

/// A stream whose head waits for its first bytes: a failure before them is an ordinary response, with its status, which the official
/// clients know and repeat.
pub(super) struct Opening {
    pub(super) response: Response,
    started: oneshot::Receiver<Problem>,
}

impl Opening {
    /// Returns the response once its first bytes were sent.
    ///
    /// # Errors
    /// The problem that came before them.
    pub(super) async fn head(self) -> Result<Response, Problem> {
        match self.started.await {
            Ok(problem) => Err(problem),
            Err(_) => Ok(self.response),
        }
    }
}

impl Client {
    /// Starts a response of a media type whose body is what is sent.
    pub(super) fn new(
        shared: &Shared,
        turn: &Turn,
        media_type: &'static str,
        comment: Vec<u8>,
    ) -> (Self, Opening) {
        let (start, started) = oneshot::channel();
        let (sender, receiver) = mpsc::channel(AHEAD);
        let body = Body::from_stream(stream::unfold(receiver, |mut receiver| async {
            let piece: Bytes = receiver.recv().await?;
            Some((Ok::<_, std::convert::Infallible>(piece), receiver))
        }));
        let Limits { keep_alive, write_timeout: patience, .. } = shared.engine.limits;
        let (due, pace) = (Instant::now() + keep_alive, Arc::clone(turn.pace()));
        let begun = AnswerBegun::default();
        let head = ([(header::CONTENT_TYPE, media_type)], axum::Extension(begun.clone()));
        let response = (head, body).into_response();
        let (opening, start) = (Vec::new(), Some(start));
        let client = Self { sender, comment, keep_alive, due, patience, pace, begun, opening, start };
        (client, Opening { response, started })
    }

    /// Sends a part of the answer; returns whether the client is still there.
    pub(super) async fn send(&mut self, bytes: Vec<u8>) -> bool {
        if !bytes.is_empty() {
            self.begun.set();
        }
        self.write(bytes).await
    }

    /// Sends bytes before the answer; returns whether the client is still there.
    async fn write(&mut self, mut bytes: Vec<u8>) -> bool {
        if bytes.is_empty() {
            return true;
        }
        self.start = None;
        bytes.splice(0..0, std::mem::take(&mut self.opening));
        self.due = Instant::now() + self.keep_alive;
        let bytes = match self.sender.try_send(bytes.into()) {
            Ok(()) => return true,
            Err(error) => error.into_inner(),
        };
        self.pace.rest();
        let is_sent = self.sender.send_timeout(bytes, self.patience).await.is_ok();
        self.pace.work();
        is_sent
    }

    /// Waits for the next part of an answer. Meanwhile it keeps the connection alive, unless an event of the stream is incomplete, which a
    /// comment would become part of. Returns `None` if the client left.
    pub(super) async fn wait<T>(&mut self, part: impl Future<Output = T>, is_between: bool) -> Option<T> {
        let mut part = pin!(part);
        loop {
            tokio::select! {
                biased;
                part = part.as_mut() => return Some(part),
                () = self.sender.closed() => return None,
                () = sleep_until(self.due) => {
                    self.due = Instant::now() + self.keep_alive;
                    if is_between && !self.write(self.comment.clone()).await {
                        return None;
                    }
                }
            }
        }
    }

    /// Sends the parts of a run as they come, and returns its end; `None` if the parts end without it. `events` returns the events of a part,
    /// and whether they are a part of the answer. If the client leaves, the run is cancelled, and ends at its next check for that, so that it
    /// is recorded.
    pub(super) async fn follow<P, E>(
        &mut self,
        cancel: &CancellationToken,
        mut parts: impl Stream<Item = ControlFlow<E, P>> + Unpin,
        mut events: impl FnMut(P) -> (Vec<u8>, bool),
    ) -> Option<E> {
        loop {
            let next = match cancel.is_cancelled() {
                true => Some(parts.next().await),
                false => self.wait(parts.next(), true).await,
            };
            match next {
                Some(None) => return None,
                Some(Some(ControlFlow::Break(end))) => return Some(end),
                Some(Some(ControlFlow::Continue(part))) => {
                    let (events, is_answer) = events(part);
                    if cancel.is_cancelled() {
                        continue;
                    }
                    let is_there = if is_answer { self.send(events).await } else { self.write(events).await };
                    if !is_there {
                        cancel.cancel();
                    }
                }
                None => cancel.cancel(),
            }
        }
    }
}

/// Writes an answer to a client in the events of its protocol.
pub(super) struct Line {
    pub(super) client: Client,
    pub(super) frames: Box<dyn Frames>,
    media_type: &'static str,
}

impl Line {
    /// Begins with the events before the answer, which are sent with the first bytes.
    pub(super) fn open(&mut self) {
        self.client.opening = written(&self.frames.open(), self.media_type);
    }

    /// Sends events of the answer; returns whether the client is still there.
    pub(super) async fn send(&mut self, events: Vec<Value>) -> bool {
        self.client.send(written(&events, self.media_type)).await
    }

    /// Ends with a problem: in the response if nothing was sent, else in the last events.
    pub(super) async fn fail(&mut self, problem: &Problem) {
        if let Some(start) = self.client.start.take() {
            // Nobody waits if the client left.
            _ = start.send(problem.clone());
            return;
        }
        let last = self.frames.fail(problem);
        self.send(last).await;
    }

    /// Returns the last events of a reply.
    pub(super) fn close(&mut self, reply: &Reply) -> Vec<Value> {
        reply.choices.first().map(|choice| self.frames.close(choice, reply)).unwrap_or_default()
    }
}

/// Starts a response whose body is written by a task.
pub(super) fn open(job: &Job) -> Result<(Line, Open, Opening), Problem> {
    let guard = Open::new(&job.shared, &job.client)?;
    let media_type = job.protocol.stream_type;
    let frames = (job.protocol.frames)(&job.ask, &job.meta);
    let comment = frames.keep_alive().map_or_else(|| COMMENT.to_vec(), |event| written(&[event], media_type));
    let (client, mut opening) = Client::new(&job.shared, &job.turn, media_type, comment);
    job.head(&mut opening.response, false);
    // Proxies that collect a response would hold it back.
    let no = axum::http::HeaderValue::from_static("no");
    opening.response.headers_mut().insert("x-accel-buffering", no);
    Ok((Line { client, frames, media_type }, guard, opening))
}

/// Answers with the value of a contract when it is certain, or with the first attempt as it comes.
pub(super) async fn contract(
    mut job: Box<Job>,
    spec: Spec,
    instructions: Option<Message>,
) -> Result<Response, Problem> {
    let (ready, digests, cached) = job.begun(&spec).await?;
    let opened = open(&job);
    let (mut line, guard, mut opening) = job.record.checked(opened)?;
    if let Some(reply) = cached {
        let events = [line.frames.open(), line.close(&reply)].concat();
        job.record.cached();
        line.client.begun.set();
        *opening.response.body_mut() = written(&events, line.media_type).into();
        return Ok(from_cache(opening.response, true));
    }
    if digests.is_some() {
        opening.response = from_cache(opening.response, false);
    }
    tokio::spawn(with_trace(trace_here(), async move {
        let _guard = guard;
        let cancel = CancellationToken::new();
        let (eager, mut texts) = Eager::new();
        let heard = job.heard();
        let observer = job.is_eager().then(|| Arc::new(eager) as Arc<dyn Observer>);
        let observers = observer.into_iter().chain(heard.clone().map(|heard| heard as Arc<dyn Observer>));
        let mut run = pin!(job.runs((ready, instructions), observers.collect(), cancel.clone()));
        let mut sent = String::new();
        // The events of a target begin with its own.
        if heard.is_none() {
            line.open();
        }
        let Line { client, frames, media_type } = &mut line;
        let mut ended = None;
        let parts = stream::poll_fn(|cx| {
            if ended.is_none()
                && let Poll::Ready(results) = run.as_mut().poll(cx)
            {
                ended = Some(results);
            }
            // The last text can come with the end.
            match (texts.poll_recv(cx), ended.take()) {
                (Poll::Ready(Some(text)), results) => {
                    ended = results;
                    Poll::Ready(Some(ControlFlow::Continue(text)))
                }
                (_, Some(results)) => Poll::Ready(Some(ControlFlow::Break(results))),
                (_, None) => Poll::Pending,
            }
        });
        let events = |text: String| {
            sent.push_str(&text);
            (written(&frames.text(&text), media_type), true)
        };
        let mut results = client.follow(&cancel, parts, events).await.unwrap_or_default();
        let reply = job.finish(&mut results);
        job.cache(digests, &results);
        let reply = reply.and_then(|reply| held(&sent, reply));
        let last = match (&reply, &heard) {
            (Ok(reply), Some(heard)) => {
                let events = heard.events(job.protocol, (reply, &job.heard_meta()), !job.ask.include_usage);
                events.unwrap_or_else(|| {
                    written(&[line.frames.open(), line.close(reply)].concat(), line.media_type)
                })
            }
            (Ok(reply), None) => written(&line.close(reply), line.media_type),
            (Err(_), _) => Vec::new(),
        };
        job.record.runs(&results, reply.as_ref().err());
        match &reply {
            Ok(_) => _ = line.client.send(last).await,
            Err(problem) => {
                if heard.is_some() {
                    // Clients take no error before the first event.
                    line.open();
                }
                line.fail(problem).await;
            }
        }
    }));
    opening.head().await
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
