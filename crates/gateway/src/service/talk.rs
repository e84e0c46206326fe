//! Answers of targets that have another protocol than the request: text, and calls of tools, several at once. Each call of a tool and
//! each answer in a format is judged, and asked for again until it holds.

use std::sync::Arc;

use axum::response::Response;
use formwork_core::{
    Call, Cost, Delta, End, Enforcement, Finish as ModelFinish, Lowered, Message, Part, Role,
    Sampling as CallSampling, ToolCall, Usage,
};
use formwork_http::with_trace;
use formwork_json::Level;
use futures_util::StreamExt as _;
use futures_util::future::{try_join, try_join_all};
use tokio::time::Instant;

use super::job::{Job, late};
use super::judge::Judge;
use super::stream::{Line, open};
use crate::access::now;
use crate::ask::{Tool, Want};
use crate::names::Target;
use crate::problem::{Kind, Problem};
use crate::protocol::turn::Turn;
use crate::record::Made;
use crate::reply::{Called, Choice, Content, Finish, Reply};

/// The longest answer that is read, in bytes.
const MAX_ANSWER: usize = 64 << 20;

/// One of the answers to a request, as far as it was read.
struct Talk<'j> {
    job: &'j Job,
    judge: &'j Judge,
    messages: Vec<Arc<Message>>,
    /// The number of the answer, which its seed depends on.
    nth: u64,
    /// The targets that did not fail.
    targets: Vec<usize>,
    made: Vec<Made>,
    /// The text and the calls of the open call of the target.
    text: String,
    calls: Vec<ToolCall>,
    /// The model's reasoning in the open call, as far as it was not shown.
    thinking: String,
}

/// Answers with a whole response.
pub(super) async fn whole(mut job: Job) -> Result<Response, Problem> {
    let judge = Judge::of(&job).await;
    let judge = job.record.checked(judge).await?;
    let mut talks = talks(&job, &judge);
    let all = try_join_all(talks.iter_mut().map(|talk| talk.answer(None)));
    let answered = tokio::time::timeout_at(job.until, all).await.unwrap_or_else(|_| Err(late()));
    let (made, result) = ended(&job, talks, answered);
    let response = result.and_then(|reply| job.respond(&reply));
    job.record.calls(made, response.as_ref().err()).await;
    response
}

/// Answers with a stream. Text that needs no judgement is sent as it comes, all else once it holds.
pub(super) async fn stream(mut job: Job) -> Result<Response, Problem> {
    let judge = Judge::of(&job).await;
    let judge = job.record.checked(judge).await?;
    let opened = open(&job);
    let (mut line, guard, response) = job.record.checked(opened).await?;
    let trace = job.options.trace.clone();
    tokio::spawn(with_trace(trace, async move {
        let _guard = guard;
        let opening = line.frames.open();
        line.send(opening).await;
        let mut talks = talks(&job, &judge);
        let answered = match talks.split_first_mut() {
            Some((first, others)) => {
                let others = try_join_all(others.iter_mut().map(|talk| talk.answer(None)));
                let all = try_join(first.answer(Some(&mut line)), others);
                let all = tokio::time::timeout_at(job.until, all).await.unwrap_or_else(|_| Err(late()));
                all.map(|(first, others)| [vec![first], others].concat())
            }
            None => Ok(Vec::new()),
        };
        let (made, result) = ended(&job, talks, answered);
        let last = match &result {
            Ok(reply) => line.close(reply),
            Err(problem) => line.frames.fail(problem),
        };
        job.record.calls(made, result.as_ref().err()).await;
        line.send(last).await;
    }));
    Ok(response)
}

/// Returns the answers of a request, all of them open.
fn talks<'j>(job: &'j Job, judge: &'j Judge) -> Vec<Talk<'j>> {
    let messages = messages(job);
    let talk = |nth| Talk {
        job,
        judge,
        messages: messages.clone(),
        nth: u64::from(nth),
        targets: job.targets.clone(),
        made: Vec::new(),
        text: String::new(),
        calls: Vec::new(),
        thinking: String::new(),
    };
    (0..job.ask.count).map(talk).collect()
}

/// Returns the dialogue, with what the model has to know beside its tools.
fn messages(job: &Job) -> Vec<Arc<Message>> {
    let mut messages = job.ask.messages.clone();
    let instruction = match &job.ask.want {
        Want::Tools { required: true, .. } => "Answer with a call of one of the tools.".to_owned(),
        Want::Tools { format: Some((_, schema)), .. } => format!(
            "If you call no tool, answer with a JSON document that satisfies this JSON Schema, and with nothing else:\n{}",
            schema.value()
        ),
        _ => String::new(),
    };
    if !instruction.is_empty() {
        match messages.first_mut().filter(|first| first.role == Role::System) {
            Some(first) => first.parts.push(Part::Text { text: format!("\n\n{instruction}") }),
            None => messages.insert(0, Message::system(instruction)),
        }
    }
    messages.into_iter().map(Arc::new).collect()
}

