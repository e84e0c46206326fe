//! The run: the pure state machine of one request, from its first call to its end.
//!
//! Its state has five parts, each with methods of its own: [`position`] (the current target and output mode), [`request`]
//! (the parameters of the next call), [`counters`], [`drafts`] and the [size of answers](limit). Examining an answer is a function of the contract, the
//! call and the completion ([`examine`]).

mod answer;
mod closed;
mod compliance;
mod compose;
mod context;
mod counters;
mod decide;
mod drafts;
mod end;
mod entry;
mod evidence;
mod examine;
mod input;
mod learn;
mod limit;
mod patch;
mod places;
mod position;
mod question;
mod random;
mod request;
mod rest;
mod sampling;
mod step;
#[cfg(test)]
mod tests;
mod warnings;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::about::{About, Accepted};
use crate::judgement::Decoded;
use crate::rule::SourceIndex;
use crate::{
    Ask, Call, CallRecord, Completion, Context, Cost, Error, ErrorKind, Estimates, Evidence, Follower,
    JsonPath, Origin, Outcome, Plan, Provenance, Time, Trust, Usage, Warning,
};
use counters::Counters;
use decide::Before;
use drafts::Drafts;
use end::{DEADLINE_PASSED, End};
use limit::AnswerSize;
use position::Position;
use request::Request;

pub use input::Input;
pub(crate) use places::Places;
pub use places::values_of_patch;
pub use step::{CallId, Event, External, Misuse, Step};

/// One request, from its first call to its end, as a state machine.
///
/// A run owns no clock, no socket and no random source. Its driver requests a [`Step`], carries it out, and reports an
/// [`Event`]; the same events at the same times give the same steps. A run can be stored with serde before every step and
/// resumed in another process.
///
/// These invariants always hold: a run ends, after at most [`MAX_CALLS`] calls; an accepted value satisfies the contract,
/// even if the fallback supplied it; within a target the temperature never rises, and no output mode is used again after a
/// weaker one; a target that was called and then left is never called again; delays end before the deadline; the sum of spent and
/// reserved cost stays within the budget.
///
/// ```
/// use formwork_core::{Call, Completion, Error, Event, Input, Outcome, Plan, Run, Step, Time};
///
/// /// Drives a run with a model that answers at once, and a clock that jumps over delays.
/// fn drive(
///     plan: &Plan,
///     input: Input,
///     answer: impl Fn(&Call) -> Completion,
/// ) -> Result<Outcome<serde_json::Value>, Error> {
///     let (mut run, mut now) = (Run::new(plan, input), Time(0));
///     loop {
///         match run.step(plan, now)? {
///             Step::Call { id, call, .. } => run.on(plan, now, Event::answered(id, answer(&call)))?,
///             Step::Wait { until, .. } => now = until,
///             _ => return run.finish(),
///         }
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[must_use]
pub struct Run {
    digest: String,
    input: Input,
    state: State,
    started: Option<Time>,
    /// The number of calls and external steps so far.
    ids: u32,
    draws: u64,
    /// The seed of the jitter, if the input has no seed.
    jitter: Option<u64>,
    position: Position,
    request: Request,
    counters: Counters,
    drafts: Drafts,
    ledger: Vec<CallRecord>,
    #[serde(default)]
    size: AnswerSize,
    /// Whether earlier runs with this contract were repeated so often that a prompt cache pays from the first call on.
    #[serde(default)]
    expects_reask: bool,
    /// The estimated costs between which the last decision chose.
    #[serde(default)]
    estimates: Estimates,
    /// The state to which the run returns if no budget allows the target that it has just entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<Box<Before>>,
    /// The evidence that the driver has not taken yet.
    #[serde(skip)]
    evidence: Vec<Evidence>,
    /// Evidence that counts only if the run ends with it.
    last_evidence: Option<Evidence>,
    /// The index of the text that the answers are about.
    #[serde(skip)]
    source: SourceIndex,
    /// The accepted value as the contract's type.
    #[serde(skip)]
    decoded: Decoded,
    /// The schema of the accepted value.
    #[serde(skip)]
    schema: Accepted,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum State {
    Ready,
    Waiting {
        until: Time,
    },
    Calling {
        id: CallId,
        call: Arc<Call>,
        skipped: Vec<String>,
        since: Time,
    },
    Outside {
        id: CallId,
        who: External,
        end: Option<End>,
    },
    Accepted {
        value: Value,
        origin: Origin,
        provenance: Vec<Provenance>,
        warnings: Vec<Warning>,
        #[serde(default)]
        not_stated: Vec<JsonPath>,
    },
    Failed(End),
}

/// The maximum number of calls of one run, whatever the policy decides.
pub const MAX_CALLS: u32 = 256;

impl Run {
    /// Creates a run before its first step.
    pub fn new(plan: &Plan, input: Input) -> Self {
        Self {
            digest: plan.digest().to_owned(),
            input,
            state: State::Ready,
            started: None,
            ids: 0,
            draws: 0,
            jitter: None,
            position: Position::default(),
            request: Request::first(plan),
            counters: Counters::default(),
            drafts: Drafts::default(),
            ledger: Vec::new(),
            size: AnswerSize::default(),
            expects_reask: false,
            estimates: Estimates::default(),
            before: None,
            evidence: Vec::new(),
            last_evidence: None,
            source: SourceIndex::default(),
            decoded: Decoded::default(),
            schema: Accepted::default(),
        }
    }

