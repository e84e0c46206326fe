//! Requests with tools or a format for a target of the same protocol: passed on as they are, and so is the response, once the
//! arguments of every call in it satisfy the tool's schema, and each answer without a call the format. Text without a format passes
//! as it comes.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response as HttpResponse, header, response};
use axum::response::Response;
use formwork::providers::{Protocol, Raw};
use formwork_core::{Context, JsonPath, Stage, Usage, Violation, precision};
use formwork_extract::Extractor;
use formwork_http::with_trace;
use formwork_json::{Level, read};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::job::Job;
use super::stream::{Line, open};
use crate::access::now;
use crate::ask::Want;
use crate::contracts::Spec;
use crate::engine::Bounds;
use crate::meter::Meter;
use crate::pass::{self, Pass};
use crate::problem::{Kind, Problem};
use crate::protocol::native::{Called, Events, Turn, add_message, document, is_usage, set_text, tool_names};
use crate::record::Made;

/// The longest response that is read, in bytes.
const MAX_RESPONSE: usize = 64 << 20;

/// The maximum number of bytes of a call's arguments that are repeated to the model.
const MAX_SHOWN: usize = 4 << 10;

/// A request that is passed on, its tools and its format.
struct Native {
    job: Job,
    target: usize,
    raw: Raw,
    /// Whether usage was asked for that the client does not expect.
    adds_usage: bool,
    path: &'static str,
    body: Value,
    headers: HeaderMap,
    tools: Vec<(String, Extractor<Value>)>,
    /// The names of tools whose arguments have no schema.
    others: Vec<String>,
    /// The contract of a text.
    format: Option<Extractor<Value>>,
    is_required: bool,
    until: Instant,
    meter: Meter,
    made: Vec<Made>,
}

/// The reason why a turn does not hold.
struct Wrong {
    message: String,
    violations: Vec<Violation>,
}

/// A request as its protocol has it.
pub(super) struct Given {
    pub(super) body: Value,
    /// The problem of a request that no target of another protocol can answer.
    pub(super) only: Option<Problem>,
}

/// Answers a request whose first target has the protocol of the request. Targets of that protocol that fail are left out of the job; it
/// is given back if the next one has another, or if the target refuses a schema that is lowered for it otherwise.
pub(super) async fn answer(
    mut job: Job,
    given: Given,
    headers: HeaderMap,
) -> Result<Result<Response, Problem>, Job> {
    let Given { mut body, only } = given;
    let (protocol, path) = job.protocol.own();
    let (tools, is_required, format) = match job.ask.want.clone() {
        Want::Tools { tools, required, format } => (tools, required, format),
        Want::Call(tool) => (vec![tool], true, None),
        Want::Json { name, schema } => (Vec::new(), false, Some((name, schema))),
        Want::Text => (Vec::new(), false, None),
    };
    let can_lower = only.is_none() && matches!(job.ask.want, Want::Call(_) | Want::Json { .. });
    let mut ready = Vec::new();
    let tools = tools.into_iter().map(|tool| (tool.name, tool.parameters));
    let count = tools.len();
    for (name, schema) in tools.chain(format) {
        let spec = Spec::new(name.clone(), schema);
        let made = job.shared.engine.ready(&spec, &job.targets, Default::default(), Bounds::default()).await;
        match job.record.checked(made).await {
            Ok(made) => ready.push((name, made.extractor)),
            Err(problem) => return Ok(Err(problem)),
        }
    }
    let format = if ready.len() > count { ready.pop().map(|(_, format)| format) } else { None };
    let others = tool_names(&body).filter(|name| !ready.iter().any(|(known, _)| known == name));
    let others = others.map(str::to_owned).collect();
    let until = Instant::now() + job.shared.engine.deadline(job.options.bounds);
    let asks_usage =
        job.ask.stream && protocol == Protocol::OpenAi && job.record.is_kept() && !job.ask.include_usage;
    let shared = Arc::clone(&job.shared);
    let pass = Pass {
        engine: &shared.engine,
        protocols: &[protocol],
        path,
        headers: &headers,
        until: until.into_std(),
        unanswered: shared.engine.unanswered(&job.ask, job.prompt),
    };
    let started = now();
    let write = |raw: &Raw, asks_usage| Ok(pass::written(&mut body, raw, asks_usage));
    let sent = match pass.send(&mut job.targets, &mut job.record, asks_usage, write).await {
        Ok(Some(sent)) => sent,
        Ok(None) => {
            let Some(problem) = only else { return Err(job) };
            return Ok(job.record.checked(Err(problem)).await);
        }
        Err((usage, problem)) => {
            let target = job.targets.first().copied().unwrap_or_default();
            job.record.call(target, usage, Some(&problem)).await;
            return Ok(Err(problem));
        }
    };
    if can_lower && sent.response.status().is_client_error() {
        return Err(job);
    }
    job.ask.ignored.clear();
    let target = job.targets.first().copied().unwrap_or_default();
    let native = Native {
        job,
        target,
        raw: sent.raw,
        adds_usage: sent.adds_usage,
        path,
        body,
        headers,
        tools: ready,
        others,
        format,
        is_required,
        until,
        meter: Meter::default(),
        made: vec![Made::new(target, started)],
    };
    let (head, body) = sent.response.into_parts();
    let media = head.headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok());
    let is_document = media.is_some_and(|media| media.starts_with("application/json"));
    Ok(if native.job.ask.stream && head.status.is_success() && !is_document {
        native.stream(body).await
    } else {
        native.whole(head, body).await
    })
}

