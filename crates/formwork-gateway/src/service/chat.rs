//! Requests for an answer, in any protocol.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Request, header};
use axum::response::{IntoResponse as _, Response};
use formwork::providers::Protocol as RawProtocol;
use formwork_core::{Attempt, Error, Outcome};
use formwork_extract::CancellationToken;
use formwork_serve::{BodyError, Kept, RequestId, read_body};
use futures_util::StreamExt as _;
use serde_json::Value;

use super::Shared;
use super::routes::refused;
use super::stream;
use super::turns::{Open, Turn};
use crate::ask::{Ask, Want};
use crate::contracts::{ContractError, Spec};
use crate::engine::{self, Ready};
use crate::options::Options;
use crate::pass;
use crate::problem::{Kind, Problem};
use crate::protocol::{OpenAi, Protocol};
use crate::reply::{Meta, Reply};

/// A request that is understood, and may be worked on.
pub(super) struct Job {
    pub(super) shared: Arc<Shared>,
    pub(super) protocol: &'static dyn Protocol,
    pub(super) ask: Ask,
    pub(super) targets: Vec<usize>,
    pub(super) options: Options,
    pub(super) meta: Meta,
    pub(super) turn: Turn,
}

/// Answers a request for an answer.
pub(super) async fn answer(
    protocol: &'static dyn Protocol,
    shared: Arc<Shared>,
    request: Request<Body>,
) -> Response {
    work(protocol, shared, request).await.unwrap_or_else(|problem| refused(protocol, &problem))
}

async fn work(
    protocol: &'static dyn Protocol,
    shared: Arc<Shared>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let options = Options::of(&parts.headers)?;
    let body = json(&shared, &parts.headers, body).await?;
    let model = body.get("model").and_then(Value::as_str).map(str::to_owned);
    let model = model.ok_or_else(|| Problem::invalid("model", "missing field `model`"))?;
    let mut targets = shared.engine.names.resolve(&model)?;
    let turn = shared.turns.take(shared.engine.deadline(options.bounds)).await.inspect_err(|problem| {
        shared.metrics.event(problem.kind.name());
    })?;
    if options.contract.is_none() && protocol.is_plain(&body) {
        let (own, path) = protocol.own();
        while let Some(raw) = targets.first().and_then(|nth| shared.engine.names.targets()[*nth].raw(own)) {
            let path = path.to_owned();
            let deadline = shared.engine.deadline(options.bounds);
            match pass::send(raw, &path, body.clone(), &parts.headers, deadline).await {
                Ok(response) => return Ok(passed(&shared, response, turn)),
                Err(problem) if targets.len() == 1 => return Err(problem),
                Err(_) => _ = targets.remove(0),
            }
        }
    }
    let ask = protocol.ask(body)?;
    if ask.count > shared.engine.limits.max_choices {
        let message = format!("`n`: at most {} answers", shared.engine.limits.max_choices);
        return Err(Problem::invalid("n", message));
    }
    let meta = Meta { run: RequestId::new().as_str().replace("req-", "run-"), model, created: now() };
    let job = Job { shared, protocol, ask, targets, options, meta, turn };
    match (job.spec().await?, job.ask.stream) {
        (Some((spec, told)), true) => stream::contract(job, spec, told).await,
        (Some((spec, told)), false) => job.contract(spec, told).await,
        (None, true) => stream::text(job).await,
        (None, false) => job.text().await,
    }
}

impl Job {
    /// Returns the contract of the request, its own or a named one, and what the model is told of it beside the dialogue.
    async fn spec(&self) -> Result<Option<(Spec, Option<formwork_core::Message>)>, Problem> {
        let own = engine::spec_of(&self.ask.want);
        let Some(name) = &self.options.contract else { return Ok(own) };
        if own.is_some() {
            let message =
                format!("the contract `{name}` is named and the request has one of its own: use one of them");
            return Err(Problem::invalid("x-formwork-contract", message));
        }
        named(&self.shared, name).await.map(|spec| Some((spec, None)))
    }

    /// Compiles the contract, and counts whether that was done before.
    pub(super) async fn ready(&self, spec: &Spec) -> Result<Ready, Problem> {
        let mut bounds = self.options.bounds;
        bounds.is_eager = self.is_eager();
        let ready = self.shared.engine.ready(spec, &self.targets, self.ask.sampling, bounds).await?;
        self.shared.metrics.contract(ready.was_compiled);
        Ok(ready)
    }

    /// Returns whether the first attempt is shown as it comes. A turn with several tools is known only when it is whole.
    pub(super) const fn is_eager(&self) -> bool {
        self.options.is_eager && self.ask.stream && !matches!(self.ask.want, Want::Tools { .. })
    }

    async fn contract(self, spec: Spec, told: Option<formwork_core::Message>) -> Result<Response, Problem> {
        let ready = self.ready(&spec).await?;
        let cancel = CancellationToken::new();
        let run = {
            let cancel = cancel.clone();
            async move {
                let runs = (0..self.ask.count).map(|nth| {
                    engine::extraction(&ready.extractor, &self.ask, told.clone(), nth, &cancel, None).run()
                });
                let results = futures_util::future::join_all(runs).await;
                let reply = self.finish(&results);
                (self, reply)
            }
        };
        // A client that leaves cancels the runs, which are counted all the same.
        let (job, reply) = Kept::new(run, cancel).await;
        job.respond(&reply?)
    }

