//! Events of finished scores, for metrics, ledgers and reports.

use formwork_core::{
    CallRecord, CallResult, Cost, ErrorKind, Failure, JsonPath, Stage, Time, Trust, Usage, is_compliant,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::standing::Standing;
use crate::wallet::Band;
use crate::{AiScore, CROSS_CHECK, PromptId, ScoreSource};

/// A finished score with its history: a line of the ledger.
///
/// It contains personal data: the wallet's address and the model's texts.
///
/// ```
/// use formwork_oracle::{Oracle, wallet::Wallet};
/// use formwork_testkit::Scripted;
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut policy = formwork_oracle::policy();
/// policy.attempts = 1;
/// let oracle = Oracle::builder().with_target(Arc::new(Scripted::new(["{}"]))).with_policy(policy).build()?;
/// let event = oracle.score(&Wallet::from_json(br#"{"transactions": []}"#)?).await?.event;
/// assert!(event.is_fallback() && !event.is_compliant() && !event.is_retried());
/// assert_eq!((event.answers().count(), event.rejections().count(), event.faults().count()), (1, 1, 0));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreEvent {
    /// The id of the request: the caller's, or a generated one.
    pub request_id: String,
    /// The wallet's address.
    pub wallet: String,
    /// The start of the score.
    pub started: Time,
    /// The duration in milliseconds, including backoff.
    pub latency_ms: u64,
    /// The source of the score; absent if there is no score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ScoreSource>,
    /// The answer with the score; absent if there is no score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AiScore>,
    /// The reason why there is no score, or why the fallback gave it; absent for a model's score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ScoreFailure>,
    /// The scores that a person would give, if the wallet states them, for evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Band>,
    /// The score of the fallback for the same wallet, also if a model gave the score: the baseline for models. Absent
    /// in ledgers of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<u16>,
    /// The result of a calibration for scores of this model with this prompt. Ledgers of older versions have none.
    #[serde(default)]
    pub calibration: Standing,
    /// The number, from 1, of the example whose reasoning the model's answer copies; absent if it copies none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied: Option<usize>,
    /// The history of the answer's leaves: how many the model wrote freely, and which it did not; absent without a score
    /// and in ledgers of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// The prompt.
    pub prompt: PromptId,
    /// The model that gave the score or was called last: its own name for itself, otherwise the configured
    /// model, otherwise the name of its provider.
    pub model: String,
    /// The maximum number of attempts.
    pub max_attempts: u32,
    /// Every call, in order. An attempt can have several calls.
    #[serde(alias = "attempts")]
    pub calls: Vec<CallRecord>,
    /// The tokens of all calls.
    pub usage: Usage,
    /// The cost of all calls.
    pub cost: Cost,
}

/// The reason why no model gave an acceptable score.
///
/// ```
/// use formwork_core::ErrorKind;
/// use formwork_oracle::{Oracle, ScoreFailure, wallet::Wallet};
/// use formwork_testkit::Scripted;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = std::sync::Arc::new(Scripted::new(["{}", "{}", "{}"]));
/// let scored = Oracle::builder().with_target(model).build()?.score(&Wallet::from_json(br#"{"transactions": []}"#)?).await?;
/// let failure: ScoreFailure = scored.event.error.unwrap();
/// assert_eq!(failure.class, ErrorKind::Rejected);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreFailure {
    /// The class of the error.
    pub class: ErrorKind,
    /// The message, in one line, without values of answers.
    pub message: String,
}

/// A rejected answer of a model, from [`ScoreEvent::rejections`].
///
/// ```
/// use formwork_oracle::{Oracle, wallet::Wallet};
/// use formwork_testkit::Scripted;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = std::sync::Arc::new(Scripted::new(["{}", "{}", "{}"]));
/// let scored = Oracle::builder().with_target(model).build()?.score(&Wallet::from_json(br#"{"transactions": []}"#)?).await?;
/// let rejection = scored.event.rejections().next().unwrap();
/// assert_eq!((rejection.call.attempt, rejection.reasons().len()), (1, 5));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rejection<'e> {
    /// The call.
    pub call: &'e CallRecord,
    /// The reason for the rejection.
    pub failure: &'e Failure,
}

impl Rejection<'_> {
    /// Returns the reasons as metrics count them: the class of the failure, and the path; `$` is the whole answer.
    pub fn reasons(&self) -> Vec<(&'static str, String)> {
        let class = self.failure.class();
        match self.failure.violations() {
            [] => vec![(class, JsonPath::root().to_string())],
            violations => violations.iter().map(|violation| (class, violation.place())).collect(),
        }
    }

    /// Returns the stage of validation that rejected the answer; `None` for a refusal.
    pub fn stage(&self) -> Option<Stage> {
        self.failure.violations().first().map(|violation| violation.stage)
    }
}