impl Native {
    const fn protocol(&self) -> Protocol {
        self.raw.protocol
    }

    /// Answers with a whole response.
    async fn whole(
        mut self,
        mut head: response::Parts,
        mut body: formwork_wire::Body,
    ) -> Result<Response, Problem> {
        loop {
            let bytes = match tokio::time::timeout_at(self.until, body.collect(MAX_RESPONSE)).await {
                Ok(Ok(bytes)) => bytes,
                Ok(Err(fault)) => return self.failed(Problem::of_fault(&fault)).await,
                Err(_) => return self.failed(late()).await,
            };
            self.meter.see(&bytes);
            let turn = match serde_json::from_slice(&bytes) {
                Ok(document) if head.status.is_success() => Turn::whole(self.protocol(), &document),
                // An error of the target, or a body that is not JSON, is passed through as well.
                _ => Turn::unread(),
            };
            let wrong = self.wrong(&turn, Level::Clean);
            if head.status.is_success() {
                self.end_call(wrong.as_ref(), true);
            } else if let Some(made) = self.made.last_mut() {
                // A request that is refused costs nothing.
                made.end(Usage::default(), None);
            }
            let Some(wrong) = wrong else {
                let mut response = match self.repaired(&turn, &bytes) {
                    Some(repaired) => {
                        head.headers.remove(header::CONTENT_LENGTH);
                        pass::returned(&head, Body::from(repaired))
                    }
                    None => pass::returned(&head, Body::from(bytes)),
                };
                self.job.head(&mut response);
                let calls = HeaderValue::from(self.made.len());
                response.headers_mut().insert("x-formwork-calls", calls);
                self.record(None).await;
                return Ok(response);
            };
            match self.again(wrong).await {
                Ok(response) => (head, body) = response.into_parts(),
                Err(problem) => return self.failed(problem).await,
            }
        }
    }

    /// Answers with a stream. Events are held back while they may be part of a call, or have to be replaced.
    async fn stream(mut self, body: formwork_wire::Body) -> Result<Response, Problem> {
        let (mut line, guard, response) = match open(&self.job) {
            Ok(opened) => opened,
            Err(problem) => return self.failed(problem).await,
        };
        let trace = self.job.options.trace.clone();
        tokio::spawn(with_trace(trace, async move {
            let _guard = guard;
            let until = self.until;
            let relayed = tokio::time::timeout_at(until, self.relay(&mut line, body)).await;
            match relayed.unwrap_or_else(|_| Err(late())) {
                Ok(true) => self.record(None).await,
                Ok(false) => self.record(Some(&Problem::new(Kind::Busy, "the client left"))).await,
                Err(problem) => {
                    let last = line.frames.fail(&problem);
                    self.record(Some(&problem)).await;
                    line.send(last).await;
                }
            }
        }));
        Ok(response)
    }

