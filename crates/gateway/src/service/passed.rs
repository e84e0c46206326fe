//! The responses of targets, on their way to the client.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::Response;
use formwork::providers::Raw;
use formwork_core::{Fault, FaultKind, Usage};
use formwork_serve::{Turn, media_type};
use futures_util::Stream;

use super::asker::Begun;
use super::open::Open;
use super::received::Received;
use crate::document::Extent;
use crate::failover::{answered, first};
use crate::pass::{self, Pass};
use crate::problem::{Kind, Problem};
use crate::protocol::events::{Events, split, without_usage};
use crate::protocol::{self, EVENTS, LINES, written};
use crate::record::{Record, left};

/// Passes a request on, and the response of the first target that answers back. Its body is read as the client reads, and its usage is
/// recorded at the end. A stream that breaks off ends with the error of its protocol. Without a `prompt` the request is free. If the
/// next target has another protocol, the request is given back.
pub(super) async fn answer<W: FnMut(&Raw, bool) -> Result<Bytes, Problem> + Send>(
    mut begun: Begun,
    (protocol, open): (Option<&'static protocol::Protocol>, Option<Open>),
    prompt: Option<Extent>,
    mut pass: Pass<'_, W>,
) -> Result<Result<Response, Problem>, Begun> {
    let sent = first(&begun.shared.engine, &mut begun.targets, &mut begun.record.made, &mut pass).await;
    let sent = match sent {
        Ok(Some(sent)) => sent,
        Ok(None) => return Err(begun),
        Err(problem) => {
            begun.record.calls(Vec::new(), Some(&problem));
            return Ok(Err(problem));
        }
    };
    let (mut head, body) = sent.response.into_parts();
    let media = media_type(&head.headers).unwrap_or("application/octet-stream");
    let kind = [EVENTS, LINES].into_iter().find(|kind| media.eq_ignore_ascii_case(kind));
    // Some servers do not say that they stream.
    let is_unnamed = media.eq_ignore_ascii_case("application/octet-stream") && head.status.is_success();
    let asked = protocol.filter(|_| open.is_some() && is_unnamed).map(|protocol| protocol.stream_type);
    let kind = kind.or(asked);
    let held = Held {
        record: Some(begun.record),
        received: Received::new(protocol, kind.is_some(), begun.until),
        prompt: prompt.unwrap_or_default(),
        is_free: prompt.is_none() || !head.status.is_success(),
        is_refused: !head.status.is_success(),
        is_whole: false,
        is_told: false,
        text: protocol.filter(|_| begun.shared.keeps_bodies).map(|protocol| (protocol, Vec::new())),
        fault: refusal(head.status),
        left: head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok()),
        turn: begun.turn,
        _open: open,
    };
    if kind.is_some() {
        // Events may be left out, and an error added.
        head.headers.remove(header::CONTENT_LENGTH);
    }
    let (events, stream) = (Events::default(), protocol.zip(kind));
    let hides_usage = sent.adds_usage && kind == Some(EVENTS);
    let passed = Passed { body, held, events, hides_usage, stream };
    Ok(Ok(pass::returned(&head, Body::from_stream(passed))))
}

/// The number of bytes of a body from which no more of it is kept for its text. The ledger keeps texts of a megabyte.
const MAX_KEPT: usize = 4 << 20;

/// Returns the problem of a request that the target itself refuses.
pub(super) fn refusal(status: StatusCode) -> Option<Problem> {
    let message = || format!("the target refused the request: {status}");
    let problem = || Problem { fault: Some(FaultKind::BadRequest), ..Problem::new(Kind::Invalid, message()) };
    (!status.is_success()).then(problem)
}

struct Passed {
    body: formwork_wire::Body,
    held: Held,
    /// The part of a line of a stream that came so far: a client cannot read a part, nor an error behind it.
    events: Events,
    /// Whether the usage is taken out of a stream, because the client did not ask for it.
    hides_usage: bool,
    /// The protocol and the media type of a stream that has not ended; `None` for other bodies.
    stream: Option<(&'static protocol::Protocol, &'static str)>,
}

