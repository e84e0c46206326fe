use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use formwork_core::{Fault, FaultKind, Time};
use formwork_wire::{Body, Transport};
use futures_util::{StreamExt as _, stream};
use http::{Request, Response};

use crate::Reply;

/// The text in place of a key, which the transport redacts.
pub(crate) const KEY: &str = "sk-conformance-0123456789";

/// A transport that gives one reply after another and records its requests.
#[derive(Debug, Default)]
pub(crate) struct Script {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Request<Bytes>>>,
    /// The number of chunks that were read.
    read: Arc<AtomicUsize>,
}

impl Script {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        Arc::new(Self { replies: Mutex::new(replies.into_iter().collect()), ..Self::default() })
    }

    pub(crate) fn requests(&self) -> Vec<Request<Bytes>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn read(&self) -> usize {
        self.read.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Transport for Script {
    async fn send(&self, request: Request<Bytes>, _: Option<Time>) -> Result<Response<Body>, Fault> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        let reply = self.replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let reply =
            reply.ok_or_else(|| Fault::new(FaultKind::Unreachable, "the script has no more replies"))?;
        let read = self.read.clone();
        let chunks = stream::iter(reply.chunks()).map(move |chunk| {
            read.fetch_add(1, Ordering::Relaxed);
            Ok(chunk)
        });
        let response =
            reply.headers.iter().fold(Response::builder().status(reply.status), |response, (name, value)| {
                response.header(name, value)
            });
        response.body(Body::new(chunks)).map_err(|error| Fault::new(FaultKind::BadWire, error.to_string()))
    }

    fn redact(&self, text: &str) -> String {
        text.replace(KEY, "[redacted]")
    }

    fn now(&self) -> Time {
        Time(1_790_000_000_000)
    }
}
