//! Requests with tools or a format for a target of the same protocol: passed on as they are, and so is the response, once the
//! arguments of every call in it satisfy the tool's schema, and each answer without a call the format. Text without a format passes
//! as it comes.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response as HttpResponse, header, response};
use axum::response::Response;
use formwork::providers::{Protocol, Raw};
use formwork_core::{Fault, FaultKind, Usage};
use formwork_http::with_trace;
use formwork_json::Level;
use futures_util::StreamExt as _;
use serde_json::Value;

use super::heard::edited;
use super::job::{Job, late};
use super::judge::{Found, Judge, Wrong};
use super::passed::refusal;
use super::received::Received;
use super::stream::{Line, open};
use crate::ask::Want;
use crate::failover::{answered, first, unanswered};
use crate::meter::add_counts;
use crate::pass::{self, Pass};
use crate::problem::{Kind, Problem};
use crate::protocol::events::{Events, document, without_usage};
use crate::protocol::given::tool_names;
use crate::protocol::turn::Turn;
use crate::protocol::{LINES, written};
use crate::record::{Made, left, spent};
use crate::seen::trace_here;

/// The longest response that is read, in bytes.
const MAX_RESPONSE: usize = 64 << 20;

/// A request that is passed on, its tools and its format.
struct Native {
    job: Box<Job>,
    /// Whether usage is asked for that the client does not expect.
    adds_usage: bool,
    body: Value,
    headers: HeaderMap,
    judge: Judge,
    /// The answer to the last call.
    received: Received,
    /// The problem of the targets of the protocol, which were all left.
    failure: Option<Problem>,
    /// Whether the client has seen an event of a stream.
    is_shown: bool,
}

/// Answers a request whose first target has the protocol of the request. Targets of that protocol that fail are left out of the job; it
/// is given back if the next one has another, or if the target refuses a schema that is lowered for it otherwise. `only` is the problem
/// of a request that no target of another protocol can answer.
pub(super) async fn answer(
    mut job: Box<Job>,
    (mut body, only): (Value, Option<Problem>),
    headers: HeaderMap,
) -> Result<Result<Response, Problem>, Box<Job>> {
    let protocol = job.protocol.own.0;
    let can_lower = only.is_none() && matches!(job.ask.want, Want::Call(_) | Want::Json { .. });
    let judge = Judge::of(&job).await;
    let mut judge = match job.record.checked(judge) {
        Ok(judge) => judge,
        Err(problem) => return Ok(Err(problem)),
    };
    judge.introduce(&job, &mut body);
    judge.others = tool_names(&body).filter(|name| !judge.has_tool(name)).map(str::to_owned).collect();
    let adds_usage =
        job.ask.stream && protocol == Protocol::OpenAi && job.shared.is_kept() && !job.ask.include_usage;
    let received = Received::new(Some(job.protocol), false, job.until);
    let mut native =
        Native { job, adds_usage, body, headers, judge, received, failure: None, is_shown: false };
    let response = match native.send().await {
        Ok(Some(response)) => response,
        Ok(None) => {
            let Some(problem) = only else { return Err(native.job) };
            // The target that takes such a request has failed, and the next one does not.
            let problem = native.failure.take().unwrap_or(problem);
            return Ok(native.job.record.checked(Err(problem)));
        }
        Err(problem) => return Ok(native.failed(problem)),
    };
    if can_lower && response.status().is_client_error() {
        answered(&native.job.shared.engine, &native.job.record.made);
        // The run that follows asks with another schema.
        let refused = Problem { fault: Some(FaultKind::SchemaRefused), ..Problem::new(Kind::Invalid, "") };
        native.job.record.made.last_mut().into_iter().for_each(|made| made.fail(Usage::default(), &refused));
        return Err(native.job);
    }
    let unused = native.job.options.evidence.then(|| "x-formwork-evidence".to_owned());
    native.job.ask.ignored = unused.into_iter().collect();
    let (head, body) = response.into_parts();
    Ok(native.respond(head, body).await)
}

impl Native {
    /// Answers with a whole response, or with a stream if a target answers with one.
    async fn respond(
        mut self,
        head: response::Parts,
        body: formwork_wire::Body,
    ) -> Result<Response, Problem> {
        match self.judged(head, body).await {
            Ok(Ok(response)) => {
                let refused = refusal(response.status());
                self.record(refused.as_ref());
                Ok(response)
            }
            Ok(Err(body)) => self.stream(body).await,
            Err(problem) => self.failed(problem),
        }
    }

