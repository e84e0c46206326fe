//! The run machine: one request from its first call to its end, as a pure state machine.
//!
//! Its state has four parts, each with methods of its own: [`position`] (which target, in which dialect), [`request`] (what is
//! asked next), [`counters`] and [`drafts`]. What a text is worth is a function of the contract, the call and the completion
//! ([`examine`]).

mod answer;
mod closed;
mod compliance;
mod compose;
mod counters;
mod decide;
mod drafts;
mod end;
mod examine;
mod input;
mod learn;
mod patch;
mod position;
mod request;
mod sampling;
mod step;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Ask, Attempt, Call, Context, Error, ErrorKind, Origin, Outcome, Plan, Provenance, Time, Usage, Violation,
};
use counters::Counters;
use drafts::Drafts;
use end::{DEADLINE_PASSED, End};
use position::Position;
use request::Request;

pub use input::Input;
pub use step::{CallId, Event, External, Misuse, Step};

/// One request, from its first call to its end.
///
/// A run owns no clock, no socket and no random source. Whoever drives it asks for a [`Step`], carries it out, and
/// reports an [`Event`]; the same events at the same times give the same steps. It can be stored with serde before
/// every step and go on in another process.
///
/// These laws always hold: it ends; calls are bounded; an accepted value satisfies the contract, a fallback's too; within a
/// target the temperature never rises and no mode is asked again once a lower one is; targets only advance; waits end
/// before the deadline; what was spent and what is reserved stay within the budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    digest: String,
    input: Input,
    state: State,
    started: Option<Time>,
    /// Calls and external steps so far.
    ids: u32,
    draws: u64,
    /// The number that jitter is drawn from, where the input has no seed.
    jitter: Option<u64>,
    position: Position,
    request: Request,
    counters: Counters,
    drafts: Drafts,
    ledger: Vec<Attempt>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum State {
    Ready,
    Waiting { until: Time },
    Calling { id: CallId, call: Arc<Call>, skipped: Vec<String>, since: Time },
    Outside { id: CallId, who: External, end: Option<End> },
    Accepted { value: Value, origin: Origin, provenance: Vec<Provenance>, warnings: Vec<Violation> },
    Failed(End),
}

/// The most calls of one run, whatever the policy decides.
pub const MAX_CALLS: u32 = 256;

