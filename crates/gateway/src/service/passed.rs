//! The responses of targets, on their way to the client.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::response::Response;
use formwork_core::Fault;
use formwork_ledger::RecordId;
use formwork_serve::Turn;
use futures_util::Stream;
use tokio::runtime::Handle;

use super::turns::Open;
use crate::meter::Meter;
use crate::pass;
use crate::record::Record;

/// Returns the response of a target. Its body is read as the client reads, and its usage is recorded at the end.
pub(super) fn response(
    open: Option<Open>,
    response: axum::http::Response<formwork_wire::Body>,
    record: Record,
    target: usize,
    request_bytes: usize,
    turn: Turn,
    run: &RecordId,
) -> Response {
    let (head, body) = response.into_parts();
    let held = Held {
        record: record.is_kept().then_some(record),
        meter: Meter::default(),
        target,
        request_bytes,
        _turn: turn,
        _open: open,
    };
    let mut response = pass::returned(&head, Body::from_stream(Passed { body, held }));
    if let Ok(run) = HeaderValue::from_str(&run.to_string()) {
        response.headers_mut().insert("x-formwork-run", run);
    }
    response
}

struct Passed {
    body: formwork_wire::Body,
    held: Held,
}

struct Held {
    record: Option<Record>,
    meter: Meter,
    target: usize,
    request_bytes: usize,
    _turn: Turn,
    _open: Option<Open>,
}

impl Stream for Passed {
    type Item = Result<Bytes, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_next(cx);
        match &polled {
            Poll::Ready(Some(Ok(bytes))) if this.held.record.is_some() => this.held.meter.see(bytes),
            Poll::Ready(None) => this.held.end(),
            _ => {}
        }
        polled
    }
}

impl Held {
    /// Records the call.
    fn end(&mut self) {
        let Some(record) = self.record.take() else { return };
        let (usage, target) = (self.meter.usage(self.request_bytes), self.target);
        // Without a runtime the process ends.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { record.call(target, usage, None).await });
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // The client or the target disconnected early: the received part was paid for.
        self.end();
    }
}