/// Returns the calls of all answers, and the reply that they come to.
fn ended(
    job: &Job,
    talks: Vec<Talk<'_>>,
    answered: Result<Vec<Choice>, Problem>,
) -> (Vec<Made>, Result<Reply, Problem>) {
    let is_cut = answered.as_ref().is_err_and(|problem| matches!(problem.kind, Kind::Deadline | Kind::Busy));
    let is_late = answered.as_ref().is_err_and(|problem| problem.kind == Kind::Deadline);
    let mut made = Vec::new();
    for mut talk in talks {
        let heard = talk.heard();
        if let Some(open) = talk.made.last_mut().filter(|made| !made.has_ended()) {
            open.end(
                match heard {
                    None if is_late => job.shared.engine.unanswered(&job.ask, job.prompt, 1),
                    heard if is_cut || heard.is_some() => heard.unwrap_or_else(|| estimate(job, 0)),
                    _ => Usage::default(),
                },
                None,
            );
        }
        made.append(&mut talk.made);
    }
    let result = answered.map(|choices| {
        let usage = made.iter().fold(Usage::default(), |sum, made| sum.plus(made.usage));
        let price = |made: &Made| {
            let target = job.shared.engine.names.targets().get(made.target());
            target.and_then(|target| target.backend.price()).map(|price| price.of(made.usage))
        };
        let cost = made.iter().try_fold(Cost::default(), |sum, made| Some(sum.plus(price(made)?)));
        Reply {
            choices,
            cost: cost.unwrap_or_else(|| usage.unpriced()),
            usage,
            calls: made.len(),
            ..Reply::default()
        }
    });
    (made, result)
}

/// Returns the usage of a call of which so many bytes were received, and no report.
fn estimate(job: &Job, bytes: usize) -> Usage {
    Usage::new(job.prompt.estimate(), bytes.div_ceil(3) as u64).with_estimated(true)
}

