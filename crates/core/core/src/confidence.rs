//! The confidence in each value of an outcome.

use std::collections::HashMap;

use formwork_evidence::{Evidence, LeafScore, merged_scores, scores};
use formwork_json::JsonPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::log_prob::Tokens;
use crate::run::Places;
use crate::{CallRecord, CallResult, History, Origin, Outcome, Trust};

/// The factor for a value that the model did not write as it stands: it was converted or finished, or is the fallback's.
const NOT_WRITTEN: f64 = 0.5;

/// The factor for a value that the model wrote after its first answer was wrong there, or in a text that is no JSON: it did write the
/// value, but less surely than one that was right at once.
const CORRECTED: f64 = 0.8;

/// The weight of the probability of a value's tokens: the share of the score that tokens of probability 0 take away.
const TOKENS: f64 = 0.5;

/// The confidence in a leaf of a value.
///
/// ```
/// use formwork_core::{Confidence, JsonPath};
///
/// let one = Confidence::new(JsonPath::root().key("total"), 0.4);
/// assert!(one.is_below(0.5) && one.probability.is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Confidence {
    /// The path of the leaf.
    pub path: JsonPath,
    /// The score, from 0 (doubtful) to 1. It orders leaves and is no probability.
    pub score: f64,
    /// The probability that the leaf is right, by a calibration; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// The probability of the tokens of the leaf: their product, and that of the first token at which another value could have begun;
    /// absent unless the provider returned log probabilities. A value of a patch has those of the patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<[f64; 2]>,
    /// The share of the score that the history of the leaf and the probabilities of its tokens leave, from 0 to 1; absent where it is 1.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub factor: f64,
    /// Whether the probability, or else the score, is below the limit of the caller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubtful: bool,
}

const fn whole() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_whole(factor: &f64) -> bool {
    factor.total_cmp(&1.0).is_eq()
}

impl Confidence {
    /// Creates the confidence in a leaf, without a probability and without a limit.
    pub const fn new(path: JsonPath, score: f64) -> Self {
        Self { path, score, probability: None, tokens: None, factor: 1.0, doubtful: false }
    }

    /// Returns whether the probability, or else the score, is below a limit.
    pub fn is_below(&self, limit: f64) -> bool {
        self.probability.unwrap_or(self.score) < limit
    }
}

impl<T: Serialize> Outcome<T> {
    /// Returns the confidence in each leaf of the value, as a score: from the [`evidence`](Self::evidence), the form and the history of the
    /// leaf, and the probabilities of its tokens if the provider returned them. No model is called. Without a text, leaves have the score 0.5 or less.
    /// It is a probability, too, if the contract has [calibrations](crate::Calibrations).
    ///
    /// ```
    /// use formwork_core::Outcome;
    /// use serde_json::Value;
    ///
    /// /// Returns the paths that a person should look at.
    /// fn doubtful(outcome: &Outcome<Value>) -> Vec<String> {
    ///     let all = outcome.confidence().into_iter();
    ///     all.filter(|it| it.is_below(0.5)).map(|it| it.path.to_string()).collect()
    /// }
    /// ```
    pub fn confidence(&self) -> Vec<Confidence> {
        self.confidence_beside(&[])
    }

    /// Returns the confidence in the most doubtful leaf, the first one of equals; `None` for a value without leaves.
    ///
    /// ```
    /// use formwork_core::Outcome;
    /// use serde_json::Value;
    ///
    /// fn is_for_a_person(outcome: &Outcome<Value>) -> bool {
    ///     outcome.least_sure().is_some_and(|it| it.is_below(0.5))
    /// }
    /// ```
    pub fn least_sure(&self) -> Option<Confidence> {
        self.confidence().into_iter().min_by(|one, other| one.score.total_cmp(&other.score))
    }

    /// Returns the confidence in each leaf of the value beside other answers to the same question: their agreement counts, too.
    ///
    /// ```
    /// use formwork_core::{Confidence, Outcome};
    /// use serde_json::Value;
    ///
    /// fn compared(outcome: &Outcome<Value>, second: &Outcome<Value>) -> Vec<Confidence> {
    ///     outcome.confidence_beside(&[&second.value])
    /// }
    /// ```
    pub fn confidence_beside(&self, others: &[&Value]) -> Vec<Confidence> {
        // Calls of other runs, such as that for a quote, did not write the value.
        let calls = self.calls.get(..self.calls.len().saturating_sub(self.absorbed)).unwrap_or_default();
        let leaves = scores(&self.json(), others, self.known_evidence(), self.about.schema());
        self.confidence_by(others, calls, leaves)
    }