struct Held {
    record: Option<Box<Record>>,
    received: Received,
    prompt: Extent,
    /// Whether it costs nothing: the target refused the request, or it has no price.
    is_free: bool,
    /// Whether the target refused the request.
    is_refused: bool,
    /// Whether the body came to its end.
    is_whole: bool,
    /// Whether the target told an error in its answer.
    is_told: bool,
    /// The body as far as it came, where texts are kept, and its protocol.
    text: Option<(&'static protocol::Protocol, Vec<u8>)>,
    /// The target's refusal of the request, or its failure in the middle of the body.
    fault: Option<Problem>,
    /// The rest of a body whose length is known: it is not read any more once it is complete.
    left: Option<u64>,
    turn: Turn,
    _open: Option<Open>,
}

impl Stream for Passed {
    type Item = Result<Bytes, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        this.held.turn.pace().work();
        loop {
            let polled = Pin::new(&mut this.body).poll_next(cx);
            match &polled {
                Poll::Ready(Some(Ok(bytes))) => {
                    if this.held.record.is_some() {
                        this.held.see(bytes);
                    }
                    let Some((_, media)) = this.stream else {
                        this.held.turn.pace().rest();
                        return polled;
                    };
                    let mut whole = this.events.whole(bytes.clone(), media == LINES, this.hides_usage);
                    if this.hides_usage {
                        let kept = split(&whole, false).into_iter().filter_map(without_usage);
                        whole = kept.flatten().collect();
                    }
                    if !whole.is_empty() {
                        this.held.turn.pace().rest();
                        return Poll::Ready(Some(Ok(this.held.redacted(whole))));
                    }
                }
                Poll::Ready(end) => {
                    // After its last event, a stream is whole, however the connection ends.
                    let is_whole = this.stream.is_some() && this.held.received.is_complete();
                    let broken = end.as_ref().and_then(|end| end.as_ref().err()).filter(|_| !is_whole);
                    let is_told = this.held.note_error();
                    let has_end = this.stream.is_none() || this.held.is_free || this.held.received.has_end();
                    this.held.is_whole |= broken.is_none() && this.held.fault.is_none() && has_end;
                    if is_told && this.stream.is_none() && broken.is_some() {
                        return polled;
                    }
                    let is_over = is_told || broken.is_none() && has_end;
                    if is_over && let Some(last) = this.rest() {
                        // Nothing of the target's follows.
                        this.body = formwork_wire::Body::new(futures_util::stream::empty());
                        return Poll::Ready(Some(Ok(last)));
                    }
                    if is_over {
                        this.held.end();
                        return Poll::Ready(None);
                    }
                    let problem = match broken {
                        Some(fault) => this.held.broke(fault),
                        None => this.held.broke(&Received::endless()),
                    };
                    return this.fails(problem).map_or(polled, |last| Poll::Ready(Some(Ok(last))));
                }
                Poll::Pending => return polled,
            }
        }
    }
}

impl Passed {
    /// Returns what is left of the events, and the end of an error that the target did not end. Readers leave out an event without its end.
    fn rest(&mut self) -> Option<Bytes> {
        let mut rest = std::mem::take(&mut self.events).rest();
        rest.extend_from_slice(self.held.received.rest(self.stream.map_or(EVENTS, |(_, media)| media)));
        (!rest.is_empty()).then(|| self.held.redacted(rest.into()))
    }

    /// Notes why the body is not whole, and ends it. Returns the last event of a stream, which tells the client.
    fn fails(&mut self, problem: Problem) -> Option<Bytes> {
        let events = std::mem::take(&mut self.events);
        let last = self.stream.take().map(|(protocol, media)| {
            self.body = formwork_wire::Body::new(futures_util::stream::empty());
            let mut last = events.cut(media == LINES);
            last.extend_from_slice(&written(&[(protocol.problem)(&problem)], media));
            self.held.redacted(last.into())
        });
        self.held.fault = Some(problem);
        last
    }
}

impl Held {
    fn see(&mut self, bytes: &[u8]) {
        self.received.see(bytes);
        if let Some((_, text)) = self.text.as_mut().filter(|(_, text)| text.len() < MAX_KEPT) {
            text.extend_from_slice(bytes);
        }
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(bytes.len() as u64);
            self.is_whole |= *left == 0;
        }
    }

    /// Returns events of a stream; without our secrets, if they have an error.
    fn redacted(&self, events: Bytes) -> Bytes {
        match self.record.as_ref().filter(|_| self.received.has_error()) {
            Some(record) => self.received.redacted(record.shared(), &record.made, events.into()).into(),
            None => events,
        }
    }

    /// Notes the error that the target told in its answer, if it did. Returns whether it did.
    fn note_error(&mut self) -> bool {
        if let Some(record) = self.record.as_ref().filter(|_| self.fault.is_none())
            && let Some(fault) = self.received.told(record.shared(), &record.made, None)
        {
            self.received.failed(record.shared(), &record.made, &fault);
            (self.fault, self.is_told) = (Some(Problem::of_fault(&fault)), true);
        }
        self.is_told
    }

    /// Returns the problem of a body that broke off.
    fn broke(&mut self, fault: &Fault) -> Problem {
        self.is_refused = false;
        if let Some(record) = self.record.as_ref().filter(|_| !self.received.has_end()) {
            self.received.failed(record.shared(), &record.made, fault);
        }
        Problem::of_fault(fault)
    }

    /// Records the call.
    fn end(&mut self) {
        // A client may leave when it has read of an error.
        self.note_error();
        let Some(mut record) = self.record.take() else { return };
        // A client may close the connection once it has the last event.
        let is_cut = !self.is_whole && !self.received.has_end();
        let problem = self.fault.take().or_else(|| is_cut.then(|| left(record.shared())));
        if problem.is_none() || self.is_refused {
            answered(&record.shared().engine, &record.made);
        }
        record.answered(self.received.answered());
        if let Some((protocol, text)) = self.text.take() {
            record.said(protocol.turn_of(&text, self.received.is_stream()).written());
        }
        // An error before any answer costs nothing, as it does as a response.
        let usage = match self.is_free || self.is_told && self.received.is_empty() {
            true => Usage::default(),
            false => self.received.usage(self.prompt, self.is_whole && !self.is_told),
        };
        record.passed(usage, problem.as_ref());
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The client or the target disconnected early: the received part was paid for.
        self.end();
    }
}
