use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use bytes::Bytes;
use formwork_core::{Fault, Time};
use futures_core::Stream;
use http::{HeaderMap, Request, Response};

use super::{Cassette, Chunk, Exchange, Head, Recorded};
use crate::transport::redacted;
use crate::{Body, Chunks, SharedTransport, Transport};

/// The response headers that codecs read. Others are not recorded, because they may reveal the account.
const KEPT: &[&str] = &["content-type", "date", "location", "retry-after", "retry-after-ms", "x-request-id"];

/// A transport that records the exchanges of another one.
///
/// ```
/// use std::sync::Arc;
/// use formwork_wire::{SharedTransport, cassette::Recorder};
///
/// /// Runs calls over `transport`, and returns the file to commit.
/// async fn record<F: Future>(transport: SharedTransport, calls: impl FnOnce(SharedTransport) -> F) -> String {
///     let recorder = Recorder::new(transport);
///     calls(Arc::new(recorder.clone())).await;
///     recorder.cassette().to_json()
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Recorder {
    inner: SharedTransport,
    tape: Tape,
}

impl Recorder {
    /// Creates a recorder of the exchanges over this transport.
    pub fn new(inner: SharedTransport) -> Self {
        Self { inner, tape: Tape::default() }
    }

    /// Returns the exchanges so far. The cassette contains a body only as far as it was read.
    pub fn cassette(&self) -> Cassette {
        let mut cassette = self.tape.lock().clone();
        cassette.exchanges.iter_mut().for_each(|exchange| exchange.redact(|text| self.inner.redact(text)));
        cassette
    }
}

#[async_trait]
impl Transport for Recorder {
    async fn send(&self, request: Request<Bytes>, deadline: Option<Time>) -> Result<Response<Body>, Fault> {
        let recorded = Recorded::new(&request, |text| self.inner.redact(text));
        let index = self.tape.begin(recorded);
        let sent = self.inner.now();
        match self.inner.send(request, deadline).await {
            Ok(response) => {
                let (head, body) = response.into_parts();
                let kept = Head { status: head.status.as_u16(), headers: kept(&head.headers) };
                self.tape.change(index, |exchange| exchange.response = Some(kept));
                let (tape, inner) = (self.tape.clone(), self.inner.clone());
                let body = Body::of_chunks(Recording { body, tape, index, inner, last: sent });
                Ok(Response::from_parts(head, body))
            }
            Err(fault) => {
                let kept = redacted(fault.clone(), &self.inner);
                self.tape.change(index, |exchange| exchange.fault = Some(kept));
                Err(fault)
            }
        }
    }

    fn redact(&self, text: &str) -> String {
        self.inner.redact(text)
    }

    fn now(&self) -> Time {
        self.inner.now()
    }
}

fn kept(headers: &HeaderMap) -> BTreeMap<String, String> {
    let kept = KEPT.iter().filter_map(|name| Some((*name, headers.get(*name)?.to_str().ok()?)));
    kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[derive(Debug, Clone, Default)]
struct Tape(Arc<Mutex<Cassette>>);

impl Tape {
    fn lock(&self) -> MutexGuard<'_, Cassette> {
        // Each change of the tape is complete, so a panic of another thread leaves it consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, request: Recorded) -> usize {
        let mut cassette = self.lock();
        cassette.exchanges.push(Exchange {
            request,
            response: None,
            chunks: Vec::new(),
            fault: None,
            schema_dropped: false,
        });
        cassette.exchanges.len() - 1
    }

    fn change(&self, index: usize, change: impl FnOnce(&mut Exchange)) {
        if let Some(exchange) = self.lock().exchanges.get_mut(index) {
            change(exchange);
        }
    }
}

/// A body that is recorded while it is read.
struct Recording {
    body: Body,
    tape: Tape,
    index: usize,
    inner: SharedTransport,
    last: Time,
}

impl Stream for Recording {
    type Item = Result<Bytes, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let next = ready!(Pin::new(&mut this.body).poll_next(cx));
        let now = this.inner.now();
        let after = u64::try_from(now.since(this.last).as_millis()).unwrap_or(u64::MAX);
        this.last = now;
        this.tape.change(this.index, |exchange| match &next {
            Some(Ok(bytes)) => {
                exchange.chunks.push(Chunk::new(after, bytes));
            }
            Some(Err(fault)) => exchange.fault = Some(redacted(fault.clone(), &this.inner)),
            None => {}
        });
        Poll::Ready(next)
    }
}

impl Chunks for Recording {
    fn finish_soon(mut self: Pin<&mut Self>) -> bool {
        self.body.finish_soon()
    }
}
