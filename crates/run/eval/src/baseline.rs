//! The comparison of two configurations on the same documents.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Rows;
use crate::statistics::{interval, ratios};

/// The comparison of an evaluation with an earlier one, document by document.
///
/// ```
/// use formwork_eval::{Baseline, RowScore, Rows};
///
/// let scores = |scores: [f64; 3]| -> Rows {
///     scores.iter().enumerate().map(|(id, score)| RowScore { id: id.into(), score: *score }).collect()
/// };
/// let baseline = Baseline::new(&scores([0.5, 0.5, 1.0]), &scores([0.8, 0.7, 1.0]), 1).unwrap();
/// assert_eq!((baseline.better, baseline.worse, baseline.equal), (2, 0, 1));
/// assert!(baseline.difference > 0.16 && !baseline.is_worse());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    /// The mean score of the baseline on the common documents.
    pub score: f64,
    /// The mean difference: positive if this evaluation is better.
    pub difference: f64,
    /// The 95 % interval of the difference, by resampling documents.
    pub interval: [f64; 2],
    /// The share of the resamples in which this evaluation is better; a resample without a difference counts half.
    pub probability_better: f64,
    /// The number of documents with a higher score than in the baseline.
    pub better: usize,
    /// The number of documents with a lower score than in the baseline.
    pub worse: usize,
    /// The number of documents with the same score.
    pub equal: usize,
    /// The number of documents that only one of the two has. They are not compared.
    pub not_compared: usize,
}

impl Baseline {
    /// Compares the scores of a baseline with later ones; `None` if they have no document in common. Of documents
    /// with the same id, one is compared. `seed` determines the resamples.
    pub fn new(baseline: &Rows, rows: &Rows, seed: u64) -> Option<Self> {
        let mut known: HashMap<&str, f64> = baseline.texts().collect();
        let pairs: Vec<(f64, f64)> =
            rows.texts().filter_map(|(id, score)| Some((known.remove(id)?, score))).collect();
        let differences: Vec<f64> = pairs.iter().map(|(before, now)| now - before).collect();
        let count = pairs.len() as f64;
        let resampled =
            ratios(&differences.iter().map(|difference| [*difference, 1.0]).collect::<Vec<_>>(), seed);
        let above = resampled.iter().filter(|difference| **difference > 0.0).count() as f64;
        let none = resampled.iter().filter(|difference| **difference == 0.0).count() as f64;
        let of = |is: fn(&f64) -> bool| differences.iter().filter(|difference| is(difference)).count();
        Some(Self {
            interval: interval(&resampled)?,
            score: pairs.iter().map(|(before, _)| before).sum::<f64>() / count,
            difference: differences.iter().sum::<f64>() / count,
            probability_better: (above + none / 2.0) / resampled.len() as f64,
            better: of(|difference| *difference > 0.0),
            worse: of(|difference| *difference < 0.0),
            equal: of(|difference| *difference == 0.0),
            not_compared: baseline.len() + rows.len() - 2 * pairs.len(),
        })
    }

    /// Returns whether this evaluation is worse than the baseline: the whole interval of the difference is below 0.
    pub const fn is_worse(&self) -> bool {
        self.interval[1] < 0.0
    }
}
