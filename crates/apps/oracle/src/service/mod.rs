//! The oracle over HTTP/1.1.
//!
//! | request | response |
//! |---|---|
//! | `POST /v1/score` with a wallet | 200 and a [`Scored`](crate::Scored), from a model or the fallback |
//! | `GET /health` | 200 and the version of the prompt |
//! | `GET /metrics` | 200 and [`Metrics`] in the text format of Prometheus |
//!
//! A wallet is JSON (`application/json`, see [`Wallet`](crate::wallet::Wallet)) or its transactions as CSV (`text/csv`).
//! Every other response is a problem document (RFC 9457, `application/problem+json`) with the reason and the fix:
//!
//! | status | reason |
//! |---|---|
//! | 400 | the body is not JSON, or incomplete |
//! | 401 | the service requires a key, which is missing or wrong |
//! | 404, 405 | there is no such resource, or it does not support the method |
//! | 408 | the body did not arrive in time |
//! | 413 | the body is too long |
//! | 415 | the body is neither JSON nor CSV |
//! | 422 | the wallet is invalid; the document has its `path` or `line` |
//! | 502 | no model gave a score, and there is no fallback |
//! | 503 | too many requests are waiting, or the service is shutting down |
//! | 504 | the score took too long; its calls are cancelled |
//!
//! Every response has an `x-request-id`: the request's own if it has one (1 to 128 visible ASCII characters), otherwise a
//! generated one. It is also the id in logs and in the ledger. A service with a key requires it for `/v1/score` and
//! `/metrics`, as `Authorization: Bearer` or as `x-api-key`; `/health` is always open.

mod auth;
mod body;
mod problem;
mod routes;

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

pub use auth::{ApiKey, ApiKeyError};
use formwork_serve::{Connections, Draining};

use crate::Oracle;
use crate::metrics::Metrics;

/// The limits of the service.
///
/// ```
/// use formwork_oracle::service::Limits;
///
/// let mut limits = Limits::default();
/// limits.max_concurrent = 8;
/// assert_eq!((limits.max_body, limits.timeout.as_secs()), (1 << 20, 130));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum size of a body in bytes (default: 1 MiB, about seven thousand transactions).
    pub max_body: usize,
    /// The time limit for receiving the head of a request, and again for its body (default: 10 seconds).
    pub read_timeout: Duration,
    /// The time limit of a score, including the time in the queue (default: 130 seconds, a little more than the
    /// oracle's own deadline, after which the fallback answers).
    pub timeout: Duration,
    /// The maximum number of scores at the same time (default: 64). Further requests wait.
    pub max_concurrent: usize,
    /// The maximum number of waiting requests (default: 1024). Further requests get status 503.
    pub max_waiting: usize,
    /// The maximum number of open connections (default: 2048). Further connections wait to be accepted.
    pub max_connections: usize,
    /// The time limit for open requests after the shutdown began (default: 30 seconds).
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body: 1 << 20,
            read_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(130),
            max_concurrent: 64,
            max_waiting: 1_024,
            max_connections: 2_048,
            drain: Duration::from_secs(30),
        }
    }
}

/// The HTTP service. Clones share the oracle and the limits.
///
/// ```
/// use std::{net::TcpListener, sync::Arc};
///
/// use formwork_oracle::{Oracle, metrics::Metrics, service::Service};
/// use formwork_testkit::Scripted;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let metrics = Metrics::new();
/// let model = Arc::new(Scripted::new(["{}"]));
/// let oracle = Oracle::builder().with_target(model).with_observer(metrics.clone()).build()?;
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// // Ends at once here; a program would wait for a signal.
/// Service::new(oracle, metrics).serve(listener, async {}).await?;
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct Service {
    oracle: Oracle,
    metrics: Metrics,
    limits: Limits,
    key: Option<Arc<ApiKey>>,
}

impl Service {
    /// Creates a service of this oracle. `GET /metrics` returns `metrics`, which should also observe the oracle.
    pub fn new(oracle: Oracle, metrics: Metrics) -> Self {
        Self { oracle, metrics, limits: Limits::default(), key: None }
    }

    /// Sets the limits (default: [`Limits::default`]).
    pub const fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the key that requests require (default: none, the service is open).
    pub fn with_api_key(mut self, key: ApiKey) -> Self {
        self.key = Some(Arc::new(key));
        self
    }

    /// Serves until `shutdown` completes. Then it accepts no more requests, and returns when the open ones have their
    /// responses or [`Limits::drain`] has passed. Needs a tokio runtime with time and IO.
    ///
    /// # Errors
    /// The error of a listener that cannot be used. A failed connection is not an error.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        let limits = self.limits;
        let routes = routes::Routes::new(self);
        let connections = Connections {
            read_timeout: limits.read_timeout,
            write_timeout: limits.read_timeout,
            max: limits.max_connections,
            max_per_address: limits.max_connections,
            drain: limits.drain,
            accept_while_draining: false,
            tls: None,
        };
        let answer = move |request| routes.clone().answer(request);
        formwork_serve::serve(listener, answer, connections, Draining::new(), shutdown).await
    }
}