impl Run {
    /// A run that has not made its first step.
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
        }
    }

    /// Draws jitter from this number where the input has no seed (default: no jitter then). A driver takes it from the
    /// operating system.
    #[must_use]
    pub const fn with_jitter(mut self, seed: u64) -> Self {
        if self.started.is_none() {
            self.jitter = Some(seed);
        }
        self
    }

    /// Returns what the driver has to do next, at this moment.
    ///
    /// # Errors
    /// [`Misuse::OtherPlan`], if the run was started with another plan; the run is unchanged then.
    pub fn step(&mut self, plan: &Plan, now: Time) -> Result<Step, Misuse> {
        if plan.digest() != self.digest {
            return Err(Misuse::OtherPlan);
        }
        if self.started.is_none() {
            self.started = Some(now);
            self.position.enter_first(plan, now);
        }
        if let State::Waiting { until } = self.state {
            if now < until {
                return Ok(Step::Wait { until });
            }
            self.state = State::Ready;
        }
        if self.state == State::Ready {
            self.begin(plan, now);
        }
        Ok(match &self.state {
            State::Calling { id, call, .. } => Step::Call {
                id: *id,
                target: self.position.target(),
                call: Arc::clone(call),
                reserve: self.reserve(plan, call),
            },
            State::Outside { id, who, .. } => {
                let candidate = self.drafts.current().map(|draft| draft.value.clone()).unwrap_or_default();
                let (id, candidate) = (*id, Arc::new(candidate));
                match who {
                    External::Checks => Step::Check { id, candidate },
                    External::Fallback => Step::Fallback { id, candidate },
                }
            }
            State::Waiting { until } => Step::Wait { until: *until },
            State::Ready | State::Accepted { .. } | State::Failed(_) => Step::Done,
        })
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
        match (event, &self.state) {
            (Event::Cancelled, State::Accepted { .. } | State::Failed(_)) => return Err(Misuse::NotExpected),
            (Event::Cancelled, _) => self.cancel(plan, now),
            (Event::Answered { id, completion, stopped }, State::Calling { .. }) if open == Some(id) => {
                self.answered(plan, now, completion, stopped);
            }
            (Event::Failed { id, fault, usage }, State::Calling { .. }) if open == Some(id) => {
                self.failed(plan, now, fault, usage)
            }
            (Event::Denied { id }, State::Calling { .. }) if open == Some(id) => self.denied(plan),
            (Event::Checked { id, violations, spent }, State::Outside { who: External::Checks, .. })
                if open == Some(id) =>
            {
                self.counters.spend(spent);
                self.checked(plan, now, violations);
            }
            (Event::Supplied { id, value }, State::Outside { who: External::Fallback, end, .. })
                if open == Some(id) =>
            {
                let nothing = || End { kind: ErrorKind::Rejected, message: String::new() };
                let end = end.clone().unwrap_or_else(nothing);
                self.fall_back(plan, end, value);
            }
            _ => return Err(Misuse::NotExpected),
        }
        Ok(())
    }

    /// Whether the run has ended.
    pub const fn is_done(&self) -> bool {
        matches!(self.state, State::Accepted { .. } | State::Failed(_))
    }

    /// Returns what it started from.
    pub const fn input(&self) -> &Input {
        &self.input
    }

    /// The index of the target that is asked now or next.
    pub const fn target(&self) -> usize {
        self.position.target()
    }

    /// Returns what is asked for now or next.
    pub const fn asked(&self) -> &Ask {
        self.request.asked()
    }

    /// The attempt that the open or the next call belongs to, from 1.
    pub fn attempt(&self) -> u32 {
        self.counters.attempts() + u32::from(self.request.counts())
    }

    /// When the run has to have ended; `None` without a deadline, and before the first step.
    pub fn deadline(&self, plan: &Plan) -> Option<Time> {
        Some(self.started?.after(plan.deadline?))
    }

    /// Every call so far, in order.
    pub fn ledger(&self) -> &[Attempt] {
        &self.ledger
    }

    /// Ends the run and returns its result. A run that has not ended counts as cancelled.
    ///
    /// # Errors
    /// [`Error`] with every attempt and the best answer, if there is no acceptable one.
    pub fn finish(mut self) -> Result<Outcome<Value>, Error> {
        let usage = self.usage();
        let best =
            if let State::Accepted { .. } = self.state { None } else { self.drafts.nearest(&self.ledger) };
        match self.state {
            State::Accepted { value, origin, provenance, warnings } => Ok(Outcome {
                value,
                origin,
                provenance,
                warnings,
                attempts: self.ledger,
                usage,
                cost: self.counters.spent(),
            }),
            State::Failed(End { kind, message }) => {
                Err(Error::new(kind, message).with_history(self.ledger, best))
            }
            _ => Err(Error::new(ErrorKind::Cancelled, "the run was not driven to its end")
                .with_history(self.ledger, best)),
        }
    }

    fn usage(&self) -> Usage {
        self.ledger.iter().fold(Usage::default(), |sum, attempt| sum.plus(attempt.usage))
    }

    const fn next_id(&mut self) -> CallId {
        self.ids += 1;
        CallId(self.ids)
    }

    fn context(&self) -> Context<'_> {
        Context { source: &self.input.source, data: &self.input.data }
    }

    /// The next number from 0 to 1 (SplitMix64 on the seed); 0 without any.
    fn draw(&mut self) -> f64 {
        let Some(seed) = self.input.seed.or(self.jitter) else { return 0.0 };
        self.draws += 1;
        let mut z = seed.wrapping_add(self.draws.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
