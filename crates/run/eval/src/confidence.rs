//! The confidence in each value of an outcome.

use std::collections::HashMap;

use formwork_core::{History, Outcome};
use formwork_json::JsonPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Calibration, scores};

/// The factor for a value that the model did not write as it stands: it was converted or finished, or is the fallback's.
const NOT_WRITTEN: f64 = 0.5;

/// The confidence in a leaf of a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confidence {
    /// The path of the leaf.
    pub path: JsonPath,
    /// The score, from 0 (doubtful) to 1. It orders leaves and is no probability.
    pub score: f64,
    /// The probability that the leaf is right, by a calibration; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Whether the probability, or else the score, is below the limit of the caller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubtful: bool,
}

/// Returns the confidence in each leaf of an outcome: from the evidence in its text, the agreement with other answers to the same question,
/// and the history of the leaf. Leaves below `flag_below` are doubtful. No model is called.
///
/// ```
/// use formwork_core::Outcome;
/// use formwork_eval::confidence;
/// use serde_json::Value;
///
/// /// Returns the paths that a person should look at.
/// fn doubtful(outcome: &Outcome<Value>) -> Vec<String> {
///     let all = confidence(outcome, &[], None, None, Some(0.5)).into_iter();
///     all.filter(|it| it.doubtful).map(|it| it.path.to_string()).collect()
/// }
/// ```
pub fn confidence(
    outcome: &Outcome<Value>,
    others: &[&Value],
    schema: Option<&Value>,
    calibration: Option<&Calibration>,
    flag_below: Option<f64>,
) -> Vec<Confidence> {
    let trust = &outcome.trust;
    let not_written = [History::Coerced, History::Finished, History::Fallback];
    let not_written: HashMap<&JsonPath, f64> = not_written
        .iter()
        .filter_map(|history| trust.other.get(history))
        .flat_map(|leaves| leaves.paths.iter().map(|path| (path, NOT_WRITTEN)))
        .collect();
    let evidence = Some(outcome.evidence()).filter(|evidence| !evidence.is_empty());
    let of = |leaf: crate::LeafScore| {
        let score = leaf.score * not_written.get(&leaf.path).copied().unwrap_or(1.0);
        let probability = calibration.map(|calibration| calibration.probability(score));
        let doubtful = flag_below.is_some_and(|limit| probability.unwrap_or(score) < limit);
        Confidence { path: leaf.path, score, probability, doubtful }
    };
    scores(&outcome.value, others, evidence, schema).into_iter().map(of).collect()
}
