//! The run machine: one request from its first call to its end, as a pure state machine.

mod breach;
mod closed;
mod compose;
mod draft;
mod learn;
mod tripwire;

use std::sync::Arc;
use std::time::Duration;

use formwork_json::{Edit, JsonPath};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Ask, Attempt, Best, Call, Completion, Context, Cost, Decision, Error, ErrorKind, Failure, Fault,
    FaultKind, Feedback, Finish, Message, Origin, Outcome, Plan, Provenance, Refused, Sampling, Seen, Source,
    Stage, Time, Usage, Verdict, Violation,
};
use draft::Draft;

/// What a run starts from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// The dialogue: the task, and before it instructions and examples.
    pub messages: Vec<Message>,
    /// The text that the answer is about, for checks; see [`Context::source`].
    pub source: String,
    /// The caller's own data, for checks; see [`Context::data`].
    pub data: Value,
    /// What all random choices are derived from: the model's seed for each attempt, and jitter. Without one the
    /// provider chooses, and there is no jitter.
    pub seed: Option<u64>,
}

impl Input {
    /// A dialogue whose last message is the text that the answer is about.
    pub fn new(messages: impl IntoIterator<Item = impl Into<Message>>) -> Self {
        let messages: Vec<Message> = messages.into_iter().map(Into::into).collect();
        let source = messages.last().map(Message::text).unwrap_or_default();
        Self { messages, source, data: Value::Null, seed: None }
    }

    /// With the text that the answer is about, where it is not the last message.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<String>) -> Self {
        self.source = source.into();
        self
    }

    /// With data for checks.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = data;
        self
    }

    /// With a seed.
    #[must_use]
    pub const fn with_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }
}

impl<M: Into<Message>> From<Vec<M>> for Input {
    fn from(messages: Vec<M>) -> Self {
        Self::new(messages)
    }
}

impl From<Message> for Input {
    fn from(message: Message) -> Self {
        Self::new([message])
    }
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self::new([text])
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Self::new([text])
    }
}

/// The number of a call or consultation within its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(u32);

/// What the driver has to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Nothing before this moment.
    Wait {
        /// When to come back.
        until: Time,
    },
    /// Make this call and report [`Event::Answered`] or [`Event::Failed`]. Stepping again before that gives the same
    /// call: a resumed process makes it again.
    Call {
        /// To be given back with the event.
        id: CallId,
        /// Which of the plan's targets.
        target: usize,
        /// What to ask.
        call: Arc<Call>,
        /// What it costs at worst; a driver with a shared budget reserves it, or reports [`Event::Denied`].
        reserve: Cost,
    },
    /// Ask somebody else about a value, and report [`Event::Consulted`].
    Consult {
        /// To be given back with the event.
        id: CallId,
        /// Whom.
        who: Consult,
        /// The value in question; `null` for a fallback without any draft.
        candidate: Arc<Value>,
    },
    /// The run has ended; see [`Run::finish`].
    Done,
}

/// Who is asked in a [`Step::Consult`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Consult {
    /// Validators that have to wait for something: is this value acceptable?
    Validators,
    /// The fallback: which value is to be used, now that no model gave one?
    Fallback,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A call brought an answer, whole or stopped.
    Answered {
        /// Of which step.
        id: CallId,
        /// The answer.
        completion: Completion,
        /// Why the driver stopped it before its end, if it did.
        stopped: Option<Violation>,
    },
    /// A call brought no answer.
    Failed {
        /// Of which step.
        id: CallId,
        /// Why.
        fault: Fault,
    },
    /// A call was not made, because a shared budget does not allow it.
    Denied {
        /// Of which step.
        id: CallId,
    },
    /// A consultation came back.
    Consulted {
        /// Of which step.
        id: CallId,
        /// What is wrong with the candidate.
        violations: Vec<Violation>,
        /// What asking has cost.
        spent: Cost,
        /// The fallback's value.
        value: Option<Value>,
    },
    /// The caller wants no answer any more.
    Cancelled,
}