    /// Sets the seed of the jitter of delays, for inputs without a seed (default: no jitter). A driver takes it from the
    /// operating system. No effect after the first step.
    pub const fn set_jitter(&mut self, seed: u64) {
        if self.started.is_none() {
            self.jitter = Some(seed);
        }
    }

    /// Returns the driver's next step at the time `now`.
    ///
    /// # Errors
    /// [`Misuse::OtherPlan`], if the run was created with another plan; the run is unchanged then.
    pub fn step(&mut self, plan: &Plan, now: Time) -> Result<Step, Misuse> {
        if plan.digest() != self.digest {
            return Err(Misuse::OtherPlan);
        }
        if self.started.is_none() {
            self.started = Some(now);
            self.position.enter_first(plan, now);
            if let Some(wait) = self.position.wait(now).filter(|_| self.position.advice.fails_fast) {
                self.give_up_unreached(plan, wait);
            }
        }
        if let State::Waiting { until } = self.state {
            if now < until {
                return Ok(Step::Wait { until });
            }
            self.state = State::Ready;
        }
        while self.state == State::Ready {
            self.begin(plan, now);
        }
        Ok(match &self.state {
            State::Calling { id, call, .. } => Step::Call {
                id: *id,
                target: self.position.target,
                call: Arc::clone(call),
                reserve: self.reserve(plan, call),
            },
            State::Outside { id, who, .. } => {
                let draft = self.drafts.current();
                let (id, candidate) = (*id, draft.map(|draft| Arc::clone(&draft.value)).unwrap_or_default());
                match who {
                    External::Checks => Step::Check { id, candidate },
                    External::Fallback => Step::Fallback { id, candidate },
                }
            }
            State::Waiting { until } => Step::Wait { until: *until },
            State::Ready | State::Accepted { .. } | State::Failed(_) => Step::Done,
        })
    }

    /// Sets the start of the open call to `now` (default: the time of the step that created it), because the call waited for a shared
    /// budget.
    pub const fn start_call(&mut self, now: Time) {
        if let State::Calling { since, .. } = &mut self.state {
            *since = now;
        }
    }

    /// Takes in the result of a step.
    ///
    /// # Errors
    /// [`Misuse`], if the event belongs to no open step; the run is unchanged then.
    pub fn on(&mut self, plan: &Plan, now: Time, event: Event) -> Result<(), Misuse> {
        if plan.digest() != self.digest {
            return Err(Misuse::OtherPlan);
        }
        let open = match &self.state {
            State::Calling { id, .. } | State::Outside { id, .. } => Some(*id),
            _ => None,
        };
        if self.is_done() || event.id().is_some_and(|id| open != Some(id)) {
            return Err(Misuse::NotExpected);
        }
        match (event, &self.state) {
            (Event::Cancelled, _) => self.cancel(plan, now, &Completion::new("")),
            (Event::Dropped { received, .. }, State::Calling { .. }) => self.cancel(plan, now, &received),
            (Event::Answered { completion, stopped, .. }, State::Calling { .. }) => {
                self.answered(plan, now, completion, stopped.map(|reason| *reason));
            }
            (Event::Failed { fault, usage, received: None, .. }, State::Calling { .. }) => {
                self.failed(plan, now, fault, usage);
            }
            (Event::Failed { fault, received: Some(received), .. }, State::Calling { .. }) => {
                self.broken_off(plan, now, fault, *received);
            }
            (Event::Denied { left, .. }, State::Calling { .. }) => self.denied(plan, now, left),
            (Event::Deferred { .. }, State::Calling { .. }) => self.state = State::Ready,
            (Event::Checked { violations, spent, .. }, State::Outside { who: External::Checks, .. }) => {
                self.counters.spend(spent);
                self.checked(plan, now, violations);
            }
            (Event::Supplied { value, .. }, State::Outside { who: External::Fallback, end, .. }) => {
                let nothing = || End::new(ErrorKind::Rejected, "");
                let end = end.clone().unwrap_or_else(nothing);
                self.fall_back(plan, end, value);
            }
            _ => return Err(Misuse::NotExpected),
        }
        Ok(())
    }

    /// Returns whether the run has ended.
    pub const fn is_done(&self) -> bool {
        matches!(self.state, State::Accepted { .. } | State::Failed(_))
    }

