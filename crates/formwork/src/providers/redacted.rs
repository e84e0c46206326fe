//! The user's patterns of `[redaction]` in messages and cassettes.

use async_trait::async_trait;
use formwork_core::{Fault, Time};
use formwork_wire::http::{Request, Response};
use formwork_wire::{Body, Bytes, SharedTransport, Transport};

use crate::config::Redaction;

/// A transport whose messages and recordings are without the matches of patterns.
#[derive(Debug)]
pub(super) struct Redacted {
    inner: SharedTransport,
    redaction: Redaction,
    /// Whether the inner transport replays requests that were recorded without the matches.
    is_replay: bool,
}

impl Redacted {
    /// Returns the transport itself if there are no patterns.
    pub(super) fn over(inner: SharedTransport, redaction: &Redaction, is_replay: bool) -> SharedTransport {
        if redaction.is_empty() {
            return inner;
        }
        std::sync::Arc::new(Self { inner, redaction: redaction.clone(), is_replay })
    }
}

#[async_trait]
impl Transport for Redacted {
    async fn send(&self, request: Request<Bytes>, deadline: Option<Time>) -> Result<Response<Body>, Fault> {
        if !self.is_replay {
            return self.inner.send(request, deadline).await;
        }
        let redacted = |body: Bytes| match std::str::from_utf8(&body) {
            Ok(text) => Bytes::from(self.redaction.text(text).into_owned()),
            Err(_) => body,
        };
        self.inner.send(request.map(redacted), deadline).await
    }

    fn redact(&self, text: &str) -> String {
        // Secrets first: a pattern that matches a part of one would hide the rest from the transport.
        self.redaction.text(&self.inner.redact(text)).into_owned()
    }

    fn now(&self) -> Time {
        self.inner.now()
    }
}
