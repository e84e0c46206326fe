//! Answers of targets that have another protocol than the request: text, and calls of tools, several at once. Each call of a tool and
//! each answer in a format is judged, and asked for again until it holds.

use std::sync::Arc;

use axum::response::Response;
use formwork_core::{
    Call, Completion, Connection, Delta, Enforcement, Fault, FaultKind, Finish as ModelFinish, Lowered,
    Message, Sampling as CallSampling, Usage, Warning,
};
use formwork_extract::CancellationToken;
use formwork_http::with_trace;
use formwork_json::Level;
use formwork_serve::Kept;
use futures_util::StreamExt as _;
use futures_util::future::{pending, try_join_all};
use serde_json::Value;
use tokio::time::Instant;

use super::job::{Job, late};
use super::judge::{Found, Judge, instruction};
use super::stream::{Line, open};
use crate::ask::{Tool, Want};
use crate::failover::{Attempt, Failed, first};
use crate::names::Target;
use crate::problem::{Kind, Problem};
use crate::protocol::Frames;
use crate::protocol::turn::Turn;
use crate::record::{Made, left, spent};
use crate::reply::{Called, Choice, Content, Finish, Reply};
use crate::seen::trace_here;

/// The longest answer that is read, in bytes.
const MAX_ANSWER: usize = 64 << 20;

/// One of the answers to a request.
struct Talk<'j> {
    /// The targets that did not fail.
    targets: Vec<usize>,
    made: Vec<Made>,
    open: OpenCall<'j>,
}

/// The open call for an answer, as far as it was read.
struct OpenCall<'j> {
    job: &'j Job,
    judge: &'j Judge,
    /// The client, if it gets the answer as it comes, where no judgement can reject it.
    line: Option<&'j mut Line>,
    messages: Vec<Arc<Message>>,
    /// The number of the answer, which its seed depends on.
    nth: u64,
    answer: Completion,
    /// Whether the target has begun to answer.
    has_begun: bool,
    /// Whether the client has seen a part of the answer.
    is_shown: bool,
    /// The warnings about what was changed in the answer to satisfy the format.
    warnings: Vec<Warning>,
}

/// Answers with a whole response.
pub(super) async fn whole(mut job: Box<Job>) -> Result<Response, Problem> {
    let judge = Judge::of(&job).await;
    let judge = job.record.checked(judge)?;
    job.record.runs_now();
    let cancel = CancellationToken::new();
    let has_left = cancel.clone();
    let run = async move {
        let (made, result) = reply(&job, &judge, None, has_left.cancelled()).await;
        let warnings = result.as_ref().map(|reply| reply.warnings.clone()).unwrap_or_default();
        let response = result.map(|reply| job.respond(&reply, None));
        job.record.change(|run| judge.noted(&job.ask.want, run, warnings));
        job.record.calls(made, response.as_ref().err());
        response
    };
    Kept::new(run, cancel).await
}

/// Answers with a stream. Text that needs no judgement is sent as it comes, all else once it holds.
pub(super) async fn stream(mut job: Box<Job>) -> Result<Response, Problem> {
    let judge = Judge::of(&job).await;
    let judge = job.record.checked(judge)?;
    let opened = open(&job);
    let (mut line, guard, opening) = job.record.checked(opened)?;
    job.record.runs_now();
    tokio::spawn(with_trace(trace_here(), async move {
        let _guard = guard;
        line.open();
        let (made, result) = reply(&job, &judge, Some(&mut line), pending()).await;
        let last = result.as_ref().map(|reply| line.close(reply));
        let warnings = result.as_ref().map(|reply| reply.warnings.clone()).unwrap_or_default();
        job.record.change(|run| judge.noted(&job.ask.want, run, warnings));
        job.record.calls(made, result.as_ref().err());
        match last {
            Ok(last) => _ = line.send(last).await,
            Err(problem) => line.fail(problem).await,
        }
    }));
    opening.head().await
}

