//! `POST /v1/extract`: a contract without the detour of a chat protocol.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, header};
use axum::response::{IntoResponse as _, Response};
use formwork_core::{Absent, CallRecord, Coerce, Error, Failure, Input, Outcome, Rule, Warning};
use formwork_extract::{CancellationToken, Update};
use formwork_http::with_trace;
use formwork_ledger::RecordId;
use formwork_serve::{Kept, Turn};
use futures_util::StreamExt as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Shared;
use super::asker::{Asker, Begun, answered};
use super::job::{calls, exact, named, no_json, warn, warnings};
use super::open::Open;
use super::reserve::Cost;
use super::stream::{self, COMMENT};
use crate::access::Client;
use crate::ask::{Ask, Sampling, Want};
use crate::contracts::{Schema, Spec};
use crate::document::Extent;
use crate::engine::{Ready, reply};
use crate::names::DEFAULT;
use crate::options::{MIN, Options};
use crate::problem::{Kind, Problem};
use crate::protocol::{EVENTS, OPENAI};
use crate::record::Record;
use crate::seen::trace_here;

/// A request for a value.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExtractRequest {
    /// The text that the value is about.
    input: String,
    /// The JSON Schema of the value, in place of `contract`.
    schema: Option<Value>,
    /// The name of a contract of the service, in place of `schema`.
    contract: Option<String>,
    /// The members that the text may lack: "all", or a list of paths such as "$.items[*].note" (default: those that the schema marks).
    #[serde(default)]
    #[schemars(with = "Option<Value>")]
    absent: Option<Absent>,
    /// The treatment of values that do not fit the schema: "strict", "ask", "fix", "drop", "default" or "guess", or an object of paths
    /// and these names, such as {"$.items[*].note": "drop"} (default: "fix").
    #[serde(default)]
    #[schemars(with = "Option<Value>")]
    coerce: Option<Coerce>,
    /// Rules beside the schema.
    #[serde(default)]
    #[schemars(with = "Vec<Value>")]
    rules: Vec<Rule>,
    /// Instructions for the model, as a system message.
    instructions: Option<String>,
    /// The targets, in the order in which they are called (default: those of the configuration).
    #[serde(default)]
    targets: Vec<String>,
    /// The most that it may cost, in US dollars.
    budget: Option<f64>,
    /// The most seconds that it may take.
    deadline: Option<f64>,
    temperature: Option<f64>,
    seed: Option<u64>,
    max_tokens: Option<u32>,
    /// Whether the result has `evidence`, the places of the values in the input, and `confidence` in each of them (default: no).
    #[serde(default)]
    evidence: bool,
    /// Whether every step is sent as an event (default: no).
    #[serde(default)]
    stream: bool,
}

/// A request that is ready to be run.
struct Prepared {
    shared: Arc<Shared>,
    ready: Ready,
    input: Input,
    record: Box<Record>,
    id: RecordId,
    client: Client,
    turn: Turn,
    evidence: bool,
    /// Warnings about the numbers of the request and of its contract.
    warned: Vec<Warning>,
}

/// Answers a request with the value and its history, or with every step as an event.
pub(super) fn extract(
    State(shared): State<Arc<Shared>>,
    request: Request<Body>,
) -> impl Future<Output = Response> + Send {
    answered(&OPENAI, Box::pin(answer(shared, request)))
}

