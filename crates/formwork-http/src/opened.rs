use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

/// The number of connections that a client has begun to open. A request during which it stays the same was sent over a
/// connection that was kept from an earlier one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Opened(Arc<AtomicU64>);

impl Opened {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

impl<S> Layer<S> for Opened {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, opened: self.clone() }
    }
}

/// A connector that counts what it opens.
#[derive(Debug, Clone)]
pub(crate) struct Counted<S> {
    inner: S,
    opened: Opened,
}

impl<S: Service<R>, R> Service<R> for Counted<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.opened.0.fetch_add(1, Ordering::SeqCst);
        self.inner.call(request)
    }
}