/// Returns the calls of all answers, and the reply that they come to, unless the client has left. The first is shown as it comes.
async fn reply(
    job: &Job,
    judge: &Judge,
    mut line: Option<&mut Line>,
    has_left: impl Future<Output = ()>,
) -> (Vec<Made>, Result<Reply, Problem>) {
    let messages = messages(job);
    let talk = |nth| Talk {
        targets: job.targets.clone(),
        made: Vec::new(),
        open: OpenCall {
            job,
            judge,
            line: line.take(),
            messages: messages.clone(),
            nth: u64::from(nth),
            answer: Completion::default(),
            has_begun: false,
            is_shown: false,
            warnings: Vec::new(),
        },
    };
    let mut talks: Vec<_> = (0..job.ask.count).map(talk).collect();
    let all = try_join_all(talks.iter_mut().map(Talk::answer));
    let answered = tokio::select! {
        answered = tokio::time::timeout_at(job.until, all) => answered.unwrap_or_else(|_| Err(late())),
        () = has_left => Err(left(&job.shared)),
    };
    ended(job, talks, answered)
}

/// Returns the dialogue, with what the model has to know beside its tools.
fn messages(job: &Job) -> Vec<Arc<Message>> {
    let mut messages = job.ask.messages.clone();
    let instruction = match &job.ask.want {
        Want::Tools { required: true, .. } => Some("Answer with a call of one of the tools.".to_owned()),
        Want::Tools { format: Some((_, schema)), .. } => Some(instruction(schema.value())),
        _ => None,
    };
    job.introduce(&mut messages, instruction);
    messages.into_iter().map(Arc::new).collect()
}

/// Returns the calls of all answers, and the reply that they come to.
fn ended(
    job: &Job,
    talks: Vec<Talk<'_>>,
    answered: Result<Vec<Choice>, Problem>,
) -> (Vec<Made>, Result<Reply, Problem>) {
    let broken = match &answered {
        Err(problem) if problem.kind == Kind::Deadline => late(),
        Err(problem) if problem.kind == Kind::Busy => left(&job.shared),
        _ => Problem::new(Kind::Busy, "another answer to the request failed"),
    };
    let (mut made, mut warnings) = (Vec::new(), job.warnings.clone());
    for mut talk in talks {
        if let Some(open) = talk.made.last_mut().filter(|made| !made.has_ended()) {
            open.fail(talk.open.heard().unwrap_or_else(|| estimate(job, 0)), &broken);
        }
        made.append(&mut talk.made);
        warnings.append(&mut talk.open.warnings);
    }
    let result = answered.map(|choices| {
        let (usage, cost) = spent(&job.shared, &made);
        Reply { choices, cost, usage, calls: made.len(), warnings, ..Reply::default() }
    });
    (made, result)
}

/// Returns the usage of a call of which so many bytes were received, and no report.
fn estimate(job: &Job, bytes: usize) -> Usage {
    Usage::new(job.prompt.estimate(), bytes.div_ceil(3) as u64).with_estimated(true)
}

