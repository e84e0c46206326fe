use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use formwork_core::{
    Call, CallId, Clock, Context, Cost, Error, ErrorKind, Event, External, Failure, FaultKind, JsonPath,
    ObservationKind, Outcome, Plan, Run, Severity, SharedProvider, Stage, Step, Verdict, Violation,
};
use serde_json::Value;
use tracing::Instrument as _;

use crate::budget::Reservation;
use crate::call::{CallResult, DEADLINE_SLACK, make};
use crate::external::{AsyncValidator, CheckResult, Fallback, Situation};
use crate::interrupt::{Interrupt, Interruption};
use crate::journal::Journal;
use crate::observer::{Next, Observer, Observers, Paced, Started};
use crate::updates::Updates;
use crate::{Budget, CancellationToken, ObservationStore, TokioClock, blocking, trace};

/// Carries out the steps of [`Run`]s: makes the calls, waits for delays, and runs the async validators and the fallback.
///
/// The run makes all decisions, so [`drive`](Self::drive), [`drive_blocking`](Self::drive_blocking) and
/// [`stream`](Self::stream) return the same result. The driver keeps the observations of each run in its [`ObservationStore`] for
/// later runs.
///
/// ```
/// use formwork_core::{Inline, Plan, Provider, Run, Target};
/// use formwork_dialect::Prompt;
/// use formwork_extract::{CancellationToken, Driver};
/// use formwork_testkit::Scripted;
/// use serde_json::json;
/// use std::sync::Arc;
///
/// let model = Arc::new(Scripted::new(["{\"age\": \"34\"}", "{\"age\": 34}"]));
/// let schema = json!({"properties": {"age": {"type": "integer"}}, "required": ["age"]});
/// let contract = formwork_schema::contract_for(Arc::new(Inline::new("person", schema)))?;
/// let target = Target::new(model.name(), model.capabilities().clone()).with_mode(Arc::new(Prompt::new()));
/// let plan = Plan::new(contract, vec![target]).build()?;
///
/// let run = Run::new(&plan, "Maria, 34".into());
/// let outcome = Driver::new([model as _]).drive_blocking(&plan, run, &CancellationToken::new())?;
/// assert_eq!((outcome.value, outcome.attempts.len()), (json!({"age": 34}), 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Driver {
    providers: Vec<SharedProvider>,
    clock: Arc<dyn Clock>,
    observers: Vec<Arc<dyn Observer>>,
    validators: Vec<Arc<dyn AsyncValidator>>,
    fallback: Option<Arc<dyn Fallback>>,
    budgets: Vec<Budget>,
    store: ObservationStore,
    fails_fast: bool,
}

/// The minimum duration of a call after which a time-out at the deadline of the caller counts as an outage of the target.
const TIME_ENOUGH: Duration = Duration::from_secs(10);

impl Driver {
    /// Creates a driver with the real clock. `providers` has one provider for each target of the plan, in the same order.
    pub fn new(providers: impl IntoIterator<Item = SharedProvider>) -> Self {
        Self {
            providers: providers.into_iter().collect(),
            clock: Arc::new(TokioClock::new()),
            observers: Vec::new(),
            validators: Vec::new(),
            fallback: None,
            budgets: Vec::new(),
            store: ObservationStore::new(),
            fails_fast: false,
        }
    }

    /// Returns a driver for a plan with rotated targets: target `first` comes first, and the targets before it come last.
    pub(crate) fn rotated(&self, first: usize) -> Self {
        let mut driver = self.clone();
        let first = first.min(driver.providers.len());
        driver.providers.rotate_left(first);
        driver
    }

    /// Sets the clock (default: [`TokioClock`](crate::TokioClock)).
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Adds an observer of all runs (default: none).
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Adds an async validator (default: none). The plan must [enable async checks](formwork_core::PlanBuilder::with_async_checks).
    #[must_use]
    pub fn with_validator(mut self, validator: Arc<dyn AsyncValidator>) -> Self {
        self.validators.push(validator);
        self
    }

    /// Sets the fallback (default: none). The plan must [enable it](formwork_core::PlanBuilder::with_fallback).
    #[must_use]
    pub fn with_fallback(mut self, fallback: Arc<dyn Fallback>) -> Self {
        self.fallback = Some(fallback);
        self
    }