async fn answer(shared: Arc<Shared>, request: Request<Body>) -> Result<Response, Problem> {
    let (mut asker, _, text) = Asker::receive(shared, request).await?;
    let body: Value = serde_json::from_str(&text).map_err(|error| no_json(&error))?;
    let mut warned = exact(&text)?;
    let extract_request: ExtractRequest =
        serde_json::from_value(body).map_err(|error| Problem::new(Kind::Invalid, error.to_string()))?;
    let mut spec = spec(&asker.shared, &extract_request, &asker.options).await?;
    warned.append(&mut spec.warnings);
    let model = if extract_request.targets.is_empty() {
        DEFAULT.to_owned()
    } else {
        extract_request.targets.join(",")
    };
    asker.asks_for(&model)?;
    limit(&extract_request, &mut asker.options)?;
    let sampling = Sampling {
        temperature: extract_request.temperature,
        top_p: None,
        seed: extract_request.seed,
        max_tokens: extract_request.max_tokens.filter(|tokens| *tokens > 0),
    };
    let want = Want::Json { name: String::new(), schema: Schema::default() };
    let ask = Ask { want, sampling, ..Ask::plain(model) };
    let mut prompt = Extent::default();
    prompt.add(text.len() + spec.length());
    let cost = Cost { ask: &ask, prompt, given: None, is_run: true };
    let Begun { shared, client, mut options, targets, mut record, id, turn, until } =
        asker.begin(Some(&text), Some(cost)).await?;
    // A part of the time may have passed in the queue.
    options.bounds.deadline = Some(until.saturating_duration_since(Instant::now()));
    let ready = shared.engine.ready(&spec, &targets, sampling, options.bounds).await;
    let ready = record.checked(ready)?;
    shared.metrics.contract(ready.was_compiled);
    let digest = ready.extractor.plan().schema_digest().to_owned();
    record.change(|run| run.with_contract(Some(spec.name.clone()), Some(digest)));
    record.runs_now();
    let mut input = Input::from(extract_request.input);
    input.seed = extract_request.seed;
    let evidence = extract_request.evidence || options.evidence;
    let prepared = Prepared { shared, ready, input, record, id, client, turn, evidence, warned };
    if extract_request.stream { steps(prepared).await } else { whole(prepared).await }
}

/// Returns the contract of a request.
async fn spec(shared: &Shared, extract_request: &ExtractRequest, options: &Options) -> Result<Spec, Problem> {
    let contract = extract_request.contract.as_deref().or(options.contract.as_deref());
    let mut spec = match (&extract_request.schema, contract) {
        (Some(_), Some(_)) => {
            return Err(Problem::invalid("schema", "a schema and a contract are named: use one of them"));
        }
        (None, None) => return Err(Problem::invalid("schema", "name a `schema` or a `contract`")),
        (Some(schema), None) => Spec::new("answer".to_owned(), schema.clone()),
        (None, Some(name)) => named(shared, name).await?,
    };
    spec.mark(
        extract_request.absent.as_ref().or(options.absent.as_ref()),
        extract_request.coerce.as_ref().or(options.coerce.as_ref()),
    );
    spec.rules.extend(extract_request.rules.iter().cloned());
    if let Some(instructions) = &extract_request.instructions {
        spec.instructions = Some(match spec.instructions.take() {
            Some(own) => format!("{own}\n\n{instructions}"),
            None => instructions.clone(),
        });
    }
    Ok(spec)
}

/// Takes the limits of the body into the options: the lower ones of body and headers count.
fn limit(extract_request: &ExtractRequest, options: &mut Options) -> Result<(), Problem> {
    let within = |name: &str, value: Option<f64>, max: f64| match value {
        Some(value) if !(MIN..=max).contains(&value) => {
            Err(Problem::invalid(name, format!("`{name}`: expected a number from {MIN} to {max}")))
        }
        value => Ok(value),
    };
    if let Some(usd) = within("budget", extract_request.budget, 1e6)? {
        let own = (usd * 1e6).round() as u64;
        options.bounds.budget = Some(options.bounds.budget.map_or(own, |header| header.min(own)));
    }
    if let Some(seconds) = within("deadline", extract_request.deadline, 86_400.0)? {
        let own = Duration::from_secs_f64(seconds);
        options.bounds.deadline = Some(options.bounds.deadline.map_or(own, |header| header.min(own)));
    }
    match extract_request.temperature {
        Some(temperature) if !(0.0..=2.0).contains(&temperature) => {
            let message = "`temperature`: expected a number from 0 to 2";
            Err(Problem::invalid("temperature", message))
        }
        _ => Ok(()),
    }
}

/// Returns the body of a result, or the problem of one without a value.
fn body(id: RecordId, result: &Result<Outcome<Value>, Error>, evidence: bool) -> Result<Value, Problem> {
    if let Ok(outcome) = result {
        let mut body = serde_json::to_value(outcome).unwrap_or_default();
        body["calls"] = outcome.calls().iter().map(told).collect();
        body["run"] = id.to_string().into();
        if evidence {
            body["evidence"] = json!(outcome.evidence());
            body["confidence"] = json!(outcome.confidence());
        }
        return Ok(body);
    }
    let want = Want::Json { name: String::new(), schema: Schema::default() };
    match reply(&want, std::slice::from_ref(result)) {
        Err(problem) => Err(problem),
        // Chat protocols can report a refusal or a truncation; here a missing value is an error.
        Ok(_) => {
            let message = result.as_ref().err().map(ToString::to_string).unwrap_or_default();
            Err(Problem::new(Kind::Unmendable, message))
        }
    }
}

