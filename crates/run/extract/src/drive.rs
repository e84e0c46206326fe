//! Carries out the steps of a run.

use std::sync::Arc;
use std::time::Duration;

use formwork_core::{
    Call, CallId, CallResult, Clock, Context, Cost, Error, ErrorKind, Event, External, Follower, JsonPath,
    ObservationKind, Outcome, Plan, Run, Severity, SharedProvider, Stage, Step, Violation,
};
use serde_json::Value;

use crate::budget::Reservation;
use crate::call::{Reading, make};
use crate::external::{AsyncValidator, CheckResult, Fallback, Situation};
use crate::interrupt::{Interrupt, Interruption};
use crate::journal::Journal;
use crate::longest::Longest;
use crate::observer::{Next, Observer, Observers, Started};
use crate::{Budgets, CancellationToken, ObservationStore};

/// The parts of a driver that all its runs share.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) providers: Vec<SharedProvider>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) validators: Vec<Arc<dyn AsyncValidator>>,
    pub(crate) fallback: Option<Arc<dyn Fallback>>,
    pub(crate) budgets: Budgets,
    pub(crate) max_budget_wait: Option<Duration>,
    pub(crate) longest: Longest,
    pub(crate) store: ObservationStore,
    pub(crate) fails_fast: bool,
}

/// A run in progress.
pub(crate) struct Drive<'a> {
    pub(crate) parts: &'a Parts,
    pub(crate) plan: &'a Plan,
    pub(crate) cancel: Option<&'a CancellationToken>,
    pub(crate) observers: Observers<'a>,
    pub(crate) journal: Option<&'a dyn Journal>,
    /// The targets that are out of service, each with the time until it is not, for the observers.
    pub(crate) skipped: Vec<(usize, Duration)>,
    /// Whether the last answer was rejected and the observers have not received the next request yet.
    pub(crate) needs_notice: bool,
}