    /// Adds a shared budget (default: none). A call is made only if every budget allows its maximum cost.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budgets.push(budget);
        self
    }

    /// Sets the observation store, for drivers that share one (default: a new store).
    #[must_use]
    pub fn with_observation_store(mut self, store: ObservationStore) -> Self {
        self.store = store;
        self
    }

    /// Ends runs at once while no target can be reached (default: each run retries). After a run has failed because all its
    /// targets were unreachable, the following runs fail without a call for 30 s. Then one run makes one call; each further failure
    /// doubles the time, up to 10 min. Use it for many runs in sequence.
    #[must_use]
    pub const fn with_fail_fast(mut self) -> Self {
        self.fails_fast = true;
        self
    }

    /// Drives a run to its end. Dropping the future cancels the open call at once.
    ///
    /// # Errors
    /// The error of the run; [`ErrorKind::Config`] if there are fewer providers than targets, or the run was
    /// created with another plan.
    pub async fn drive(
        &self,
        plan: &Plan,
        run: Run,
        cancel: &CancellationToken,
    ) -> Result<Outcome<Value>, Error> {
        self.tapped::<()>(plan, Box::new(run), cancel, &[], None, None).await.map(|(outcome, _)| outcome)
    }

    /// Drives a run to its end, and waits after each call until the [`Journal`] has stored the run. A run that was stored is
    /// driven on from there; [`Run::resumed`] leaves the time between out of account.
    ///
    /// # Errors
    /// As [`drive`](Self::drive), and the error of the journal, which ends the drive at once.
    pub async fn drive_journaled(
        &self,
        plan: &Plan,
        run: Run,
        cancel: &CancellationToken,
        journal: &dyn Journal,
    ) -> Result<Outcome<Value>, Error> {
        self.tapped::<()>(plan, Box::new(run), cancel, &[], None, Some(journal))
            .await
            .map(|(outcome, _)| outcome)
    }

    /// Blocks the thread until a run has ended; see [`blocking`](crate#blocking).
    ///
    /// # Errors
    /// The errors of [`drive`](Self::drive); [`ErrorKind::Config`] inside of an async runtime.
    pub fn drive_blocking(
        &self,
        plan: &Plan,
        run: Run,
        cancel: &CancellationToken,
    ) -> Result<Outcome<Value>, Error> {
        blocking::block_on(self.drive(plan, run, cancel))?
    }

    /// Returns the updates of a run. Reading the stream drives the run; dropping the stream cancels the open call at once.
    pub fn stream(&self, plan: Arc<Plan>, run: Run, cancel: CancellationToken) -> Updates<Value> {
        let driver = self.clone();
        Updates::new(Arc::clone(&plan), move |tap| async move {
            driver
                .tapped::<()>(&plan, Box::new(run), &cancel, &[], Some(tap.as_ref()), None)
                .await
                .map(|(outcome, _)| outcome)
        })
    }

    /// Drives a run to its end. Returns also the accepted value as a `T`, if the contract decoded it as `T`.
    pub(crate) async fn tapped<T: Send + 'static>(
        &self,
        plan: &Plan,
        mut run: Box<Run>,
        cancel: &CancellationToken,
        own: &[Arc<dyn Observer>],
        tap: Option<&dyn Paced>,
        journal: Option<&dyn Journal>,
    ) -> Result<(Outcome<Value>, Option<T>), Error> {
        let span = trace::span(plan);
        let observers = Observers::new(&self.observers, own, tap);
        let drive = Drive { driver: self, plan, cancel, observers, journal, needs_notice: false };
        let now = self.clock.now();
        let given_up = if self.fails_fast { self.store.given_up(plan, now) } else { None };
        *run = run.with_jitter(RandomState::new().hash_one("jitter"));
        let out = match given_up {
            Some(out) => {
                *run = run.with_fail_fast();
                out
            }
            None => self.store.out_of_service(plan, now),
        };
        if !out.is_empty() {
            *run = run.with_out_of_service(out);
        }
        if !self.store.is_empty() {
            *run = run
                .with_start_modes(self.store.start_modes(plan, now))
                .with_bounded(self.store.bounded(plan))
                .with_refused_sampling(self.store.refused_sampling(plan, now));
        }
        // Boxed, because futures are copied whole into those that contain them.
        let (result, decoded) = Box::pin(drive.finish(run)).instrument(span.clone()).await;
        trace::record(&span, &result);
        result.map(|outcome| (outcome, decoded))
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("providers", &self.providers)
            .field("clock", &self.clock)
            .field("budgets", &self.budgets)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

/// A run in progress.
struct Drive<'a> {
    driver: &'a Driver,
    plan: &'a Plan,
    cancel: &'a CancellationToken,
    observers: Observers<'a>,
    journal: Option<&'a dyn Journal>,
    /// Whether the last answer was rejected and the observers have not received the next request yet.
    needs_notice: bool,
}

