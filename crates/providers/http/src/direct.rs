//! Requests to servers on this machine, without TLS and proxies.
//!
//! reqwest parses the URL of each request three times, and wraps each in layers for redirects, retries and cookies, which this
//! crate does not use. For a server that answers at once, that takes more time than the request itself.

use std::convert::Infallible;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use flate2::write::MultiGzDecoder;
use futures_core::Stream;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tower_layer::Layer as _;

use crate::client::at_once_again;
use crate::fault::Failure;
use crate::opened::{Noted, Noting};

/// The time after which TCP probes an idle connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A client that keeps connections.
#[derive(Debug, Clone)]
pub(crate) struct Direct(Client<Noted<HttpConnector>, Once>);

impl Direct {
    pub(crate) fn new(connect: Duration) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_keepalive(Some(KEEP_ALIVE));
        connector.set_connect_timeout(Some(connect));
        let mut builder = Client::builder(TokioExecutor::new());
        // The retry policy decides about repetitions, as for the client of reqwest.
        builder.retry_canceled_requests(false).pool_timer(TokioTimer::new());
        Self(builder.build(Noting.layer(connector)))
    }

    /// Sends a request, and sends it again as [`Kept::execute`](crate::client::Kept::execute) does.
    pub(crate) async fn send(
        &self,
        (method, uri, headers, body): (&Method, &Uri, &HeaderMap, &Bytes),
        resends: bool,
    ) -> Result<Response<Pieces>, Failure> {
        // Borrowed until a request is made, because futures are copied whole into those that contain them.
        let request = || {
            let mut request = Request::new(Once(Some(body.clone()).filter(|body| !body.is_empty())));
            (*request.method_mut(), *request.uri_mut()) = (method.clone(), uri.clone());
            request.headers_mut().clone_from(headers);
            self.0.request(request)
        };
        let response = at_once_again(request(), || resends.then(request)).await?;
        let (mut head, body) = response.into_parts();
        let is_packed = head.headers.get(CONTENT_ENCODING).is_some_and(|coding| coding == "gzip");
        let unpacking = is_packed.then(|| {
            head.headers.remove(CONTENT_ENCODING);
            head.headers.remove(CONTENT_LENGTH);
            Unpacking { decoder: MultiGzDecoder::new(Vec::new()), packed: Bytes::new(), is_empty: true }
        });
        Ok(Response::from_parts(head, Pieces { body, unpacking }))
    }
}

/// Adds the headers that reqwest adds.
pub(crate) fn complete(headers: &mut HeaderMap) {
    static OWN: [(http::HeaderName, HeaderValue); 3] = [
        (ACCEPT, HeaderValue::from_static("*/*")),
        (ACCEPT_ENCODING, HeaderValue::from_static("gzip")),
        (USER_AGENT, HeaderValue::from_static(concat!("formwork/", env!("CARGO_PKG_VERSION")))),
    ];
    for (name, value) in &OWN {
        if !headers.contains_key(name) {
            headers.insert(name, value.clone());
        }
    }
}

/// The body of a request, which is sent at once.
#[derive(Debug)]
pub(crate) struct Once(pub(crate) Option<Bytes>);

impl Body for Once {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// The body of a response.
pub(crate) struct Pieces {
    body: Incoming,
    unpacking: Option<Unpacking>,
}

/// The state of a body in gzip.
struct Unpacking {
    decoder: MultiGzDecoder<Vec<u8>>,
    /// Bytes that came and are not unpacked yet.
    packed: Bytes,
    /// Whether nothing came yet. An empty body is not gzip, and is no error.
    is_empty: bool,
}

impl Unpacking {
    /// Unpacks a part of what came, so that a small piece does not become a large one in memory. Returns `None` if everything is
    /// unpacked.
    fn next(&mut self) -> Option<io::Result<Bytes>> {
        const STEP: usize = 4 << 10;

        while !self.packed.is_empty() {
            let part = self.packed.get(..STEP).unwrap_or(&self.packed);
            let taken = part.len();
            if let Err(error) = self.decoder.write_all(part) {
                return Some(Err(invalid(error)));
            }
            self.packed.advance(taken);
            let unpacked = std::mem::take(self.decoder.get_mut());
            if !unpacked.is_empty() {
                return Some(Ok(unpacked.into()));
            }
        }
        None
    }

    /// Returns the rest at the end of the body.
    fn end(&mut self) -> Option<io::Result<Bytes>> {
        if std::mem::replace(&mut self.is_empty, true) {
            return None;
        }
        if let Err(error) = self.decoder.try_finish() {
            return Some(Err(invalid(error)));
        }
        let rest = std::mem::take(self.decoder.get_mut());
        (!rest.is_empty()).then(|| Ok(rest.into()))
    }
}

/// Every error of the decoder means that the bytes are wrong.
fn invalid(error: io::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl Stream for Pieces {
    type Item = Result<Bytes, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(unpacked) = this.unpacking.as_mut().and_then(Unpacking::next) {
                return Poll::Ready(Some(unpacked.map_err(Failure::Body)));
            }
            let frame = match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(Failure::Hyper(error)))),
                Poll::Ready(None) => {
                    let rest = this.unpacking.as_mut().and_then(Unpacking::end);
                    return Poll::Ready(rest.map(|rest| rest.map_err(Failure::Body)));
                }
            };
            // Trailers are not used.
            let Ok(bytes) = frame.into_data() else { continue };
            match &mut this.unpacking {
                None => return Poll::Ready(Some(Ok(bytes))),
                Some(unpacking) => {
                    unpacking.is_empty &= bytes.is_empty();
                    unpacking.packed = bytes;
                }
            }
        }
    }
}
