//! Requests for an answer, in any protocol.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use formwork::providers::Protocol as RawProtocol;
use formwork_core::Usage;
use formwork_http::with_trace;
use formwork_ledger::{RecordId, RunRecord};
use serde_json::Value;

use super::job::{Job, exact, json, no_json, now, reserve, text};
use super::refused::refused;
use super::turns::Open;
use super::{Shared, native, passed, stream};
use crate::access;
use crate::ask::Ask;
use crate::document::Document;
use crate::options::Options;
use crate::pass;
use crate::problem::Problem;
use crate::protocol::{OpenAi, Protocol};
use crate::record::Record;
use crate::reply::Meta;
use crate::trace;

/// Answers a request for an answer.
pub(super) async fn answer(
    protocol: &'static dyn Protocol,
    shared: Arc<Shared>,
    request: Request<Body>,
) -> Response {
    let trace = trace::of(request.headers());
    let work = Box::pin(work(protocol, shared, request));
    let response = if trace.is_empty() { work.await } else { with_trace(trace, work).await };
    response.unwrap_or_else(|problem| refused(protocol, &problem))
}

async fn work(
    protocol: &'static dyn Protocol,
    shared: Arc<Shared>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let client = shared.access.client(&parts.headers)?;
    shared.access.count(&client)?;
    let options = Options::of(&parts.headers)?;
    let text = text(&shared, &parts.headers, body).await?;
    let document = Document::read(&text).map_err(|error| no_json(&error))?;
    let model = document.word(["model"]).map(str::to_owned);
    let model = model.ok_or_else(|| Problem::invalid("model", "missing field `model`"))?;
    client.may_ask(&model)?;
    let mut targets = shared.engine.names.resolve(&model)?;
    let turn = shared.turns.take(shared.engine.deadline(options.bounds)).await.inspect_err(|problem| {
        shared.metrics.event(problem.kind.name());
    })?;
    let run = RunRecord::new(parts.uri.path().to_owned(), access::now())
        .with_key(client.id())
        .with_labels(options.user.clone(), options.tags.clone())
        .with_request(shared.keeps_bodies.then(|| document.text().to_owned()));
    let id = run.id;
    let mut record = Record::new(Arc::clone(&shared), run, options.trace.clone());
    let length = document.text().len();
    if options.contract.is_none() && protocol.is_plain(&document) {
        let (own, path) = protocol.own();
        let mut open = None;
        while let Some(raw) = targets.first().and_then(|nth| shared.engine.names.targets()[*nth].raw(own)) {
            if protocol.is_stream(&document) && open.is_none() {
                open = Some(Box::pin(record.checked(Open::new(&shared, client.name()))).await?);
            }
            if !record.has_hold() {
                let plain = Ask::plain(model.clone());
                let held = reserve(&shared, &client, &plain, length, &targets, options.bounds, id).await;
                let (hold, _) = Box::pin(record.checked(held)).await?;
                record.hold(hold);
            }
            let deadline = shared.engine.deadline(options.bounds);
            let sent = match document.with_model(&raw.model) {
                Ok(body) => pass::send(raw, path, body, &parts.headers, deadline).await,
                Err(error) => Err(no_json(&error)),
            };
            match sent {
                Ok(response) => {
                    return Ok(passed::response(open, response, record, targets[0], length, turn, &id));
                }
                Err(problem) if targets.len() == 1 => {
                    Box::pin(record.call(targets[0], Usage::default(), Some(&problem))).await;
                    return Err(problem);
                }
                Err(_) => _ = targets.remove(0),
            }
        }
    }
    let meta = Meta { run: id.to_string(), model: model.clone(), created: now() };
    let ask = Ask::plain(model);
    let job = Job { shared, protocol, ask, targets, options, meta, client, record, _turn: turn };
    Box::pin(understood(job, document, parts.headers, id)).await
}

