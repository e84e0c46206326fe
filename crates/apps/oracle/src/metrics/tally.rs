use std::collections::BTreeMap;

use formwork_core::Trust;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{CrossChecks, ScoreEvent, ScoreSource};

/// Counts events.
///
/// ```
/// use formwork_oracle::metrics::Tally;
///
/// let tally = Tally { scores: 4, ai: 3, fallback: 1, ..Tally::default() };
/// assert_eq!((tally.rates().fallback, tally.rates().cross_check_pass), (Some(0.25), None));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of scores, including failed ones.
    pub scores: u64,
    /// The number of scores by a model.
    pub ai: u64,
    /// The number of scores by the fallback.
    pub fallback: u64,
    /// The number of scores whose first answer was accepted as it was; see [`ScoreEvent::is_compliant`].
    pub compliant: u64,
    /// The number of scores whose answer was requested again because of its content.
    pub retried: u64,
    /// The number of scores without any answer of a model.
    pub unanswered: u64,
    /// The number of scores without an answer that reached the cross-check.
    pub unchecked: u64,
    /// The number of rejected answers.
    pub validation_failures: u64,
    /// The violations of rejected answers, by the class of the failure and the place in the answer.
    pub reasons: BTreeMap<(&'static str, &'static str), u64>,
    /// The number of failed calls, by kind.
    pub faults: BTreeMap<String, u64>,
    /// The answers that reached the cross-check.
    pub cross_checks: CrossChecks,
    /// The cost of the scores whose price is known, in millionths of a US dollar.
    pub micro_usd: u64,
    /// The number of scores with calls of an unknown price.
    pub unpriced: u64,
    /// The histories of the leaves of all answers.
    pub trust: Trust,
    /// The number of input tokens.
    pub input_tokens: u64,
    /// The number of output tokens.
    pub output_tokens: u64,
}

/// The ratios of the specification's success metrics, 0 to 1; `None` without scores.
///
/// A score without any answer of a model is a miss of every ratio.
///
/// ```
/// use formwork_oracle::metrics::{Rates, Tally};
///
/// let rates: Rates = Tally { scores: 2, compliant: 1, ..Tally::default() }.rates();
/// assert_eq!((rates.scores, rates.schema_compliance), (2, Some(0.5)));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Rates {
    /// The number of scores.
    pub scores: u64,
    /// The ratio of scores whose first answer was accepted as it was; see [`ScoreEvent::is_compliant`].
    pub schema_compliance: Option<f64>,
    /// The ratio of scores whose answer was requested again because of its content, or that had no answer.
    pub retry: Option<f64>,
    /// The ratio of scores that no model gave.
    pub fallback: Option<f64>,
    /// The ratio of cross-checks that passed. Each answer that satisfies the schema is checked, and a score without such an
    /// answer counts as one failed check.
    pub cross_check_pass: Option<f64>,
    /// The number of these checks.
    pub cross_checks: u64,
    /// The number of rejected answers.
    pub validation_failures: u64,
}

impl Tally {
    /// Counts an event.
    pub fn add(&mut self, event: &ScoreEvent) {
        self.scores += 1;
        match event.source {
            Some(ScoreSource::Ai) => self.ai += 1,
            Some(ScoreSource::Fallback) => self.fallback += 1,
            None => {}
        }
        self.compliant += u64::from(event.is_compliant());
        self.retried += u64::from(event.is_retried());
        self.unanswered += u64::from(event.answers().next().is_none());
        for rejection in event.rejections() {
            self.validation_failures += 1;
            for (class, path) in rejection.reasons() {
                *self.reasons.entry((class, place(&path))).or_default() += 1;
            }
        }
        for (_, fault) in event.faults() {
            *self.faults.entry(fault.kind.to_string()).or_default() += 1;
        }
        event.trust.iter().for_each(|trust| self.trust.add(trust));
        let CrossChecks { passed, failed } = event.cross_checks();
        self.unchecked += u64::from(passed + failed == 0);
        self.cross_checks.passed += passed;
        self.cross_checks.failed += failed;
        match event.cost.micro_usd {
            Some(cost) => self.micro_usd = self.micro_usd.saturating_add(cost),
            None => self.unpriced += 1,
        }
        self.input_tokens = self.input_tokens.saturating_add(event.usage.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(event.usage.output_tokens);
    }

    /// Returns the counts as ratios.
    pub fn rates(&self) -> Rates {
        let checked = self.cross_checks.passed + self.cross_checks.failed + self.unchecked;
        Rates {
            scores: self.scores,
            schema_compliance: share(self.compliant, self.scores),
            retry: share(self.retried + self.unanswered, self.scores),
            fallback: share(self.scores - self.ai, self.scores),
            cross_check_pass: share(self.cross_checks.passed, checked),
            cross_checks: checked,
            validation_failures: self.validation_failures,
        }
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The places in an answer. A model chooses the names of keys and the number of items, so any other path counts as
/// `other` and cannot create a label.
const PLACES: &[&str] = &[
    "$",
    "$.score",
    "$.scoreBreakdown",
    "$.scoreBreakdown.activity",
    "$.scoreBreakdown.maturity",
    "$.scoreBreakdown.diversity",
    "$.scoreBreakdown.riskBehavior",
    "$.scoreBreakdown.surveyMatch",
    "$.reasoning",
    "$.risk_factors",
    "$.risk_factors[*]",
    "$.strengths",
    "$.strengths[*]",
];

fn place(path: &str) -> &'static str {
    let item = |rest: &str| {
        rest.strip_suffix(']').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let list = path.split_once('[').filter(|(_, rest)| item(rest));
    let known = PLACES.iter().copied().find(|known| match list {
        Some((list, _)) => known.strip_suffix("[*]") == Some(list),
        None => *known == path,
    });
    known.unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_the_schema_is_one_and_nothing_else() {
        for known in PLACES {
            assert_eq!(place(&known.replace('*', "12")), *known);
        }
        for unknown in
            ["$.gold", "$.risk_factors[0].x", "$.score[0]", "$['a b']", "", "$.risk_factors[0][1]", "["]
        {
            assert_eq!(place(unknown), "other", "{unknown}");
        }
    }
}
