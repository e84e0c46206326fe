//! The record of a request: its run in the ledger, and its cost.

use std::sync::Arc;

use axum::http::HeaderMap;
use formwork_core::{Cost, Error, Outcome, Time, Usage, Violation};
use formwork_ledger::{Hold, KeyId, RecordId, RunOutcome, RunRecord, StoredCall, ViolationRecord};
use formwork_serve::Seat;
use futures_util::FutureExt as _;
use tokio::runtime::Handle;

use crate::access::{Client, now};
use crate::meter::Answered;
use crate::names::Names;
use crate::problem::{Kind, Problem};
use crate::seen::{LEFT, Seen};
use crate::service::Shared;

/// The record of a request, written when it is finished; dropped before, it is written as cancelled.
pub(crate) struct Record {
    shared: Arc<Shared>,
    run: Option<Box<RunRecord>>,
    hold: Option<Hold>,
    /// The key of the client, and its place among the open requests of the key.
    client: Client,
    seat: Option<Seat<KeyId>>,
    /// The calls that were made, of targets that failed and of the one that answered.
    pub(crate) made: Vec<Made>,
    /// The request, whose line of the log waits for this record.
    seen: Option<Arc<Seen>>,
    /// Whether calls may have been made that are not in `made` yet: those of a run.
    is_run: bool,
    /// The model of the last call and its reason to stop, as the target names them.
    answered: Answered,
    /// The service does not end before its records are written, and its reservations settled.
    settling: Arc<()>,
}

impl Record {
    /// Returns the record of a request of a client, which is open as long as the record.
    pub(crate) fn new(
        shared: Arc<Shared>,
        run: RunRecord,
        (client, seat): (Client, Option<Seat<KeyId>>),
    ) -> Box<Self> {
        let run = Some(Box::new(run));
        let (seen, answered) = (Seen::current(), Answered::default());
        let settling = shared.access.settling();
        // It is passed on from one part of the request to the next, and it is large.
        Box::new(Self {
            client,
            seat,
            shared,
            run,
            hold: None,
            made: Vec::new(),
            seen,
            is_run: false,
            answered,
            settling,
        })
    }

    /// Keeps the reservation, to settle it.
    pub(crate) fn hold(&mut self, hold: Option<Hold>) {
        self.hold = hold;
    }