/// Answers a request that is not passed on as it is.
async fn understood(
    mut job: Job,
    document: Document<'_>,
    headers: HeaderMap,
    id: RecordId,
) -> Result<Response, Problem> {
    let length = document.text().len();
    let understood = read(&job, document);
    let (ask, with_tools) = job.record.checked(understood).await?;
    job.ask = ask;
    let prepared = Box::pin(job.prepared(length, id)).await;
    let spec = job.record.checked(prepared).await?;
    if let Some(body) = with_tools {
        job = match Box::pin(native::answer(job, body, headers)).await {
            Ok(response) => return response,
            Err(job) => job,
        };
    }
    match (spec, job.ask.stream) {
        (Some((spec, instructions)), true) => Box::pin(stream::contract(job, spec, instructions)).await,
        (Some((spec, instructions)), false) => Box::pin(job.contract(spec, instructions)).await,
        (None, true) => Box::pin(stream::text(job)).await,
        (None, false) => Box::pin(job.text()).await,
    }
}

/// Reads a request, and its document for a target that receives the tools, which gets the request unchanged.
fn read(job: &Job, document: Document<'_>) -> Result<(Ask, Option<Value>), Problem> {
    exact(document.text())?;
    let engine = &job.shared.engine;
    let raw = engine.targets(&job.targets).next().and_then(|target| target.raw(job.protocol.own().0));
    let is_native = job.options.contract.is_none() && raw.is_some() && !document.is_empty(["tools"]);
    let with_tools = is_native.then(|| document.value()).transpose();
    let ask = job.protocol.ask(document, &engine.schemas)?;
    let max = engine.limits.max_choices;
    if ask.count > max {
        return Err(Problem::invalid("n", format!("`n`: at most {max} answers")));
    }
    Ok((ask, with_tools.map_err(|error| no_json(&error))?))
}

/// Passes embeddings on to the first target that speaks OpenAI's protocol.
pub(super) async fn embeddings(State(shared): State<Arc<Shared>>, request: Request<Body>) -> Response {
    let trace = trace::of(request.headers());
    let answered = async {
        let (parts, body) = request.into_parts();
        let client = shared.access.client(&parts.headers)?;
        shared.access.count(&client)?;
        let options = Options::of(&parts.headers)?;
        let (mut body, text) = json(&shared, &parts.headers, body).await?;
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        client.may_ask(&model)?;
        let targets = shared.engine.names.resolve(&model)?;
        let deadline = shared.engine.deadline(options.bounds);
        let turn = shared.turns.take(deadline).await?;
        let found = targets.iter().find_map(|nth| {
            let target = &shared.engine.names.targets()[*nth];
            let raw = target.raw(RawProtocol::OpenAi).or_else(|| target.raw(RawProtocol::Responses))?;
            Some((*nth, raw.clone()))
        });
        let (target, raw) = found.ok_or_else(|| {
            Problem::invalid("model", "no target of this model is a server with OpenAI's embeddings")
        })?;
        let request_bytes = text.len();
        let run = RunRecord::new("/v1/embeddings", access::now())
            .with_key(client.id())
            .with_labels(options.user.clone(), options.tags.clone());
        let id = run.id;
        let (hold, _) = reserve(
            &shared,
            &client,
            &Ask::plain(model.clone()),
            request_bytes,
            &[target],
            options.bounds,
            id,
        )
        .await?;
        let mut record = Record::new(Arc::clone(&shared), run, options.trace.clone());
        record.hold(hold);
        let body = pass::written(&mut body, &raw);
        match pass::send(&raw, "/embeddings", body, &parts.headers, deadline).await {
            Ok(response) => Ok(passed::response(None, response, record, target, request_bytes, turn, &id)),
            Err(problem) => {
                record.call(target, Usage::default(), Some(&problem)).await;
                Err(problem)
            }
        }
    };
    with_trace(trace, answered).await.unwrap_or_else(|problem| refused(&OpenAi, &problem))
}
