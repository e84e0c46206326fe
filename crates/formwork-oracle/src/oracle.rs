use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use formwork_core::{
    Backoff, Clock, Cost, Error, ErrorKind, Failure, FaultKind, Input, Message, Origin, Outcome, Patching,
    Policy, Temperature,
};
use formwork_extract::{
    Backend, Budget, CancellationToken, Extractor, ExtractorBuilder, Memory, Observer, TokioClock,
};

use crate::fallback::{self, Counts};
use crate::log::Log;
use crate::prompt::{Order, user};
use crate::seed::seed;
use crate::wallet::Wallet;
use crate::{
    AiScore, CrossCheck, Examples, Prompt, PromptId, ScoreEvent, ScoreFailure, ScoreObserver, ScoreSource,
    Scored, contract,
};

/// The time that a score may take unless it is said otherwise, waits between calls included.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(120);

/// The most tokens of an answer unless it is said otherwise.
pub const DEFAULT_MAX_TOKENS: u32 = 512;

/// Scores wallets. Built once, used for any number of wallets, from any number of tasks; clones share everything.
///
/// ```
/// use formwork_oracle::{Oracle, ScoreSource, wallet::Wallet};
/// use formwork_testkit::Scripted;
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Stands in for a model: first a score that does not follow from its breakdown, then one that does.
/// let answer = |score| format!(r#"{{
///     "score": {score},
///     "scoreBreakdown": {{"activity": 80, "maturity": 70, "diversity": 60, "riskBehavior": 51, "surveyMatch": 40}},
///     "reasoning": "Two years of steady use.", "risk_factors": [], "strengths": ["age"]
/// }}"#);
/// let model = Scripted::new([answer(990).as_str(), answer(610).as_str()]);
///
/// let oracle = Oracle::builder().with_target(Arc::new(model)).build()?;
/// let wallet = Wallet::from_json(br#"{"summary": {"transactions": 40, "active_days": 20,
///     "first": "2025-11-01", "last": "2026-10-22"}}"#)?;
/// let scored = oracle.score(&wallet).await?;
/// assert_eq!((scored.answer.score, scored.source, scored.attempts), (610, ScoreSource::Ai, 2));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Oracle(Arc<Shared>);