impl ScoreEvent {
    /// Returns the calls with an answer or a refusal, without failed calls.
    pub fn answers(&self) -> impl Iterator<Item = &CallRecord> {
        self.calls.iter().filter(|call| match &call.verdict {
            CallResult::Accepted => true,
            CallResult::Failed { failure } => !matches!(failure, Failure::Fault(_)),
            CallResult::Cancelled | CallResult::Probe => false,
        })
    }

    /// Returns the rejected answers in order, including the last one before a fallback.
    pub fn rejections(&self) -> impl Iterator<Item = Rejection<'_>> {
        self.answers().filter_map(|call| Some(Rejection { call, failure: call.verdict.failure()? }))
    }

    /// Returns the failed calls, in order.
    pub fn faults(&self) -> impl Iterator<Item = (&CallRecord, &formwork_core::Fault)> {
        self.calls.iter().filter_map(|call| match call.verdict.failure()? {
            Failure::Fault(fault) => Some((call, fault)),
            _ => None,
        })
    }

    /// Returns whether the first answer was accepted as the model wrote it, complete, without any edit and not
    /// restrained: the "schema compliance" of the specification. See [`is_compliant`].
    pub fn is_compliant(&self) -> bool {
        is_compliant(&self.calls)
    }

    /// Returns the paths of values that the token limit truncated in the accepted answer. Such an answer counts as a
    /// score, because the specification limits the calls, but not as compliant.
    pub fn closed(&self) -> &[JsonPath] {
        let accepted = self.calls.iter().rfind(|call| call.verdict == CallResult::Accepted);
        accepted.map(|call| call.closed.as_slice()).unwrap_or_default()
    }

    /// Returns whether a model's answer was requested again because of its content.
    pub fn is_retried(&self) -> bool {
        self.answers().any(|call| call.attempt > 1 || !call.patched.is_empty())
    }

    /// Returns whether the fallback gave the score.
    pub fn is_fallback(&self) -> bool {
        self.source == Some(ScoreSource::Fallback)
    }

    /// Returns the number of answers that passed the cross-check and the number that failed it. Only answers that
    /// satisfy the schema reach it.
    pub fn cross_checks(&self) -> CrossChecks {
        let is_crossed = |found: &Rejection<'_>| {
            found.failure.violations().iter().any(|violation| violation.rule == CROSS_CHECK)
        };
        let failed = self.rejections().filter(is_crossed).count();
        let passed = self.answers().filter(|call| call.verdict == CallResult::Accepted).count();
        CrossChecks { passed: passed as u64, failed: failed as u64 }
    }

    /// Returns what is known about the worth of a model's score, with the fallback's score as the baseline: `not calibrated;
    /// fallback=610`. For a score of the fallback it is `fallback`.
    pub fn evidence(&self) -> String {
        let baseline = self.counted.map(|counted| format!("; fallback={counted}")).unwrap_or_default();
        match self.source {
            Some(ScoreSource::Ai) => format!("{}{baseline}", self.calibration),
            _ => "fallback".to_owned(),
        }
    }

    /// Returns how many times a target rejected an output mode, and the next weaker one was used.
    pub fn step_downs(&self) -> usize {
        self.calls.iter().filter(|call| call.observation.is_some()).count()
    }
}

/// The numbers of answers that reached the cross-check.
///
/// ```
/// use formwork_oracle::CrossChecks;
///
/// let checks = CrossChecks { passed: 3, failed: 1 };
/// assert_eq!(checks.passed + checks.failed, 4);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CrossChecks {
    /// The number of answers that passed.
    pub passed: u64,
    /// The number of answers that failed.
    pub failed: u64,
}

/// Observes finished scores. [`Metrics`](crate::metrics::Metrics) and [`Ledger`](crate::ledger::Ledger) are observers,
/// and so is every closure over a [`ScoreEvent`].
///
/// The oracle calls it before it returns the score, so an observer must not block for long. Panics propagate to the
/// caller.
///
/// ```
/// use formwork_oracle::{Oracle, ScoreEvent};
/// use formwork_testkit::Scripted;
///
/// let model = std::sync::Arc::new(Scripted::new(["{}"]));
/// let log = |event: &ScoreEvent| println!("{}: {} ms", event.request_id, event.latency_ms);
/// let oracle = Oracle::builder().with_target(model).with_observer(log).build()?;
/// # Ok::<(), formwork_core::Error>(())
/// ```
pub trait ScoreObserver: Send + Sync {
    /// Receives the event of a finished score, with or without an answer.
    fn scored(&self, event: &ScoreEvent);
}

impl<F: Fn(&ScoreEvent) + Send + Sync> ScoreObserver for F {
    fn scored(&self, event: &ScoreEvent) {
        self(event);
    }
}
