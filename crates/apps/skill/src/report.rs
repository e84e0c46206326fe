//! Measures the five targets of the agent layer's document.

use std::collections::BTreeMap;
use std::time::Duration;

use formwork_core::CallResult::{Accepted, Cancelled, Probe};
use formwork_core::{CallRecord, ErrorKind, Failure, is_answered};
use formwork_review::{CriterionResult, Indeterminate, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{SkillError, SkillOutcome, TemplateType};

/// The maximum duration of one run in seconds, according to the document.
const MOST_SECONDS: f64 = 60.0;

/// Counts runs of skills. Failed, late and unanswered runs count as misses, so that leaving runs out meets no target.
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
    generations: usize,
    /// Generations with an answer of a model, valid or not.
    answered: usize,
    compliant: usize,
    retried: usize,
    validations: Vec<u64>,
    millis: Vec<u64>,
    /// The verdicts of each criterion and input; `None` is a judge without an answer.
    verdicts: BTreeMap<(String, String), Vec<Option<Verdict>>>,
    failed: usize,
    unavailable: usize,
    unreviewed: usize,
}

/// The measurements of skills, from [`Tally::report`].
///
/// ```
/// use formwork_skill::{SkillError, SkillReport, Tally};
/// use std::time::Duration;
///
/// let mut tally = Tally::default();
/// tally.add("case 1", Duration::from_secs(2), &Err(SkillError::failed("count", "no text")));
/// let report: SkillReport = tally.report();
/// assert_eq!((report.runs, report.failed, report.targets.len()), (1, 1, 5));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillReport {
    /// The document's five targets, in its order.
    pub targets: Vec<Target>,
    /// The number of runs.
    pub runs: usize,
    /// The number of runs without an output. They are misses of the targets that concern them.
    pub failed: usize,
    /// The number of failed runs and reviews whose cause is that no provider answered in time. `formwork skill run` has
    /// exit code 3 for them.
    pub unavailable: usize,
    /// The number of runs whose review could not be carried out. They count as failed for the duration of a run.
    pub unreviewed: usize,
}

/// One of the document's targets.
///
/// ```
/// let report = formwork_skill::Tally::default().report();
/// assert_eq!((report.targets[4].unit.as_str(), report.targets[4].n), ("s", 0));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// The metric's name in the document.
    pub metric: String,
    /// The document's requirement, in its words.
    pub target: String,
    /// The definition of the measurement.
    pub measurement: String,
    /// The measured value, in `unit`; `null` if nothing was measured.
    pub measured: Option<f64>,
    /// The unit: `%`, `ms` or `s`.
    pub unit: String,
    /// The number of measurements.
    pub n: usize,
    /// Whether the target is met; `null` if nothing was measured.
    pub met: Option<bool>,
}

