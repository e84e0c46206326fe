use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use formwork_core::{Backoff, Clock, Cost, Error, ErrorKind, Patching, Policy, Temperature};
use formwork_extract::{Backend, Budget, Extractor, ExtractorBuilder, ObservationStore, TokioClock};

use crate::fallback::{self, Counts};
use crate::oracle::{Oracle, Shared};
use crate::prompt::Order;
use crate::{AiScore, CrossCheck, Examples, Prompt, ScoreObserver, contract};

/// The time that a score may take unless it is said otherwise, waits between calls included.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(120);

/// The most tokens of an answer unless it is said otherwise.
pub const DEFAULT_MAX_TOKENS: u32 = 512;

/// Builds an [`Oracle`].
#[must_use]
pub struct OracleBuilder {
    backends: Vec<Backend>,
    prompt: Prompt,
    examples: Examples,
    check: CrossCheck,
    patches: u32,
    backoff: Option<Backoff>,
    max_attempts: Option<u32>,
    attempts_per_target: Option<u32>,
    temperature: Option<f64>,
    deadline: Duration,
    max_tokens: u32,
    budget: Option<Cost>,
    shared_budget: Option<Budget>,
    store: Option<ObservationStore>,
    clock: Option<Arc<dyn Clock>>,
    without_fallback: bool,
    observers: Vec<Arc<dyn ScoreObserver>>,
}

impl Oracle {
    /// An oracle without a target yet: the default prompt, no examples, the consistent formula.
    pub fn builder() -> OracleBuilder {
        OracleBuilder {
            backends: Vec::new(),
            prompt: Prompt::default(),
            examples: Examples::none(),
            check: CrossCheck::default(),
            patches: 0,
            backoff: None,
            max_attempts: None,
            attempts_per_target: None,
            temperature: None,
            deadline: DEFAULT_DEADLINE,
            max_tokens: DEFAULT_MAX_TOKENS,
            budget: None,
            shared_budget: None,
            store: None,
            clock: None,
            without_fallback: false,
            observers: Vec::new(),
        }
    }
}

impl OracleBuilder {
    /// Adds a provider (default: none; one is needed): the first one is asked first, the next ones where the ones before
    /// have no answer.
    pub fn with_target(mut self, backend: impl Into<Backend>) -> Self {
        self.backends.push(backend.into());
        self
    }

    /// Sets the version of the prompt (default: the newest).
    pub fn with_prompt(mut self, prompt: Prompt) -> Self {
        self.prompt = prompt;
        self
    }

    /// Sets the examples that the model is shown (default: none).
    pub fn with_examples(mut self, examples: Examples) -> Self {
        self.examples = examples;
        self
    }

    /// Sets the cross-check (default: [`CrossCheck::default`]).
    pub const fn with_cross_check(mut self, check: CrossCheck) -> Self {
        self.check = check;
        self
    }

    /// Sets how often wrong values alone are asked for within each attempt, at its temperature (default: 0). A score
    /// that does not follow from its breakdown is then asked for again with the range that it must lie in.
    pub const fn with_patches(mut self, patches: u32) -> Self {
        self.patches = patches;
        self
    }

    /// Sets the number of whole answers that are asked for, over all targets (default: 3; at least 1).
    pub const fn with_max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// Sets the most whole answers that one target is asked for (default: an equal share, rounded up).
    pub const fn with_attempts_per_target(mut self, attempts: u32) -> Self {
        self.attempts_per_target = Some(attempts);
        self
    }

    /// Sets the temperature of the first attempt (default: 0.3). It falls by a third of it with each further attempt, down
    /// to a third.
    pub const fn with_temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the waits between calls that fail (default: 2, 4 and 8 seconds).
    pub fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Limits the time of a score, waits included (default: [`DEFAULT_DEADLINE`]). The fallback is used
    /// when it has passed.
    pub const fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Limits the tokens of an answer (default: [`DEFAULT_MAX_TOKENS`]).
    pub const fn with_max_tokens(mut self, max_tokens: u32) -> Self {
        self.max_tokens = max_tokens;
        self
    }

    /// Limits what each score may cost (default: no limit).
    pub const fn with_budget(mut self, budget: Cost) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Sets a budget that all scores, and every other holder of a clone, share (default: none).
    pub fn with_shared_budget(mut self, budget: Budget) -> Self {
        self.shared_budget = Some(budget);
        self
    }

    /// Sets a store of what targets refuse, to share it (default: one of its own).
    pub fn with_observation_store(mut self, store: ObservationStore) -> Self {
        self.store = Some(store);
        self
    }

