//! Measures the five targets of the agent layer's document, and how often outputs pass the rubric of their skill.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use formwork_core::{ErrorKind, Trust, is_compliant};
use formwork_review::{CriterionResult, Gate, Indeterminate, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Skill, SkillError, SkillOutcome, TemplateType};

/// The maximum duration of one run in seconds, according to the document.
const MOST_SECONDS: f64 = 60.0;

/// The minimum share of outputs that pass the rubric of their skill, in percent. The document has no target for it.
const LEAST_PASSING: f64 = 95.0;

/// Counts runs of skills. Failed, late and unanswered runs count as misses of every target that concerns them, so that
/// leaving runs out meets no target.
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
    models: BTreeSet<String>,
    skills: BTreeSet<String>,
    generations: usize,
    compliant: usize,
    /// Generations that were repeated because of a completion, or had no output.
    retried: usize,
    /// The durations of validations; `u64::MAX` for a generation without an output.
    validations: Vec<u64>,
    millis: Vec<u64>,
    /// The verdicts of each criterion and input; `None` is a judge without an answer.
    verdicts: BTreeMap<(String, String), Vec<Option<Verdict>>>,
    /// The outcomes of generations that have a rubric; `None` for one without an output.
    gates: Vec<Option<Gate>>,
    /// Whether a skill that was named generates outputs and has a rubric for them.
    has_rubric: bool,
    /// The histories of the leaves of all outputs, and of the judges' answers.
    trust: Trust,
    judged: Trust,
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
/// assert_eq!((report.runs, report.failed, report.targets.len()), (1, 1, 6));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillReport {
    /// The document's five targets, in its order, and the share of outputs that pass the rubric of their skill.
    pub targets: Vec<Target>,
    /// The models that were called.
    pub models: BTreeSet<String>,
    /// The skills, each with the start of the SHA-256 of its file.
    pub skills: BTreeSet<String>,
    /// Sentences about figures that say less than they seem to: a judge that decides nothing, or always the same.
    pub remarks: Vec<String>,
    /// The histories of the leaves of all outputs: how many the models wrote freely, and which they did not.
    #[serde(default)]
    pub trust: Trust,
    /// The histories of the leaves of the judges' answers.
    #[serde(default)]
    pub judged: Trust,
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

impl SkillReport {
    /// Returns whether a target is missed. Targets without a measurement do not count, unless nothing was measured.
    pub fn is_missed(&self) -> bool {
        self.runs == 0 || self.targets.iter().any(|target| target.met == Some(false))
    }
}

impl Tally {
    /// Adds the name of a model that the runs call.
    pub fn name_model(&mut self, model: impl Into<String>) {
        self.models.insert(model.into());
    }

    /// Adds a skill, which the report names with its version.
    pub fn name_skill(&mut self, skill: &Skill) {
        let generates = skill.descriptor().template_type == Some(TemplateType::LlmJsonGeneration);
        self.has_rubric |= generates && skill.rubric().is_some();
        self.skills.insert(format!("{} {}", skill.name(), skill.version()));
    }

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
            self.generations += 1;
            generation.trust.iter().for_each(|trust| self.trust.add(trust));
            self.compliant += usize::from(is_compliant(&generation.calls));
            self.retried += usize::from(result.is_err() || generation.retried || generation.retries() > 0);
            let gate = generation.review.as_ref().map(|review| review.gate);
            match result {
                Ok(_) => self.gates.extend(gate.map(Some)),
                Err(_) => {
                    self.validations.push(u64::MAX);
                    self.gates.push(None);
                }
            }
        }
        review.iter().for_each(|review| self.judged.add(&review.trust()));
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
        let slowest = percentile(&self.validations, 0.95);
        let validation = slowest.filter(|micros| *micros < u64::MAX).map(|micros| micros as f64 / 1000.0);
        // If no run has an output, only its skill shows that there is a rubric.
        let is_reviewed = self.has_rubric || self.gates.iter().any(Option::is_some);
        let of = |gate: Option<Gate>| self.gates.iter().filter(|other| **other == gate).count();
        let (passed, undecided) = (of(Some(Gate::Pass)), of(Some(Gate::Undecided)));
        let gated = if is_reviewed { self.gates.len() } else { 0 };
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
                    "generations whose first completion is valid, complete, and neither repaired nor restrained",
                    share(self.compliant, self.generations),
                    self.generations,
                ),
                row(
                    "Retry frequency",
                    ('<', 5.0, "%"),
                    "generations that were asked again because of a completion, or had no output",
                    share(self.retried, self.generations),
                    self.generations,
                ),
                row(
                    "Review consistency",
                    ('>', 95.0, "%"),
                    "verdicts of a model that are the most frequent one of their criterion and input; undecided is a miss",
                    share(same, votes),
                    votes,
                ),
                Target {
                    met: slowest.map(|_| validation.is_some_and(|millis| millis < 100.0)),
                    ..row(
                        "Schema validation latency",
                        ('<', 100.0, "ms"),
                        "95th percentile; a generation without an output is a miss",
                        validation,
                        self.validations.len(),
                    )
                },
                Target { met: whole.met.map(|met| met && is_done), ..whole },
                // A rubric that decides nothing would meet the target if undecided outputs passed.
                row(
                    "Outputs that pass",
                    ('>', LEAST_PASSING, "%"),
                    &format!(
                        "outputs that their skill's rubric passes ({undecided} undecided); undecided or without an output is a miss"
                    ),
                    share(passed, gated),
                    gated,
                ),
            ],
            models: self.models.clone(),
            skills: self.skills.clone(),
            remarks: self.remarks(undecided),
            trust: self.trust.clone(),
            judged: self.judged.clone(),
            runs: self.millis.len(),
            failed: self.failed,
            unavailable: self.unavailable,
            unreviewed: self.unreviewed,
        }
    }

    fn remarks(&self, undecided: usize) -> Vec<String> {
        let of = |wanted: Option<Verdict>| {
            self.verdicts.values().flatten().filter(|verdict| **verdict == wanted).count()
        };
        let all = self.verdicts.values().map(Vec::len).sum::<usize>();
        let mut remarks = Vec::new();
        if all > 0 && of(Some(Verdict::Pass)) + of(Some(Verdict::Fail)) == 0 {
            remarks.push(format!("the judge decided none of {all} criteria"));
        }
        for (verdict, word) in [(Verdict::Pass, "pass"), (Verdict::Fail, "fail")] {
            if all > 1 && of(Some(verdict)) == all {
                remarks.push(format!(
                    "the judge said `{word}` {all} times of {all}: the examples do not show that it distinguishes outputs"
                ));
            }
        }
        let all = self.gates.len();
        if undecided > 0 && undecided == all {
            remarks.push(format!("the rubric decided none of {all} outputs"));
        }
        remarks
    }

    /// Returns the number of verdicts that are the most frequent decision about their criterion and input, and the number
    /// of all verdicts. Cases with a single verdict do not count.
    fn consistency(&self) -> (usize, usize) {
        let repeated = self.verdicts.values().filter(|verdicts| verdicts.len() > 1);
        repeated.fold((0, 0), |(same, all), verdicts| {
            let most = [Verdict::Pass, Verdict::Fail]
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