impl Tally {
    /// Counts a run with its duration. Verdicts are compared within one `case`, which identifies the inputs. A run
    /// that the user cancelled is not counted.
    pub fn add(&mut self, case: &str, took: Duration, result: &Result<SkillOutcome, SkillError>) {
        let generation = match result {
            Ok(outcome) => outcome.generation.as_ref(),
            Err(SkillError::Generation { result, .. }) => Some(result.as_ref()),
            Err(_) => None,
        };
        let review = result.as_ref().ok().and_then(|outcome| outcome.review.as_ref());
        let error = review.and_then(|review| review.error.as_ref());
        let kind = result.as_ref().err().and_then(SkillError::kind);
        if [kind, error.map(|error| error.kind)].contains(&Some(ErrorKind::Cancelled)) {
            return;
        }
        self.millis.push(u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        if let Some(generation) = generation {
            let is_fault = |call: &&CallRecord| {
                matches!(call.verdict.failure(), Some(Failure::Fault(_)))
                    || matches!(call.verdict, Cancelled | Probe)
            };
            let first = generation.calls.iter().find(|call| !is_fault(call));
            self.generations += 1;
            self.answered += usize::from(is_answered(&generation.calls, kind == Some(ErrorKind::Deadline)));
            self.compliant += usize::from(first.is_some_and(|first| first.verdict == Accepted));
            self.retried += usize::from(generation.retried || generation.retries() > 0);
        }
        self.unreviewed += usize::from(error.is_some());
        self.unavailable += usize::from(is_unavailable(result));
        let Ok(outcome) = result else {
            self.failed += 1;
            return;
        };
        if outcome.validation_micros > 0 {
            self.validations.push(outcome.validation_micros);
        }
        // A review of a new output has another input each time, so only reviews of given outputs are comparable.
        let reviewed = review.filter(|_| outcome.generation.is_none());
        for result in reviewed.iter().flat_map(|review| &review.criteria_results) {
            let Some(verdict) = judged(result) else { continue };
            let key = (format!("{} {case}", outcome.skill), result.criterion_id.clone());
            self.verdicts.entry(key).or_default().push(verdict);
        }
    }

    /// Returns the report.
    pub fn report(&self) -> SkillReport {
        let share = |part: usize, of: usize| (of > 0).then(|| 100.0 * part as f64 / of as f64);
        let (same, votes) = self.consistency();
        let validation = percentile(&self.validations, 0.95).map(|micros| micros as f64 / 1000.0);
        let longest = self.millis.iter().max().map(|millis| *millis as f64 / 1000.0);
        // One that failed is a miss.
        let is_done = self.failed + self.unreviewed == 0;
        let row = |metric: &str, target: (char, f64, &str), measurement: &str, measured: Option<f64>, n| {
            let (sign, limit, unit) = target;
            Target {
                metric: metric.to_owned(),
                target: format!("{sign}{limit}{unit}"),
                measurement: measurement.to_owned(),
                measured,
                unit: unit.to_owned(),
                n,
                met: measured.map(|measured| if sign == '>' { measured > limit } else { measured < limit }),
            }
        };
        let whole = row(
            "Total skill execution",
            ('<', MOST_SECONDS, "s"),
            "the longest run; one that failed is a miss",
            longest,
            self.millis.len(),
        );
        SkillReport {
            targets: vec![
                row(
                    "Schema compliance",
                    ('>', 98.0, "%"),
                    "generations whose first completion is valid; one without a completion is a miss",
                    share(self.compliant, self.generations),
                    self.generations,
                ),
                row(
                    "Retry frequency",
                    ('<', 5.0, "%"),
                    "generations that were asked again because of a completion, of those with a completion",
                    share(self.retried, self.answered),
                    self.answered,
                ),
                row(
                    "Review consistency",
                    ('>', 95.0, "%"),
                    "verdicts of a model that are the most frequent one of their criterion and input; no answer is a miss",
                    share(same, votes),
                    votes,
                ),
                row(
                    "Schema validation latency",
                    ('<', 100.0, "ms"),
                    "95th percentile",
                    validation,
                    self.validations.len(),
                ),
                Target { met: whole.met.map(|met| met && is_done), ..whole },
            ],
            runs: self.millis.len(),
            failed: self.failed,
            unavailable: self.unavailable,
            unreviewed: self.unreviewed,
        }
    }

    /// Returns the number of verdicts that are the most frequent one of their criterion and input, and the number of
    /// all verdicts. Cases with a single verdict do not count.
    fn consistency(&self) -> (usize, usize) {
        let repeated = self.verdicts.values().filter(|verdicts| verdicts.len() > 1);
        repeated.fold((0, 0), |(same, all), verdicts| {
            let most = [Verdict::Pass, Verdict::Fail, Verdict::Indeterminate]
                .iter()
                .map(|verdict| verdicts.iter().filter(|other| **other == Some(*verdict)).count())
                .max();
            (same + most.unwrap_or_default(), all + verdicts.len())
        })
    }
}

/// Returns whether a run failed because no provider was reachable or the time limit passed before an answer. A
/// generation without a review does not count, because it has an output.
fn is_unavailable(result: &Result<SkillOutcome, SkillError>) -> bool {
    let (kind, answered) = match result {
        Ok(SkillOutcome { template_type: Some(TemplateType::LlmReview), review: Some(review), .. }) => {
            let Some(error) = &review.error else { return false };
            (error.kind, error.answered)
        }
        Err(SkillError::Generation { result, .. }) => {
            let Some(error) = &result.error else { return false };
            (error.kind, error.answered)
        }
        Err(SkillError::Review { error, .. }) => (error.kind(), error.is_answered()),
        _ => return false,
    };
    kind == ErrorKind::Unavailable || kind == ErrorKind::Deadline && !answered
}

/// Returns a model's verdict on a criterion: `None` if no model was needed, `Some(None)` if the model gave no answer.
fn judged(result: &CriterionResult) -> Option<Option<Verdict>> {
    match result.reason {
        Some(Indeterminate::MissingData | Indeterminate::HumanJudgement) => None,
        Some(Indeterminate::NoAnswer | Indeterminate::NotReviewed) => Some(None),
        Some(_) => Some(Some(result.verdict)),
        None => (result.votes > 0).then_some(Some(result.verdict)),
    }
}

/// Returns the percentile for a share of 0 to 1, by the nearest-rank method.
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
