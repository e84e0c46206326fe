use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use formwork_serve::RequestId;
use hyper::body::Incoming;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;

use super::beside::{Beside, COUNT_TOKENS, EMBEDDINGS, embed};
use super::refused::{Logged, Refusal, refused};
use super::{Shared, beside, chat, extract, job, lists, once, page, pages, ready};
use crate::guard;
use crate::problem::{Kind, Problem};
use crate::protocol::{ANTHROPIC, OLLAMA, OLLAMA_GENERATE, OPENAI, Protocol, RESPONSES};
use crate::seen::{Refused, Seen};
use crate::trace;

/// The resources that answer dialogues, with their protocols.
static ANSWERS: [(&str, &Protocol); 5] = [
    ("/v1/chat/completions", &OPENAI),
    ("/v1/responses", &RESPONSES),
    ("/v1/messages", &ANTHROPIC),
    ("/api/chat", &OLLAMA),
    ("/api/generate", &OLLAMA_GENERATE),
];

/// Returns the protocol of a resource that answers dialogues.
pub(super) fn dialogue(path: &str) -> Option<&'static Protocol> {
    ANSWERS.iter().find(|(known, _)| *known == path).map(|(_, protocol)| *protocol)
}

/// The state that answers requests.
#[derive(Clone)]
pub(super) struct Routes {
    shared: Arc<Shared>,
    router: TowerToHyperService<Router>,
}

impl Routes {
    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let answers = |router: Router<_>, (path, protocol)| router.route(path, answers(protocol));
        let router = ANSWERS
            .into_iter()
            .fold(Router::new(), answers)
            .route("/v1/messages/count_tokens", besides(COUNT_TOKENS))
            .route("/v1/embeddings", besides(EMBEDDINGS))
            .route("/api/embed", besides(embed("/api/embed")))
            .route("/api/embeddings", besides(embed("/api/embeddings")))
            .route("/v1/extract", post(extract::extract))
            .route("/v1/models", get(lists::models))
            .route("/v1/models/{*name}", get(lists::model))
            .route("/api/tags", get(lists::tags))
            .route("/api/ps", get(lists::running))
            .route("/api/show", post(lists::show))
            .route("/api/version", get(lists::version))
            .route("/openapi.json", get(openapi))
            .route("/healthz", get(healthy))
            .route("/readyz", get(ready))
            .route("/metrics", get(metrics))
            .route("/v1/runs/{id}", get(pages::run))
            .merge(page::routes())
            .fallback(nowhere)
            .method_not_allowed_fallback(no_method)
            .with_state(Arc::clone(&shared));
        Self { shared, router: TowerToHyperService::new(router) }
    }

    /// Responds to one request: assigns its identifier, rejects it early if possible, counts and logs it.
    pub(super) async fn answer(self, request: Request<Incoming>) -> Result<Response, Infallible> {
        let id = RequestId::of(request.headers());
        let path = request.uri().path();
        let protocol = protocol_of(path, request.headers());
        let line = (protocol.name, guard::known(request.method()), path);
        let refuse = self.shared.telemetry.clone().map(|telemetry| {
            Box::new(move |seen: &Seen, status| telemetry.refused(seen, status)) as Box<Refused>
        });
        let seen = Seen::new(&self.shared.metrics, refuse, id, line, trace::of(request.headers()));
        let is_draining = self.shared.draining.is_set();
        let origin = self.origin(&request);
        let admitted = match &origin {
            Ok(_) => self.admitted(&request, is_draining),
            Err(problem) => Err(problem.clone()),
        };
        let origin = origin.ok().flatten();
        let mut response = match admitted {
            Err(problem) => refused(protocol, &problem),
            Ok(()) if request.method() == Method::OPTIONS && origin.is_some() => preflight(request.headers()),
            Ok(()) => tokio::select! {
                biased;
                response = self.called(&seen, protocol, request) => response,
                () = self.shared.draining.is_over() => {
                    let message = "the service stopped before there was a response";
                    refused(protocol, &Problem::new(Kind::Busy, message))
                }
            },
        };
        if let Some(origin) = origin {
            // Without these headers, a page sees no status and no error.
            let headers = response.headers_mut();
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
            headers.insert(header::VARY, HeaderValue::from_static("origin"));
        }
        if is_draining {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        seen.request.write_to(response.headers_mut());
        if let Some(id) = response.headers().get("x-request-id").filter(|_| protocol.own == ANTHROPIC.own) {
            // Anthropic's clients read no other header.
            let id = id.clone();
            response.headers_mut().insert("request-id", id);
        }
        // A response that is given again names the run that it came from.
        response.headers_mut().entry(RUN).or_insert_with(|| named(&seen));
        let problem = response.extensions_mut().remove::<Logged>().map(|logged| logged.0);
        Ok(seen.answered(response, problem))
    }

    /// Calls the handler of a request; once, if it has an idempotency key.
    async fn called(&self, seen: &Arc<Seen>, protocol: &Protocol, request: Request<Incoming>) -> Response {
        let (router, own) = (self.router.clone(), Arc::clone(seen));
        let is_once = request.method() == Method::POST
            && request.headers().contains_key(once::KEY)
            && !page::is_page(request.uri().path());
        let request = request.map(Body::new);
        let call = move |request: Request<Body>| async move {
            let Ok::<Response, Infallible>(mut response) = own.scope(router.call(request)).await;
            response.headers_mut().insert(RUN, named(&own));
            response
        };
        match is_once {
            // Few requests have an idempotency key, and without the box the future of each would be larger.
            true => Box::pin(self.repeated(Arc::clone(seen), request, call))
                .await
                .unwrap_or_else(|problem| refused(protocol, &problem)),
            false => call(request).await,
        }
    }

    /// Calls the handler of a request with an idempotency key, unless it was called before.
    async fn repeated<F: Future<Output = Response> + Send + 'static>(
        &self,
        seen: Arc<Seen>,
        request: Request<Body>,
        call: impl FnOnce(Request<Body>) -> F,
    ) -> Result<Response, Problem> {
        let client = self.shared.access.client(request.headers())?.id();
        let (parts, body) = request.into_parts();
        let text = job::text(&self.shared, &parts.headers, body).await?;
        once::answer(&self.shared.once, client, (parts, text), seen, call).await
    }

    /// Returns the origin of the page that may read the response, if there is one.
    fn origin(&self, request: &Request<Incoming>) -> Result<Option<HeaderValue>, Problem> {
        self.shared.guard.check(request.headers()).or_else(|problem| {
            // Probes of an orchestrator come with any host and read nothing of interest.
            if is_probe(request.uri().path()) { Ok(None) } else { Err(problem) }
        })
    }

    fn admitted(&self, request: &Request<Incoming>, is_draining: bool) -> Result<(), Problem> {
        let path = request.uri().path();
        let is_probe = is_probe(path);
        if is_draining && !is_probe {
            return Err(Problem::new(Kind::Busy, "the service is stopping"));
        }
        if self.shared.is_view && !page::is_page(path) && !is_probe {
            return Err(Problem::new(Kind::NotFound, "this is a view of a ledger: it has pages only"));
        }
        if page::is_page(path) {
            // Pages and their forms check the session of their visitor.
            return Ok(());
        }
        if !is_probe && request.method() != Method::OPTIONS {
            // Handlers look the client up again; the result is cached for a second.
            self.shared.access.client(request.headers())?;
        }
        if request.method() == Method::POST {
            guard::is_json(request.headers())?;
        }
        Ok(())
    }
}