struct Shared {
    extractor: Extractor<AiScore>,
    prompt: PromptId,
    check: CrossCheck,
    examples: Examples,
    max_attempts: u32,
    deadline: Duration,
    clock: Arc<dyn Clock>,
    observers: Vec<Arc<dyn ScoreObserver>>,
    target: String,
}

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
    memory: Option<Memory>,
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
            memory: None,
            clock: None,
            without_fallback: false,
            observers: Vec::new(),
        }
    }

    /// Scores a wallet.
    ///
    /// # Errors
    /// [`Error`] with every attempt, where there is no fallback; with it only if the score was cancelled.
    pub async fn score(&self, wallet: &Wallet) -> Result<Scored, Error> {
        self.request(wallet).run().await
    }

    /// A score that is not begun yet: to give it a name, a way to cancel it, or an observer of its own.
    pub fn request<'o>(&'o self, wallet: &'o Wallet) -> ScoreRequest<'o> {
        ScoreRequest { oracle: self, wallet, id: None, cancel: None, observers: Vec::new() }
    }

    /// The version of the prompt that is used.
    pub fn prompt(&self) -> &PromptId {
        &self.0.prompt
    }

    /// The cross-check that answers pass.
    pub fn cross_check(&self) -> &CrossCheck {
        &self.0.check
    }

    /// How often a model is asked at most, over all targets.
    pub fn max_attempts(&self) -> u32 {
        self.0.max_attempts
    }

    /// The time that a score may take, waits between calls included.
    pub fn deadline(&self) -> Duration {
        self.0.deadline
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

    /// Sets a memory of what targets refuse, to share it (default: one of its own).
    pub fn with_memory(mut self, memory: Memory) -> Self {
        self.memory = Some(memory);
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

        let mut policy = policy(self.patches, self.backoff);
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
        if let Some(memory) = self.memory {
            builder = builder.with_memory(memory);
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

/// The oracle's policy: three attempts at 0.3, 0.2 and 0.1.
fn policy(patches: u32, backoff: Option<Backoff>) -> Policy {
    let mut policy = Policy::oracle();
    if patches > 0 {
        policy = policy.with_patching(Patching::Within(patches));
    }
    match backoff {
        Some(backoff) => policy.with_backoff(backoff),
        None => policy,
    }
}

/// One score, before it is begun.
#[must_use = "it does nothing until it is run"]
pub struct ScoreRequest<'o> {
    oracle: &'o Oracle,
    wallet: &'o Wallet,
    id: Option<String>,
    cancel: Option<CancellationToken>,
    observers: Vec<Arc<dyn Observer>>,
}

impl ScoreRequest<'_> {
    /// Sets its name in logs and ledgers (default: one is made up).
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets a handle that ends it from outside (default: none).
    pub fn with_cancel(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Adds an observer that is told about its run as it happens (default: none).
    pub fn with_observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Runs it. Dropping the future drops the open call at once, and then no observer of the oracle is told.
    ///
    /// # Errors
    /// As [`Oracle::score`].
    pub async fn run(self) -> Result<Scored, Error> {
        let Self { oracle, wallet, id, cancel, observers } = self;
        let shared = &*oracle.0;
        let started = shared.clock.now();
        let id = id.unwrap_or_else(|| made_up(started.0));
        let features = wallet.features();
        let hash = wallet.hash();
        let counts = Counts::from(&features);
        let input = Input::new([Message::user(user(&features.text()))])
            .with_data(counts.to_data())
            .with_seed(seed(&hash, &shared.prompt));
        let log = Log::new(&id, shared.max_attempts);
        let extraction = shared.extractor.extraction(input).with_observer(log.clone());
        let extraction =
            cancel.into_iter().fold(extraction, |extraction, token| extraction.with_cancel(token));
        let extraction =
            observers.into_iter().fold(extraction, |extraction, one| extraction.with_observer(one));
        let result = extraction.run().await;

        let latency = shared.clock.now().since(started);
        let mut event = ScoreEvent {
            request_id: id,
            wallet: wallet.address.clone().unwrap_or_else(|| format!("sha256:{}", short(&hash))),
            started,
            latency_ms: u64::try_from(latency.as_millis()).unwrap_or(u64::MAX),
            source: None,
            answer: None,
            error: None,
            expected: wallet.expected,
            counted: Some(fallback::score(&counts, &shared.check).score),
            copied: None,
            prompt: shared.prompt.clone(),
            model: String::new(),
            max_attempts: shared.max_attempts,
            attempts: Vec::new(),
            usage: Default::default(),
            cost: Cost::default(),
        };
        let failed = match result {
            Ok(Outcome { value, origin, attempts, usage, cost, .. }) => {
                (event.attempts, event.usage, event.cost) = (attempts, usage, cost);
                let source = match origin {
                    Origin::Model { .. } => ScoreSource::Ai,
                    Origin::Fallback => ScoreSource::Fallback,
                };
                match source {
                    ScoreSource::Ai => event.copied = shared.examples.copied_by(&value.reasoning),
                    ScoreSource::Fallback => event.error = Some(reason(&event, latency >= shared.deadline)),
                }
                (event.source, event.answer) = (Some(source), Some(value));
                None
            }
            Err(error) => {
                (event.attempts, event.usage) = (error.attempts().to_vec(), error.usage());
                event.cost =
                    event.attempts.iter().fold(Cost::default(), |sum, attempt| sum.plus(attempt.cost));
                event.error = Some(ScoreFailure { class: error.kind(), message: error.to_string() });
                Some(error)
            }
        };
        let last = event.attempts.last().map(|attempt| attempt.target.clone());
        event.model = log.model().or(last).unwrap_or_else(|| shared.target.clone());
        shared.observers.iter().for_each(|observer| observer.scored(&event));
        match (failed, event.source, event.answer.clone()) {
            (None, Some(source), Some(answer)) => Ok(Scored {
                answer,
                source,
                prompt: event.prompt.clone(),
                model: event.model.clone(),
                attempts: event.answers().map(|attempt| attempt.attempt).max().unwrap_or_default(),
                closed: event.closed().to_vec(),
                usage: event.usage,
                cost: event.cost,
                event: Box::new(event),
            }),
            (error, ..) => Err(error.unwrap_or_else(|| Error::new(ErrorKind::Rejected, "there is no score"))),
        }
    }
}

/// Why the score is the fallback's: what the last call came to, unless the time was up.
fn reason(event: &ScoreEvent, is_late: bool) -> ScoreFailure {
    if is_late {
        let message = "the deadline passed before an answer was accepted".to_owned();
        return ScoreFailure { class: ErrorKind::Deadline, message };
    }
    let Some(failure) = event.attempts.last().and_then(|attempt| attempt.verdict.failure()) else {
        let message = "the budget does not allow another call".to_owned();
        return ScoreFailure { class: ErrorKind::Budget, message };
    };
    let class = match failure {
        Failure::Refused { .. } => ErrorKind::Refused,
        Failure::Fault(fault) => match fault.kind {
            FaultKind::SchemaRefused => ErrorKind::Schema,
            FaultKind::BadRequest | FaultKind::Unsupported => ErrorKind::Config,
            _ => ErrorKind::Unavailable,
        },
        _ => ErrorKind::Rejected,
    };
    let message = match failure {
        Failure::Refused { reason } => reason.clone(),
        Failure::Fault(fault) => fault.to_string(),
        other => other.violations().first().map(|violation| violation.masked()).unwrap_or_default(),
    };
    ScoreFailure { class, message }
}

/// A name that no other score of this process has, and hardly one of another.
fn made_up(now: u64) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("score-{now:x}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

fn short(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}

impl fmt::Debug for Oracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { extractor, prompt, check, .. } = &*self.0;
        f.debug_struct("Oracle")
            .field("extractor", extractor)
            .field("prompt", prompt)
            .field("check", check)
            .finish_non_exhaustive()
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

impl fmt::Debug for ScoreRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScoreRequest")
            .field("oracle", &self.oracle)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