    /// Returns the identifier of the run; `None` once it is written.
    pub(crate) fn id(&self) -> Option<RecordId> {
        self.run.as_ref().map(|run| run.id)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Returns whether the cost of the request is reserved.
    pub(crate) const fn has_hold(&self) -> bool {
        self.hold.is_some()
    }

    /// Notes that a run begins, whose calls are known when it ends.
    pub(crate) const fn runs_now(&mut self) {
        self.is_run = true;
    }

    pub(crate) fn change(&mut self, change: impl FnOnce(RunRecord) -> RunRecord) {
        self.run = self.run.take().map(|run| Box::new(change(*run)));
    }

    /// Writes the runs of a request, as one; `problem` is why their answer was not taken.
    pub(crate) fn runs(
        &mut self,
        results: &[Result<Outcome<serde_json::Value>, Error>],
        problem: Option<&Problem>,
    ) {
        let Some(run) = self.run.take() else { return };
        let mut run = *run;
        let names = &self.shared.engine.names;
        let failed = std::mem::take(&mut self.made);
        let failed: Vec<_> = failed.into_iter().filter_map(|made| stored(names, made)).collect();
        let mut cost = Cost { tokens: 0, micro_usd: failed.iter().map(|call| call.micro_usd).sum() };
        for (nth, result) in results.iter().enumerate() {
            if nth == 0 {
                run = run.of(result, now());
                // The search for places costs as much as the rest of a small request, so it is done where texts are kept.
                if self.shared.keeps_bodies {
                    run = run.with_evidence_of(result);
                }
            } else {
                let other = RunRecord::new("", run.started).of(result, now());
                run.usage = run.usage.plus(other.usage);
                run.calls.extend(other.calls);
                if other.outcome != RunOutcome::Ok {
                    (run.outcome, run.message) = (other.outcome, other.message);
                }
            }
            cost = cost.plus(match result {
                Ok(outcome) => outcome.cost,
                Err(error) => error.cost(),
            });
        }
        run.micro_usd = cost.micro_usd;
        run.usage = failed.iter().fold(run.usage, |sum, call| sum.plus(call.usage));
        run.calls.splice(0..0, failed);
        for (number, call) in (1..).zip(&mut run.calls) {
            call.number = number;
        }
        let mut run = run.with_models(|target| model_of(names, target));
        if let Some(problem) = problem.filter(|_| run.outcome == RunOutcome::Ok) {
            (run.outcome, run.message) = (problem.kind.outcome(), Some(problem.message.clone()));
        } else if run.outcome == RunOutcome::Failed(formwork_core::ErrorKind::Cancelled) {
            run.message = Some(left(&self.shared).message);
        }
        self.write(Box::new(run));
        self.settle(cost.micro_usd);
    }

    /// Ends the open call, whose answer was not validated, and writes it. `problem` is why the answer is not whole.
    pub(crate) fn passed(&mut self, usage: Usage, problem: Option<&Problem>) {
        if let Some(made) = self.made.last_mut() {
            made.end(usage, None);
        }
        self.calls(Vec::new(), problem);
    }

    /// Sets the model of the last call and its reason to stop, as the target names them (default: unknown).
    pub(crate) fn answered(&mut self, answered: Answered) {
        self.answered = answered;
    }

    /// Sets the text of the answer of the last call (default: none).
    pub(crate) fn said(&mut self, text: Option<String>) {
        self.made.last_mut().into_iter().for_each(|made| made.answer.clone_from(&text));
    }

    /// Writes the calls that were made, and these after them; `problem` is the failure of the last one.
    pub(crate) fn calls(&mut self, made: Vec<Made>, problem: Option<&Problem>) {
        self.end(made, problem, false);
    }

    /// Takes the run, with the calls that were made and these after them; `problem` is the failure of the last one.
    fn summed(&mut self, made: Vec<Made>, problem: Option<&Problem>) -> Option<Box<RunRecord>> {
        let mut run = self.run.take()?;
        let names = &self.shared.engine.names;
        let is_judged = made.last().or(self.made.last()).is_some_and(|last| last.class.is_some());
        run.ended = now();
        run.micro_usd = Some(0);
        // A list that grows by itself has place for four.
        run.calls.reserve_exact(self.made.len() + made.len());
        for (number, made) in (1..).zip(std::mem::take(&mut self.made).into_iter().chain(made)) {
            let Some(mut call) = stored(names, made) else { continue };
            call.number = number;
            (run.target, run.model) = (call.target.clone(), call.model.clone());
            run.usage = run.usage.plus(call.usage);
            run.micro_usd = run.micro_usd.zip(call.micro_usd).map(|(sum, call)| sum.saturating_add(call));
            run.calls.push(call);
        }
        if let Some(call) = run.calls.last_mut() {
            let Answered { model, finish } = std::mem::take(&mut self.answered);
            (call.answered, call.finish) = (model, finish);
        }
        if let Some(problem) = problem {
            run.outcome = problem.kind.outcome();
            run.message = Some(problem.message.clone());
            if let Some(call) = run.calls.last_mut().filter(|_| !is_judged) {
                (call.class, call.message) = (problem.class().into(), Some(problem.message.clone()));
            }
        }
        Some(run)
    }

    /// Writes an answer from the cache.
    pub(crate) fn cached(&mut self) {
        self.end(Vec::new(), None, true);
    }

    /// Passes a result on; a problem is what the request is refused with.
    ///
    /// # Errors
    /// The problem.
    pub(crate) fn checked<T>(&mut self, result: Result<T, Problem>) -> Result<T, Problem> {
        result.inspect_err(|problem| self.end(Vec::new(), Some(problem), false))
    }

    /// Writes the calls that were made, and these after them.
    fn end(&mut self, made: Vec<Made>, problem: Option<&Problem>, is_cached: bool) {
        let Some(mut run) = self.summed(made, problem) else { return };
        run.cached = is_cached;
        let cost = run.micro_usd;
        self.write(run);
        self.settle(cost);
    }

    /// Settles the reservation; at its full amount if the cost is unknown. The response does not wait for the file.
    fn settle(&mut self, cost: Option<u64>) {
        let (Some(hold), Some(cost)) = (self.hold.take(), cost) else { return };
        let (shared, settling) = (Arc::clone(&self.shared), Arc::clone(&self.settling));
        let settled = async move {
            if let Err(error) = hold.settle(cost).await {
                tracing::warn!(target: "formwork_gateway", %error, "what a request has cost could not be written");
            }
            shared.access.settled();
            drop(settling);
        };
        let mut settled = Box::pin(settled);
        // The first poll hands the amount to the ledger's thread, before the client can send its next request. Without a runtime the
        // process ends.
        if (&mut settled).now_or_never().is_none()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(settled);
        }
    }

    /// Writes the run. The request is no longer open then, although its last event may still be sent.
    fn write(&mut self, run: Box<RunRecord>) {
        self.seat = None;
        if let Some(key) = &self.client.0 {
            self.shared.access.used(key, run.usage.input_tokens.saturating_add(run.usage.output_tokens));
        }
        self.shared.metrics.calls(&run.calls);
        if let Some(seen) = &self.seen {
            seen.ran(&run);
        }
        if let Some(telemetry) = &self.shared.telemetry {
            let provider = |target: &str| provider_of(&self.shared.engine.names, target);
            let (none, seen) = (HeaderMap::new(), self.seen.as_deref());
            telemetry.run(&run, seen.map_or(&none, Seen::trace), seen, provider);
        }
        if let Some(ledger) = self.shared.access.ledger() {
            ledger.record(*run);
        }
    }
}