impl Drive<'_> {
    async fn finish<T: 'static>(mut self, mut run: Box<Run>) -> (Result<Outcome<Value>, Error>, Option<T>) {
        let (result, decoded) = match self.steps(&mut run).await {
            Ok(()) => {
                let decoded = run.take_decoded();
                (run.finish(), decoded)
            }
            Err(error) => (Err(error), None),
        };
        self.note_unreached(&result);
        self.observers.notify(|observer, run| observer.done(run, &result));
        (result, decoded)
    }

    /// Records the targets that this run could not reach, if it ended for this reason.
    fn note_unreached(&self, result: &Result<Outcome<Value>, Error>) {
        let Err(error) = result else { return };
        if !matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Deadline) {
            return;
        }
        for (index, name) in self.plan.targets().enumerate() {
            let last = error.attempts().iter().rev().find(|attempt| attempt.target == name);
            let failure = last.and_then(|attempt| attempt.verdict.failure());
            if matches!(failure, Some(Failure::Fault(fault)) if fault.kind == FaultKind::Unreachable) {
                self.driver.store.gave_up(self.plan, index);
            }
        }
    }

    async fn steps(&mut self, run: &mut Run) -> Result<(), Error> {
        let (providers, targets) = (self.driver.providers.len(), self.plan.targets().count());
        if providers < targets {
            let message = format!(
                "the plan has {targets} targets, but the driver has {providers} providers: add one provider for each target"
            );
            return Err(Error::new(ErrorKind::Config, message));
        }
        let now = self.driver.clock.now();
        let reports_skipped = targets > 1 || self.driver.fails_fast;
        for (target, until) in
            self.driver.store.out_of_service(self.plan, now).iter().filter(|_| reports_skipped)
        {
            let (name, wait) = (self.target(*target), until.since(now));
            self.observers.notify(|observer, id| observer.skipping(id, name, wait));
        }
        loop {
            let now = self.driver.clock.now();
            if self.cancel.is_cancelled() && !run.is_done() {
                return run.on(self.plan, now, Event::Cancelled).map_err(Error::from);
            }
            match run.step(self.plan, now)? {
                Step::Done => return Ok(()),
                Step::Wait { until, .. } => {
                    let wait = until.since(now);
                    self.notify_next(run, wait);
                    self.observers.notify(|observer, id| observer.waiting(id, wait));
                    self.observers.pause().await;
                    let clock = self.driver.clock.as_ref();
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
        let reservations = match self.reserve(reserve) {
            Ok(reservations) => reservations,
            Err(left) => return self.report(run, Event::denied(id, Some(left))),
        };
        let Some(provider) = self.driver.providers.get(target) else {
            return Err(Error::new(
                ErrorKind::Config,
                "the plan has more targets than the driver has providers: add one provider for each target",
            ));
        };
        let name = self.target(target);
        self.observers.notify(|observer, run_id| {
            let started = Started { attempt: run.attempt(), target: name, ask: run.ask(), call };
            observer.attempt_started(run_id, &started);
        });
        self.observers.pause().await;
        let mut interrupt = Interrupt::new(self.driver.clock.as_ref(), call.deadline, self.cancel);
        let result = make(provider.as_ref(), call, &mut interrupt, &self.observers).await;
        let event = match result {
            Ok(Ok(CallResult { completion, stopped: None })) => Event::answered(id, completion),
            Ok(Ok(CallResult { completion, stopped: Some(reason) })) => {
                Event::stopped(id, completion, reason)
            }
            Ok(Err((fault, usage))) => Event::failed(id, fault, usage),
            Err(Interruption::Cancelled | Interruption::Late) => Event::Cancelled,
        };
        let known = run.ledger().len();
        self.report(run, event)?;
        let Some((attempt, probes)) = run.ledger().get(known..).and_then(<[_]>::split_last) else {
            return Ok(());
        };
        for probe in probes {
            self.observers.notify(|observer, id| observer.attempt_finished(id, probe));
        }
        for reservation in reservations {
            reservation.settle(attempt.cost);
        }
        match &attempt.verdict {
            // A short deadline of the caller is no evidence of an outage.
            Verdict::Failed { failure: Failure::Fault(fault) }
                if fault.kind == FaultKind::Timeout
                    && call.deadline.is_some_and(|deadline| {
                        attempt.ended.after(DEADLINE_SLACK) >= deadline
                            && deadline.since(attempt.started) < TIME_ENOUGH
                    }) => {}
            Verdict::Failed { failure: Failure::Fault(fault) } => {
                self.driver.store.failed(self.plan, target, fault, attempt.ended);
            }
            Verdict::Cancelled => {}
            _ => self.driver.store.answered(self.plan, target),
        }
        if let Some(observation) = &attempt.observation {
            self.driver.store.learn(self.plan, observation, attempt.ended);
            if matches!(
                observation.kind,
                ObservationKind::Ignored | ObservationKind::RanAway | ObservationKind::RefusedSampling(_)
            ) {
                tracing::warn!(target: "formwork", "{observation}");
            }
        }
        self.needs_notice = matches!(attempt.verdict, Verdict::Failed { .. });
        self.observers.notify(|observer, id| observer.attempt_finished(id, attempt));
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

    /// Reserves the maximum cost of a call in every budget.
    ///
    /// # Errors
    /// The rest of the first budget that does not allow the cost; then nothing is reserved.
    fn reserve(&self, worst: Cost) -> Result<Vec<Reservation>, Cost> {
        let mut reservations = Vec::new();
        for budget in &self.driver.budgets {
            let Some(reservation) = budget.reserve(worst) else {
                for made in reservations {
                    Reservation::settle(made, Cost::default());
                }
                return Err(budget.remaining());
            };
            reservations.push(reservation);
        }
        Ok(reservations)
    }

    async fn check(&mut self, run: &mut Run, id: CallId, candidate: &Value) -> Result<(), Error> {
        self.observers.notify(|observer, id| observer.external_started(id, External::Checks, candidate));
        self.observers.pause().await;
        let Ok(CheckResult { violations, spent }) = self.validate(run, candidate).await else {
            return self.report(run, Event::Cancelled);
        };
        self.driver.budgets.iter().for_each(|budget| budget.spend(spent));
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
        let mut interrupt = Interrupt::new(self.driver.clock.as_ref(), deadline, self.cancel);
        let mut all = CheckResult::none();
        for validator in &self.driver.validators {
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
        let Some(fallback) = &self.driver.fallback else { return Ok(None) };
        let situation = Situation { input: run.input(), draft, attempts: run.ledger() };
        let mut interrupt = Interrupt::new(self.driver.clock.as_ref(), None, self.cancel);
        interrupt.or(fallback.value(&situation)).await
    }

    fn report(&self, run: &mut Run, event: Event) -> Result<(), Error> {
        run.on(self.plan, self.driver.clock.now(), event).map_err(Error::from)
    }

    fn notify_next(&mut self, run: &Run, wait: Duration) {
        if !std::mem::take(&mut self.needs_notice) {
            return;
        }
        let target = self.target(run.target());
        self.observers.notify(|observer, id| {
            observer.asking(id, &Next { attempt: run.attempt(), target, ask: run.ask(), wait });
        });
    }

    fn target(&self, index: usize) -> &str {
        self.plan.targets().nth(index).unwrap_or_default()
    }
}
