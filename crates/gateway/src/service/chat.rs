//! Requests for an answer, in any protocol.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use formwork::providers::{Protocol as RawProtocol, Raw};
use formwork_core::Warning;
use serde_json::Value;

use super::asker::{Asker, Begun, answered};
use super::job::{Job, exact, listed, no_json, now};
use super::native::Given;
use super::open::Open;
use super::reserve::Cost;
use super::{Shared, native, passed, stream, talk};
use crate::ask::{Ask, Want};
use crate::document::Document;
use crate::names::Target;
use crate::pass::Pass;
use crate::problem::Problem;
use crate::protocol::Protocol;
use crate::protocol::given::{reduced, tool_names};
use crate::reply::Meta;

/// Answers a request for an answer.
pub(super) async fn answer(
    protocol: &'static dyn Protocol,
    shared: Arc<Shared>,
    request: Request<Body>,
) -> Response {
    answered(protocol, work(protocol, shared, request)).await
}

async fn work(
    protocol: &'static dyn Protocol,
    shared: Arc<Shared>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (mut asker, headers, text) = Asker::receive(shared, request).await?;
    let (document, model) = asker.read(&text)?;
    let prompt = document.extent();
    let ask = plain(model.clone(), &document);
    let (own, path) = protocol.own();
    let is_own =
        asker.shared.engine.targets(&asker.targets).next().is_some_and(|target| target.raw(own).is_some());
    let unused: Vec<String> = asker.options.of_contracts().map(str::to_owned).collect();
    let is_passed = is_own && asker.options.contract.is_none() && protocol.is_plain(&document);
    let cost = is_passed.then_some(Cost { ask: &ask, prompt, is_run: false });
    let mut begun = asker.begin(Some(document.text()), cost).await?;
    if is_passed {
        let is_stream = protocol.is_stream(&document);
        let mut open = None;
        if is_stream {
            let opened = Open::new(&begun.shared, begun.client.name());
            open = Some(Box::pin(begun.record.checked(opened)).await?);
        }
        let pass = Pass {
            protocols: &[own],
            path,
            headers: &headers,
            until: begun.until.into_std(),
            unanswered: begun.shared.engine.unanswered(&ask, prompt, ask.count),
            adds_usage: is_stream
                && own == RawProtocol::OpenAi
                && begun.record.is_kept()
                && !document.is_true(["stream_options", "include_usage"]),
            write: |raw: &Raw, asks_usage| {
                document.with_model(&raw.model, asks_usage).map_err(|error| no_json(&error))
            },
        };
        begun = match Box::pin(passed::answer(begun, (Some(protocol), open), Some(prompt), pass)).await {
            Ok(mut response) => {
                if let (Ok(response), Some(unused)) = (&mut response, listed(&unused)) {
                    response.headers_mut().insert("x-formwork-ignored", unused);
                }
                return response;
            }
            Err(begun) => begun,
        };
    }
    let Begun { shared, client, options, targets, record, id, turn, until } = begun;
    let meta = Meta { run: id.to_string(), model, created: now(), ignored: Vec::new() };
    let warnings = Vec::new();
    let (given, unsent, named) = (None, Vec::new(), None);
    let job = Job {
        shared,
        protocol,
        ask,
        prompt,
        targets,
        options,
        meta,
        client,
        record,
        until,
        warnings,
        turn,
        given,
        unsent,
        named,
    };
    Box::pin(understood(job, document, headers)).await
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
    let (mut ask, mut given, warnings) = job.record.checked(understood).await?;
    if ask.want == Want::Text && job.options.contract.is_none() {
        ask.ignored.extend(job.options.of_contracts().map(str::to_owned));
    }
    (job.ask, job.warnings) = (ask, warnings);
    if job.is_for_run()
        && let Some(Given { body, only }) = given.take()
    {
        job.give(body, only.is_some(), &headers);
    }
    let prepared = Box::pin(job.prepared(given.is_some())).await;
    let spec = job.record.checked(prepared).await?;
    if let Some(given) = given {
        job = match Box::pin(native::answer(job, given, headers)).await {
            Ok(response) => return response,
            Err(job) => job,
        };
        let rules = job.rules_hold();
        job.record.checked(rules).await?;
    }
    match (spec.filter(|_| !job.is_talk()), job.ask.stream) {
        (Some((spec, instructions)), true) => Box::pin(stream::contract(job, spec, instructions)).await,
        (Some((spec, instructions)), false) => Box::pin(job.contract(spec, instructions)).await,
        (None, true) => Box::pin(talk::stream(job)).await,
        (None, false) => Box::pin(talk::whole(job)).await,
    }
}

