//! The oracle over HTTP/1.1.
//!
//! | request | answer |
//! |---|---|
//! | `POST /v1/score` with a wallet | 200 and a [`Scored`](crate::Scored), whether a model gave it or the fallback |
//! | `GET /health` | 200 and the prompt that is used |
//! | `GET /metrics` | 200 and [`Metrics`] as Prometheus fetches them |
//!
//! A wallet is JSON (`application/json`, see [`Wallet`](crate::wallet::Wallet)) or its transactions as CSV (`text/csv`).
//! Everything else is a problem document (RFC 9457, `application/problem+json`) that says what would be right:
//!
//! | status | when |
//! |---|---|
//! | 400 | the body is no JSON |
//! | 401 | the key is missing or wrong, where there is one |
//! | 404, 405 | there is no such resource, or not by this method |
//! | 408 | the body did not come in time |
//! | 413 | the body is too long |
//! | 415 | the body is neither JSON nor CSV |
//! | 422 | the wallet cannot be: with `path` or `line` |
//! | 502 | no model gave a score, and there is no fallback |
//! | 503 | too many requests wait already, or the service ends |
//! | 504 | the score took too long; the call is broken off |
//!
//! Every answer has an `x-request-id`: the request's own if it has one (1 to 128 visible ASCII characters), which is also
//! its name in logs and in the ledger. With a key, `/v1/score` and `/metrics` want it as `Authorization: Bearer` or as
//! `x-api-key`; `/health` does not.

mod auth;
mod body;
mod problem;
mod routes;

use std::fmt;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most bytes of a body; 1 MiB by default, some seven thousand transactions.
    pub max_body: usize,
    /// How long a request's head and its body may take to come, each; 10 seconds by default.
    pub read_timeout: Duration,
    /// How long a score may take, the wait for its turn included; 130 seconds by default, a little more than an oracle
    /// takes before its fallback answers.
    pub timeout: Duration,
    /// How many scores are made at once; 64 by default. What comes above waits.
    pub max_concurrent: usize,
    /// How many may wait; 1024 by default. What comes above is told to come back.
    pub max_waiting: usize,
    /// How many connections are open at once; 2048 by default. What comes above waits to be taken.
    pub max_connections: usize,
    /// How long requests may go on once the service is to end; 30 seconds by default.
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

/// The HTTP service. Clones serve the same oracle and share its limits.
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
#[derive(Clone)]
pub struct Service {
    oracle: Oracle,
    metrics: Metrics,
    limits: Limits,
    key: Option<Arc<ApiKey>>,
}

impl Service {
    /// Serves this oracle. `metrics` is what `GET /metrics` shows: the same that observes the oracle.
    pub fn new(oracle: Oracle, metrics: Metrics) -> Self {
        Self { oracle, metrics, limits: Limits::default(), key: None }
    }

    /// Sets the limits (default: [`Limits::default`]).
    #[must_use]
    pub const fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the key that it asks for (default: none is asked for).
    #[must_use]
    pub fn with_api_key(mut self, key: ApiKey) -> Self {
        self.key = Some(Arc::new(key));
        self
    }

    /// Serves until `shutdown` is done, then takes no more requests and ends when those that are open have their answers,
    /// or [`Limits::drain`] has passed. Needs tokio with time and IO.
    ///
    /// # Errors
    /// If the listener cannot be used. A connection that fails is its client's business.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        let limits = self.limits;
        let routes = routes::Routes::new(self);
        let connections = Connections {
            read_timeout: limits.read_timeout,
            max: limits.max_connections,
            drain: limits.drain,
            accept_while_draining: false,
        };
        let answer = move |request| routes.clone().answer(request);
        formwork_serve::serve(listener, answer, connections, Draining::new(), shutdown).await
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("oracle", &self.oracle)
            .field("limits", &self.limits)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
