use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use formwork_core::{Clock, Context, Error, ErrorKind, Patching, Policy, Report, Temperature};
use formwork_extract::{Backend, Extractor, ExtractorBuilder, TokioClock};
use serde_json::Value;

use crate::calibration::Calibrations;
use crate::fallback::{self, Counts};
use crate::oracle::{Oracle, Shared};
use crate::texts;
use crate::{AiScore, CrossCheck, Examples, Prompt, ScoreObserver, contract};

/// The default time limit of a score, including backoff.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(120);

/// The default maximum number of tokens of an answer.
pub const DEFAULT_MAX_TOKENS: u32 = 512;

/// A change of the extractor's settings.
type Change = Box<dyn FnOnce(ExtractorBuilder<AiScore>) -> ExtractorBuilder<AiScore> + Send>;

/// Builds an [`Oracle`].
///
/// ```
/// use formwork_oracle::{CrossCheck, Formula, Oracle, Prompt};
/// use formwork_testkit::Scripted;
/// use std::{sync::Arc, time::Duration};
///
/// let oracle = Oracle::builder()
///     .with_target(Arc::new(Scripted::new(["{}"])))
///     .with_prompt(Prompt::find("v1")?)
///     .with_cross_check(CrossCheck { formula: Formula::Consistent, tolerance: 10.0 })
///     .with_deadline(Duration::from_secs(20))
///     .build()?;
/// assert_eq!((oracle.max_attempts(), oracle.deadline().as_secs(), oracle.prompt().name.as_str()), (3, 20, "v1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct OracleBuilder {
    backends: Vec<Backend>,
    prompt: Prompt,
    examples: Examples,
    calibrations: Calibrations,
    models: HashMap<String, String>,
    check: CrossCheck,
    policy: Policy,
    deadline: Duration,
    max_tokens: u32,
    settings: Vec<Change>,
    clock: Option<Arc<dyn Clock>>,
    without_fallback: bool,
    checks_texts: bool,
    observers: Vec<Arc<dyn ScoreObserver>>,
}

impl Oracle {
    /// Returns a builder with the default prompt, no examples and the consistent formula. It needs a target.
    pub fn builder() -> OracleBuilder {
        OracleBuilder {
            backends: Vec::new(),
            prompt: Prompt::default(),
            examples: Examples::none(),
            calibrations: Calibrations::default(),
            models: HashMap::new(),
            check: CrossCheck::default(),
            policy: policy(),
            deadline: DEFAULT_DEADLINE,
            max_tokens: DEFAULT_MAX_TOKENS,
            settings: Vec::new(),
            clock: None,
            without_fallback: false,
            checks_texts: false,
            observers: Vec::new(),
        }
    }
}

impl OracleBuilder {
    /// Adds a provider (default: none; at least one is required). The oracle calls the first one, and the next one if
    /// that one has no answer.
    pub fn with_target(mut self, backend: impl Into<Backend>) -> Self {
        self.backends.push(backend.into());
        self
    }

    /// Adds the model of a target, for scores by a server that does not name its model (default: the name of the target).
    pub fn with_model(mut self, target: impl Into<String>, model: impl Into<String>) -> Self {
        self.models.insert(target.into(), model.into());
        self
    }

    formwork_core::setters! {
        /// Sets the prompt (default: the newest version).
        pub fn with_prompt(prompt: Prompt);
        /// Sets the examples in the prompt (default: none).
        pub fn with_examples(examples: Examples);
        /// Sets the known calibrations (default: none, so every score of a model is marked as not calibrated).
        pub fn with_calibrations(calibrations: Calibrations);
        /// Sets the cross-check (default: [`CrossCheck::default`]).
        pub const fn with_cross_check(check: CrossCheck);
        /// Sets the retry policy (default: [`policy`]): attempts over all targets and of each, backoff. It replaces the values of
        /// [`with_patches`](Self::with_patches) and [`with_temperature`](Self::with_temperature), so call it before them.
        pub fn with_policy(policy: Policy);
        /// Sets the time limit of a score, including backoff (default: [`DEFAULT_DEADLINE`]). After it, the fallback
        /// answers.
        pub const fn with_deadline(deadline: Duration);
        /// Sets the maximum number of tokens of an answer (default: [`DEFAULT_MAX_TOKENS`]).
        pub const fn with_max_tokens(max_tokens: u32);
        /// Sets the clock (default: [`TokioClock`]).
        pub fn with_clock(Some(clock): Arc<dyn Clock>);
    }

