//! The events of scores: for metrics, ledgers and reports.

use formwork_core::{Attempt, Cost, ErrorKind, Failure, JsonPath, Stage, Time, Usage, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wallet::Band;
use crate::{AiScore, CROSS_CHECK, PromptId, ScoreSource};

/// Everything that is known of one score when it is done: a row of the ledger.
///
/// It holds the user's data (the wallet's address, the model's texts).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreEvent {
    /// The caller's name for it, or one that the oracle made up.
    pub request_id: String,
    /// The wallet's address.
    pub wallet: String,
    /// When it began.
    pub started: Time,
    /// How long it took, waits between calls included.
    pub latency_ms: u64,
    /// Where the score comes from; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ScoreSource>,
    /// The score; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AiScore>,
    /// Why there is no score, or why it is the fallback's; absent where a model gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ScoreFailure>,
    /// The scores that a person would find right, where the wallet says so: for evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Band>,
    /// The score that the fallback gives the same wallet, also where a model gave one: what a model has to be better than.
    /// Absent in ledgers of versions that did not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<u16>,
    /// The number, from 1, of the example whose reasoning a model's answer repeats word for word; absent if it repeats none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied: Option<usize>,
    /// The prompt that was used.
    pub prompt: PromptId,
    /// The model that gave the score, or was asked last: as it calls itself, else the name of its provider.
    pub model: String,
    /// How many attempts there could have been.
    pub max_attempts: u32,
    /// Every call, in order. Several calls may belong to one attempt.
    pub attempts: Vec<Attempt>,
    /// The tokens that all calls together used up.
    pub usage: Usage,
    /// The cost of those.
    pub cost: Cost,
}

/// Why no model gave an acceptable score.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreFailure {
    /// The class.
    pub class: ErrorKind,
    /// In one line, without values of the answers.
    pub message: String,
}

/// The rejection of a model's content by one call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rejection<'e> {
    /// The call.
    pub attempt: &'e Attempt,
    /// Why its answer was not accepted.
    pub failure: &'e Failure,
}

impl Rejection<'_> {
    /// The reasons as metrics count them: the class of the failure, and the path; `$` where the whole answer is meant.
    pub fn reasons(&self) -> Vec<(&'static str, String)> {
        let class = self.failure.class();
        match self.failure.violations() {
            [] => vec![(class, JsonPath::root().to_string())],
            violations => violations.iter().map(|violation| (class, violation.place())).collect(),
        }
    }

    /// The examination that rejected it first; none for a refusal.
    pub fn stage(&self) -> Option<Stage> {
        self.failure.violations().first().map(|violation| violation.stage)
    }
}

impl ScoreEvent {
    /// Calls that brought an answer, or a refusal: those that failed on the way are not among them.
    pub fn answers(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(|attempt| match &attempt.verdict {
            Verdict::Accepted => true,
            Verdict::Failed { failure } => !matches!(failure, Failure::Fault(_)),
            Verdict::Cancelled => false,
        })
    }

    /// Answers that were not accepted, in order; the last before a fallback too.
    pub fn rejections(&self) -> impl Iterator<Item = Rejection<'_>> {
        self.answers().filter_map(|attempt| Some(Rejection { attempt, failure: attempt.verdict.failure()? }))
    }

    /// Calls that brought no answer, in order.
    pub fn faults(&self) -> impl Iterator<Item = (&Attempt, &formwork_core::Fault)> {
        self.attempts.iter().filter_map(|attempt| match attempt.verdict.failure()? {
            Failure::Fault(fault) => Some((attempt, fault)),
            _ => None,
        })
    }

    /// Returns whether the first answer was accepted as it stood, complete and without any edit: what "schema compliance"
    /// counts.
    pub fn is_compliant(&self) -> bool {
        self.answers().next().is_some_and(|first| {
            first.verdict == Verdict::Accepted && first.edits.is_empty() && first.closed.is_empty()
        })
    }

    /// Returns the paths of the values that the limit of tokens cut in the answer that was accepted. Such an answer is a
    /// score, because the oracle's specification counts attempts; it is no compliant one.
    pub fn closed(&self) -> &[JsonPath] {
        let accepted = self.attempts.iter().rfind(|attempt| attempt.verdict == Verdict::Accepted);
        accepted.map(|attempt| attempt.closed.as_slice()).unwrap_or_default()
    }

    /// Whether the model had to be asked again because of its content.
    pub fn is_retried(&self) -> bool {
        self.answers().any(|attempt| attempt.attempt > 1 || !attempt.patched.is_empty())
    }

    /// Whether the score is the fallback's.
    pub fn is_fallback(&self) -> bool {
        self.source == Some(ScoreSource::Fallback)
    }

    /// How many answers satisfied the schema and went on to the cross-check, and how many of those passed it.
    pub fn cross_checks(&self) -> CrossChecks {
        let failed = self
            .rejections()
            .filter(|rejection| {
                rejection.failure.violations().iter().any(|violation| violation.rule == CROSS_CHECK)
            })
            .count();
        let passed = self.answers().filter(|attempt| attempt.verdict == Verdict::Accepted).count();
        CrossChecks { passed: passed as u64, failed: failed as u64 }
    }

    /// How often a way of asking was refused, and the next weaker one taken.
    pub fn step_downs(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.observation.is_some()).count()
    }
}

/// Answers that came as far as the cross-check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CrossChecks {
    /// The answers that passed it.
    pub passed: u64,
    /// The answers that did not.
    pub failed: u64,
}

/// Is told about every score when it is done.
///
/// It is called from where the score is awaited, so it must not block for long. A panic of its own goes to the caller.
pub trait ScoreObserver: Send + Sync {
    /// A score is there, or there is none.
    fn scored(&self, event: &ScoreEvent);
}

impl<F: Fn(&ScoreEvent) + Send + Sync> ScoreObserver for F {
    fn scored(&self, event: &ScoreEvent) {
        self(event);
    }
}