/// An event that does not fit the step that the run is at: late, doubled, or of another run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// The event belongs to no step that is open.
    #[error("the event does not belong to the step that the run is at")]
    NotExpected,
    /// The plan is not the one that the run was started with.
    #[error("the run was started with another plan")]
    OtherPlan,
}

/// One request, from its first call to its end.
///
/// A run owns no clock, no socket and no random source. Whoever drives it asks for a [`Step`], carries it out, and
/// reports an [`Event`]; the same events at the same times give the same steps. It can be stored with serde before
/// every step and go on in another process.
///
/// What always holds: it ends; calls are bounded; an accepted value satisfies the contract, a fallback's too; within a
/// target the temperature never rises and no rung is asked again once a lower one is; targets only advance; waits end
/// before the deadline; what was spent and what is reserved stay within the budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    digest: String,
    input: Input,
    state: State,
    started: Option<Time>,
    /// Calls and consultations so far.
    ids: u32,
    draws: u64,
    target: usize,
    rung: usize,
    /// The rung that each target is first asked on; the strictest where nothing is said.
    #[serde(default)]
    starts: Vec<usize>,
    asked: Ask,
    /// Whether the answer to what is asked counts as an attempt.
    counts: bool,
    feedback: Option<Feedback>,
    sampling: Sampling,
    /// The limit of tokens that the plan or the policy sets; the target's own default without one.
    max_tokens: Option<u32>,
    /// The limit of tokens of the last call.
    #[serde(default)]
    limit: Option<u32>,
    /// Whether the schema is bounded for the target in use, beyond what the plan says.
    #[serde(default)]
    bounded: bool,
    /// The targets that start with a bounded schema.
    #[serde(default)]
    run_away: Vec<usize>,
    attempts: u32,
    attempts_on_target: u32,
    patches: u32,
    faults: u32,
    /// The last answer, and the entry of the ledger that says what was wrong with it: all that a re-ask may know.
    previous: String,
    wrong: Option<usize>,
    draft: Option<Draft>,
    /// Of the drafts before, the one that came nearest to the contract.
    best: Option<Draft>,
    ledger: Vec<Attempt>,
    spent: Cost,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum State {
    Ready,
    Waiting { until: Time },
    Calling { id: CallId, call: Arc<Call>, skipped: Vec<String>, since: Time },
    Consulting { id: CallId, who: Consult, end: Option<End> },
    Accepted { value: Value, origin: Origin, provenance: Vec<Provenance>, warnings: Vec<Violation> },
    Failed(End),
}

/// How a run fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct End {
    kind: ErrorKind,
    message: String,
}

/// Why a run ends at its deadline.
const DEADLINE_PASSED: &str = "the deadline passed before an answer was accepted";

/// The most calls of one run, whatever the policy decides.
pub const MAX_CALLS: u32 = 256;

impl Run {
    /// A run that has not made its first step.
    pub fn new(plan: &Plan, input: Input) -> Self {
        let sampling = plan.targets.first().map(|target| plan.policy.first(&target.capabilities));
        Self {
            digest: plan.digest().to_owned(),
            input,
            state: State::Ready,
            started: None,
            ids: 0,
            draws: 0,
            target: 0,
            rung: 0,
            starts: Vec::new(),
            asked: Ask::Whole,
            counts: true,
            feedback: None,
            sampling: sampling.unwrap_or_default(),
            max_tokens: plan.max_tokens,
            limit: None,
            bounded: false,
            run_away: Vec::new(),
            attempts: 0,
            attempts_on_target: 0,
            patches: 0,
            faults: 0,
            previous: String::new(),
            wrong: None,
            draft: None,
            best: None,
            ledger: Vec::new(),
            spent: Cost::default(),
        }
    }

    /// What to do next, at this moment.
    pub fn step(&mut self, plan: &Plan, now: Time) -> Step {
        if self.started.is_none() {
            self.started = Some(now);
            self.enter_target(plan);
        }
        if let State::Waiting { until } = self.state {
            if now < until {
                return Step::Wait { until };
            }
            self.state = State::Ready;
        }
        if self.state == State::Ready {
            self.begin(plan, now);
        }
        match &self.state {
            State::Calling { id, call, .. } => Step::Call {
                id: *id,
                target: self.target,
                call: Arc::clone(call),
                reserve: self.reserve(plan, call),
            },
            State::Consulting { id, who, .. } => {
                let candidate = self.draft.as_ref().map(|draft| draft.value.clone()).unwrap_or_default();
                Step::Consult { id: *id, who: *who, candidate: Arc::new(candidate) }
            }
            State::Waiting { until } => Step::Wait { until: *until },
            State::Ready | State::Accepted { .. } | State::Failed(_) => Step::Done,
        }
    }