    /// Returns whether the run was created with this plan, so that it can be continued with it.
    pub fn is_of(&self, plan: &Plan) -> bool {
        plan.digest() == self.digest
    }

    /// Continues a run that was stored at one time and is read at another, so that the time between does not count: the
    /// deadline and the open delay move by the difference. A clock that was set back meanwhile moves them back.
    ///
    /// The times of calls in the [ledger](Self::ledger) stay as they are.
    pub fn resumed(mut self, stored: Time, now: Time) -> Self {
        let moved = |time: Time| time.moved(stored, now);
        self.started = self.started.map(moved);
        match &mut self.state {
            State::Waiting { until } => *until = moved(*until),
            State::Calling { since, .. } => *since = moved(*since),
            State::Ready | State::Outside { .. } | State::Accepted { .. } | State::Failed(_) => {}
        }
        self.position.advice.move_times(moved);
        self
    }

    /// Returns the input of the run.
    pub const fn input(&self) -> &Input {
        &self.input
    }

    /// Returns the index of the target of the open or next call.
    pub const fn target(&self) -> usize {
        self.position.target
    }

    /// Returns the estimated costs of the steps between which the last decision chose; empty before the first decision, and after a
    /// failed call.
    pub const fn estimates(&self) -> Estimates {
        self.estimates
    }

    /// Returns the part of the document that the open or next call requests.
    pub const fn ask(&self) -> &Ask {
        &self.request.ask
    }

    /// Returns the number of the attempt that the open or next call belongs to, from 1.
    pub fn attempt(&self) -> u32 {
        self.counters.attempts + u32::from(self.request.counts)
    }

    /// Returns the time by which the run ends; `None` without a deadline, and before the first step.
    pub fn deadline(&self, plan: &Plan) -> Option<Time> {
        let limits = [plan.options.deadline, self.input.deadline];
        Some(self.started?.after(limits.into_iter().flatten().min()?))
    }

    /// Reduces the time that the run may take by the time that earlier runs for the same answer took.
    pub fn take_time(&mut self, plan: &Plan, taken: Duration) {
        let limits = [plan.options.deadline, self.input.deadline].into_iter().flatten();
        self.input.deadline = limits.min().map(|limit| limit.saturating_sub(taken));
    }

    /// Returns the most that the run may cost.
    pub(super) fn budget(&self, plan: &Plan) -> Option<Cost> {
        self.input.budget.or(plan.options.budget)
    }

    /// Returns every call so far, in order.
    pub fn ledger(&self) -> &[CallRecord] {
        &self.ledger
    }

    /// Returns the accepted value as the type of the contract, which judging it has decoded: once, and not after the run was
    /// stored. [`decode`](crate::decode) gives the same in these cases.
    pub fn take_decoded<T: 'static>(&mut self) -> Option<T> {
        match self.state {
            State::Accepted { .. } => self.decoded.take(),
            _ => None,
        }
    }

    /// Ends the run and returns its result. A run that has not ended counts as cancelled.
    ///
    /// # Errors
    /// [`Error`] with every call and the best answer, if no answer was accepted.
    pub fn finish(mut self) -> Result<Outcome<Value>, Error> {
        let usage = self.usage();
        let best =
            if let State::Accepted { .. } = self.state { None } else { self.drafts.nearest(&self.ledger) };
        match self.state {
            State::Accepted { value, origin, provenance, warnings, not_stated } => Ok(Outcome {
                trust: Trust::of(&value, &provenance, &warnings, &not_stated, &self.ledger),
                value,
                origin,
                provenance,
                warnings,
                not_stated,
                calls: self.ledger,
                usage,
                cost: self.counters.spent,
                about: About::new(self.input.source, self.schema),
                absorbed: 0,
            }),
            State::Failed(End { kind, message, not_stated }) => {
                Err(Error::new(kind, message).with_not_stated(not_stated).with_history(self.ledger, best))
            }
            _ => Err(Error::new(ErrorKind::Cancelled, "the run was not driven to its end")
                .with_history(self.ledger, best)),
        }
    }

    fn usage(&self) -> Usage {
        self.ledger.iter().fold(Usage::default(), |sum, call| sum.plus(call.usage))
    }

    const fn next_id(&mut self) -> CallId {
        self.ids += 1;
        CallId(self.ids)
    }

    /// Returns a follower of an answer to a call of the run that shares the index of the text with the run, for rules that find values
    /// in it. Without this, the follower builds an index of its own.
    pub fn share_index(&self, follower: Follower) -> Follower {
        follower.with_source(&self.source)
    }

    fn context(&self) -> Context<'_> {
        Context { source: &self.input.source, data: &self.input.data }
    }

    /// Returns the next random number from 0 to 1 (SplitMix64 on the seed); 0 without a seed.
    fn draw(&mut self) -> f64 {
        let Some(seed) = self.input.seed.or(self.jitter) else { return 0.0 };
        self.draws += 1;
        random::nth(seed, self.draws)
    }
}