/// Removes our own keywords from the schemas of a request: vendors refuse keywords that they do not know.
fn remove_marks(part: &mut Value) {
    match part {
        Value::Object(members) => {
            members.retain(|name, _| !name.starts_with("x-formwork-"));
            members.values_mut().for_each(remove_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_marks),
        _ => {}
    }
}

/// Reads a request, and its document for a target of its protocol that gets it as it is: where it has tools, and where a run would
/// lose a part of it. Returns the warnings about its numbers as well.
fn read(job: &Job, document: Document<'_>) -> Result<(Ask, Option<Given>, Vec<Warning>), Problem> {
    let warnings = exact(document.text())?;
    let engine = &job.shared.engine;
    let target =
        engine.targets(&job.targets).next().filter(|target| target.raw(job.protocol.own().0).is_some());
    let has_target = target.is_some();
    let is_named = job.options.contract.is_some();
    let has_wire = job.protocol.has_wire();
    let may_run = has_wire || !job.options.needs_run();
    let text = document.text();
    let body = || {
        let mut body = serde_json::from_str::<Value>(text).map_err(|error| no_json(&error))?;
        for schemas in ["response_format", "text", "output_config", "output_format", "format", "tools"] {
            body.get_mut(schemas).into_iter().for_each(remove_marks);
        }
        Ok::<_, Problem>(body)
    };
    let (ask, given) = match job.protocol.ask(document, &engine.schemas) {
        Ok(ask) => {
            let loses = |target: &Target| {
                let promised = target.backend.capabilities();
                ask.settings.lost(promised).next().is_some()
                    || (ask.sampling.top_p.is_some() && !promised.top_p)
            };
            // The reasoning stands in responses of these protocols, and not in the value of a run.
            let shows = job.protocol.own().0 != RawProtocol::OpenAi && ask.settings.reasons();
            // The value of a run has no tokens.
            let has_tokens = is_named && ask.settings.values.top_logprobs.is_some();
            let is_lossy = has_tokens
                || shows
                || ask.settings.is_doubled()
                || !ask.ignored.is_empty()
                || target.is_some_and(loses);
            let is_given = has_target
                && match &ask.want {
                    Want::Tools { .. } => true,
                    Want::Json { .. } => is_lossy && !job.options.is_eager && may_run,
                    Want::Call(_) => is_lossy && !is_named && !job.options.needs_run(),
                    Want::Text => is_lossy && !job.options.is_eager && is_named && has_wire,
                };
            let body = is_given.then(body).transpose()?;
            (ask, body.map(|body| Given { body, only: None }))
        }
        Err(problem) if problem.is_unsupported && has_target => {
            let body = body()?;
            let reduced = reduced(&body, job.protocol.fields()).to_string();
            let ask = Document::read(&reduced)
                .map_err(|error| no_json(&error))
                .and_then(|document| job.protocol.ask(document, &engine.schemas));
            let Ok(mut ask) = ask else { return Err(problem) };
            if is_named && ask.want == Want::Text && !has_wire {
                return Err(problem);
            }
            let choice = &body["tool_choice"];
            let may_call = choice != "none" && choice["type"] != "none";
            if may_call && tool_names(&body).next().is_some() {
                // The turns of tools that have no schema are judged like those of others.
                ask.want = ask.want.beside_tools(is_named);
            }
            let is_of_tools = matches!(ask.want, Want::Tools { .. } | Want::Call(_));
            let has_no_run = is_of_tools || !has_wire;
            if job.options.is_eager || (has_no_run && job.options.changes_values()) {
                let message = format!(
                    "{}; a target of the same protocol gets it only without `x-formwork-stream: eager`, and beside tools without \
                    `x-formwork-absent` and `x-formwork-coerce`",
                    problem.message
                );
                return Err(Problem { message, ..problem });
            }
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
