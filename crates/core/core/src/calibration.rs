//! From the scores of leaves to probabilities.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The probability that a leaf with a score is right, fitted on gold; `formwork_eval::calibrate` fits it.
///
/// ```
/// use formwork_core::Calibration;
///
/// let calibration = Calibration {
///     configuration: "small".into(),
///     models: vec![],
///     others: 0,
///     evidence: true,
///     documents: 40,
///     leaves: 500,
///     error: 0.03,
///     points: vec![[0.25, 0.5], [0.75, 1.0]],
/// };
/// assert_eq!([0.1, 0.5, 0.9].map(|score| calibration.probability(score)), [0.5, 0.75, 1.0]);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The name of the configuration whose answers it is fitted on.
    pub configuration: String,
    /// The models that gave its answers, without repetition; empty if they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The number of other answers with which each answer was compared.
    pub others: usize,
    /// Whether the scores include the evidence in the input.
    pub evidence: bool,
    /// The number of documents.
    pub documents: usize,
    /// The number of leaves.
    pub leaves: usize,
    /// The mean difference between probability and share of right leaves, in 10 bins of equal width. It is measured on documents on which
    /// the probabilities were not fitted: each half of the documents on the other half.
    pub error: f64,
    /// Scores in ascending order, each with its probability. Between two scores, probabilities are interpolated.
    pub points: Vec<[f64; 2]>,
}

impl Calibration {
    /// Returns the probability that a leaf with this score is right; 0.5 without points.
    pub fn probability(&self, score: f64) -> f64 {
        let after = self.points.partition_point(|point| point[0] < score);
        let before = after.checked_sub(1).and_then(|before| self.points.get(before));
        match (before, self.points.get(after)) {
            (Some(before), Some(after)) => {
                let share = (score - before[0]) / (after[0] - before[0]);
                before[1] + share * (after[1] - before[1])
            }
            (Some(only), None) | (None, Some(only)) => only[1],
            (None, None) => 0.5,
        }
    }
}

/// The calibrations of several configurations: a file of `formwork eval --calibrate`.
///
/// A [contract](crate::Contract::with_calibrations) has them, and so has every outcome of its runs. [`Outcome::confidence`](crate::Outcome::confidence) then
/// has probabilities wherever it is read, if a calibration fits: that of the [named](Self::named) configuration, or else that of the target
/// that gave the answer, for as many other answers as the answer is compared with. Without one that fits, there are scores alone.
///
/// ```
/// use formwork_core::Calibrations;
///
/// let file = r#"{"calibrations": [{"configuration": "small", "others": 0, "evidence": true, "documents": 40, "leaves": 500,
///                "error": 0.03, "points": [[0.25, 0.5], [0.75, 1.0]]}]}"#;
/// let calibrations: Calibrations = serde_json::from_str(file)?;
/// assert!(calibrations.find("small", 0, true).is_some() && calibrations.find("large", 0, true).is_none());
/// assert!(calibrations.named("small").find("a target of it", 0, true).is_some());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibrations {
    calibrations: Vec<Calibration>,
    #[serde(skip)]
    configuration: Option<String>,
}

impl Calibrations {
    /// Creates the calibrations of a file.
    pub const fn new(calibrations: Vec<Calibration>) -> Self {
        Self { calibrations, configuration: None }
    }

    /// Sets the name of the configuration whose answers are read, as `formwork eval` names it (default: that of the target that gave the
    /// answer).
    #[must_use]
    pub fn named(self, configuration: impl Into<String>) -> Self {
        Self { configuration: Some(configuration.into()), ..self }
    }

    /// Returns the calibration for answers of a target, each compared with a number of other answers, with or without evidence in the
    /// input.
    pub fn find(&self, target: &str, others: usize, evidence: bool) -> Option<&Calibration> {
        let of = |name: &str| {
            let is_like = |one: &&Calibration| (one.others, one.evidence) == (others, evidence);
            self.calibrations.iter().filter(is_like).find(|one| one.configuration == name)
        };
        self.configuration.as_deref().and_then(of).or_else(|| of(target))
    }

    /// Returns all calibrations.
    pub const fn all(&self) -> &[Calibration] {
        self.calibrations.as_slice()
    }
}
