use std::cell::Cell;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

tokio::task_local! {
    /// Whether the current request began to open a connection.
    static OPENED: Cell<bool>;
}

/// Runs a request and returns its result, and whether it began to open a connection; otherwise it used a kept connection.
pub(crate) async fn watched<F: Future>(request: F) -> (F::Output, bool) {
    OPENED.scope(Cell::new(false), async { (request.await, OPENED.with(Cell::get)) }).await
}

/// A connector layer that records for [`watched`] requests that a connection is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noting;

impl<S> Layer<S> for Noting {
    type Service = Noted<S>;

    fn layer(&self, inner: S) -> Noted<S> {
        Noted(inner)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Noted<S>(S);

impl<S: Service<R>, R> Service<R> for Noted<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> S::Future {
        // No request watches a connection that is opened in the background.
        let _ = OPENED.try_with(|opened| opened.set(true));
        self.0.call(request)
    }
}