impl Talk<'_> {
    /// Returns an answer that holds. Its text is shown as it comes where no judgement can reject it.
    async fn answer(&mut self, mut line: Option<&mut Line>) -> Result<Choice, Problem> {
        loop {
            let (end, is_shown) = self.turn(line.as_deref_mut()).await?;
            let is_whole =
                matches!(end.finish, ModelFinish::Stop | ModelFinish::ToolCall | ModelFinish::Other(_));
            let (mut text, calls) = (std::mem::take(&mut self.text), std::mem::take(&mut self.calls));
            let mut thinking = std::mem::take(&mut self.thinking);
            let turn = Turn::of(
                &text,
                calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())),
                is_whole,
            );
            let wrong = self.judge.wrong(&turn, Level::Clean);
            if let Some(made) = self.made.last_mut() {
                made.end(end.usage, wrong.as_ref().map(|wrong| wrong.violations.as_slice()));
            }
            if let Some(wrong) = wrong {
                if is_shown {
                    return Err(self.judge.problem(wrong, self.made.len()));
                }
                let correction = self.judge.again(self.job, &self.made, wrong)?;
                self.messages.push(Arc::new(Message::user(correction)));
                continue;
            }
            if let Some(line) = line.filter(|_| !thinking.is_empty()) {
                let pieces = line.frames.thinking(&std::mem::take(&mut thinking));
                line.send(pieces).await;
            }
            if calls.is_empty() {
                if let Some(Ok(Some(value))) = self.judge.text(&text, Level::Clean).filter(|_| is_whole) {
                    text = value.to_string();
                }
                let (content, finish) = match end.finish {
                    ModelFinish::Refused | ModelFinish::Filtered => (Content::Refusal(text), Finish::Refused),
                    ModelFinish::Length => (Content::Text(text), Finish::Length),
                    _ => (Content::Text(text), Finish::Stop),
                };
                return Ok(Choice { thinking, content, finish });
            }
            let calls = calls.into_iter().map(|call| Called {
                name: call.name,
                arguments: if call.arguments.trim().is_empty() { "{}".to_owned() } else { call.arguments },
            });
            let finish = if end.finish == ModelFinish::Length { Finish::Length } else { Finish::Call };
            let content = Content::Calls { text, calls: calls.collect() };
            return Ok(Choice { thinking, content, finish });
        }
    }

    /// Makes one call: of the first target that answers. Returns its end, and whether a part of it was shown.
    async fn turn(&mut self, mut line: Option<&mut Line>) -> Result<(End, bool), Problem> {
        loop {
            let Some(nth) = self.targets.first().copied() else {
                return Err(Problem::new(Kind::Unavailable, "there is no target"));
            };
            let Some(target) = self.job.shared.engine.names.targets().get(nth) else {
                self.targets.remove(0);
                continue;
            };
            self.made.push(Made::new(nth, now()));
            let mut is_shown = false;
            match self.call(target, line.as_deref_mut(), &mut is_shown).await {
                Ok(end) => return Ok((end, is_shown)),
                Err(problem) if is_shown || self.targets.len() == 1 || problem.kind == Kind::Busy => {
                    return Err(problem);
                }
                Err(problem) => {
                    let heard = self.heard().unwrap_or_default();
                    if let Some(made) = self.made.last_mut() {
                        made.fail(heard, &problem);
                    }
                    self.text.clear();
                    self.calls.clear();
                    self.thinking.clear();
                    self.targets.remove(0);
                }
            }
        }
    }

    async fn call(
        &mut self,
        target: &Target,
        mut line: Option<&mut Line>,
        is_shown: &mut bool,
    ) -> Result<End, Problem> {
        let left = || Problem::new(Kind::Busy, "the client left");
        let request = self.request(target);
        let answer = target.backend.provider().call(&request);
        let answer = match &line {
            Some(line) => tokio::select! {
                answer = answer => answer,
                () = line.sender.closed() => return Err(left()),
            },
            None => answer.await,
        };
        let outages = &self.job.shared.engine.outages;
        let failed = |fault| {
            outages.failed(target.name(), &fault);
            Problem::of_fault(&fault)
        };
        let mut answer = answer.map_err(failed)?;
        outages.answered(target.name());
        let mut probed = Usage::default();
        let mut due = Instant::now() + self.job.shared.engine.limits.keep_alive;
        loop {
            let delta = match &line {
                Some(line) => tokio::select! {
                    delta = answer.next() => delta,
                    () = line.sender.closed() => return Err(left()),
                    () = tokio::time::sleep_until(due) => {
                        due = Instant::now() + line.keep_alive;
                        line.keep_alive().await;
                        continue;
                    }
                },
                None => answer.next().await,
            };
            match delta {
                Some(Ok(Delta::Text(more))) => {
                    self.text.push_str(&more);
                    if self.text.len() > MAX_ANSWER {
                        return Err(Problem::new(Kind::Upstream, "the answer of the target is too long"));
                    }
                    if let Some(line) = line.as_deref_mut()
                        && self.judge.takes_any_text()
                    {
                        due = Instant::now() + line.keep_alive;
                        *is_shown = true;
                        let piece = line.frames.text(&more);
                        if !line.send(piece).await {
                            return Err(left());
                        }
                    }
                }
                Some(Ok(Delta::Reasoning(more))) => {
                    self.thinking.push_str(&more);
                    if self.thinking.len() > MAX_ANSWER {
                        return Err(Problem::new(Kind::Upstream, "the reasoning of the target is too long"));
                    }
                    if let Some(line) = line.as_deref_mut()
                        && self.judge.takes_any_text()
                    {
                        due = Instant::now() + line.keep_alive;
                        let piece = line.frames.thinking(&std::mem::take(&mut self.thinking));
                        if !line.send(piece).await {
                            return Err(left());
                        }
                    }
                }
                Some(Ok(Delta::ToolCall(call))) => self.calls.push(call),
                Some(Ok(Delta::End(mut end))) => {
                    end.usage = end.usage.plus(probed);
                    return Ok(end);
                }
                Some(Ok(Delta::Probe { usage })) => probed = probed.plus(usage),
                Some(Ok(_)) => {}
                Some(Err(fault)) => return Err(failed(fault)),
                None => {
                    let usage = self.heard().unwrap_or_else(|| estimate(self.job, 0));
                    return Ok(End::new(ModelFinish::Stop, usage.plus(probed)));
                }
            }
        }
    }

    /// Returns the usage of what was received of the open call, which was paid for even if it failed later.
    fn heard(&self) -> Option<Usage> {
        let calls = self.calls.iter().map(|call| call.name.len() + call.arguments.len());
        let bytes = self.text.len() + calls.sum::<usize>();
        (bytes > 0).then(|| estimate(self.job, bytes))
    }

    fn request(&self, target: &Target) -> Call {
        let (ask, defaults) = (&self.job.ask, &self.job.shared.engine.defaults);
        let promised = target.backend.capabilities();
        let own = ask.settings.values.sampling();
        let mut sampling = CallSampling::default();
        sampling.temperature =
            ask.sampling.temperature.or(defaults.temperature).filter(|_| promised.temperature);
        sampling.top_p = ask.sampling.top_p.filter(|_| promised.top_p);
        sampling.frequency_penalty = own.frequency_penalty.filter(|_| promised.frequency_penalty);
        let seed = ask.sampling.seed.filter(|_| promised.seed);
        sampling.seed = seed.map(|seed| seed.wrapping_add(self.nth));
        let mut call = Call::new(self.messages.iter().cloned(), Lowered::new(Enforcement::None, None))
            .with_sampling(sampling);
        call.max_tokens = ask.sampling.max_tokens.or(defaults.max_tokens).or(promised.default_max_tokens);
        call.settings = ask.settings.shared();
        if let Want::Tools { tools, .. } = &ask.want {
            call.tools = tools.iter().map(Tool::for_model).collect();
        }
        call
    }
}
