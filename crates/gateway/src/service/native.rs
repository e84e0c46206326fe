//! Requests with tools for a target of the same protocol: passed on as they are, and so is the response, once the arguments of
//! every call in it satisfy the tool's schema. Text passes as it comes.

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
use crate::protocol::native::{Called, Events, Turn, add_message, document, is_usage};
use crate::record::Made;

/// The longest response that is read, in bytes.
const MAX_RESPONSE: usize = 64 << 20;

/// The maximum number of bytes of a call's arguments that are repeated to the model.
const MAX_SHOWN: usize = 4 << 10;

/// A request that is passed on, and its tools.
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

/// Answers a request with tools whose first target has the protocol of the request. Targets of that protocol that fail are left
/// out of the job; it is given back if the next one has another.
pub(super) async fn answer(
    mut job: Job,
    mut body: Value,
    headers: HeaderMap,
) -> Result<Result<Response, Problem>, Job> {
    let (protocol, path) = job.protocol.own();
    let Want::Tools { tools, required } = job.ask.want.clone() else { return Err(job) };
    let mut ready = Vec::new();
    for tool in tools {
        let spec = Spec::new(tool.name.clone(), tool.parameters);
        let made = job.shared.engine.ready(&spec, &job.targets, Default::default(), Bounds::default()).await;
        match job.record.checked(made).await {
            Ok(made) => ready.push((tool.name, made.extractor)),
            Err(problem) => return Ok(Err(problem)),
        }
    }
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
        Ok(None) => return Err(job),
        Err((usage, problem)) => {
            let target = job.targets.first().copied().unwrap_or_default();
            job.record.call(target, usage, Some(&problem)).await;
            return Ok(Err(problem));
        }
    };
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
        is_required: required,
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
                _ => Turn { is_unfinished: true, ..Turn::default() },
            };
            let wrong = self.wrong(&turn);
            if head.status.is_success() {
                self.end_call(wrong.as_ref(), true);
            } else if let Some(made) = self.made.last_mut() {
                // A request that is refused costs nothing.
                made.end(Usage::default(), None);
            }
            let Some(wrong) = wrong else {
                let mut response = pass::returned(&head, Body::from(bytes));
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
                    if turn.has_text && turn.calls.is_empty() && !self.is_required {
                        is_shown = true;
                        if !line.send_bytes(std::mem::take(&mut held)).await {
                            return Ok(false);
                        }
                    }
                }
            }
            held.extend(events.rest());
            let wrong = self.wrong(&turn);
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

    /// Returns why a turn does not hold; `None` if it does.
    fn wrong(&self, turn: &Turn) -> Option<Wrong> {
        if turn.is_unfinished {
            return None;
        }
        if turn.calls.is_empty() {
            let message =
                "Your last turn called no tool. Answer the same request again with a call of a tool.";
            return self.is_required.then(|| Wrong { message: message.to_owned(), violations: Vec::new() });
        }
        let mut message = String::from("Your last turn was not accepted.");
        let mut all = Vec::new();
        for call in &turn.calls {
            let violations = self.violations(call);
            if violations.is_empty() {
                continue;
            }
            let arguments = call.arguments.get(..call.arguments.floor_char_boundary(MAX_SHOWN));
            let arguments = arguments.unwrap_or_default();
            message.push_str(&format!("\nYou called `{}` with the arguments {arguments}:", call.name));
            for violation in &violations {
                message.push_str(&format!("\n- {violation}"));
            }
            all.extend(violations);
        }
        if all.is_empty() {
            return None;
        }
        message
            .push_str("\nAnswer the same request again, with arguments that satisfy the schema of the tool.");
        Some(Wrong { message, violations: all })
    }

    fn violations(&self, call: &Called) -> Vec<Violation> {
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

fn late() -> Problem {
    Problem::new(Kind::Deadline, "there was no answer in time, and the call is broken off")
}
