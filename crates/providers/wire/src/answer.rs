use std::pin::Pin;
use std::task::{Context, Poll, ready};

use formwork_core::{Delta, Fault, RateLimit};
use futures_core::Stream;
use http::response::Parts;

use crate::fault::{rate_limits, request_id};
use crate::transport::redacted;
use crate::{Body, Decoder, Deltas, SharedTransport};

/// The maximum number of bytes that are read after the final delta to reach the end of the body. A stream has at most a few
/// lines there.
const REST: usize = 64 * 1024;

/// A response body that is decoded while it is read. Nothing is read ahead, so a slow reader applies backpressure.
pub(crate) struct Decoding {
    /// The body; `None` once it has ended.
    body: Option<Body>,
    /// The final delta, and the number of bytes that may still be read of the body. The connection can be reused only after
    /// the end of the body.
    end: Option<(Delta, usize)>,
    decoder: Box<dyn Decoder>,
    ready: Deltas,
    /// The fault that ended the body. It is returned after the deltas decoded before it, because these are paid for.
    fault: Option<Fault>,
    transport: SharedTransport,
    status: u16,
    request_id: Option<String>,
    /// The rate limits that the headers report.
    limits: Vec<RateLimit>,
    /// Whether the bytes of the body are passed on as well.
    keeps: bool,
}

impl Decoding {
    pub(crate) fn new(
        body: Body,
        decoder: Box<dyn Decoder>,
        transport: SharedTransport,
        head: &Parts,
        keeps: bool,
    ) -> Self {
        let (status, request_id) = (head.status.as_u16(), request_id(head));
        let limits = rate_limits(head, transport.now());
        Self {
            body: Some(body),
            end: None,
            decoder,
            ready: Deltas::new(),
            fault: None,
            transport,
            status,
            request_id,
            limits,
            keeps,
        }
    }

    /// Reads the rest of the body after the final delta. Errors in it do not affect the completion. Returns the bytes if they are
    /// passed on.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Option<Delta>> {
        while let (Some(body), Some((_, left))) = (&mut self.body, &mut self.end) {
            match ready!(Pin::new(body).poll_next(cx)) {
                Some(Ok(chunk)) if chunk.len() <= *left => {
                    *left -= chunk.len();
                    if self.keeps {
                        return Poll::Ready(Some(Delta::Body(chunk.to_vec())));
                    }
                }
                _ => break,
            }
        }
        Poll::Ready(None)
    }

    /// Ends the body with a fault, to which the status and the identifier of the response are added.
    fn broken(&mut self, mut fault: Fault) -> Fault {
        self.body = None;
        fault.status = fault.status.or(Some(self.status));
        fault.request_id = fault.request_id.take().or_else(|| self.request_id.take());
        redacted(fault, &self.transport)
    }
}

impl Stream for Decoding {
    type Item = Result<Delta, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if this.end.is_some() {
                if let Some(rest) = ready!(this.poll_rest(cx)) {
                    return Poll::Ready(Some(Ok(rest)));
                }
                this.body = None;
                return Poll::Ready(this.end.take().map(|(end, _)| Ok(end)));
            }
            if let Some(mut delta) = this.ready.pop_front() {
                if let Delta::End(end) = &mut delta {
                    end.limits = std::mem::take(&mut this.limits);
                    this.fault = None;
                    this.ready.clear();
                    if this.body.as_mut().is_some_and(Body::finish_soon) {
                        this.end = Some((delta, REST));
                        continue;
                    }
                    this.body = None;
                }
                return Poll::Ready(Some(Ok(delta)));
            }
            if let Some(fault) = this.fault.take() {
                return Poll::Ready(Some(Err(fault)));
            }
            let Some(body) = &mut this.body else { return Poll::Ready(None) };
            let done = match ready!(Pin::new(body).poll_next(cx)) {
                Some(Ok(chunk)) => {
                    if this.keeps {
                        this.ready.push_back(Delta::Body(chunk.to_vec()));
                    }
                    this.decoder.push_bytes(chunk, &mut this.ready)
                }
                Some(Err(fault)) => Err(fault),
                None => {
                    this.body = None;
                    this.decoder.end(&mut this.ready)
                }
            };
            if let Err(fault) = done {
                this.fault = Some(this.broken(fault));
            }
        }
    }
}
