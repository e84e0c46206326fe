use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use formwork_core::{
    CallRecord, Clock, Error, ErrorKind, Failure, FaultKind, Input, Message, Origin, Outcome,
};
use formwork_extract::{CancellationToken, Extractor, Observer};

use crate::calibration::Calibrations;
use crate::fallback::{self, Counts};
use crate::log::Log;
use crate::seed::seed;
use crate::wallet::Wallet;
use crate::{
    AiScore, CrossCheck, Examples, Prompt, PromptId, ScoreEvent, ScoreFailure, ScoreObserver, ScoreSource,
    Scored,
};

/// Scores wallets. One oracle serves any number of wallets and tasks; clones share everything.
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
pub struct Oracle(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) extractor: Extractor<AiScore>,
    pub(crate) prompt: PromptId,
    pub(crate) text: Prompt,
    pub(crate) check: CrossCheck,
    pub(crate) examples: Examples,
    pub(crate) calibrations: Calibrations,
    /// The configured models by the names of their targets.
    pub(crate) models: HashMap<String, String>,
    pub(crate) max_attempts: u32,
    pub(crate) deadline: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observers: Vec<Arc<dyn ScoreObserver>>,
    pub(crate) target: String,
}

impl Oracle {
    /// Scores a wallet.
    ///
    /// # Errors
    /// [`Error`] with every call, if the fallback is disabled; otherwise only if the score was cancelled.
    pub async fn score(&self, wallet: &Wallet) -> Result<Scored, Error> {
        self.request(wallet).run().await
    }

    /// Returns a request that has not started, to set its id, cancellation token or observer.
    pub fn request<'o>(&'o self, wallet: &'o Wallet) -> ScoreRequest<'o> {
        ScoreRequest { oracle: self, wallet, id: None, cancel: None, observers: Vec::new() }
    }

    /// Returns the id of the prompt.
    pub fn prompt(&self) -> &PromptId {
        &self.0.prompt
    }

    /// Returns the maximum number of whole answers, over all targets.
    pub fn max_attempts(&self) -> u32 {
        self.0.max_attempts
    }

    /// Returns the time limit of a score, including backoff.
    pub fn deadline(&self) -> Duration {
        self.0.deadline
    }
}

/// A score that has not started.
///
/// ```
/// use formwork_oracle::{Oracle, wallet::Wallet};
/// use formwork_testkit::Scripted;
/// use formwork_extract::CancellationToken;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let oracle = Oracle::builder().with_target(std::sync::Arc::new(Scripted::new(["{}"]))).build()?;
/// let (wallet, cancel) = (Wallet::from_json(br#"{"transactions": []}"#)?, CancellationToken::new());
/// cancel.cancel();
/// assert!(oracle.request(&wallet).with_id("job-7").with_cancel(cancel).run().await.is_err());
/// # Ok(()) }
/// ```
#[must_use = "it does nothing until it is run"]
pub struct ScoreRequest<'o> {
    oracle: &'o Oracle,
    wallet: &'o Wallet,
    id: Option<String>,
    cancel: Option<CancellationToken>,
    observers: Vec<Arc<dyn Observer>>,
}

impl ScoreRequest<'_> {
    formwork_core::setters! {
        /// Sets the id of the request in logs and ledgers (default: a generated one).
        pub fn with_id(Some(id): impl Into<String>);
        /// Sets a token that cancels the score (default: none).
        pub fn with_cancel(Some(cancel): CancellationToken);
    }

    /// Adds an observer of the run of this score (default: none).
    pub fn with_observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Runs the request. Dropping the future drops the open call at once, and no observer of the oracle is notified.
    ///
    /// # Errors
    /// The errors of [`Oracle::score`].
    pub async fn run(self) -> Result<Scored, Error> {
        let Self { oracle, wallet, id, cancel, observers } = self;
        let shared = &*oracle.0;
        let started = shared.clock.now();
        let id = id.unwrap_or_else(|| made_up(started.0));
        let features = wallet.features();
        let hash = wallet.hash();
        let counts = Counts::from(&features);
        let input = Input::new([Message::user(shared.text.user(&features.text()))])
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
        let (result, trust, calls, usage, cost) = match result {
            Ok(Outcome { value, origin, trust, calls, usage, cost, .. }) => {
                (Ok((value, origin)), Some(trust), calls, usage, cost)
            }
            Err(error) => {
                let (calls, usage, cost) = (error.calls().to_vec(), error.usage(), error.cost());
                (Err(error), None, calls, usage, cost)
            }
        };
        let (source, copied, error) = match &result {
            Ok((answer, Origin::Model { .. })) => {
                (Some(ScoreSource::Ai), shared.examples.copied_by(&answer.reasoning), None)
            }
            Ok((_, Origin::Fallback)) => {
                (Some(ScoreSource::Fallback), None, Some(reason(&calls, latency >= shared.deadline)))
            }
            Err(error) => {
                (None, None, Some(ScoreFailure { class: error.kind(), message: error.to_string() }))
            }
        };
        let target = calls.last().map_or(&shared.target, |call| &call.target);
        let model = log.model().unwrap_or_else(|| shared.models.get(target).unwrap_or(target).clone());
        let event = ScoreEvent {
            request_id: id,
            wallet: wallet.address.clone().unwrap_or_else(|| format!("sha256:{}", short(&hash))),
            started,
            latency_ms: u64::try_from(latency.as_millis()).unwrap_or(u64::MAX),
            source,
            answer: result.as_ref().ok().map(|(answer, _)| answer.clone()),
            error,
            expected: wallet.expected,
            counted: Some(fallback::score(&counts, &shared.check).score),
            calibration: shared.calibrations.standing(&model, &shared.prompt),
            copied,
            trust,
            prompt: shared.prompt.clone(),
            model,
            max_attempts: shared.max_attempts,
            calls,
            usage,
            cost,
        };
        shared.observers.iter().for_each(|observer| observer.scored(&event));
        let (answer, origin) = result?;
        Ok(Scored {
            answer,
            source: if origin == Origin::Fallback { ScoreSource::Fallback } else { ScoreSource::Ai },
            prompt: event.prompt.clone(),
            model: event.model.clone(),
            attempts: event.answers().map(|call| call.attempt).max().unwrap_or_default(),
            closed: event.closed().to_vec(),
            usage: event.usage,
            cost: event.cost,
            event: Box::new(event),
        })
    }
}

/// Returns the reason for the fallback: the error of the last call, unless the deadline passed.
fn reason(calls: &[CallRecord], is_late: bool) -> ScoreFailure {
    if is_late {
        let message = "the deadline passed before an answer was accepted".to_owned();
        return ScoreFailure { class: ErrorKind::Deadline, message };
    }
    let Some(failure) = calls.last().and_then(|call| call.verdict.failure()) else {
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

/// Returns an id that is unique in this process and most likely unique among processes.
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

formwork_core::debug_fields!(ScoreRequest<'o> { oracle, id });
