//! The five targets of the agent layer's document, measured.

use std::collections::BTreeMap;

use formwork_core::ErrorKind;
use formwork_review::Verdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{SkillError, SkillOutcome};

/// Runs of skills, counted.
///
/// ```
/// use formwork_skill::Tally;
///
/// let report = Tally::default().report();
/// assert_eq!(report.targets[0].metric, "Schema compliance");
/// assert_eq!(report.targets[0].met, None, "nothing was measured");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Tally {
    answered: usize,
    compliant: usize,
    requests: usize,
    retried: usize,
    validations: Vec<u64>,
    totals: Vec<u64>,
    verdicts: BTreeMap<(String, String), Vec<Verdict>>,
    unavailable: usize,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillReport {
    /// The document's five, in its order.
    pub targets: Vec<Target>,
    /// Runs that no provider answered; they count nowhere.
    pub unavailable: usize,
}

/// One of the document's targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// What the document calls it.
    pub metric: String,
    /// What it asks for, in its words.
    pub target: String,
    /// What it means here.
    pub measurement: String,
    /// What was measured, in `unit`; null where nothing was.
    pub measured: Option<f64>,
    /// `%`, `ms` or `s`.
    pub unit: String,
    /// Over how many.
    pub n: usize,
    /// Whether the target is met; null where nothing was measured.
    pub met: Option<bool>,
}

impl Tally {
    /// Counts a run. `case` tells inputs apart: verdicts are compared within one.
    pub fn add(&mut self, case: &str, result: &Result<SkillOutcome, SkillError>) {
        let generation = match result {
            Ok(outcome) => outcome.generation.as_ref(),
            Err(SkillError::Generation { result, .. }) => Some(result.as_ref()),
            Err(_) => None,
        };
        let kind = result.as_ref().err().and_then(SkillError::kind);
        if matches!(kind, Some(ErrorKind::Unavailable | ErrorKind::Cancelled)) {
            self.unavailable += 1;
            return;
        }
        if let Some(generation) = generation {
            self.answered += 1;
            self.compliant += usize::from(generation.success);
            self.requests += 1;
            self.retried += usize::from(generation.retries() > 0);
        }
        let Ok(outcome) = result else { return };
        if outcome.validation_micros > 0 {
            self.validations.push(outcome.validation_micros);
        }
        self.totals.push(outcome.total_millis);
        let reviewed = outcome.review.iter().flat_map(|review| &review.criteria_results);
        // What was generated anew is another input: only reviews of what was given are the same.
        for result in reviewed.filter(|_| outcome.generation.is_none()) {
            let key = (format!("{} {case}", outcome.skill), result.criterion_id.clone());
            self.verdicts.entry(key).or_default().push(result.verdict);
        }
    }

    /// What it comes to.
    pub fn report(&self) -> SkillReport {
        let share = |part: usize, of: usize| (of > 0).then(|| 100.0 * part as f64 / of as f64);
        let (same, votes) = self.consistency();
        let compliance = share(self.compliant, self.answered);
        let retries = share(self.retried, self.requests);
        let consistency = share(same, votes);
        let validation = percentile(&self.validations, 0.95).map(|micros| micros as f64 / 1000.0);
        let total = self.totals.iter().max().map(|millis| *millis as f64 / 1000.0);
        let row = |metric: &str,
                   target: &str,
                   measurement: &str,
                   measured: Option<f64>,
                   unit: &str,
                   n,
                   met: Option<bool>| {
            Target {
                metric: metric.to_owned(),
                target: target.to_owned(),
                measurement: measurement.to_owned(),
                measured,
                unit: unit.to_owned(),
                n,
                met,
            }
        };
        SkillReport {
            targets: vec![
                row(
                    "Schema compliance",
                    ">98%",
                    "generations whose answer satisfied the schema in the end",
                    compliance,
                    "%",
                    self.answered,
                    compliance.map(|share| share > 98.0),
                ),
                row(
                    "Retry frequency",
                    "<5%",
                    "generations that were asked again because of the content",
                    retries,
                    "%",
                    self.requests,
                    retries.map(|share| share < 5.0),
                ),
                row(
                    "Review consistency",
                    ">95%",
                    "verdicts that are the most frequent one of their criterion and input",
                    consistency,
                    "%",
                    votes,
                    consistency.map(|share| share > 95.0),
                ),
                row(
                    "Schema validation latency",
                    "<100ms",
                    "95th percentile",
                    validation,
                    "ms",
                    self.validations.len(),
                    validation.map(|millis| millis < 100.0),
                ),
                row(
                    "Total skill execution",
                    "<60s",
                    "the longest",
                    total,
                    "s",
                    self.totals.len(),
                    total.map(|seconds| seconds < 60.0),
                ),
            ],
            unavailable: self.unavailable,
        }
    }

    /// How many verdicts are the most frequent one of their criterion and input, of how many; those that were seen once
    /// say nothing.
    fn consistency(&self) -> (usize, usize) {
        let repeated = self.verdicts.values().filter(|verdicts| verdicts.len() > 1);
        repeated.fold((0, 0), |(same, all), verdicts| {
            let most = [Verdict::Pass, Verdict::Fail, Verdict::Indeterminate]
                .iter()
                .map(|verdict| verdicts.iter().filter(|other| *other == verdict).count())
                .max();
            (same + most.unwrap_or_default(), all + verdicts.len())
        })
    }
}

/// The value that so many (0 to 1) are not above: nearest rank.
fn percentile(values: &[u64], share: f64) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let values: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(percentile(&values, 0.95), Some(95));
        assert_eq!(percentile(&[7], 0.95), Some(7));
        assert_eq!(percentile(&[], 0.95), None);
    }

    proptest! {
        #[test]
        fn the_percentile_is_one_of_the_values(values in proptest::collection::vec(any::<u64>(), 1..50)) {
            let found = percentile(&values, 0.95).unwrap();
            prop_assert!(values.contains(&found));
            let below = values.iter().filter(|value| **value <= found).count();
            prop_assert!(below as f64 >= 0.95 * values.len() as f64);
        }
    }
}