    /// Returns the confidence in each leaf of a value that was merged from these answers, which are all of them. The log probabilities of
    /// the answers do not count, because no call wrote the value.
    ///
    /// ```
    /// use formwork_core::{Confidence, Outcome};
    /// use serde_json::Value;
    ///
    /// fn compared(merged: &Outcome<Value>, answers: &[&Value]) -> Vec<Confidence> {
    ///     merged.confidence_among(answers)
    /// }
    /// ```
    pub fn confidence_among(&self, answers: &[&Value]) -> Vec<Confidence> {
        let leaves = merged_scores(&self.json(), answers, self.known_evidence(), self.about.schema());
        self.confidence_by(answers, &[], leaves)
    }

    /// Returns the evidence; `None` for a value without any.
    fn known_evidence(&self) -> Option<&[Evidence]> {
        Some(self.evidence()).filter(|evidence| !evidence.is_empty())
    }

    /// Returns the confidence by the scores of the leaves; `calls` wrote them.
    fn confidence_by(
        &self,
        others: &[&Value],
        calls: &[CallRecord],
        leaves: Vec<LeafScore>,
    ) -> Vec<Confidence> {
        let (json, mut factors) = (self.json(), HashMap::new());
        let history = (&*self.provenance, &*self.warnings, &*self.not_stated, &*self.calls);
        Trust::each(&json, history, |path, history| {
            _ = match history {
                History::Coerced | History::Finished | History::Fallback => factors.insert(path, NOT_WRITTEN),
                History::Repaired | History::Patched | History::Narrowed => factors.insert(path, CORRECTED),
                History::Restrained | History::NotStated => None,
            };
        });
        let factor = |path: &JsonPath| match &self.about.factors {
            Some(stored) => stored.get(&path.to_string()).copied().unwrap_or(1.0),
            None => factors.get(path).copied().unwrap_or(1.0),
        };
        let mut tokens = tokens(calls, &json, leaves.iter().map(|leaf| &leaf.path)).into_iter();
        let of = |leaf: LeafScore| {
            let mut factor = factor(&leaf.path);
            let tokens = tokens.next().flatten().map(|Tokens { product, first }| {
                factor *= (1.0 - TOKENS) + TOKENS * (product * first).sqrt();
                [product, first]
            });
            Confidence { tokens, factor, ..Confidence::new(leaf.path, leaf.score * factor) }
        };
        let mut all: Vec<Confidence> = leaves.into_iter().map(of).collect();
        if let Origin::Model { target } = &self.origin
            && let Some(calibrations) = self.about.calibrations()
            && let Some(fitted) = calibrations.find(target, others.len(), self.known_evidence().is_some())
        {
            all.iter_mut().for_each(|it| it.probability = Some(fitted.probability(it.score)));
        }
        all
    }
}

/// Returns the probabilities of the tokens of leaves in the calls that wrote them: in the patches, and in the whole answer before them.
fn tokens<'p>(
    calls: &[CallRecord],
    value: &Value,
    leaves: impl Iterator<Item = &'p JsonPath>,
) -> Vec<Option<Tokens>> {
    let mut open: Vec<(usize, &JsonPath)> = leaves.enumerate().collect();
    let mut found = vec![None; open.len()];
    let accepted = calls.iter().rposition(|call| call.verdict == CallResult::Accepted);
    let calls = accepted.and_then(|last| calls.get(..=last)).unwrap_or_default();
    for call in calls.iter().rev().filter(|call| !call.text.is_empty()) {
        let places = Places::new(&call.patched, value);
        let (mut written, mut in_answer) = (Vec::new(), Vec::new());
        open.retain(|(leaf, path)| {
            let place = places.iter().find_map(|place| place.of_leaf(path));
            let place = place.or_else(|| call.patched.is_empty().then(|| (*path).clone()));
            let is_open = place.is_none();
            written.extend(place.is_some().then_some(*leaf));
            in_answer.extend(place);
            is_open
        });
        for (leaf, tokens) in written.into_iter().zip(call.log_probs.of_leaves(&call.text, &in_answer)) {
            if let Some(found) = found.get_mut(leaf) {
                *found = tokens;
            }
        }
    }
    found
}