impl Talk<'_> {
    /// Returns an answer that holds.
    async fn answer(&mut self) -> Result<Choice, Problem> {
        let Self { targets, made, open } = self;
        loop {
            let engine = &open.job.shared.engine;
            let ended = first(engine, targets, made, open).await;
            let answer = std::mem::take(&mut open.answer);
            if let (Err(_), true, Some(made)) = (&ended, open.job.shared.keeps_bodies, made.last_mut()) {
                made.answer = Some(answer.text.clone()).filter(|text| !text.is_empty());
            }
            if ended?.is_none() {
                return Err(Problem::new(Kind::Unavailable, "there is no target"));
            }
            let Completion { mut text, reasoning: mut thinking, tool_calls, finish, .. } = answer;
            let is_whole =
                matches!(finish, ModelFinish::Stop | ModelFinish::ToolCall | ModelFinish::Other(_));
            let calls = tool_calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str()));
            let turn = Turn::of(&text, calls, is_whole);
            let judged = open.judge.judged(&turn, Level::Clean);
            if let Some(made) = made.last_mut() {
                made.end(answer.usage, judged.as_ref().err().map(|wrong| wrong.violations.as_slice()));
                made.answer = open.job.shared.keeps_bodies.then(|| turn.written()).flatten();
            }
            let mut found = match judged {
                Ok(found) => found,
                Err(wrong) if open.is_shown => return Err(open.judge.problem(wrong, made)),
                Err(wrong) => {
                    let correction = open.judge.again(open.job, made, wrong, open.job.share())?;
                    open.messages.push(Arc::new(Message::user(correction)));
                    continue;
                }
            };
            let is_shown = open.shows();
            if let Some(line) = open.line.as_deref_mut() {
                let thinking = std::mem::take(&mut thinking);
                if !is_shown && !thinking.is_empty() {
                    let pieces = line.frames.thinking(&thinking);
                    line.send(pieces).await;
                }
            }
            if tool_calls.is_empty() {
                if let Some((_, Found { value, warnings })) = found.pop() {
                    (text, open.warnings) = (value.to_string(), warnings);
                }
                let choice = |finish| Choice::new(Content::Text(text.clone()), finish);
                let choice = match finish {
                    ModelFinish::Filtered if !text.is_empty() => choice(Finish::Filtered),
                    // The client has the beginning as text.
                    ModelFinish::Refused if open.is_shown => choice(Finish::Filtered),
                    ModelFinish::Refused | ModelFinish::Filtered => Choice::refused(text),
                    ModelFinish::Length => choice(Finish::Length),
                    _ => choice(Finish::Stop),
                };
                return Ok(Choice { thinking, log_probs: answer.log_probs, ..choice });
            }
            let calls = tool_calls.into_iter().map(|call| Called {
                name: call.name,
                arguments: if call.arguments.trim().is_empty() { "{}".to_owned() } else { call.arguments },
            });
            let finish = if finish == ModelFinish::Length { Finish::Length } else { Finish::Call };
            let content = Content::Calls { text, calls: calls.collect() };
            return Ok(Choice { thinking, ..Choice::new(content, finish) });
        }
    }
}

impl Attempt for OpenCall<'_> {
    type Answer = ();
    const IS_WHOLE: bool = true;

    fn until(&self) -> Option<Instant> {
        self.job.shared.engine.wish(self.job.options.bounds, self.job.until)
    }

    fn begun(&self) -> Usage {
        estimate(self.job, 0)
    }

    async fn call(&mut self, target: &Target) -> Result<(), Failed> {
        (self.answer, self.has_begun, self.is_shown) = (Completion::default(), false, false);
        self.read(target).await.map_err(|broken| {
            let (fault, problem) = match broken {
                Broken::Target(fault) => {
                    let problem = Problem::of_fault(&fault);
                    (Some(fault), problem)
                }
                Broken::Other(problem) => (None, problem),
            };
            let is_sent = fault
                .as_ref()
                .is_none_or(|fault| matches!(fault.connection, None | Some(Connection::Broken)));
            let is_cut =
                self.has_begun && fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Unreachable);
            let usage = if is_sent { self.spent(&problem, is_cut) } else { Usage::default() };
            Failed { is_final: self.is_shown || problem.kind == Kind::Busy, fault, problem, usage }
        })
    }
}

/// Returns whether a model cannot be required to call a tool, as many cannot while they reason: "deepseek-reasoner does not support this
/// tool_choice", "This model doesn't support the toolConfig.toolChoice.any field".
fn refuses_choice(fault: &Fault) -> bool {
    fault.kind == FaultKind::BadRequest
        && ["tool_choice", "toolChoice"].iter().any(|it| fault.message.contains(it))
}

/// The reason for a call without an end.
enum Broken {
    Target(Fault),
    Other(Problem),
}

