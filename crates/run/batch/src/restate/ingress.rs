//! Requests to Restate.

use std::time::Duration;

use formwork_core::Fault;
use formwork_wire::batch::bad_request;
use formwork_wire::http::{Method, Request, StatusCode};
use formwork_wire::{Bytes, SharedTransport};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The longest time of a request. A row that takes longer is requested again, under the same key.
const LONGEST: Duration = Duration::from_secs(3600);

/// The maximum size of a response in bytes.
const MAX_RESPONSE: usize = 64 << 20;

/// One of Restate's two HTTP interfaces.
#[derive(Debug, Clone)]
pub(super) struct Client(pub(super) SharedTransport);

/// A response of Restate.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
}

impl Response {
    /// Returns Restate's message for an error.
    pub(super) fn message(&self) -> String {
        #[derive(Deserialize)]
        struct Problem {
            message: String,
        }
        let problem = serde_json::from_slice(&self.body).map(|problem: Problem| problem.message);
        problem.unwrap_or_else(|_| String::from_utf8_lossy(&self.body).chars().take(500).collect())
    }

    /// Returns the body of a success; `None` for any other response.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        self.status.is_success().then(|| serde_json::from_slice(&self.body).ok()).flatten()
    }
}

impl Client {
    pub(super) async fn get(&self, path: &str, limit: Duration) -> Result<Response, Fault> {
        self.send(Method::GET, path, None, Bytes::new(), limit).await
    }

    /// Posts a document, carried out once for each key.
    pub(super) async fn post(
        &self,
        path: &str,
        key: Option<&str>,
        body: impl Into<Bytes>,
        limit: Option<Duration>,
    ) -> Result<Response, Fault> {
        self.send(Method::POST, path, key, body.into(), limit.unwrap_or(LONGEST)).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Bytes,
        limit: Duration,
    ) -> Result<Response, Fault> {
        let mut request = Request::builder().method(method).uri(path).header("accept", "application/json");
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let request =
            request.body(body).map_err(|error| bad_request(format!("the request for {path}: {error}")))?;
        let deadline = self.0.now().after(limit);
        let (head, body) = self.0.send(request, Some(deadline)).await?.into_parts();
        Ok(Response { status: head.status, body: body.collect(MAX_RESPONSE).await? })
    }
}
