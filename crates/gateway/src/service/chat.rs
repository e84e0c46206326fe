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
use super::open::Open;
use super::reserve::Cost;
use super::way::{Facts, Kind, Lost, Way};
use super::{Shared, native, passed, stream, talk};
use crate::ask::{Ask, Want};
use crate::document::Document;
use crate::failover::unanswered;
use crate::names::Target;
use crate::options::Extra;
use crate::pass::Pass;
use crate::problem::Problem;
use crate::protocol::given::{reduced, tool_names};
use crate::protocol::{KEPT_BY_VENDOR, Protocol};
use crate::record::Made;
use crate::reply::Meta;
use crate::vendor::asks_for_beta;

/// Answers a request for an answer.
pub(super) fn answer(
    protocol: &'static Protocol,
    shared: Arc<Shared>,
    request: Request<Body>,
) -> impl Future<Output = Response> + Send {
    answered(protocol, Box::pin(work(protocol, shared, request)))
}

async fn work(
    protocol: &'static Protocol,
    shared: Arc<Shared>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (mut asker, headers, text) = Asker::receive(shared, request).await?;
    let (document, model) = asker.read(&text)?;
    let (own, path) = protocol.own;
    if own == RawProtocol::Responses && document.is_true(["background"]) {
        // Its answer would be fetched later, from the vendor, and nobody would count it.
        return Err(Problem::invalid("background", "`background`: is not supported"));
    }
    let prompt = document.extent();
    document.check_case(protocol.fields)?;
    let ask = plain(model.clone(), own, &document)?;
    let is_own =
        asker.shared.engine.targets(&asker.targets).next().is_some_and(|target| target.raw(own).is_some());
    let unused: Vec<String> = asker.options.of_contracts().map(str::to_owned).collect();
    let is_passed = is_own && asker.options.contract.is_none() && (protocol.is_plain)(&document);
    let cost = is_passed.then_some(Cost { ask: &ask, prompt, given: Some(own), is_run: false });
    let mut begun = asker.begin(Some(document.text()), cost).await?;
    if is_passed {
        let is_stream = protocol.is_stream(&document);
        let mut open = None;
        if is_stream {
            let opened = Open::new(&begun.shared, &begun.client);
            open = Some(begun.record.checked(opened)?);
        }
        let pass = Pass {
            protocols: &[own],
            path,
            headers: &headers,
            until: begun.until.into_std(),
            wish: begun.shared.engine.wish(begun.options.bounds, begun.until),
            unanswered: begun.shared.engine.unanswered(&ask, prompt, ask.count),
            adds_usage: is_stream
                && own == RawProtocol::OpenAi
                && begun.shared.is_kept()
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
    // It is passed on from one step to the next, and it is large.
    let job = Box::new(Job {
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
    });
    Box::pin(understood(job, document, headers)).await
}

/// Returns the limits of a request that is passed on as it is.
fn plain(model: String, own: RawProtocol, document: &Document<'_>) -> Result<Ask, Problem> {
    let mut ask = Ask::plain(model);
    ask.count = document.count(&[&["n"], &["best_of"]])?.unwrap_or(1);
    // A server ignores the members of other protocols.
    let limits: &[&[&str]] = match own {
        RawProtocol::Responses => &[&["max_output_tokens"]],
        RawProtocol::Anthropic => &[&["max_tokens"]],
        RawProtocol::Ollama => &[&["options", "num_predict"]],
        _ => &[&["max_completion_tokens"], &["max_tokens"]],
    };
    ask.sampling.max_tokens = document.count(limits)?;
    Ok(ask)
}

/// Answers a request that is not passed on as it is.
async fn understood(
    mut job: Box<Job>,
    document: Document<'_>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let read = read(&mut job, document, &headers);
    let Read { mut ask, warnings, way, mut given, only } = job.record.checked(read)?;
    if ask.want == Want::Text && job.options.contract.is_none() {
        ask.ignored.extend(job.options.of_contracts().map(str::to_owned));
    }
    (job.ask, job.warnings) = (ask, warnings);
    if way == Way::Run {
        job.give(given.take(), only.is_some(), &headers);
    }
    let prepared = Box::pin(job.prepared(way == Way::Native)).await;
    let spec = job.record.checked(prepared)?;
    if way == Way::Native {
        job = match Box::pin(native::answer(job, (given, only), headers)).await {
            Ok(response) => return response,
            Err(job) => job,
        };
        let rules = job.rules_hold();
        job.record.checked(rules)?;
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

/// A request that was read.
struct Read {
    ask: Ask,
    /// The warnings about its numbers.
    warnings: Vec<Warning>,
    way: Way,
    /// Its document as a target of its protocol gets it; `null` if none does.
    given: Value,
    /// The problem of targets of other protocols with it.
    only: Option<Problem>,
}

/// Reads a request, and chooses its way.
fn read(job: &mut Job, document: Document<'_>, headers: &HeaderMap) -> Result<Read, Problem> {
    let warnings = exact(document.text())?;
    let text = document.text();
    let asked = (job.protocol.ask)(document, &job.shared.engine.schemas);
    if asked.as_ref().is_err_and(|problem| problem.is_unsupported) {
        leave_others(job)?;
    }
    let (engine, protocol, options) = (&job.shared.engine, job.protocol, &job.options);
    let target = engine.targets(&job.targets).next().filter(|target| target.raw(protocol.own.0).is_some());
    let body = || serde_json::from_str::<Value>(text).map_err(|error| no_json(&error));
    let (ask, only) = match asked {
        Ok(ask) => (ask, None),
        Err(problem) if problem.is_unsupported && target.is_some() => {
            let body = body()?;
            let reduced = reduced(&body, protocol.fields).to_string();
            let ask = Document::read(&reduced)
                .map_err(|error| no_json(&error))
                .and_then(|document| (protocol.ask)(document, &engine.schemas));
            let Ok(mut ask) = ask else { return Err(problem) };
            let choice = &body["tool_choice"];
            let may_call = choice != "none" && choice["type"] != "none";
            if may_call && tool_names(&body).next().is_some() {
                // The turns of tools that have no schema are judged like those of others.
                ask.want = ask.want.beside_tools(options.contract.is_some());
            }
            // Only tools are about no more than the model's own turn.
            let has_tools = matches!(ask.want, Want::Tools { format: None, .. } | Want::Call(_));
            let is_kept = |name: &&&str| protocol.own.0 == RawProtocol::Responses && !body[**name].is_null();
            if let Some(name) = KEPT_BY_VENDOR.iter().find(is_kept)
                && (!has_tools || options.contract.is_some())
            {
                let why =
                    "is not supported beside a format or a contract: send the whole dialogue as `input`";
                return Err(Problem::invalid(*name, format!("`{name}`: {why}")));
            }
            (ask, Some(problem))
        }
        Err(problem) => return Err(problem),
    };
    let lost = match (&only, target) {
        (Some(_), _) => Lost::Subject,
        (None, Some(target)) if asks_for_beta(headers) || loses(job, &ask, target) => Lost::Members,
        _ => Lost::Nothing,
    };
    let facts = Facts {
        kind: Kind::of(&ask.want),
        extra: options.extra(),
        lost,
        is_named: options.contract.is_some(),
        has_several: ask.count > 1,
        has_wire: protocol.has_wire,
        has_target: target.is_some(),
    };
    let way = facts.way();
    if let (Way::Refused, Some(problem)) = (way, &only) {
        let is_refused = |extra| Facts { extra, ..facts }.way() == Way::Refused;
        let changes = is_refused(Extra::Changes);
        let mut sent = vec![
            ("`x-formwork-stream: eager`", options.is_eager),
            ("`x-formwork-absent`", changes && options.absent.is_some()),
            ("`x-formwork-coerce`", changes && options.coerce.is_some()),
        ];
        sent.retain(|(_, is_sent)| *is_sent && !is_refused(Extra::Nothing));
        let names = sent.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" and ");
        let message = match names.as_str() {
            "" => problem.message.clone(),
            _ => format!("{}; a target of the same protocol gets it only without {names}", problem.message),
        };
        return Err(Problem { message, ..problem.clone() });
    }
    let max = engine.limits.max_choices;
    if ask.count > max {
        return Err(Problem::invalid("n", format!("`n`: at most {max} answers")));
    }
    let mut given = Value::Null;
    if way != Way::Read {
        given = body()?;
        for schemas in ["response_format", "text", "output_config", "output_format", "format", "tools"] {
            given.get_mut(schemas).into_iter().for_each(remove_marks);
        }
    }
    Ok(Read { ask, warnings, way, given, only })
}

/// Leaves the targets of other protocols out, if there are targets of the protocol of the request: no other takes it.
///
/// # Errors
/// [`unanswered`] if all of them have failed.
fn leave_others(job: &mut Job) -> Result<(), Problem> {
    let (own, engine) = (job.protocol.own.0, &job.shared.engine);
    let has_protocol = |nth: &usize| engine.names.targets().get(*nth).is_some_and(|it| it.raw(own).is_some());
    if job.targets.iter().any(has_protocol) {
        job.targets.retain(has_protocol);
    } else if job.record.made.last().is_some_and(Made::has_failed) {
        return Err(unanswered());
    }
    Ok(())
}

/// Returns whether a run loses a part of a request that a target of its protocol takes.
fn loses(job: &Job, ask: &Ask, target: &Target) -> bool {
    let promised = target.backend.capabilities();
    // The reasoning stands in responses of these protocols, and not in the value of a run.
    let shows = job.protocol.own.0 != RawProtocol::OpenAi && ask.settings.reasons();
    // The value of a run has no tokens.
    let has_tokens = job.options.contract.is_some() && ask.settings.values.top_logprobs.is_some();
    has_tokens
        || shows
        || ask.settings.is_doubled()
        || !ask.ignored.is_empty()
        || ask.settings.lost(promised).next().is_some()
        || (ask.sampling.top_p.is_some() && !promised.top_p)
}
