use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use bytes::Bytes;
use formwork_core::{Fault, FaultKind, Time};
use futures_core::Stream;
use http::{Request, Response};

/// Sends requests to one server.
///
/// It adds what only it knows: the server's address, the key, headers that the configuration names. Every status is a
/// response; only what prevents a response is a fault.
#[async_trait]
pub trait Transport: Send + Sync + fmt::Debug {
    /// Sends a request whose URI is a path below the server's address. What is not there by the deadline is a
    /// [`FaultKind::Timeout`], the body included.
    ///
    /// # Errors
    /// [`FaultKind::Unreachable`], [`FaultKind::Timeout`] or [`FaultKind::BadWire`]; what
    /// [`closed_early`](crate::closed_early) makes, if the connection was closed before there was a response.
    async fn send(&self, request: Request<Bytes>, deadline: Option<Time>) -> Result<Response<Body>, Fault>;

    /// The same text without anything secret that this transport sends.
    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }

    /// Returns the present time.
    fn now(&self) -> Time;
}

/// A transport that several providers share.
pub type SharedTransport = Arc<dyn Transport>;

/// A fault without anything secret in its words.
pub(crate) fn redacted(mut fault: Fault, transport: &SharedTransport) -> Fault {
    fault.message = transport.redact(&fault.message);
    fault
}

/// The body of a response, as it comes in. Dropping it ends the exchange.
pub struct Body(Pin<Box<dyn Chunks>>);

/// The chunks of a body.
pub trait Chunks: Stream<Item = Result<Bytes, Fault>> + Send {
    /// Tells the stream that nothing but its end is of interest any more. Returns whether it will end soon then, whatever
    /// the server does (default: it will not, and may as well be dropped).
    ///
    /// A connection of HTTP/1.1 serves the next request only if the body before it was read to its end (RFC 9112, section
    /// 9.3).
    fn finish_soon(self: Pin<&mut Self>) -> bool {
        false
    }
}

/// A stream that makes no promise about its end.
struct Plain<S>(Pin<Box<S>>);

impl<S: Stream> Stream for Plain<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl<S: Stream<Item = Result<Bytes, Fault>> + Send> Chunks for Plain<S> {}

impl Body {
    /// The body that a stream of chunks brings.
    pub fn new(chunks: impl Stream<Item = Result<Bytes, Fault>> + Send + 'static) -> Self {
        Self(Box::pin(Plain(Box::pin(chunks))))
    }

    /// The body that a stream of chunks brings which can be told to end soon.
    pub fn of_chunks(chunks: impl Chunks + 'static) -> Self {
        Self(Box::pin(chunks))
    }

    /// Tells the body that nothing but its end is of interest any more. Returns whether it will end soon then; one that
    /// will not is dropped.
    pub fn finish_soon(&mut self) -> bool {
        self.0.as_mut().finish_soon()
    }

    /// Waits for all of it.
    ///
    /// # Errors
    /// The fault that broke it off; [`FaultKind::BadWire`] if it is longer than `most` bytes.
    pub async fn collect(mut self, most: usize) -> Result<Vec<u8>, Fault> {
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await {
            all.extend_from_slice(&chunk?);
            if all.len() > most {
                return Err(Fault::new(
                    FaultKind::BadWire,
                    format!("the answer is longer than {most} bytes"),
                ));
            }
        }
        Ok(all)
    }

    /// Waits for its beginning, at most so many bytes; what breaks it off ends it.
    pub async fn beginning(mut self, most: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < most {
            match self.chunk().await {
                Some(Ok(chunk)) => all.extend_from_slice(&chunk),
                Some(Err(_)) | None => break,
            }
        }
        all.truncate(most);
        all
    }

    async fn chunk(&mut self) -> Option<Result<Bytes, Fault>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(Once(Some(bytes.into())))
    }
}

impl Stream for Body {
    type Item = Result<Bytes, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Body")
    }
}

/// One chunk that is there already.
struct Once(Option<Bytes>);

impl Stream for Once {
    type Item = Result<Bytes, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}