    /// What came of a step.
    ///
    /// # Errors
    /// [`Misuse`], if the event belongs to no open step; the run is unchanged then.
    pub fn on(&mut self, plan: &Plan, now: Time, event: Event) -> Result<(), Misuse> {
        if plan.digest() != self.digest {
            return Err(Misuse::OtherPlan);
        }
        let open = match &self.state {
            State::Calling { id, .. } | State::Consulting { id, .. } => Some(*id),
            _ => None,
        };
        match (event, &self.state) {
            (Event::Cancelled, State::Accepted { .. } | State::Failed(_)) => return Err(Misuse::NotExpected),
            (Event::Cancelled, _) => self.cancel(plan, now),
            (Event::Answered { id, completion, stopped }, State::Calling { .. }) if open == Some(id) => {
                self.answered(plan, now, completion, stopped);
            }
            (Event::Failed { id, fault }, State::Calling { .. }) if open == Some(id) => {
                self.failed(plan, now, fault)
            }
            (Event::Denied { id }, State::Calling { .. }) if open == Some(id) => {
                self.give_up(plan, ErrorKind::Budget, "the shared budget does not allow another call");
            }
            (Event::Consulted { id, violations, spent, value }, State::Consulting { .. })
                if open == Some(id) =>
            {
                self.spent = self.spent.plus(spent);
                self.consulted(plan, now, violations, value);
            }
            _ => return Err(Misuse::NotExpected),
        }
        Ok(())
    }

    /// Whether the run has ended.
    pub const fn is_done(&self) -> bool {
        matches!(self.state, State::Accepted { .. } | State::Failed(_))
    }

    /// What it started from.
    pub const fn input(&self) -> &Input {
        &self.input
    }

    /// The index of the target that is asked now or next.
    pub const fn target(&self) -> usize {
        self.target
    }

    /// What is asked for now or next.
    pub const fn asked(&self) -> &Ask {
        &self.asked
    }