async fn whole(prepared: Prepared) -> Result<Response, Problem> {
    let Prepared { ready, input, mut record, id, turn, evidence, warned, .. } = prepared;
    let cancel = CancellationToken::new();
    let extraction = ready.extraction(input, 0, &cancel);
    let run = async move {
        let _turn = turn;
        let mut result = extraction.run().await;
        warn(&mut result, &warned);
        let warned = warnings(result.as_ref().map(|outcome| &*outcome.warnings).unwrap_or_default());
        let body = body(id, &result, evidence).map(|body| (body, calls(&result).len(), warned));
        record.runs(&[result], None);
        body
    };
    let (body, calls, warned) = Kept::new(run, cancel).await?;
    let headers = [("x-formwork-calls", calls.to_string())];
    let warned = warned.map(|warned| [("x-formwork-warnings", warned)]);
    Ok((headers, warned, axum::Json(body)).into_response())
}

async fn steps(prepared: Prepared) -> Result<Response, Problem> {
    let Prepared { shared, ready, input, mut record, id, client, turn, evidence, warned } = prepared;
    let open = record.checked(Open::new(&shared, &client))?;
    let cancel = CancellationToken::new();
    let updates = ready.extraction(input, 0, &cancel).stream();
    let (mut client, opening) = stream::Client::new(&shared, &turn, EVENTS, COMMENT.to_vec());
    tokio::spawn(with_trace(trace_here(), async move {
        let _held = (turn, open);
        let parts = updates.map(|update| match update {
            Ok(Update::Done(outcome)) => ControlFlow::Break(Ok(outcome)),
            Ok(update) => ControlFlow::Continue(update),
            Err(error) => ControlFlow::Break(Err(error)),
        });
        let events = |update| {
            let is_call =
                matches!(update, Update::Started { .. } | Update::Finished(_) | Update::Asking { .. });
            (step(&update).map(|(name, data)| event(name, &data)).unwrap_or_default(), !is_call)
        };
        let ended = client.follow(&cancel, parts, events).await;
        let early = || Err(Error::new(formwork_core::ErrorKind::Cancelled, "the run ended early"));
        let mut result = ended.unwrap_or_else(early);
        warn(&mut result, &warned);
        let last = match body(id, &result, evidence) {
            Ok(body) => event("done", &body),
            Err(problem) => event("error", &(OPENAI.problem)(&problem)),
        };
        record.runs(&[result], None);
        client.send(last).await;
    }));
    Ok(([(header::CACHE_CONTROL, "no-store")], opening.response).into_response())
}

/// Returns a call as the client sees it; see [`Problem::told`].
fn told(call: &CallRecord) -> Value {
    let mut shown = json!(call);
    if let Some(Failure::Fault(fault)) = call.verdict.failure() {
        shown["verdict"]["failure"]["message"] = Problem::of_fault(fault).told().into();
    }
    shown
}

/// Returns the event of a step.
fn step(update: &Update<Value>) -> Option<(&'static str, Value)> {
    Some(match update {
        Update::Started { attempt, target, ask } => {
            ("started", json!({"attempt": attempt, "target": target, "ask": ask}))
        }
        Update::Text(text) => ("text", json!({"text": text})),
        Update::Reasoning(text) => ("reasoning", json!({"text": text})),
        Update::Partial(partial) => ("partial", json!({"value": partial.value()})),
        Update::Item(item) => ("item", json!({"path": item.path, "value": item.value})),
        Update::Replaced { path } => ("replaced", json!({"path": path})),
        Update::Finished(call) => ("finished", told(call)),
        Update::Asking { attempt, target, ask, wait } => {
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            ("asking", json!({"attempt": attempt, "target": target, "ask": ask, "wait_ms": wait_ms}))
        }
        _ => return None,
    })
}

fn event(name: &str, data: &Value) -> Vec<u8> {
    format!("event: {name}\ndata: {data}\n\n").into()
}