    /// Sets the maximum number of patches within each attempt, at its temperature (default: 0). A patch requests only
    /// the wrong values; for a score that does not follow from its breakdown it states the allowed range.
    pub fn with_patches(mut self, patches: u32) -> Self {
        let patching = if patches > 0 { Patching::Within(patches) } else { Patching::Never };
        self.policy = self.policy.with_patching(patching);
        self
    }

    /// Sets the temperature of the first attempt (default: 0.3). The second attempt has two thirds of it, every later
    /// one a third.
    pub fn with_temperature(mut self, temperature: f64) -> Self {
        // Rounded to three digits, because people read temperatures in logs.
        let steps = [3.0, 2.0, 1.0].map(|thirds| (temperature * thirds / 3.0 * 1000.0).round() / 1000.0);
        self.policy = self.policy.with_temperature(Temperature::Steps(steps.to_vec()));
        self
    }

    /// Changes other settings of the extractor (default: no change), for example its budgets or its store of observations.
    pub fn settings(
        mut self,
        change: impl FnOnce(ExtractorBuilder<AiScore>) -> ExtractorBuilder<AiScore> + Send + 'static,
    ) -> Self {
        self.settings.push(Box::new(change));
        self
    }

    formwork_core::setters! {
        /// Rejects answers with a text that has no letter, or that is copied from an example or from the prompt (default: they are
        /// accepted, because the specification's schema accepts them). Very small models give such answers.
        pub const fn with_texts_checked(checks_texts = true);
        /// Disables the fallback: a score without an acceptable answer of a model is an error.
        pub const fn without_fallback(without_fallback = true);
    }

    /// Adds an observer that is notified of every score (default: none).
    pub fn with_observer(mut self, observer: impl ScoreObserver + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Checks the settings and compiles the contract.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] without a target, for a tolerance that is negative or not finite, and for an example that
    /// fails the cross-check. [`ErrorKind::Schema`] if no mode of a target can express the schema.
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
        let system = self.prompt.system(&self.check, &self.examples);
        let target = self.backends.first().map(|backend| backend.name().to_owned()).unwrap_or_default();

        let max_attempts = self.policy.attempts;
        let clock = self.clock.unwrap_or_else(|| Arc::new(TokioClock::new()));
        let mut contract = contract(&self.check)?;
        if self.checks_texts {
            let (examples, system, check) = (self.examples.clone(), system.clone(), self.check);
            contract = contract.with_check(move |value: &Value, cx: &Context<'_>, out: &mut Report| {
                // The texts of the fallback are fixed, so an example may have the same ones.
                let counts = Counts::from_data(cx.data);
                let counted =
                    counts.and_then(|counts| serde_json::to_value(fallback::score(&counts, &check)).ok());
                if counted.as_ref() != Some(value) {
                    // The source of a run is its user message.
                    texts::check(value, &examples, &system, cx.source, out);
                }
            });
        }
        let mut builder = Extractor::<AiScore>::for_contract(contract)
            .with_policy(self.policy)
            .with_system(system)
            .with_deadline(self.deadline)
            .with_max_tokens(self.max_tokens)
            .with_clock(Arc::clone(&clock));
        builder = self.settings.into_iter().fold(builder, |builder, change| change(builder));
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
            text: self.prompt,
            check: self.check,
            examples: self.examples,
            calibrations: self.calibrations,
            models: self.models,
            max_attempts,
            deadline: self.deadline,
            clock,
            observers: self.observers,
            target,
        })))
    }
}

/// Returns the policy of the oracle: 3 whole attempts at 0.3, 0.2 and 0.1. Refusals count as attempts, because the oracle's
/// specification counts attempts.
pub fn policy() -> Policy {
    Policy::new(3)
        .with_temperature(Temperature::Steps(vec![0.3, 0.2, 0.1]))
        .with_patching(Patching::Never)
        .with_stop_on_repeat(false)
        .with_stop(false)
        .with_ask_after_refusal(true)
}

formwork_core::debug_fields!(OracleBuilder { backends, prompt.name(), check });