    /// Returns whether a response is the stream that the request asks for.
    fn is_stream(&self, head: &response::Parts) -> bool {
        let media = head.headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok());
        let is_document = media.is_some_and(|media| media.starts_with("application/json"));
        self.job.ask.stream && head.status.is_success() && !is_document
    }

    /// Returns the first whole response that holds, or the stream of a target.
    async fn judged(
        &mut self,
        mut head: response::Parts,
        mut body: formwork_wire::Body,
    ) -> Result<Result<Response, formwork_wire::Body>, Problem> {
        while !self.is_stream(&head) {
            let collected = tokio::time::timeout_at(self.job.until, self.collected(&mut body)).await;
            let bytes = match collected.map_err(|_| late())? {
                Ok(bytes) => bytes,
                Err(fault) => {
                    (head, body) = self.after_cut(&fault, false).await?.into_parts();
                    continue;
                }
            };
            // A refusal of the target, or a body that is not JSON, is passed through as well.
            let document = serde_json::from_slice::<Value>(&bytes).ok();
            let mut document = document.filter(|_| head.status.is_success());
            if let Some(document) = &document
                && let Some(fault) =
                    self.received.told(&self.job.shared, &self.job.record.made, Some(document))
                && (self.judge.takes_any_text() || !self.received.is_wrong())
            {
                (head, body) = self.after_cut(&fault, true).await?.into_parts();
                continue;
            }
            let turn = document.as_ref().map_or_else(Turn::unread, |document| {
                let mut turn = Turn::default();
                (self.job.protocol.read_whole)(&mut turn, document);
                turn
            });
            let judged = self.judge.judged(&turn, Level::Clean);
            if head.status.is_success() {
                self.end_call(&turn, judged.as_ref().err(), true);
            } else if let Some(made) = self.job.record.made.last_mut() {
                // A request that is refused costs nothing.
                made.end(Usage::default(), None);
            }
            answered(&self.job.shared.engine, &self.job.record.made);
            let found = match judged {
                Ok(found) => found,
                Err(wrong) => {
                    (head, body) = self.again(wrong).await?.into_parts();
                    continue;
                }
            };
            let changed = document.as_mut().and_then(|document| {
                let is_changed = add_counts(document, self.earlier()) || !found.is_empty();
                for (answer, Found { value, warnings }) in found {
                    self.job.warnings.extend(warnings);
                    (self.job.protocol.set_text)(document, answer, &value.to_string());
                }
                is_changed.then(|| document.to_string().into_bytes())
            });
            if changed.is_some() {
                head.headers.remove(header::CONTENT_LENGTH);
            }
            let mut response = pass::returned(&head, Body::from(changed.unwrap_or(bytes)));
            self.job.head(&mut response, false);
            let calls = HeaderValue::from(self.job.record.made.len());
            response.headers_mut().insert("x-formwork-calls", calls);
            return Ok(Ok(response));
        }
        Ok(Err(body))
    }

    /// Returns the usage of the calls before the last one, which the response to that one does not count.
    fn earlier(&self) -> Usage {
        let earlier = self.job.record.made.split_last().map_or(&[][..], |(_, earlier)| earlier);
        spent(&self.job.shared, earlier).0
    }

    /// Reads a whole response, and its counts as it comes.
    async fn collected(&mut self, body: &mut formwork_wire::Body) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::new();
        while let Some(piece) = body.next().await {
            let piece = piece?;
            self.received.see(&piece);
            if bytes.len() + piece.len() > MAX_RESPONSE {
                return Err(Fault::new(FaultKind::BadWire, "the response of the target is too long"));
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    /// Goes on after a response that was cut or ended with an error, of which the client has seen nothing: with the next target, if there
    /// is one, and if the request is not to blame.
    async fn after_cut(
        &mut self,
        fault: &Fault,
        is_told: bool,
    ) -> Result<HttpResponse<formwork_wire::Body>, Problem> {
        let problem = Problem::of_fault(fault);
        self.received.failed(&self.job.shared, &self.job.record.made, fault);
        let is_free = is_told && self.received.is_empty();
        self.end_call(&Turn::default(), None, false);
        if let Some(made) = self.job.record.made.last_mut() {
            made.fail(if is_free { Usage::default() } else { made.usage }, &problem);
        }
        if self.job.targets.len() < 2 || problem.kind == Kind::Invalid {
            return Err(problem);
        }
        self.job.targets.remove(0);
        self.send().await?.ok_or(problem)
    }

    /// Answers with a stream. Events are held back while they may be part of a call, or have to be replaced.
    async fn stream(mut self, body: formwork_wire::Body) -> Result<Response, Problem> {
        self.received = Received::new(Some(self.job.protocol), true, self.job.until);
        let (mut line, guard, opening) = match open(&self.job) {
            Ok(opened) => opened,
            Err(problem) => return self.failed(problem),
        };
        tokio::spawn(with_trace(trace_here(), async move {
            let _guard = guard;
            let until = self.job.until;
            let relayed = tokio::time::timeout_at(until, self.relay(&mut line, body)).await;
            match relayed.unwrap_or_else(|_| Err(late())) {
                Ok(known) => self.record(known.as_ref()),
                Err(problem) => {
                    if !self.is_shown {
                        // Clients take no error before the first event.
                        line.open();
                    }
                    self.record(Some(&problem));
                    line.fail(&problem).await;
                }
            }
        }));
        opening.head().await
    }

    /// Sends the events of a stream. Returns the problem that the client knows of, if there is one: it left, or the target told it.
    async fn relay(
        &mut self,
        line: &mut Line,
        mut body: formwork_wire::Body,
    ) -> Result<Option<Problem>, Problem> {
        let protocol = self.job.protocol;
        let is_lines = protocol.stream_type == LINES;
        let shared = Arc::clone(&self.job.shared);
        let has_left = || Some(left(&shared));
        loop {
            let (mut turn, mut events, mut held) = (Turn::default(), Events::default(), Vec::new());
            let (earlier, mut broken) = (self.earlier(), None);
            loop {
                let waited = line.client.wait(body.next(), !self.is_shown || events.is_empty()).await;
                let Some(piece) = waited else {
                    // A client may close the connection once it has the last event.
                    let is_done = self.is_shown && turn.calls.is_empty() && self.received.has_end();
                    if is_done {
                        answered(&shared.engine, &self.job.record.made);
                    }
                    return Ok(if is_done { None } else { has_left() });
                };
                let piece = match piece {
                    Some(Ok(piece)) => piece,
                    Some(Err(fault)) => {
                        broken = Some(fault);
                        break;
                    }
                    None => break,
                };
                self.received.see(&piece);
                events.push(&piece);
                while let Some(event) = events.next(is_lines) {
                    let event = if self.adds_usage { without_usage(event) } else { Some(event) };
                    let Some(event) = event else { continue };
                    let mut data = document(&event);
                    (protocol.read_event)(&mut turn, &data);
                    held.extend(match add_counts(&mut data, earlier) {
                        true => written(&[data], protocol.stream_type),
                        false => event,
                    });
                    if held.len() > MAX_RESPONSE {
                        return Err(Problem::new(Kind::Upstream, "the response of the target is too long"));
                    }
                    if turn.has_text() && turn.calls.is_empty() && self.judge.takes_any_text() {
                        self.is_shown = true;
                        let made = &self.job.record.made;
                        let shown = self.received.redacted(&shared, made, std::mem::take(&mut held));
                        if !line.client.send(shown).await {
                            return Ok(has_left());
                        }
                    }
                }
                if self.received.has_error() {
                    break;
                }
            }
            let told = self.received.told(&shared, &self.job.record.made, None);
            held.extend(events.rest());
            held.extend_from_slice(self.received.rest(protocol.stream_type));
            let is_told = told.is_some();
            let mut wrong = self.judge.judged(&turn, Level::Strict).err();
            // The model did not write what the schema asks for: it is asked again.
            let is_wrong = wrong.is_some() && !self.judge.takes_any_text() && self.received.is_wrong();
            // What is judged valid is whole.
            let has_end = self.received.has_end();
            let is_whole = has_end || !turn.calls.is_empty() || !self.judge.takes_any_text();
            let broken = broken.or_else(|| (!is_whole).then(Received::endless));
            if let Some(fault) = told.filter(|_| !is_wrong).or(broken) {
                if !self.is_shown {
                    let waited = line.client.wait(self.after_cut(&fault, is_told), true).await;
                    let Some(next) = waited else { return Ok(has_left()) };
                    body = self.answered(next?)?.into_body();
                    continue;
                }
                self.received.failed(&shared, &self.job.record.made, &fault);
                let held = self.received.redacted(&shared, &self.job.record.made, held);
                self.end_call(&turn, None, false);
                let problem = Problem::of_fault(&fault);
                if !is_told || !turn.calls.is_empty() {
                    // A call that was not judged is not sent.
                    return Err(problem);
                }
                let is_there = line.client.send(held).await;
                return Ok(if is_there { Some(problem) } else { has_left() });
            }
            // A value that a whole response would have takes the place of the text.
            let may_be_found = wrong.is_some() && has_end && !is_wrong && !self.is_shown;
            if let Some(Found { value, warnings }) = may_be_found.then(|| self.judge.found(&turn)).flatten()
                && let Some(edited) = edited(protocol, &held, &value.to_string())
            {
                self.job.warnings.extend(warnings);
                (held, wrong) = (edited, None);
            }
            self.end_call(&turn, wrong.as_ref(), has_end);
            answered(&shared.engine, &self.job.record.made);
            let Some(wrong) = wrong else {
                self.is_shown |= !held.is_empty();
                let is_there = line.client.send(held).await;
                return Ok(if is_there { None } else { has_left() });
            };
            if self.is_shown {
                return Err(self.judge.problem(wrong, &self.job.record.made));
            }
            // A client that leaves now is noticed here, and the call is dropped.
            let waited = line.client.wait(self.again(wrong), true).await;
            let Some(response) = waited else { return Ok(has_left()) };
            body = response?.into_body();
        }
    }

    /// Sends the request to the first target that answers; `None` if the next one has another protocol.
    async fn send(&mut self) -> Result<Option<HttpResponse<formwork_wire::Body>>, Problem> {
        let Self { job, body, headers, adds_usage, failure, .. } = self;
        let (protocol, path) = job.protocol.own;
        let engine = &job.shared.engine;
        let mut pass = Pass {
            protocols: &[protocol],
            path,
            headers,
            until: job.until.into_std(),
            wish: engine.wish(job.options.bounds, job.until),
            unanswered: engine.unanswered(&job.ask, job.prompt, job.ask.count),
            adds_usage: *adds_usage,
            write: |raw: &Raw, asks_usage| Ok(pass::written(body, raw, asks_usage)),
        };
        let sent = first(engine, &mut job.targets, &mut job.record.made, &mut pass).await?;
        if sent.is_none() && job.record.made.last().is_some_and(Made::has_failed) {
            *failure = Some(unanswered());
        }
        *adds_usage &= sent.as_ref().is_none_or(|sent| sent.adds_usage);
        Ok(sent.map(|sent| sent.response))
    }

    /// Sends the request again, with the violations.
    async fn again(&mut self, wrong: Wrong) -> Result<HttpResponse<formwork_wire::Body>, Problem> {
        let limit = self.job.options.bounds.budget;
        let message = self.judge.again(&self.job, &self.job.record.made, wrong, limit)?;
        (self.job.protocol.add_message)(&mut self.body, &message);
        let response = self.send().await?;
        let none = || Problem::new(Kind::Unavailable, "no other target has the protocol of the request");
        let response = response.ok_or_else(none)?;
        self.answered(response)
    }

    /// Returns the response of a target that was asked after another answer; one that refuses the request costs nothing.
    fn answered(
        &mut self,
        response: HttpResponse<formwork_wire::Body>,
    ) -> Result<HttpResponse<formwork_wire::Body>, Problem> {
        if response.status().is_success() {
            return Ok(response);
        }
        let message = format!("the target refuses the request with a correction: {}", response.status());
        let problem = Problem::new(Kind::Upstream, message);
        self.job.record.made.last_mut().into_iter().for_each(|made| made.fail(Usage::default(), &problem));
        answered(&self.job.shared.engine, &self.job.record.made);
        Err(problem)
    }

    /// Records the outcome of the last call.
    fn end_call(&mut self, turn: &Turn, wrong: Option<&Wrong>, is_whole: bool) {
        let next = Received::new(Some(self.job.protocol), self.received.is_stream(), self.job.until);
        let mut received = std::mem::replace(&mut self.received, next);
        let keeps = self.job.shared.keeps_bodies;
        let Some(made) = self.job.record.made.last_mut() else { return };
        made.answer = keeps.then(|| turn.written()).flatten();
        made.end(received.usage(self.job.prompt, is_whole), wrong.map(|wrong| wrong.violations.as_slice()));
    }

    fn failed(self, problem: Problem) -> Result<Response, Problem> {
        self.record(Some(&problem));
        Err(problem)
    }

    fn record(mut self, problem: Option<&Problem>) {
        if self.job.record.made.last().is_some_and(|made| !made.has_ended()) {
            self.end_call(&Turn::default(), None, false);
        }
        let Job { record, ask, warnings, .. } = &mut *self.job;
        record.change(|run| self.judge.noted(&ask.want, run, std::mem::take(warnings)));
        self.job.record.calls(Vec::new(), problem);
    }
}
