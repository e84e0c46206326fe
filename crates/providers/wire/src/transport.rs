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
/// It adds the server's address, the key, and headers from the configuration. A response with any status is `Ok`; a fault
/// means that there was no response.
///
/// ```
/// use bytes::Bytes;
/// use formwork_core::{Fault, FaultKind, Time};
/// use formwork_wire::http::{Request, Response};
/// use formwork_wire::{Body, Transport};
///
/// /// Responds to every request with the same body.
/// #[derive(Debug)]
/// struct Canned(&'static str);
///
/// #[async_trait::async_trait]
/// impl Transport for Canned {
///     async fn send(&self, _: Request<Bytes>, _: Option<Time>) -> Result<Response<Body>, Fault> {
///         Ok(Response::new(Body::from(self.0.as_bytes().to_vec())))
///     }
///     fn now(&self) -> Time {
///         Time(0)
///     }
/// }
/// ```
#[async_trait]
pub trait Transport: Send + Sync + fmt::Debug {
    /// Sends a request whose URI is a path relative to the server's address. A response, body included, that is not
    /// complete by the deadline is a [`FaultKind::Timeout`].
    ///
    /// # Errors
    /// [`FaultKind::Unreachable`], [`FaultKind::Timeout`] or [`FaultKind::BadWire`]. If the connection was closed before a
    /// response: the fault of [`closed_early`](crate::closed_early).
    async fn send(&self, request: Request<Bytes>, deadline: Option<Time>) -> Result<Response<Body>, Fault>;

    /// Returns the text without the secrets that this transport sends (default: unchanged).
    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }

    /// Returns the current time.
    fn now(&self) -> Time;
}

/// A transport that several providers share.
///
/// ```
/// use std::sync::Arc;
/// use formwork_wire::{SharedTransport, cassette::{Cassette, Player}};
///
/// let transport: SharedTransport = Arc::new(Player::new(Cassette::default()));
/// assert_eq!(transport.redact("unchanged"), "unchanged");
/// ```
pub type SharedTransport = Arc<dyn Transport>;

/// Returns a fault whose message is redacted.
pub(crate) fn redacted(mut fault: Fault, transport: &SharedTransport) -> Fault {
    fault.message = transport.redact(&fault.message);
    fault
}

/// The body of a response, as a stream of chunks. Dropping it ends the exchange.
///
/// ```
/// use formwork_core::Fault;
/// use formwork_wire::http::Response;
/// use formwork_wire::Body;
///
/// async fn text(response: Response<Body>) -> Result<String, Fault> {
///     let bytes = response.into_body().collect(1024 * 1024).await?;
///     Ok(String::from_utf8_lossy(&bytes).into_owned())
/// }
/// ```
pub struct Body(Pin<Box<dyn Chunks>>);

/// The chunks of a body. Implement it for a connection that can be reused, and pass it to [`Body::of_chunks`].
///
/// ```
/// use std::pin::Pin;
/// use std::task::{Context, Poll};
/// use bytes::Bytes;
/// use formwork_core::Fault;
/// use formwork_wire::{Body, Chunks};
/// use futures_core::Stream;
///
/// /// A body that has ended.
/// struct Empty;
///
/// impl Stream for Empty {
///     type Item = Result<Bytes, Fault>;
///     fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
///         Poll::Ready(None)
///     }
/// }
///
/// impl Chunks for Empty {
///     fn finish_soon(self: Pin<&mut Self>) -> bool {
///         true
///     }
/// }
///
/// assert!(Body::of_chunks(Empty).finish_soon());
/// ```
pub trait Chunks: Stream<Item = Result<Bytes, Fault>> + Send {
    /// Announces that only the end of the stream is needed. Returns whether the stream will then end soon, even if the server
    /// does not respond (default: `false`, which means that the caller should drop the stream).
    ///
    /// An HTTP/1.1 connection can be reused only if the previous body was read to its end (RFC 9112, section 9.3).
    fn finish_soon(self: Pin<&mut Self>) -> bool {
        false
    }
}

/// A stream that cannot be ended early.
struct Plain<S>(Pin<Box<S>>);

impl<S: Stream> Stream for Plain<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl<S: Stream<Item = Result<Bytes, Fault>> + Send> Chunks for Plain<S> {}

impl Body {
    /// Creates a body from a stream of chunks.
    pub fn new(chunks: impl Stream<Item = Result<Bytes, Fault>> + Send + 'static) -> Self {
        Self(Box::pin(Plain(Box::pin(chunks))))
    }

    /// Creates a body from a stream of chunks that can end early.
    pub fn of_chunks(chunks: impl Chunks + 'static) -> Self {
        Self(Box::pin(chunks))
    }

    /// Announces that only the end of the body is needed. Returns whether the body will end soon. Drop it otherwise.
    pub fn finish_soon(&mut self) -> bool {
        self.0.as_mut().finish_soon()
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// The fault that ended the body, or [`FaultKind::BadWire`] if it is longer than `max_bytes` bytes.
    pub async fn collect(mut self, max_bytes: usize) -> Result<Vec<u8>, Fault> {
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await {
            all.extend_from_slice(&chunk?);
            if all.len() > max_bytes {
                return Err(Fault::new(
                    FaultKind::BadWire,
                    format!("the response is longer than {max_bytes} bytes"),
                ));
            }
        }
        Ok(all)
    }

    /// Reads up to `max_bytes` bytes of the body, and stops at its end or at a fault.
    pub async fn beginning(mut self, max_bytes: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < max_bytes {
            match self.chunk().await {
                Some(Ok(chunk)) => all.extend_from_slice(&chunk),
                Some(Err(_)) | None => break,
            }
        }
        all.truncate(max_bytes);
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

formwork_core::debug_fields!(Body {});

/// A stream of one chunk.
struct Once(Option<Bytes>);

impl Stream for Once {
    type Item = Result<Bytes, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}
