use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

#[cfg(doc)]
use formwork_core::ErrorKind;
use formwork_core::{Clock, Error, Outcome, Plan, Run, SharedProvider};
use serde_json::Value;
use tracing::Instrument as _;

use crate::drive::{Drive, Parts};
use crate::external::{AsyncValidator, Fallback};
use crate::journal::Journal;
use crate::longest::Longest;
use crate::observer::{Observer, Observers, Paced};
use crate::updates::Updates;
use crate::{Budget, Budgets, CancellationToken, ObservationStore, TokioClock, trace};

/// Carries out the steps of [`Run`]s: makes the calls, waits for delays, and runs the async validators and the fallback.
///
/// The run makes all decisions, so [`drive`](Self::drive) and [`stream`](Self::stream) return the same result. The driver keeps the
/// observations of each run in its [`ObservationStore`] for later runs.
///
/// ```
/// use formwork_core::{Inline, Plan, Provider, Run, Target};
/// use formwork_dialect::Prompt;
/// use formwork_extract::{CancellationToken, Driver, block_on};
/// use formwork_testkit::Scripted;
/// use serde_json::json;
/// use std::sync::Arc;
///
/// let model = Arc::new(Scripted::new(["{\"age\": \"old\"}", "{\"age\": 34}"]));
/// let schema = json!({"properties": {"age": {"type": "integer"}}, "required": ["age"]});
/// let contract = formwork_schema::contract_for(Arc::new(Inline::new("person", schema)))?;
/// let target = Target::new(model.name(), model.capabilities().clone()).with_mode(Arc::new(Prompt::new()));
/// let plan = Plan::new(contract, vec![target]).build()?;
///
/// let run = Run::new(&plan, "Maria, 34".into());
/// let outcome = block_on(Driver::new([model as _]).drive(&plan, run, &CancellationToken::new()))??;
/// assert_eq!((outcome.value, outcome.calls.len()), (json!({"age": 34}), 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Driver {
    pub(crate) parts: Parts,
}

impl Driver {
    /// Creates a driver with the real clock. `providers` has one provider for each target of the plan, in the same order.
    pub fn new(providers: impl IntoIterator<Item = SharedProvider>) -> Self {
        let parts = Parts {
            providers: providers.into_iter().collect(),
            clock: Arc::new(TokioClock::new()),
            observers: Vec::new(),
            validators: Vec::new(),
            fallback: None,
            budgets: Budgets::default(),
            max_budget_wait: None,
            longest: Longest::default(),
            store: ObservationStore::new(),
            fails_fast: false,
        };
        Self { parts }
    }

    /// Returns a driver for a plan with rotated targets: target `first` comes first, and the targets before it come last.
    pub(crate) fn rotated(&self, first: usize) -> Self {
        let mut driver = self.clone();
        let first = first.min(driver.parts.providers.len());
        driver.parts.providers.rotate_left(first);
        driver
    }

    formwork_core::setters! {
        in parts:
        /// Sets the clock (default: [`TokioClock`](crate::TokioClock)).
        pub fn with_clock(clock: Arc<dyn Clock>);
        /// Sets the fallback (default: none). The plan must [enable it](formwork_core::PlanBuilder::with_fallback).
        pub fn with_fallback(Some(fallback): Arc<dyn Fallback>);
        /// Sets how long a call may wait for a shared budget (default: until the deadline of the run). A run ends with
        /// [`ErrorKind::Budget`] after this time.
        pub const fn with_max_budget_wait(Some(max_budget_wait): Duration);
        /// Sets the observation store, for drivers that share one (default: a new store).
        pub fn with_observation_store(store: ObservationStore);
        /// Ends runs at once while no target can be reached (default: each run retries). After a run has failed because all its
        /// targets were unreachable, the following runs fail without a call for 30 s. Then one run makes one call; each further failure
        /// doubles the time, up to 10 min. Use it for many runs in sequence.
        pub const fn with_fail_fast(fails_fast = true);
    }

    /// Adds an observer of all runs (default: none).
    pub fn with_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.parts.observers.push(observer);
        self
    }

    /// Adds an async validator (default: none). The plan must [enable async checks](formwork_core::PlanBuilder::with_async_checks).
    pub fn with_validator(mut self, validator: Arc<dyn AsyncValidator>) -> Self {
        self.parts.validators.push(validator);
        self
    }

    /// Adds a shared budget (default: none). A call is made only if every budget allows its maximum cost; it waits for this while open
    /// calls may give enough back.
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.parts.budgets = self.parts.budgets.with(budget);
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
        self.tapped::<()>(plan, Box::new(run), Some(cancel), &[], None, None)
            .await
            .map(|(outcome, _)| outcome)
    }

    /// Returns the updates of a run. Reading the stream drives the run; dropping the stream cancels the open call at once.
    pub fn stream(&self, plan: Arc<Plan>, run: Run, cancel: CancellationToken) -> Updates<Value> {
        let driver = self.clone();
        Updates::new(move |tap| async move {
            driver
                .tapped::<()>(&plan, Box::new(run), Some(&cancel), &[], Some(tap.as_ref()), None)
                .await
                .map(|(outcome, _)| outcome)
        })
    }

    /// Drives a run to its end. Returns also the accepted value as a `T`, if the contract decoded it as `T`.
    pub(crate) async fn tapped<T: Send + 'static>(
        &self,
        plan: &Plan,
        mut run: Box<Run>,
        cancel: Option<&CancellationToken>,
        own: &[Arc<dyn Observer>],
        tap: Option<&dyn Paced>,
        journal: Option<&dyn Journal>,
    ) -> Result<(Outcome<Value>, Option<T>), Error> {
        let span = trace::span(plan);
        let observers = Observers::new(&self.parts.observers, own, tap);
        let now = self.parts.clock.now();
        let advice = self.parts.store.advise(plan, now, self.parts.fails_fast);
        // The only target is called in any case.
        let reports_skipped = plan.targets().count() > 1 || self.parts.fails_fast;
        let skipped = advice.out_of_service(now).filter(|_| reports_skipped);
        let skipped = skipped.map(|(target, until)| (target, until.since(now))).collect();
        let drive =
            Drive { parts: &self.parts, plan, cancel, observers, journal, skipped, needs_notice: false };
        let answers = self.parts.longest.of(plan);
        run.set_jitter(RandomState::new().hash_one("jitter"));
        run.set_earlier(answers.longest, answers.expects_reask());
        run.set_advice(advice);
        // Boxed, because futures are copied whole into those that contain them.
        let (result, decoded) = Box::pin(drive.finish(run)).instrument(span.clone()).await;
        trace::record(&span, &result);
        result.map(|outcome| (outcome, decoded))
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("providers", &self.parts.providers)
            .field("clock", &self.parts.clock)
            .field("budgets", &self.parts.budgets)
            .field("store", &self.parts.store)
            .finish_non_exhaustive()
    }
}