    /// Sets the clock (default: [`TokioClock`]).
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Without the fallback: a score that no model gave is an error.
    pub const fn without_fallback(mut self) -> Self {
        self.without_fallback = true;
        self
    }

    /// Adds an observer that is told about every score (default: none).
    pub fn with_observer(mut self, observer: impl ScoreObserver + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Checks it all, once for every wallet.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] without a target, for a tolerance that is no number from 0, and for an example that breaks the
    /// cross-check; [`ErrorKind::Schema`] if a target can be asked for the schema in no way.
    pub fn build(self) -> Result<Oracle, Error> {
        let config = |message: String| Error::new(ErrorKind::Config, message);
        if !(self.check.tolerance.is_finite() && self.check.tolerance >= 0.0) {
            let message = format!("the tolerance {} is no number of points from 0", self.check.tolerance);
            return Err(config(message));
        }
        for (nth, example) in self.examples.iter().enumerate() {
            let AiScore { score, breakdown, .. } = &example.answer;
            if !self.check.passes(*score, breakdown) {
                let (low, high) = self.check.range(breakdown);
                let message = format!(
                    "example {}: $.answer.score: expected from {low} to {high} by this formula, found {score}",
                    nth + 1
                );
                return Err(config(message));
            }
        }
        let prompt = self.prompt.id(&self.check, &self.examples);
        let keeps_rules = self.backends.first().is_some_and(|backend| backend.capabilities().rules);
        let order = if keeps_rules { Order::BreakdownFirst } else { Order::Contract };
        let system = self.prompt.system(&self.check, &self.examples, order);
        let target = self.backends.first().map(|backend| backend.name().to_owned()).unwrap_or_default();

        let mut policy = adjusted(self.patches, self.backoff);
        policy.attempts = self.max_attempts.map_or(policy.attempts, |attempts| attempts.max(1));
        policy.attempts_per_target = self.attempts_per_target.or(policy.attempts_per_target);
        if let Some(first) = self.temperature {
            // Rounded, because people read it in logs.
            let steps = [3.0, 2.0, 1.0].map(|thirds| (first * thirds / 3.0 * 1000.0).round() / 1000.0);
            policy = policy.with_temperature(Temperature::Steps(steps.to_vec()));
        }
        let max_attempts = policy.attempts;
        let clock = self.clock.unwrap_or_else(|| Arc::new(TokioClock::new()));
        let mut builder = Extractor::<AiScore>::for_contract(contract(&self.check)?)
            .with_policy(policy)
            .with_system(system)
            .with_deadline(self.deadline)
            .with_max_tokens(self.max_tokens)
            .with_clock(Arc::clone(&clock));
        if let Some(budget) = self.budget {
            builder = builder.with_budget(budget);
        }
        if let Some(budget) = self.shared_budget {
            builder = builder.with_shared_budget(budget);
        }
        if let Some(store) = self.store {
            builder = builder.with_observation_store(store);
        }
        if !self.without_fallback {
            let check = self.check;
            builder = builder.with_fallback_fn(move |situation| {
                let counts = Counts::from_data(&situation.input.data)?;
                serde_json::to_value(fallback::score(&counts, &check)).ok()
            });
        }
        let extractor = self.backends.into_iter().fold(builder, ExtractorBuilder::with_target).build()?;
        Ok(Oracle(Arc::new(Shared {
            extractor,
            prompt,
            check: self.check,
            examples: self.examples,
            max_attempts,
            deadline: self.deadline,
            clock,
            observers: self.observers,
            target,
        })))
    }
}

/// Returns the policy of the oracle: 3 whole attempts at 0.3, 0.2 and 0.1. Refusals count as attempts, and the limit of
/// tokens may cut a text of the answer, because the oracle's specification counts attempts.
pub fn policy() -> Policy {
    Policy::new(3)
        .with_temperature(Temperature::Steps(vec![0.3, 0.2, 0.1]))
        .with_patching(Patching::Never)
        .with_stop_on_repeat(false)
        .with_accept_cut(true)
        .with_ask_after_refusal(true)
}

/// The policy with these settings of the builder.
fn adjusted(patches: u32, backoff: Option<Backoff>) -> Policy {
    let mut policy = policy();
    if patches > 0 {
        policy = policy.with_patching(Patching::Within(patches));
    }
    match backoff {
        Some(backoff) => policy.with_backoff(backoff),
        None => policy,
    }
}

impl fmt::Debug for OracleBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OracleBuilder")
            .field("backends", &self.backends)
            .field("prompt", &self.prompt.name())
            .field("check", &self.check)
            .finish_non_exhaustive()
    }
}
