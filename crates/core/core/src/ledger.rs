use std::sync::Arc;

use formwork_json::{Edit, JsonPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::log_prob::LogProbs;
use crate::{Cost, Enforcement, Fault, Finish, Observation, Original, Sampling, Time, Usage, Violation};

/// The reason why a call did not bring an acceptable answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "class", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Failure {
    /// The text is not JSON.
    NotJson {
        /// The syntax error, as one violation of the rule `json`.
        violations: Vec<Violation>,
    },
    /// The document violates the contract.
    Invalid {
        /// All violations, up to [`Report::CAP`](crate::Report::CAP).
        violations: Vec<Violation>,
        /// The number of violations beyond it.
        #[serde(default, skip_serializing_if = "is_zero")]
        left_out: usize,
    },
    /// The token limit cut the answer off.
    Truncated {
        /// The values that are incomplete, as violations.
        violations: Vec<Violation>,
        /// The number of violations beyond [`Report::CAP`](crate::Report::CAP).
        #[serde(default, skip_serializing_if = "is_zero")]
        left_out: usize,
    },
    /// The driver stopped the answer, because it ran away or could no longer become valid.
    Stopped {
        /// The reason, as one violation.
        violations: Vec<Violation>,
    },
    /// The model declined to answer, or a filter removed the answer.
    Refused {
        /// The model's text, cut at 500 bytes.
        reason: String,
    },
    /// The call failed: there is no answer.
    Fault(Fault),
}

impl Failure {
    /// Returns the violations of the answer; none for refusals and faults.
    ///
    /// ```
    /// use formwork_core::{Failure, Fault, FaultKind, Stage, Violation};
    ///
    /// let violations = vec![Violation::new("$.age".parse()?, "required", Stage::Schema)];
    /// let failure = Failure::Invalid { violations: violations.clone(), left_out: 2 };
    /// assert_eq!((failure.violations(), failure.class()), (&violations[..], "invalid"));
    /// assert_eq!(failure.total(), 3);
    /// assert!(Failure::Fault(Fault::new(FaultKind::Timeout, "no response in 30 s")).violations().is_empty());
    /// # Ok::<(), formwork_core::PathError>(())
    /// ```
    pub fn violations(&self) -> &[Violation] {
        match self {
            Self::NotJson { violations }
            | Self::Invalid { violations, .. }
            | Self::Truncated { violations, .. }
            | Self::Stopped { violations } => violations,
            Self::Refused { .. } | Self::Fault(_) => &[],
        }
    }

    /// Returns the number of violations of the answer, including those that are left out.
    pub fn total(&self) -> usize {
        self.violations().len() + self.left_out()
    }

    /// Returns the number of violations that are left out because there are too many.
    pub const fn left_out(&self) -> usize {
        match self {
            Self::Invalid { left_out, .. } | Self::Truncated { left_out, .. } => *left_out,
            _ => 0,
        }
    }

    /// Returns the class as it is written in metrics and JSON: `not_json`, `invalid`, `truncated`, `stopped`, `refused` or
    /// `fault`.
    pub const fn class(&self) -> &'static str {
        match self {
            Self::NotJson { .. } => "not_json",
            Self::Invalid { .. } => "invalid",
            Self::Truncated { .. } => "truncated",
            Self::Stopped { .. } => "stopped",
            Self::Refused { .. } => "refused",
            Self::Fault(_) => "fault",
        }
    }
}

/// Returns whether there is nothing to write. serde passes a reference.
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum CallResult {
    /// The answer was accepted.
    Accepted,
    /// The answer was not accepted, or the call failed.
    Failed {
        /// The reason.
        failure: Failure,
    },
    /// The run was cancelled during the call.
    Cancelled,
    /// The calls before a call probed the server or requested a part of the document, and were not asked for an answer.
    Probe,
}

impl CallResult {
    /// Returns the reason why the call brought no acceptable answer; `None` if its answer was accepted, the run was
    /// cancelled, or the call was a probe.
    ///
    /// ```
    /// use formwork_core::{Failure, CallResult};
    ///
    /// let refused = Failure::Refused { reason: "I cannot help with that.".to_owned() };
    /// assert_eq!(CallResult::Failed { failure: refused.clone() }.failure(), Some(&refused));
    /// assert_eq!(CallResult::Accepted.failure(), None);
    /// ```
    pub const fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed { failure } => Some(failure),
            Self::Accepted | Self::Cancelled | Self::Probe => None,
        }
    }
}