/// Returns whether a path is a probe of an orchestrator.
fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

/// The header with the identifier of the run.
const RUN: HeaderName = HeaderName::from_static("x-formwork-run");

fn named(seen: &Seen) -> HeaderValue {
    // The text of an identifier has letters and digits alone.
    HeaderValue::try_from(seen.run.to_string()).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Returns the protocol whose errors a path has.
fn protocol_of(path: &str, headers: &HeaderMap) -> &'static Protocol {
    match path {
        "/v1/responses" => &RESPONSES,
        path if path.starts_with("/v1/messages") || headers.contains_key("anthropic-version") => &ANTHROPIC,
        path if path.starts_with("/api/") => &OLLAMA,
        _ => &OPENAI,
    }
}

/// The headers of responses that web pages may read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "idempotent-replayed, request-id, retry-after, x-formwork-cache, x-formwork-calls, x-formwork-estimated, x-formwork-ignored, x-formwork-run, \
     x-formwork-warnings, x-request-id, x-should-retry",
);

/// Responds to the question whether a page of an allowed origin may send a request: with the headers that it asks for, because the
/// official clients add their own (`x-stainless-…`) and no header means more to the service than to the client that sets it.
fn preflight(headers: &HeaderMap) -> Response {
    let allowed = HeaderValue::from_static("authorization, content-type, x-api-key, anthropic-version");
    let asked = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned().unwrap_or(allowed);
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST")),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, asked),
        (header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600")),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Returns the resource of a protocol that answers dialogues.
fn answers(protocol: &'static Protocol) -> MethodRouter<Arc<Shared>> {
    post(move |State(shared), request| chat::answer(protocol, shared, request))
}

/// Returns a resource that targets answer.
fn besides(beside: Beside) -> MethodRouter<Arc<Shared>> {
    post(move |State(shared), request| beside::answer(beside, shared, request))
}

async fn openapi() -> Json<Value> {
    Json(crate::openapi())
}

async fn healthy() -> &'static str {
    "ok"
}

async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    if shared.draining.is_set() {
        return ready::response(false, None, vec!["the service is stopping".to_owned()]);
    }
    if shared.is_view {
        // The pages of a saved ledger only read it.
        return ready::response(true, None, Vec::new());
    }
    ready::answer(&shared.engine, &shared.access, &shared.ready).await
}

async fn metrics(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Result<Response, Refusal> {
    pages::admin(&shared, &headers)?;
    let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let health = shared.access.ledger().map(formwork_ledger::Ledger::health);
    let text = shared.metrics.render(&shared.turns.queue, health.as_ref());
    Ok(([(header::CONTENT_TYPE, media)], text).into_response())
}

async fn nowhere(request: Request<Body>) -> Response {
    let protocol = protocol_of(request.uri().path(), request.headers());
    refused(
        protocol,
        &Problem::new(Kind::NotFound, "there is no such resource: GET /openapi.json lists the resources"),
    )
}

async fn no_method(request: Request<Body>) -> Response {
    let protocol = protocol_of(request.uri().path(), request.headers());
    refused(protocol, &Problem::new(Kind::NoSuchMethod, "the resource has no such method"))
}