impl OpenCall<'_> {
    async fn read(&mut self, target: &Target) -> Result<(), Broken> {
        let mut request = self.request(target);
        let mut opened = self.wait(target.backend.provider().call(&request)).await?;
        if request.requires_tool && opened.as_ref().is_err_and(refuses_choice) {
            // The instruction alone asks for the call then.
            request.requires_tool = false;
            opened = self.wait(target.backend.provider().call(&request)).await?;
        }
        let mut answer = opened.map_err(Broken::Target)?;
        self.has_begun = true;
        loop {
            let Some(delta) = self.wait(answer.next()).await? else {
                self.answer.usage = self.heard().unwrap_or_else(|| estimate(self.job, 0));
                break;
            };
            let delta = delta.map_err(Broken::Target)?;
            match &delta {
                Delta::Text(more) => self.show(|frames| frames.text(more), true).await?,
                Delta::Reasoning(more) => self.show(|frames| frames.thinking(more), false).await?,
                _ => {}
            }
            if self.answer.push(delta) {
                break;
            }
            if self.answer.text.len().max(self.answer.reasoning.len()) > MAX_ANSWER {
                let long = Problem::new(Kind::Upstream, "the answer of the target is too long");
                return Err(Broken::Other(long));
            }
        }
        if let Some(probed) = self.answer.probe.as_deref() {
            self.answer.usage = self.answer.usage.plus(*probed);
        }
        Ok(())
    }

    /// Waits for the target, and keeps the connection of the client alive.
    async fn wait<T>(&mut self, part: impl Future<Output = T>) -> Result<T, Broken> {
        match self.line.as_deref_mut() {
            Some(line) => line.client.wait(part, true).await.ok_or_else(|| self.left()),
            None => Ok(part.await),
        }
    }

    /// Returns the end of a call whose client left.
    fn left(&self) -> Broken {
        Broken::Other(left(&self.job.shared))
    }

    /// Returns whether the answer is shown as it comes.
    const fn shows(&self) -> bool {
        self.line.is_some() && self.judge.takes_any_text()
    }

    /// Shows a part of the answer.
    async fn show(
        &mut self,
        events: impl FnOnce(&mut dyn Frames) -> Vec<Value>,
        is_answer: bool,
    ) -> Result<(), Broken> {
        let shows = self.shows();
        let Some(line) = self.line.as_deref_mut().filter(|_| shows) else { return Ok(()) };
        self.is_shown |= is_answer;
        let events = events(&mut *line.frames);
        let is_there = line.send(events).await;
        is_there.then_some(()).ok_or_else(|| self.left())
    }

    /// Returns what was used by the call, which a problem ended: that the connection broke within the answer, if `is_cut`.
    fn spent(&self, problem: &Problem, is_cut: bool) -> Usage {
        match (self.heard(), problem.kind) {
            (Some(heard), _) => heard,
            (None, kind) if is_cut || matches!(kind, Kind::Deadline | Kind::Busy) => estimate(self.job, 0),
            _ => Usage::default(),
        }
    }

    /// Returns the usage of what was received of the open call, which was paid for even if it failed later.
    fn heard(&self) -> Option<Usage> {
        /// The bytes of a token in the estimates of providers.
        const TOKEN: u64 = 4;

        let Completion { text, reasoning, tool_calls, usage, .. } = &self.answer;
        let calls = tool_calls.iter().map(|call| call.name.len() + call.arguments.len());
        let shown = text.len() + reasoning.len() + calls.sum::<usize>();
        // The arguments of a call show once they are whole.
        let held = usize::try_from(usage.output_tokens * TOKEN).ok().filter(|_| usage.estimated);
        let bytes = shown.max(held.unwrap_or(0));
        let is_begun = bytes > 0 || *usage != Usage::default();
        is_begun.then(|| usage.or_more(estimate(self.job, bytes)))
    }

    fn request(&self, target: &Target) -> Call {
        let (ask, defaults) = (&self.job.ask, &self.job.shared.engine.defaults);
        let promised = target.backend.capabilities();
        let own = ask.settings.values.sampling();
        let mut sampling = CallSampling::default();
        sampling.temperature =
            ask.sampling.temperature.or(defaults.temperature).filter(|it| promised.takes_temperature(*it));
        sampling.top_p = ask.sampling.top_p.filter(|_| promised.top_p);
        sampling.frequency_penalty = own.frequency_penalty.filter(|_| promised.frequency_penalty);
        let seed = ask.sampling.seed.filter(|_| promised.seed);
        sampling.seed = seed.map(|seed| seed.wrapping_add(self.nth));
        let mut call = Call::new(self.messages.iter().cloned(), Lowered::new(Enforcement::None, None))
            .with_sampling(sampling);
        call.max_tokens = ask.sampling.max_tokens.or(defaults.max_tokens).or(promised.default_max_tokens);
        call.settings = ask.settings.shared();
        if let Want::Tools { tools, required, .. } = &ask.want {
            call.tools = tools.iter().map(Tool::for_model).collect();
            call.requires_tool = *required && promised.required_tools;
        }
        call
    }
}