/// One call in the ledger of a run: its parameters, its answer and its cost. Every call has an entry, whether it succeeded
/// or failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CallRecord {
    /// The number of the attempt that this call belongs to, from 1. Retries of a failed call and patches within the attempt
    /// have the same number.
    pub attempt: u32,
    /// The target's name.
    pub target: String,
    /// The dialect of the schema that was sent.
    pub dialect: String,
    /// The enforcement of the schema in this call.
    pub enforcement: Enforcement,
    /// The paths of the requested values; empty if the whole document was requested.
    pub patched: Vec<JsonPath>,
    /// The sampling parameters that were sent.
    pub sampling: Sampling,
    /// The sampling parameters of the policy that the target does not support, and that were not sent.
    pub skipped: Vec<String>,
    /// The time at which the call began.
    pub started: Time,
    /// The time at which the call ended.
    pub ended: Time,
    /// The text of the answer; empty if there is none.
    pub text: Arc<str>,
    /// The log probabilities of its tokens, which are not stored.
    #[serde(skip)]
    pub(crate) log_probs: LogProbs,
    /// The model's turn with tool calls in the API's own form, if the API requires it back with the results of the calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Box<Original>>,
    /// Remarks on this call, one sentence each: a weaker mode than configured, a part of the answer that was not used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The model that answered, as the server names it; absent if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The reason why the model stopped; `None` if there is no answer.
    pub finish: Option<Finish>,
    /// The repairs that reading the text took.
    pub edits: Vec<Edit>,
    /// The paths of incomplete values, because the token limit ended the answer and the provider closed the document; see
    /// [`Source::Closed`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<JsonPath>,
    /// Whether the provider ended values that the schema allows to go on; see
    /// [`Completion::restrained`](crate::Completion::restrained).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restrained: bool,
    /// The tokens of the call.
    pub usage: Usage,
    /// The cost of the call.
    pub cost: Cost,
    /// The result of the call.
    pub verdict: CallResult,
    /// The observation about the target that this call led to, if any: that it refuses the schema, or ignores it. Boxed
    /// because it is rare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<Box<Observation>>,
}

/// Returns whether the first completion of a run was accepted as the model wrote it: complete, without a repair, and without
/// values that the provider ended or capped. This is the compliance of all reports. A run without a completion does not
/// comply.
///
/// A schema that the server enforces restrains nothing: it excludes invalid answers only.
///
/// ```
/// assert!(!formwork_core::is_compliant(&[]));
/// ```
pub fn is_compliant(calls: &[CallRecord]) -> bool {
    let is_completion = |call: &&CallRecord| match &call.verdict {
        CallResult::Accepted => true,
        CallResult::Cancelled | CallResult::Probe => false,
        CallResult::Failed { failure } => !matches!(failure, Failure::Fault(_)),
    };
    calls.iter().find(is_completion).is_some_and(|first| {
        first.verdict == CallResult::Accepted
            && first.edits.is_empty()
            && first.closed.is_empty()
            && !first.restrained
    })
}

/// Returns whether one of the calls brought an answer, valid or not.
///
/// `late` means that the deadline ended the run. An answer that the deadline cut off does not count, because it is chance
/// whether its first token came in time.
///
/// ```
/// assert!(!formwork_core::is_answered(&[], false));
/// ```
pub fn is_answered(calls: &[CallRecord], late: bool) -> bool {
    let is_cut_off = |last: &CallRecord| matches!(last.verdict.failure(), Some(Failure::Truncated { .. }));
    let whole = match calls.split_last() {
        Some((last, before)) if late && is_cut_off(last) => before,
        _ => calls,
    };
    whole.iter().any(|call| match &call.verdict {
        CallResult::Accepted => true,
        CallResult::Cancelled | CallResult::Probe => false,
        CallResult::Failed { failure } => !matches!(failure, Failure::Fault(_)),
    })
}

/// The origin of an accepted value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// The answer of a model.
    Model {
        /// The target's name.
        target: String,
    },
    /// The driver's fallback.
    Fallback,
}

/// The way in which one part of an accepted value was obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// The model wrote it.
    Native,
    /// The model wrote it, and the text was repaired to read it.
    Repaired,
    /// A patch replaced it: the model was asked for this value alone.
    Patched,
    /// A patch replaced it, with a schema narrowed to the range that a rule allows.
    Narrowed,
    /// The token limit ended the answer before this value was complete: the model was cut off in it, or wrote nothing of
    /// it. Members may be missing from an object or a list that is marked so; the members that are present are complete
    /// unless marked themselves. Accepted only where the policy allows it; see
    /// [`RetryPolicy::accepts_incomplete`](crate::RetryPolicy::accepts_incomplete).
    Closed,
    /// The fallback supplied it.
    Fallback,
}

/// The source of the value at one path, and of everything inside it that has no entry with a longer path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// The path of the value.
    pub path: JsonPath,
    /// The way in which it was obtained.
    pub source: Source,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

/// Returns whether the provider ended values of the accepted answer early.
pub(crate) fn is_restrained(calls: &[CallRecord]) -> bool {
    calls.iter().any(|call| call.restrained && call.verdict == CallResult::Accepted)
}
