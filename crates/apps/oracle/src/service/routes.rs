use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, Method, Request, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use formwork_core::{Error, ErrorKind};
use formwork_extract::CancellationToken;
use formwork_serve::{Kept, Queue, QueueError, RequestId};
use hyper::body::Incoming;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::json;

use super::problem::{Kind, Problem};
use super::{Limits, Service, body};
use crate::Scored;
use crate::metrics;
use crate::wallet::Wallet;

/// The paths of the service.
const SCORE: &str = "/v1/score";
const HEALTH: &str = "/health";
const METRICS: &str = "/metrics";

/// The state behind all routes.
#[derive(Clone)]
pub(super) struct Routes {
    shared: Arc<Shared>,
    router: TowerToHyperService<Router>,
}

impl Routes {
    pub(super) fn new(service: Service) -> Self {
        let queue = Queue::new(service.limits.max_concurrent, service.limits.max_waiting);
        let shared = Arc::new(Shared { queue, service });
        let router = Router::new()
            .route(SCORE, post(score))
            .route(HEALTH, get(health))
            .route(METRICS, get(fetch))
            .fallback(nowhere)
            .method_not_allowed_fallback(no_method)
            .with_state(Arc::clone(&shared));
        Self { shared, router: TowerToHyperService::new(router) }
    }

    /// Handles a request, with its id, metrics and log.
    pub(super) async fn answer(self, mut request: Request<Incoming>) -> Result<Response, Infallible> {
        let start = Instant::now();
        let id = RequestId::of(request.headers());
        let method = known(request.method());
        let path = request.uri().path();
        let route = [SCORE, HEALTH, METRICS].into_iter().find(|route| *route == path).unwrap_or("other");
        request.extensions_mut().insert(id.clone());
        let mut response = self.router.call(request).await?;
        id.write_to(response.headers_mut());
        let (status, took) = (response.status(), start.elapsed());
        self.shared.service.metrics.request(method, route, status.as_str(), took);
        tracing::info!(
            target: "formwork_oracle",
            request_id = id.as_str(),
            method,
            route,
            status = status.as_u16(),
            took_ms = took.as_secs_f64() * 1000.0,
            "answered"
        );
        Ok(response)
    }
}

struct Shared {
    service: Service,
    queue: Queue,
}

/// Returns the method for metrics, where clients must not create labels.
fn known(method: &Method) -> &'static str {
    let names = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"];
    names.into_iter().find(|name| *name == method.as_str()).unwrap_or("_OTHER")
}

async fn score(
    State(shared): State<Arc<Shared>>,
    Extension(id): Extension<RequestId>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    authorize(&shared.service, &parts.headers, &id)?;
    let Limits { max_body, read_timeout, timeout, .. } = shared.service.limits;
    let media = body::Media::of(&parts.headers, &id)?;
    let bytes = body::read(&parts.headers, body, max_body, read_timeout, &id).await?;
    let wallet = media.wallet(bytes, &id).await?;
    let done = tokio::time::timeout(timeout, run(&shared, wallet, &id)).await;
    let scored = done.unwrap_or_else(|_| Err(too_late(timeout, &id)))?;
    let mut body = Vec::with_capacity(1 << 10);
    // Strings and numbers can always be serialized.
    _ = serde_json::to_writer(&mut body, &scored);
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    let mut response = (headers, body).into_response();
    // The response object is the specification's, so the evidence about the score is a header.
    if let Ok(evidence) = HeaderValue::from_str(&scored.event.evidence()) {
        response.headers_mut().insert(EVIDENCE, evidence);
    }
    Ok(response)
}

/// Scores a wallet in its turn. If the client disconnects, the run is cancelled instead of dropped, so that its cost is
/// in the ledger and the metrics.
async fn run(shared: &Shared, wallet: Wallet, id: &RequestId) -> Result<Scored, Problem> {
    let Limits { timeout, max_waiting, .. } = shared.service.limits;
    let _turn = shared.queue.take("", timeout).await.map_err(|error| match error {
        QueueError::Full => {
            let detail = format!("{max_waiting} requests wait already: come back in a second");
            Problem::new(Kind::BUSY, id, detail)
        }
        QueueError::TooLate => too_late(timeout, id),
    })?;
    let cancel = CancellationToken::new();
    let (oracle, name, token) = (shared.service.oracle.clone(), id.as_str().to_owned(), cancel.clone());
    let run = async move { oracle.request(&wallet).with_id(name).with_cancel(token).run().await };
    Kept::new(run, cancel).await.map_err(|error| no_score(id, &error))
}

fn too_late(timeout: Duration, id: &RequestId) -> Problem {
    let seconds = timeout.as_secs_f64();
    let detail = format!("there was no score after {seconds} seconds, and the call is broken off");
    Problem::new(Kind::TIMEOUT, id, detail)
}

fn no_score(id: &RequestId, error: &Error) -> Problem {
    let kind = match error.kind() {
        ErrorKind::Deadline => Kind::TIMEOUT,
        ErrorKind::Cancelled => Kind::SHUTTING_DOWN,
        _ => Kind::NO_SCORE,
    };
    Problem::new(kind, id, error.to_string())
}

async fn health(State(shared): State<Arc<Shared>>) -> Response {
    let body = json!({"status": "ok", "prompt": shared.service.oracle.prompt()});
    ([(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

async fn fetch(
    State(shared): State<Arc<Shared>>,
    Extension(id): Extension<RequestId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    authorize(&shared.service, &headers, &id)?;
    Ok(([(header::CONTENT_TYPE, metrics::MEDIA_TYPE)], shared.service.metrics.render()).into_response())
}

/// The header with what is known about the worth of a score.
const EVIDENCE: &str = "x-formwork-calibration";

fn authorize(service: &Service, headers: &HeaderMap, id: &RequestId) -> Result<(), Problem> {
    match &service.key {
        Some(key) if !key.is_in(headers) => {
            let detail = "send the key as `Authorization: Bearer …` or as `x-api-key`";
            Err(Problem::new(Kind::UNAUTHORIZED, id, detail))
        }
        _ => Ok(()),
    }
}

async fn nowhere(Extension(id): Extension<RequestId>) -> Problem {
    Problem::new(Kind::NOT_FOUND, &id, format!("there are POST {SCORE}, GET {HEALTH} and GET {METRICS}"))
}

async fn no_method(Extension(id): Extension<RequestId>, request: Request<Body>) -> Response {
    let is_score = request.uri().path() == SCORE;
    let (method, allow) = if is_score { ("POST", "POST") } else { ("GET", "GET, HEAD") };
    let mut response = Problem::new(Kind::METHOD_NOT_ALLOWED, &id, format!("use {method}")).into_response();
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    response
}