    /// Sends the events of a stream. Returns whether the client is still there.
    async fn relay(&mut self, line: &mut Line, mut body: formwork_wire::Body) -> Result<bool, Problem> {
        let protocol = self.protocol();
        let mut is_shown = false;
        loop {
            let (mut turn, mut events, mut held) = (Turn::default(), Events::default(), Vec::new());
            loop {
                let piece = tokio::select! {
                    piece = body.next() => piece,
                    () = line.sender.closed() => return Ok(false),
                    () = tokio::time::sleep(line.keep_alive) => {
                        // A keep-alive comment within an event would become part of it.
                        if !is_shown || events.is_empty() {
                            line.keep_alive().await;
                        }
                        continue;
                    }
                };
                let Some(piece) = piece else { break };
                let piece = piece.map_err(|fault| Problem::of_fault(&fault))?;
                self.meter.see(&piece);
                events.push(&piece);
                while let Some(event) = events.next(protocol) {
                    if self.adds_usage && is_usage(&event) {
                        continue;
                    }
                    turn.event(protocol, &document(&event));
                    held.extend(event);
                    if held.len() > MAX_RESPONSE {
                        return Err(Problem::new(Kind::Upstream, "the response of the target is too long"));
                    }
                    if turn.has_text() && turn.calls.is_empty() && !self.is_required && self.format.is_none()
                    {
                        is_shown = true;
                        if !line.send_bytes(std::mem::take(&mut held)).await {
                            return Ok(false);
                        }
                    }
                }
            }
            held.extend(events.rest());
            let wrong = self.wrong(&turn, Level::Strict);
            self.end_call(wrong.as_ref(), true);
            let Some(wrong) = wrong else { return Ok(line.send_bytes(held).await) };
            if is_shown {
                return Err(self.problem(wrong));
            }
            body = self.again(wrong).await?.into_body();
        }
    }

    /// Sends the request again, with the violations.
    async fn again(&mut self, wrong: Wrong) -> Result<HttpResponse<formwork_wire::Body>, Problem> {
        let engine = &self.job.shared.engine;
        if self.made.len() >= engine.attempts() as usize {
            return Err(self.problem(wrong));
        }
        if let Some(limit) = self.job.options.bounds.budget {
            let price = engine.targets(&self.job.targets).next().and_then(|target| target.backend.price());
            let cost = |usage: Usage| price.and_then(|price| price.of(usage).micro_usd).unwrap_or(0);
            let spent: u64 = self.made.iter().map(|made| cost(made.usage)).sum();
            let next = self.made.iter().map(|made| cost(made.usage)).max().unwrap_or(0);
            if spent.saturating_add(next) > limit {
                let message = format!("the budget does not allow another call; {}", wrong.message);
                return Err(Problem { kind: Kind::OutOfBudget, message, ..self.problem(wrong) });
            }
        }
        add_message(self.raw.protocol, &mut self.body, &wrong.message);
        let left: Duration = self.until.saturating_duration_since(Instant::now());
        self.made.push(Made::new(self.target, now()));
        let body = pass::written(&mut self.body, &self.raw, self.adds_usage);
        let response = pass::send(&self.raw, self.path, body, &self.headers, left).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let message = format!("the target refuses the request with a correction: {}", response.status());
        Err(Problem::new(Kind::Upstream, message))
    }

    /// Returns why a turn does not hold; `None` if it does. Text that has to satisfy a schema is read at this level.
    fn wrong(&self, turn: &Turn, level: Level) -> Option<Wrong> {
        if turn.is_unfinished {
            return None;
        }
        let mut message = String::from("Your last turn was not accepted.");
        let (mut all, mut lacks_call) = (Vec::new(), false);
        let mut add = |what: String, violations: Vec<Violation>| {
            if !violations.is_empty() {
                message.push_str(&what);
                for violation in &violations {
                    message.push_str(&format!("\n- {violation}"));
                }
                all.extend(violations);
            }
        };
        for answer in turn.answers() {
            let mut calls = turn.calls.iter().filter(|call| call.answer() == answer).peekable();
            if calls.peek().is_none() {
                lacks_call |= self.is_required;
                if let Some(Err(violations)) = self.text(turn.text(answer), level) {
                    add(format!("\nYou answered {}:", shown(turn.text(answer))), violations);
                }
            }
            for call in calls {
                let what =
                    format!("\nYou called `{}` with the arguments {}:", call.name, shown(&call.arguments));
                add(what, self.violations(call));
            }
        }
        if all.is_empty() {
            let message =
                "Your last turn called no tool. Answer the same request again with a call of a tool.";
            return lacks_call.then(|| Wrong { message: message.to_owned(), violations: Vec::new() });
        }
        message.push_str("\nAnswer the same request again, so that ");
        message.push_str(match self.format {
            Some(_) => "it is a JSON document that satisfies the schema.",
            None => "the arguments satisfy the schema of the tool.",
        });
        Some(Wrong { message, violations: all })
    }