    /// The attempt that the open or the next call belongs to, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempts + u32::from(self.counts)
    }

    /// When the run has to have ended; `None` without a deadline, and before the first step.
    pub fn deadline(&self, plan: &Plan) -> Option<Time> {
        Some(self.started?.after(plan.deadline?))
    }

    /// Every call so far, in order.
    pub fn ledger(&self) -> &[Attempt] {
        &self.ledger
    }

    /// What came of it all. A run that has not ended counts as cancelled.
    ///
    /// # Errors
    /// [`Error`] with every attempt and the best answer, if there is no acceptable one.
    pub fn finish(mut self) -> Result<Outcome<Value>, Error> {
        let usage = self.usage();
        let best = if let State::Accepted { .. } = self.state { None } else { self.nearest() };
        match self.state {
            State::Accepted { value, origin, provenance, warnings } => Ok(Outcome {
                value,
                origin,
                provenance,
                warnings,
                attempts: self.ledger,
                usage,
                cost: self.spent,
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

    /// Puts the next call together, unless a limit forbids it.
    fn begin(&mut self, plan: &Plan, now: Time) {
        if self.deadline(plan).is_some_and(|deadline| now >= deadline) {
            return self.give_up(plan, ErrorKind::Deadline, DEADLINE_PASSED);
        }
        if self.ids >= MAX_CALLS {
            return self.give_up(
                plan,
                ErrorKind::Rejected,
                &format!("no acceptable answer in {MAX_CALLS} calls"),
            );
        }
        let composed = self.compose(plan).or_else(|message| match self.asked {
            // A policy of somebody else's chose values that cannot be asked for alone.
            Ask::Patch(_) => {
                (self.asked, self.counts) = (Ask::Whole, true);
                self.compose(plan)
            }
            Ask::Whole => Err(message),
        });
        let (call, skipped) = match composed {
            Ok(composed) => composed,
            Err(message) => return self.give_up(plan, ErrorKind::Config, &message),
        };
        if plan.budget.is_some_and(|budget| !self.spent.plus(self.reserve(plan, &call)).fits(budget)) {
            return self.give_up(plan, ErrorKind::Budget, "the budget does not allow another call");
        }
        self.limit = call.max_tokens;
        let id = self.next_id();
        self.state = State::Calling { id, call: Arc::new(call), skipped, since: now };
    }

    /// What a call costs at worst.
    fn reserve(&self, plan: &Plan, call: &Call) -> Cost {
        let Some(target) = plan.targets.get(self.target) else { return Cost::default() };
        let most = call.max_tokens.or(target.capabilities.output_tokens).unwrap_or(4096);
        let usage = Usage { output_tokens: u64::from(most), ..Usage::estimate(call, 0) };
        target.price.of(usage)
    }

    fn next_id(&mut self) -> CallId {
        self.ids += 1;
        CallId(self.ids)
    }

    fn answered(&mut self, plan: &Plan, now: Time, completion: Completion, stopped: Option<Violation>) {
        let Examined { draft, edits, failure, ignored } = self.examine(plan, &completion, stopped);
        let repeated =
            self.asked == Ask::Whole && !self.previous.is_empty() && self.previous == completion.text;
        let accepted = failure.is_none();
        if matches!(failure, Some(Failure::Truncated { .. })) && completion.closed_at.is_some() {
            // The provider has a limit of its own where none is asked for; the policy asks for more than that was.
            let used = u32::try_from(completion.usage.output_tokens).ok().filter(|used| *used > 0);
            self.limit = self.limit.or(used);
        }
        let bounding = self.bounding(plan, now, completion.finish, failure.as_ref());
        let verdict = failure.map_or(Verdict::Accepted, |failure| Verdict::Failed { failure });
        let closed = draft.iter().flat_map(|draft| draft.closed.paths().cloned()).collect();
        self.enter(plan, now, verdict, Some(&completion), edits, closed);
        if let Some(proof) = ignored {
            self.was_ignored(plan, proof);
        } else if let Some(bounding) = bounding {
            self.set_bounded(plan, bounding);
        }
        if self.counts {
            self.attempts += 1;
            self.attempts_on_target += 1;
            self.patches = 0;
        } else {
            self.patches += 1;
        }
        self.faults = 0;
        // A patch that brought nothing usable leaves the draft as it was, and what is wrong with that.
        let unchanged = draft.is_none() && matches!(self.asked, Ask::Patch(_));
        if let Some(draft) = draft {
            self.retire();
            self.draft = Some(draft);
        }
        if accepted && plan.consults {
            let id = self.next_id();
            self.state = State::Consulting { id, who: Consult::Validators, end: None };
        } else if accepted {
            self.accept(plan);
        } else {
            if !unchanged {
                self.wrong = self.ledger.len().checked_sub(1);
            }
            self.previous = match (&self.asked, &self.draft) {
                (Ask::Patch(_), Some(draft)) => draft.text.clone(),
                _ => completion.text,
            };
            self.decide(plan, now, repeated);
        }
    }

    fn failed(&mut self, plan: &Plan, now: Time, fault: Fault) {
        let refused = (fault.kind == FaultKind::SchemaRefused).then(|| fault.message.clone());
        self.enter(
            plan,
            now,
            Verdict::Failed { failure: Failure::Fault(fault) },
            None,
            Vec::new(),
            Vec::new(),
        );
        if refused.is_some_and(|reason| self.was_refused(plan, &reason)) {
            self.state = State::Ready;
        } else {
            self.faults += 1;
            self.decide(plan, now, false);
        }
    }

    fn consulted(&mut self, plan: &Plan, now: Time, violations: Vec<Violation>, value: Option<Value>) {
        let State::Consulting { who, end, .. } = &self.state else { return };
        match who {
            Consult::Validators if violations.is_empty() => self.accept(plan),
            Consult::Validators => {
                if let Some(last) = self.ledger.last_mut() {
                    last.verdict = Verdict::Failed { failure: Failure::Invalid { violations } };
                }
                self.wrong = self.ledger.len().checked_sub(1);
                self.previous = self.draft.as_ref().map(|draft| draft.text.clone()).unwrap_or_default();
                self.decide(plan, now, false);
            }
            Consult::Fallback => {
                let mut end =
                    end.clone().unwrap_or(End { kind: ErrorKind::Rejected, message: String::new() });
                let judged = value.map(|value| (plan.contract.judge(&value, &self.context()), value));
                self.state = match judged {
                    Some((judgement, value)) if judgement.is_accepted() => {
                        let whole = Provenance {
                            path: JsonPath::root(),
                            source: Source::Fallback,
                            attempt: self.attempts.max(1),
                        };
                        let (provenance, warnings) = (vec![whole], judgement.warnings);
                        State::Accepted { value, origin: Origin::Fallback, provenance, warnings }
                    }
                    Some((judgement, _)) => {
                        let reason = judgement.violations.first().map(Violation::masked).unwrap_or_default();
                        end.message =
                            format!("{}; the fallback's value breaks the contract: {reason}", end.message);
                        State::Failed(end)
                    }
                    None => State::Failed(end),
                };
            }
        }
    }

    /// Asks the policy, and does what it says within the bounds of the run.
    fn decide(&mut self, plan: &Plan, now: Time, repeated: bool) {
        let draw = self.draw();
        let remaining = self.deadline(plan).map(|deadline| deadline.since(now));
        if remaining.is_some_and(|left| left.is_zero()) {
            // Nothing may be asked any more, and that is why it ends: not because of the last failure.
            return self.give_up(plan, ErrorKind::Deadline, DEADLINE_PASSED);
        }
        match self.advice(plan, repeated, remaining, draw).unwrap_or(Decision::GiveUp) {
            Decision::GiveUp => self.give_up_on_failure(plan),
            Decision::Repeat { wait, next_target } => {
                if next_target && !self.advance(plan) {
                    return self.give_up_on_failure(plan);
                }
                self.wait(plan, now, wait);
            }
            Decision::Ask { ask, counts, next_target, sampling, feedback, max_tokens } => {
                if next_target && !self.advance(plan) {
                    return self.give_up_on_failure(plan);
                }
                let cooler = |new: Option<f64>, old: Option<f64>| match (new, old) {
                    (Some(new), Some(old)) if !next_target => Some(new.min(old)),
                    (new, _) => new,
                };
                self.sampling = Sampling {
                    temperature: cooler(sampling.temperature, self.sampling.temperature),
                    ..sampling
                };
                self.asked = match ask {
                    Ask::Patch(paths) if !next_target && !paths.is_empty() && self.draft.is_some() => {
                        Ask::Patch(paths)
                    }
                    _ => Ask::Whole,
                };
                self.counts = counts || self.asked == Ask::Whole;
                self.feedback = Some(feedback);
                if next_target {
                    self.max_tokens = plan.max_tokens.map(|own| max_tokens.unwrap_or(own).max(own));
                } else if max_tokens != self.limit {
                    self.max_tokens = max_tokens;
                }
                self.faults = 0;
                self.state = State::Ready;
            }
        }
    }

    /// What the policy says about the last call; `None` if that did not fail.
    fn advice(
        &self,
        plan: &Plan,
        repeated: bool,
        remaining: Option<Duration>,
        draw: f64,
    ) -> Option<Decision> {
        let (failure, target) = (self.failure()?, plan.targets.get(self.target)?);
        let about_values = matches!(failure, Failure::Invalid { .. }) || matches!(self.asked, Ask::Patch(_));
        let mut patchable =
            if about_values && plan.policy.patches() { self.patchable(plan) } else { Vec::new() };
        if !patchable.is_empty() && !self.can_patch(plan, &patchable) {
            patchable.clear();
        }
        Some(plan.policy.decide(&Seen {
            failure,
            asked: &self.asked,
            sampling: self.sampling,
            max_tokens: self.limit,
            room: self.room(target),
            attempts: self.attempts,
            attempts_on_target: self.attempts_on_target,
            patches: self.patches,
            faults: self.faults,
            patchable: &patchable,
            repeated,
            capabilities: &target.capabilities,
            next: plan.targets.get(self.target + 1).map(|next| &next.capabilities),
            remaining,
            draw,
        }))
    }

    /// Why the last call did not bring an acceptable answer.
    fn failure(&self) -> Option<&Failure> {
        self.ledger.last()?.verdict.failure()
    }

    /// What was wrong with the last answer.
    fn violations(&self) -> &[Violation] {
        self.wrong.and_then(|entry| self.found_at(entry)).unwrap_or_default()
    }

    /// What an entry of the ledger says was wrong; `None` if nothing was.
    fn found_at(&self, entry: usize) -> Option<&[Violation]> {
        Some(self.ledger.get(entry)?.verdict.failure()?.violations())
    }

    fn wait(&mut self, plan: &Plan, now: Time, wait: Duration) {
        let until = now.after(wait);
        if self.deadline(plan).is_some_and(|deadline| until >= deadline) && !wait.is_zero() {
            return self.give_up(plan, ErrorKind::Deadline, "the next retry would come after the deadline");
        }
        self.state = if wait.is_zero() { State::Ready } else { State::Waiting { until } };
    }

    /// Goes on to the next target; `false` if there is none.
    fn advance(&mut self, plan: &Plan) -> bool {
        if self.target + 1 >= plan.targets.len() {
            return false;
        }
        self.target += 1;
        self.enter_target(plan);
        (self.attempts_on_target, self.faults) = (0, 0);
        if matches!(self.asked, Ask::Patch(_)) {
            (self.asked, self.counts) = (Ask::Whole, true);
        }
        true
    }

    fn accept(&mut self, plan: &Plan) {
        let Some(draft) = self.draft.take() else { return };
        let target = self.ledger.last().map(|attempt| attempt.target.clone()).unwrap_or_default();
        let Draft { value, mut provenance, mut warnings, closed, .. } = draft;
        warnings.extend(plan.skipped(self.target).map(|(dialect, reason)| skipped(dialect, reason)));
        provenance.extend(closed.provenance(self.attempts.max(1)));
        self.state = State::Accepted { value, origin: Origin::Model { target }, provenance, warnings };
    }

    /// Ends because of what the last call brought.
    fn give_up_on_failure(&mut self, plan: &Plan) {
        let explained = self.failure().map(|failure| explain(failure, self.attempts));
        let (kind, message) = explained.unwrap_or((ErrorKind::Rejected, String::new()));
        self.give_up(plan, kind, &message);
    }

    /// Ends without an answer, after the fallback if the plan has one.
    fn give_up(&mut self, plan: &Plan, kind: ErrorKind, message: &str) {
        let end = End { kind, message: message.to_owned() };
        self.state = if plan.fallback {
            State::Consulting { id: self.next_id(), who: Consult::Fallback, end: Some(end) }
        } else {
            State::Failed(end)
        };
    }

    fn cancel(&mut self, plan: &Plan, now: Time) {
        if let State::Calling { .. } = self.state {
            self.enter(plan, now, Verdict::Cancelled, None, Vec::new(), Vec::new());
        }
        self.state =
            State::Failed(End { kind: ErrorKind::Cancelled, message: "the caller stopped it".to_owned() });
    }

    /// Writes a call into the ledger.
    fn enter(
        &mut self,
        plan: &Plan,
        now: Time,
        verdict: Verdict,
        answer: Option<&Completion>,
        edits: Vec<Edit>,
        closed: Vec<JsonPath>,
    ) {
        let State::Calling { call, skipped, since, .. } = &self.state else { return };
        let Some(target) = plan.targets.get(self.target) else { return };
        let usage = match (answer, &verdict) {
            (Some(Completion { usage, text, finish, .. }), _) => match finish {
                Finish::Stopped if *usage == Usage::default() => Usage::estimate(call, text.len()),
                _ => *usage,
            },
            (None, Verdict::Cancelled) => Usage::estimate(call, 0),
            (None, _) => Usage::default(),
        };
        let cost = target.price.of(usage);
        self.spent = self.spent.plus(cost);
        self.ledger.push(Attempt {
            attempt: self.attempt(),
            target: target.name.clone(),
            dialect: target.rungs.get(self.rung).map(|rung| rung.lower.name().to_owned()).unwrap_or_default(),
            enforcement: call.enforcement(),
            patched: if let Ask::Patch(paths) = &self.asked { paths.clone() } else { Vec::new() },
            sampling: call.sampling,
            skipped: skipped.clone(),
            started: *since,
            ended: now,
            text: answer.map(|answer| answer.text.clone()).unwrap_or_default(),
            finish: answer.map(|answer| answer.finish),
            edits,
            closed,
            restrained: answer.is_some_and(|answer| answer.restrained),
            usage,
            cost,
            verdict,
            lesson: None,
        });
    }

    /// Makes room for the next draft: the last one is kept if it came nearest so far.
    fn retire(&mut self) {
        let Some(draft) = self.draft.take() else { return };
        let found = |draft: &Draft| self.found_at(draft.entry).map(<[_]>::len);
        // One that nothing was found wrong with was not rejected, only left behind.
        let Some(count) = found(&draft) else { return };
        if self.best.as_ref().and_then(found).is_none_or(|least| count <= least) {
            self.best = Some(draft);
        }
    }

    /// The draft that came nearest, the last one included.
    fn nearest(&mut self) -> Option<Best> {
        self.retire();
        let draft = self.best.take()?;
        let violations = self.found_at(draft.entry)?.to_vec();
        Some(Best { value: draft.value, violations })
    }

    fn context(&self) -> Context<'_> {
        Context { source: &self.input.source, data: &self.input.data }
    }

    /// The next number from 0 to 1 (SplitMix64 on the seed); 0 without a seed.
    fn draw(&mut self) -> f64 {
        let Some(seed) = self.input.seed else { return 0.0 };
        self.draws += 1;
        let mut z = seed.wrapping_add(self.draws.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// What a failure means for the caller, if nothing follows.
fn explain(failure: &Failure, attempts: u32) -> (ErrorKind, String) {
    let after = format!("after {attempts} {}", if attempts == 1 { "attempt" } else { "attempts" });
    match failure {
        Failure::Fault(fault) => {
            let kind = match fault.kind {
                FaultKind::SchemaRefused => ErrorKind::Schema,
                FaultKind::BadRequest | FaultKind::Unsupported => ErrorKind::Config,
                _ => ErrorKind::Unavailable,
            };
            (kind, fault.to_string())
        }
        Failure::Refused { reason } if reason.is_empty() => (ErrorKind::Refused, String::new()),
        Failure::Refused { reason } => (ErrorKind::Refused, reason.clone()),
        other => {
            let first = other.violations().first().map(Violation::masked).unwrap_or_default();
            let more = match other.violations().len() {
                0 | 1 => String::new(),
                n => format!(" (and {} more)", n - 1),
            };
            (ErrorKind::Rejected, format!("{after}: {first}{more}"))
        }
    }
}

/// What examining an answer came to.
struct Examined {
    draft: Option<Draft>,
    edits: Vec<Edit>,
    failure: Option<Failure>,
    /// What proves that the server ignored the schema, if something does.
    ignored: Option<String>,
}

impl Examined {
    /// An answer without a document.
    fn failed(failure: Failure) -> Self {
        Self { draft: None, edits: Vec::new(), failure: Some(failure), ignored: None }
    }
}

/// The warning that a dialect was left out because it cannot take the schema.
fn skipped(dialect: &str, reason: &Refused) -> Violation {
    let expected = format!("a schema that the dialect `{dialect}` can take");
    Violation::new(JsonPath::root(), "lowering", Stage::Schema)
        .with_expected(expected)
        .with_found(reason.to_string())
        .as_warning()
}

/// A violation of the whole answer.
fn of_answer(rule: &str, expected: &str, found: &str) -> Violation {
    Violation::new(JsonPath::root(), rule, Stage::Read).with_expected(expected).with_found(found)
}