/// A call that was made for a request.
#[derive(Debug)]
pub(crate) struct Made {
    /// The number of the target.
    target: usize,
    started: Time,
    ended: Option<Time>,
    pub(crate) usage: Usage,
    /// The class of the failure, and its message.
    class: Option<&'static str>,
    message: Option<String>,
    has_failed: bool,
    violations: Vec<ViolationRecord>,
    /// The text of its answer, where texts are kept.
    pub(crate) answer: Option<String>,
}

impl Made {
    /// Returns a call that has begun, and has this usage unless it ends.
    pub(crate) const fn new(target: usize, started: Time, usage: Usage) -> Self {
        Self {
            target,
            started,
            ended: None,
            usage,
            class: None,
            message: None,
            has_failed: false,
            violations: Vec::new(),
            answer: None,
        }
    }

    /// Ends the call now, which failed.
    pub(crate) fn fail(&mut self, usage: Usage, problem: &Problem) {
        self.end(usage, None);
        (self.class, self.has_failed) = (Some(problem.class()), true);
        self.message = Some(problem.message.clone()).filter(|message| !message.is_empty());
    }

    /// Returns the time at which the call began.
    pub(crate) const fn started(&self) -> Time {
        self.started
    }

    /// Returns the number of the target.
    pub(crate) const fn target(&self) -> usize {
        self.target
    }

    pub(crate) const fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns whether there was no answer.
    pub(crate) const fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Ends the call now; with the violations that reject its answer.
    pub(crate) fn end(&mut self, usage: Usage, rejected: Option<&[Violation]>) {
        (self.ended, self.usage) = (Some(now()), usage);
        self.class = rejected.map(|_| "invalid");
        self.violations = rejected.unwrap_or_default().iter().map(ViolationRecord::from).collect();
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.run.is_none() {
            return;
        }
        let left = left(&self.shared);
        let Some(mut run) = self.summed(Vec::new(), Some(&left)) else { return };
        if self.is_run {
            // The reservation counts as spent, because the calls are unknown.
            run.micro_usd = self.hold.is_none().then_some(0);
        } else {
            self.settle(run.micro_usd);
        }
        self.write(run);
    }
}

/// Returns the tokens of calls, and their cost.
pub(crate) fn spent(shared: &Shared, made: &[Made]) -> (Usage, Cost) {
    let usage = made.iter().fold(Usage::default(), |sum, made| sum.plus(made.usage));
    let cost = |made: &Made| {
        let target = shared.engine.names.targets().get(made.target);
        let price = target.and_then(|target| target.backend.price());
        price.map_or_else(|| made.usage.unpriced(), |price| price.of(made.usage))
    };
    (usage, made.iter().fold(Cost::default(), |sum, made| sum.plus(cost(made))))
}

/// Returns the problem of a request that ends without a reader of its response.
pub(crate) fn left(shared: &Shared) -> Problem {
    Problem::new(Kind::Busy, if shared.draining.has_ended() { "the service stopped" } else { LEFT })
}

/// Returns a call as the ledger has it; `None` if there is no such target.
fn stored(names: &Names, made: Made) -> Option<StoredCall> {
    let target = names.targets().get(made.target)?;
    let ended = made.ended.unwrap_or_else(now);
    let mut call = StoredCall::new(target.name(), target.model.clone(), made.started, ended);
    call.usage = made.usage;
    call.micro_usd = match target.backend.price() {
        Some(price) => price.of(made.usage).micro_usd,
        None if made.usage == Usage::default() => Some(0),
        None => made.usage.micro_usd,
    };
    if let Some(class) = made.class {
        call.class = class.into();
    }
    (call.violations, call.message, call.answer) = (made.violations, made.message, made.answer);
    Some(call)
}

fn model_of(names: &Names, target: &str) -> Option<String> {
    names.targets().iter().find(|known| known.name() == target).map(|known| known.model.clone())
}

/// Returns the name of a target's protocol in the semantic conventions of OpenTelemetry.
fn provider_of(names: &Names, target: &str) -> &'static str {
    use formwork::providers::Protocol;

    let known = names.targets().iter().find(|known| known.name() == target);
    match known.and_then(|known| known.raw.as_ref()).map(|raw| raw.protocol) {
        Some(Protocol::OpenAi | Protocol::Responses) => "openai",
        Some(Protocol::Anthropic) => "anthropic",
        Some(Protocol::Ollama) => "ollama",
        _ => "formwork",
    }
}