    /// Reads and judges a text that has to satisfy a schema; `None` if it does not have to. Returns the value, if it is written otherwise
    /// than the text.
    fn text(&self, text: &str, level: Level) -> Option<Result<Option<Value>, Vec<Violation>>> {
        let format = self.format.as_ref().filter(|_| !self.is_required)?;
        let contract = format.plan().contract();
        let documents = match read(text, level) {
            Ok(reading) => reading.into_candidates(),
            Err(error) => {
                let broken = Violation::new(JsonPath::root(), "json", Stage::Read);
                return Some(Err(vec![
                    broken.with_expected("a JSON document").with_found(error.to_string()),
                ]));
            }
        };
        let mut first = None;
        for document in documents {
            let judged = contract.judge(&document.value, &Context::EMPTY).violations;
            let violations: Vec<_> = precision(&document.rounded).0.into_iter().chain(judged).collect();
            if violations.is_empty() {
                let is_same = serde_json::from_str::<Value>(text).is_ok();
                return Some(Ok((!is_same).then_some(document.value)));
            }
            first.get_or_insert(violations);
        }
        first.map(Err)
    }

    /// Returns a whole response with the values that were found in its texts; `None` if they are the texts.
    fn repaired(&self, turn: &Turn, bytes: &[u8]) -> Option<Vec<u8>> {
        if turn.is_unfinished || self.format.is_none() {
            return None;
        }
        let mut body = None;
        for answer in turn.answers().filter(|answer| turn.calls.iter().all(|call| call.answer() != *answer)) {
            if let Some(Ok(Some(value))) = self.text(turn.text(answer), Level::Clean) {
                if body.is_none() {
                    body = Some(serde_json::from_slice::<Value>(bytes).ok()?);
                }
                set_text(self.protocol(), body.as_mut()?, answer, value.to_string());
            }
        }
        serde_json::to_vec(&body?).ok()
    }

    fn violations(&self, call: &Called) -> Vec<Violation> {
        if self.others.contains(&call.name) {
            return Vec::new();
        }
        let Some((_, tool)) = self.tools.iter().find(|(name, _)| *name == call.name) else {
            let names: Vec<_> = self.tools.iter().map(|(name, _)| name.as_str()).collect();
            let unknown = Violation::new(JsonPath::root(), "tool", Stage::Schema);
            return vec![
                unknown
                    .with_expected(format!("one of the tools {}", names.join(", ")))
                    .with_found(&call.name),
            ];
        };
        let (value, rounded) = match call.arguments.trim() {
            "" => (json!({}), Vec::new()),
            text => match read(text, Level::Strict).map(|reading| reading.into_candidates().swap_remove(0)) {
                Ok(document) => (document.value, document.rounded),
                Err(error) => {
                    let broken = Violation::new(JsonPath::root(), "json", Stage::Read);
                    return vec![broken.with_expected("a JSON object").with_found(error.to_string())];
                }
            },
        };
        let judged = tool.plan().contract().judge(&value, &Context::EMPTY).violations;
        precision(&rounded).0.into_iter().chain(judged).collect()
    }

    /// Records the outcome of the last call.
    fn end_call(&mut self, wrong: Option<&Wrong>, is_whole: bool) {
        let mut meter = std::mem::take(&mut self.meter);
        let Some(made) = self.made.last_mut() else { return };
        made.end(meter.usage(self.job.prompt, is_whole), wrong.map(|wrong| wrong.violations.as_slice()));
    }

    fn problem(&self, wrong: Wrong) -> Problem {
        let calls = self.made.len();
        let message = match wrong.violations.first() {
            Some(violation) if self.format.is_some() => {
                format!("no answer was valid after {calls} attempts: {violation}")
            }
            Some(violation) => format!("no call of a tool was valid after {calls} attempts: {violation}"),
            None => format!("no tool was called in {calls} attempts"),
        };
        Problem { violations: wrong.violations, calls, ..Problem::new(Kind::Unmendable, message) }
    }

    async fn failed(self, problem: Problem) -> Result<Response, Problem> {
        self.record(Some(&problem)).await;
        Err(problem)
    }

    async fn record(mut self, problem: Option<&Problem>) {
        if self.made.last().is_some_and(|made| !made.has_ended()) {
            self.end_call(None, false);
        }
        self.job.record.calls(self.made, problem).await;
    }
}

/// Returns the beginning of a text of the model, as it is repeated to it.
fn shown(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_SHOWN)).unwrap_or(text)
}

fn late() -> Problem {
    Problem::new(Kind::Deadline, "there was no answer in time, and the call is broken off")
}