impl Drive<'_> {
    /// Drives a run to its end.
    pub(crate) async fn finish<T: 'static>(
        mut self,
        mut run: Box<Run>,
    ) -> (Result<Outcome<Value>, Error>, Option<T>) {
        let ended = self.steps(&mut run).await;
        self.parts.store.record(self.plan, &run.take_evidence(self.plan));
        self.parts.longest.learn(self.plan, &run);
        let (result, decoded) = match ended {
            Ok(()) => {
                let decoded = run.take_decoded();
                (run.finish(), decoded)
            }
            Err(error) => (Err(error), None),
        };
        self.observers.notify(|observer, run| observer.done(run, &result));
        (result, decoded)
    }

    async fn steps(&mut self, run: &mut Run) -> Result<(), Error> {
        let (providers, targets) = (self.parts.providers.len(), self.plan.targets().count());
        if providers < targets {
            let message = format!(
                "the plan has {targets} targets, but the driver has {providers} providers: add one provider for each target"
            );
            return Err(Error::new(ErrorKind::Config, message));
        }
        for (target, wait) in std::mem::take(&mut self.skipped) {
            let name = self.target(target);
            self.observers.notify(|observer, id| observer.skipping(id, name, wait));
        }
        loop {
            let now = self.parts.clock.now();
            if self.cancel.is_some_and(CancellationToken::is_cancelled) && !run.is_done() {
                return run.on(self.plan, now, Event::Cancelled).map_err(Error::from);
            }
            match run.step(self.plan, now)? {
                Step::Done => return Ok(()),
                Step::Wait { until, .. } => {
                    let wait = until.since(now);
                    self.notify_next(run, wait);
                    self.observers.notify(|observer, id| observer.waiting(id, wait));
                    self.observers.pause().await;
                    let clock = self.parts.clock.as_ref();
                    // The next iteration handles a cancellation.
                    let _ = Interrupt::new(clock, None, self.cancel).or(clock.sleep_until(until)).await;
                }
                Step::Call { id, target, call, reserve, .. } => {
                    self.notify_next(run, Duration::ZERO);
                    self.call(run, id, target, &call, reserve).await?;
                    self.store(run).await?;
                }
                Step::Check { id, candidate, .. } => {
                    self.check(run, id, &candidate).await?;
                    self.store(run).await?;
                }
                Step::Fallback { id, candidate, .. } => self.fallback(run, id, &candidate).await?,
                _ => {
                    return Err(Error::new(
                        ErrorKind::Config,
                        "the run returned a step that this version of the driver does not support: update formwork-extract",
                    ));
                }
            }
        }
    }

    async fn call(
        &mut self,
        run: &mut Run,
        id: CallId,
        target: usize,
        call: &Call,
        reserve: Cost,
    ) -> Result<(), Error> {
        let reservation = match self.reserve(run, id, reserve).await {
            Ok(reservation) => reservation,
            Err(event) => return self.report(run, event),
        };
        let Some(provider) = self.parts.providers.get(target) else {
            return Err(Error::new(
                ErrorKind::Config,
                "the plan has more targets than the driver has providers: add one provider for each target",
            ));
        };
        let name = self.target(target);
        if let Some(journal) = self.journal {
            journal.calling(name, reserve).await?;
        }
        self.observers.notify(|observer, run_id| {
            let started = Started { attempt: run.attempt(), target: name, ask: run.ask(), call };
            observer.call_started(run_id, &started);
        });
        self.observers.pause().await;
        let mut interrupt = Interrupt::new(self.parts.clock.as_ref(), call.deadline, self.cancel);
        let follow = if self.observers.takes_progress() { Follower::with_progress } else { Follower::new };
        let input = run.input();
        let cx = Context { source: &input.source, data: &input.data };
        let follower = run.share_index(follow(self.plan, call, run.ask()));
        let mut reading = Reading { plan: self.plan, cx, follower };
        let event = make(provider.as_ref(), id, call, &mut reading, &mut interrupt, &self.observers).await;
        let known = run.ledger().len();
        self.report(run, event)?;
        self.parts.store.record(self.plan, &run.take_evidence(self.plan));
        if !run.is_done() && self.parts.store.ignores(self.plan, run.target(), self.parts.clock.now()) {
            run.leave_enforcement(self.plan);
        }
        let Some((record, probes)) = run.ledger().get(known..).and_then(<[_]>::split_last) else {
            return Ok(());
        };
        for probe in probes {
            self.observers.notify(|observer, id| observer.call_finished(id, probe));
        }
        reservation.settle(record.cost);
        if let Some(observation) = &record.observation
            && matches!(
                observation.kind,
                ObservationKind::Ignored | ObservationKind::RanAway | ObservationKind::RefusedSampling(_)
            )
        {
            tracing::warn!(target: "formwork", "{observation}");
        }
        self.needs_notice = matches!(record.verdict, CallResult::Failed { .. });
        self.observers.notify(|observer, id| observer.call_finished(id, record));
        self.observers.pause().await;
        Ok(())
    }

    /// Waits until the journal has stored a run that continues. The caller stores the result of a run that has ended.
    async fn store(&self, run: &Run) -> Result<(), Error> {
        match self.journal.filter(|_| !run.is_done()) {
            Some(journal) => journal.store(run).await,
            None => Ok(()),
        }
    }

    /// Reserves the maximum cost of a call in every budget, and waits for this while open calls of other runs may give enough back.
    /// Returns the event for a call that is not made.
    async fn reserve(&self, run: &mut Run, id: CallId, worst: Cost) -> Result<Reservation, Event> {
        let (budgets, clock) = (&self.parts.budgets, self.parts.clock.as_ref());
        if let Ok(reservation) = budgets.try_reserve(worst) {
            return Ok(reservation);
        }
        let longest = self.parts.max_budget_wait.map(|max| clock.now().after(max));
        let until = [run.deadline(self.plan), longest].into_iter().flatten().min();
        let waited = Interrupt::new(clock, until, self.cancel).or(budgets.reserve(worst)).await;
        match waited {
            Ok(Ok(reservation)) => {
                run.start_call(clock.now());
                Ok(reservation)
            }
            Ok(Err(left)) => Err(Event::denied(id, Some(left))),
            // A call that waited for its whole time is not made smaller, to wait again.
            Err(Interruption::Late) => Err(Event::denied(id, None)),
            // The next iteration handles the cancellation.
            Err(Interruption::Cancelled) => Err(Event::deferred(id)),
        }
    }

    async fn check(&mut self, run: &mut Run, id: CallId, candidate: &Value) -> Result<(), Error> {
        self.observers.notify(|observer, id| observer.external_started(id, External::Checks, candidate));
        self.observers.pause().await;
        let Ok(CheckResult { violations, spent }) = self.validate(run, candidate).await else {
            return self.report(run, Event::Cancelled);
        };
        self.parts.budgets.spend(spent);
        let errors: Vec<Violation> =
            violations.iter().filter(|violation| violation.severity == Severity::Error).cloned().collect();
        self.needs_notice = !errors.is_empty();
        self.observers.notify(|observer, id| observer.external_finished(id, External::Checks, &errors, None));
        self.observers.pause().await;
        self.report(run, Event::checked(id, violations, spent))
    }

    async fn fallback(&mut self, run: &mut Run, id: CallId, candidate: &Value) -> Result<(), Error> {
        self.observers.notify(|observer, id| observer.external_started(id, External::Fallback, candidate));
        self.observers.pause().await;
        let Ok(value) = self.fall_back(run, candidate).await else {
            return self.report(run, Event::Cancelled);
        };
        let supplied = value.as_ref();
        self.observers
            .notify(|observer, id| observer.external_finished(id, External::Fallback, &[], supplied));
        self.observers.pause().await;
        self.report(run, Event::supplied(id, value))
    }

    /// Runs all validators. A validator that is not complete at the deadline is a violation.
    async fn validate(&self, run: &Run, candidate: &Value) -> Result<CheckResult, Interruption> {
        let input = run.input();
        let cx = Context { source: &input.source, data: &input.data };
        let deadline = run.deadline(self.plan);
        let mut interrupt = Interrupt::new(self.parts.clock.as_ref(), deadline, self.cancel);
        let mut all = CheckResult::none();
        for validator in &self.parts.validators {
            match interrupt.or(validator.validate(candidate, &cx)).await {
                Ok(CheckResult { violations, spent }) => {
                    all.violations.extend(violations);
                    all.spent = all.spent.plus(spent);
                }
                Err(Interruption::Cancelled) => return Err(Interruption::Cancelled),
                Err(Interruption::Late) => {
                    let late = Violation::new(JsonPath::root(), "deadline", Stage::AsyncCheck);
                    all.violations.push(late.with_expected("a verdict before the deadline"));
                    break;
                }
            }
        }
        Ok(all)
    }

    async fn fall_back(&self, run: &Run, draft: &Value) -> Result<Option<Value>, Interruption> {
        let Some(fallback) = &self.parts.fallback else { return Ok(None) };
        let situation = Situation { input: run.input(), draft, calls: run.ledger() };
        let mut interrupt = Interrupt::new(self.parts.clock.as_ref(), None, self.cancel);
        interrupt.or(fallback.value(&situation)).await
    }

    fn report(&self, run: &mut Run, event: Event) -> Result<(), Error> {
        run.on(self.plan, self.parts.clock.now(), event).map_err(Error::from)
    }

    fn notify_next(&mut self, run: &Run, wait: Duration) {
        if !std::mem::take(&mut self.needs_notice) {
            return;
        }
        let target = self.target(run.target());
        self.observers.notify(|observer, id| {
            observer.asking(
                id,
                &Next { attempt: run.attempt(), target, ask: run.ask(), wait, estimates: run.estimates() },
            );
        });
    }

    fn target(&self, index: usize) -> &str {
        self.plan.targets().nth(index).unwrap_or_default()
    }
}
