//! Requests for an answer, in any protocol.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use formwork::providers::{Protocol as RawProtocol, Raw};
use formwork_core::Warning;
use formwork_http::with_trace;
use serde_json::Value;

use super::asker::{Asker, Begun};
use super::job::{Job, exact, no_json, now, reserve, text};
use super::native::Given;
use super::open::Open;
use super::refused::refused;
use super::{Shared, native, passed, stream, talk};
use crate::ask::{Ask, Want};
use crate::document::Document;
use crate::options::Options;
use crate::pass::Pass;
use crate::problem::Problem;
use crate::protocol::Protocol;
use crate::protocol::given::reduced;
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
    let asker = Asker::of(&shared, &parts)?;
    let text = text(&shared, &parts.headers, body).await?;
    let document = Document::read(&text).map_err(|error| no_json(&error))?;
    let model = document.word(["model"]).map(str::to_owned);
    let model = model.ok_or_else(|| Problem::invalid("model", "missing field `model`"))?;
    let mut targets = asker.targets(&shared, &model)?;
    let begun = asker.begin(&shared, parts.uri.path(), Some(document.text())).await?;
    let Begun { client, mut options, mut record, id, turn, until } = begun;
    let prompt = document.extent();
    let ask = plain(model.clone(), &document);
    let (own, path) = protocol.own();
    let is_own = shared.engine.targets(&targets).next().is_some_and(|target| target.raw(own).is_some());
    if is_own && options.contract.is_none() && protocol.is_plain(&document) {
        let is_stream = protocol.is_stream(&document);
        let mut open = None;
        if is_stream {
            open = Some(Box::pin(record.checked(Open::new(&shared, client.name()))).await?);
        }
        let held = (&client, &mut record);
        Box::pin(reserve(&shared, held, (&ask, prompt), &targets, &mut options.bounds, true)).await?;
        let asks_usage = is_stream
            && own == RawProtocol::OpenAi
            && record.is_kept()
            && !document.is_true(["stream_options", "include_usage"]);
        let pass = Pass {
            engine: &shared.engine,
            protocols: &[own],
            path,
            headers: &parts.headers,
            until: until.into_std(),
            unanswered: shared.engine.unanswered(&ask, prompt, ask.count),
        };
        let write = |raw: &Raw, asks_usage| {
            document.with_model(&raw.model, asks_usage).map_err(|error| no_json(&error))
        };
        match Box::pin(pass.send(&mut targets, &mut record, asks_usage, write)).await {
            Ok(Some(sent)) => {
                let target = targets.first().copied().unwrap_or_default();
                return Ok(passed::response(open, sent, record, target, Some(prompt), turn));
            }
            Ok(None) => {}
            Err((usage, problem)) => {
                let target = targets.first().copied().unwrap_or_default();
                Box::pin(record.call(target, usage, Some(&problem))).await;
                return Err(problem);
            }
        }
    }
    let meta = Meta { run: id.to_string(), model: model.clone(), created: now(), ignored: Vec::new() };
    let warnings = Vec::new();
    let job =
        Job { shared, protocol, ask, prompt, targets, options, meta, client, record, until, warnings, turn };
    Box::pin(understood(job, document, parts.headers)).await
}

/// Returns the limits of a request that is passed on as it is.
fn plain(model: String, document: &Document<'_>) -> Ask {
    let mut ask = Ask::plain(model);
    ask.count = document.count(&[&["n"]]).unwrap_or(1);
    ask.sampling.max_tokens = document.count(&[
        &["max_completion_tokens"],
        &["max_output_tokens"],
        &["max_tokens"],
        &["options", "num_predict"],
    ]);
    ask
}

/// Answers a request that is not passed on as it is.
async fn understood(mut job: Job, document: Document<'_>, headers: HeaderMap) -> Result<Response, Problem> {
    let understood = read(&job, document);
    let (ask, given, warnings) = job.record.checked(understood).await?;
    (job.ask, job.warnings) = (ask, warnings);
    let prepared = Box::pin(job.prepared(given.is_some())).await;
    let spec = job.record.checked(prepared).await?;
    if let Some(given) = given {
        job = match Box::pin(native::answer(job, given, headers)).await {
            Ok(response) => return response,
            Err(job) => job,
        };
    }
    match (spec.filter(|_| !job.is_talk()), job.ask.stream) {
        (Some((spec, instructions)), true) => Box::pin(stream::contract(job, spec, instructions)).await,
        (Some((spec, instructions)), false) => Box::pin(job.contract(spec, instructions)).await,
        (None, true) => Box::pin(talk::stream(job)).await,
        (None, false) => Box::pin(talk::whole(job)).await,
    }
}

/// Reads a request, and its document for a target of its protocol that gets it as it is: where it has tools, and where a run would
/// lose a part of it. Returns the warnings about its numbers as well.
fn read(job: &Job, document: Document<'_>) -> Result<(Ask, Option<Given>, Vec<Warning>), Problem> {
    let warnings = exact(document.text())?;
    let engine = &job.shared.engine;
    let raw = engine.targets(&job.targets).next().and_then(|target| target.raw(job.protocol.own().0));
    let Options { contract, absent, coerce, is_eager, .. } = &job.options;
    let may_pass = contract.is_none() && raw.is_some();
    let is_whole = absent.is_none() && coerce.is_none() && !is_eager;
    let text = document.text();
    let body = || serde_json::from_str::<Value>(text).map_err(|error| no_json(&error));
    let (ask, given) = match job.protocol.ask(document, &engine.schemas) {
        Ok(ask) => {
            let is_lossy = is_whole
                && (!ask.ignored.is_empty() || !ask.settings.is_empty() || ask.sampling.top_p.is_some());
            let is_given = match &ask.want {
                Want::Tools { .. } => may_pass,
                Want::Json { .. } | Want::Call(_) => may_pass && is_lossy,
                Want::Text => false,
            };
            let body = is_given.then(body).transpose()?;
            (ask, body.map(|body| Given { body, only: None }))
        }
        Err(problem) if problem.is_unsupported && may_pass && is_whole => {
            let body = body()?;
            let reduced = reduced(&body).to_string();
            let ask = Document::read(&reduced)
                .map_err(|error| no_json(&error))
                .and_then(|document| job.protocol.ask(document, &engine.schemas));
            let Ok(ask) = ask else { return Err(problem) };
            (ask, Some(Given { body, only: Some(problem) }))
        }
        Err(problem) => return Err(problem),
    };
    let max = engine.limits.max_choices;
    if ask.count > max {
        return Err(Problem::invalid("n", format!("`n`: at most {max} answers")));
    }
    Ok((ask, given, warnings))
}