    /// Counts the runs of the request, and puts their results together.
    pub(super) fn finish(&self, results: &[Result<Outcome<Value>, Error>]) -> Result<Reply, Problem> {
        for result in results {
            self.shared.metrics.attempts(attempts(result));
        }
        engine::reply(&self.ask.want, results)
    }

    async fn text(self) -> Result<Response, Problem> {
        let deadline = self.shared.engine.deadline(self.options.bounds);
        let answered = async {
            let answer = self.shared.engine.text(&self.ask, &self.targets).await;
            let (answer, ..) = answer.map_err(|fault| Problem::of_fault(&fault))?;
            answer.collect().await.map_err(|fault| Problem::of_fault(&fault))
        };
        let late = || Problem::new(Kind::Deadline, "there was no answer in time, and the call is broken off");
        let completion = tokio::time::timeout(deadline, answered).await.unwrap_or_else(|_| Err(late()))?;
        let reply = Reply {
            choices: vec![engine::text_choice(completion.text, completion.finish)],
            usage: completion.usage,
            cost: completion.usage.unpriced(),
            attempts: 1,
            is_cached: false,
        };
        self.respond(&reply)
    }

    fn respond(&self, reply: &Reply) -> Result<Response, Problem> {
        let body = self.protocol.reply(&self.ask, reply, &self.meta).to_string();
        let mut response = ([(header::CONTENT_TYPE, "application/json")], body).into_response();
        self.head(&mut response);
        response.headers_mut().insert("x-formwork-attempts", reply.attempts.into());
        Ok(response)
    }

    /// Adds what every answer says of itself.
    pub(super) fn head(&self, response: &mut Response) {
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Ok(run) = HeaderValue::from_str(&self.meta.run) {
            headers.insert("x-formwork-run", run);
        }
    }
}

fn attempts<T>(result: &Result<Outcome<T>, Error>) -> &[Attempt] {
    match result {
        Ok(outcome) => outcome.attempts(),
        Err(error) => error.attempts(),
    }
}

/// Finds a named contract.
pub(super) async fn named(shared: &Shared, name: &str) -> Result<Spec, Problem> {
    let Some(folder) = &shared.folder else {
        return Err(Problem::invalid(
            "x-formwork-contract",
            "there are no named contracts: set `contracts` in the configuration",
        ));
    };
    match folder.get(name) {
        Ok(named) => Ok(Spec {
            name: named.name.clone(),
            schema: named.schema.clone(),
            rules: named.rules.clone(),
            instructions: named.instructions.clone(),
            examples: named.examples.clone(),
        }),
        Err(ContractError::Unknown(names)) => {
            let name: String = name.chars().take(100).collect();
            let message = format!("there is no contract `{name}`; there are: {}", names.join(", "));
            Err(Problem {
                param: Some("x-formwork-contract".to_owned()),
                ..Problem::new(Kind::NotFound, message)
            })
        }
        Err(ContractError::Unusable(reason)) => Err(Problem::new(Kind::Internal, reason)),
    }
}

/// Reads a body as JSON, within the limits of size and time.
pub(super) async fn json(shared: &Shared, headers: &HeaderMap, body: Body) -> Result<Value, Problem> {
    let limits = &shared.engine.limits;
    let bytes =
        read_body(headers, body, limits.max_body, limits.read_timeout).await.map_err(
            |error| match error {
                BodyError::TooLong => {
                    Problem::new(Kind::TooLarge, format!("a body has at most {} bytes", limits.max_body))
                }
                BodyError::TooSlow => Problem::new(Kind::ReadTimeout, "the body did not arrive in time"),
                BodyError::Broken(reason) => {
                    Problem::new(Kind::Invalid, format!("the body broke off: {reason}"))
                }
            },
        )?;
    if let Err(error) = std::str::from_utf8(&bytes) {
        return Err(Problem::new(
            Kind::Invalid,
            format!("the body is not UTF-8 at byte {}", error.valid_up_to()),
        ));
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| Problem::new(Kind::Invalid, format!("the body is not JSON: {error}")))
}

/// Passes embeddings on to the first target that speaks OpenAI's protocol.
pub(super) async fn embeddings(State(shared): State<Arc<Shared>>, request: Request<Body>) -> Response {
    let passed = async {
        let (parts, body) = request.into_parts();
        let options = Options::of(&parts.headers)?;
        let body = json(&shared, &parts.headers, body).await?;
        let targets = shared.engine.names.resolve(body["model"].as_str().unwrap_or_default())?;
        let deadline = shared.engine.deadline(options.bounds);
        let turn = shared.turns.take(deadline).await?;
        let speaks = |target: &crate::names::Target| {
            target.raw(RawProtocol::OpenAi).or_else(|| target.raw(RawProtocol::Responses)).cloned()
        };
        let raw = shared.engine.targets(&targets).find_map(speaks).ok_or_else(|| {
            Problem::invalid("model", "no target of this model is a server with OpenAI's embeddings")
        })?;
        let response = pass::send(&raw, "/embeddings", body, &parts.headers, deadline).await?;
        Ok(self::passed(&shared, response, turn))
    };
    passed.await.unwrap_or_else(|problem| refused(&OpenAi, &problem))
}

/// Returns the response of a target, read from it as the client reads.
fn passed(shared: &Arc<Shared>, response: axum::http::Response<formwork_wire::Body>, turn: Turn) -> Response {
    let open = Open::new(shared, "");
    let whole = |body: formwork_wire::Body| {
        let held = (turn, open);
        Body::from_stream(body.map(move |chunk| {
            let _ = &held;
            chunk
        }))
    };
    pass::returned(response, whole)
}

/// Returns the seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}
