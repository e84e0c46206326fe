use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{CrossChecks, ScoreEvent, ScoreSource};

/// Counts of what events say, one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// All scores, those that failed included.
    pub scores: u64,
    /// The scores that a model gave.
    pub ai: u64,
    /// The scores that the fallback gave.
    pub fallback: u64,
    /// The scores whose first answer was valid as it stood, without any edit.
    pub compliant: u64,
    /// The scores whose model had to be asked again for its content.
    pub retried: u64,
    /// Answers that were not accepted.
    pub validation_failures: u64,
    /// Why they were not: by the class of the failure and the place in the answer.
    pub reasons: BTreeMap<(&'static str, &'static str), u64>,
    /// Calls that brought no answer, by kind.
    pub faults: BTreeMap<String, u64>,
    /// Answers that came as far as the cross-check.
    pub cross_checks: CrossChecks,
    /// The cost of the scores whose price is known, in millionths of a US dollar.
    pub micro_usd: u64,
    /// How many scores have calls of an unknown price.
    pub unpriced: u64,
    /// Tokens of all prompts.
    pub input_tokens: u64,
    /// Tokens of all answers.
    pub output_tokens: u64,
}

/// The shares that the oracle's document asks for, 0 to 1; `None` of nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Rates {
    /// Of how many scores.
    pub scores: u64,
    /// Scores whose first answer was valid as it stood.
    pub schema_compliance: Option<f64>,
    /// Scores whose model had to be asked again.
    pub retry: Option<f64>,
    /// Scores that the fallback gave.
    pub fallback: Option<f64>,
    /// Answers that passed the cross-check, of those that came so far.
    pub cross_check_pass: Option<f64>,
    /// Of how many answers that is.
    pub cross_checks: u64,
    /// Answers that were not accepted.
    pub validation_failures: u64,
}

impl Tally {
    /// Counts one more.
    pub fn add(&mut self, event: &ScoreEvent) {
        self.scores += 1;
        match event.source {
            Some(ScoreSource::Ai) => self.ai += 1,
            Some(ScoreSource::Fallback) => self.fallback += 1,
            None => {}
        }
        self.compliant += u64::from(event.is_compliant());
        self.retried += u64::from(event.is_retried());
        for rejection in event.rejections() {
            self.validation_failures += 1;
            for (class, path) in rejection.reasons() {
                *self.reasons.entry((class, place(&path))).or_default() += 1;
            }
        }
        for (_, fault) in event.faults() {
            *self.faults.entry(fault.kind.to_string()).or_default() += 1;
        }
        let CrossChecks { passed, failed } = event.cross_checks();
        self.cross_checks.passed += passed;
        self.cross_checks.failed += failed;
        match event.cost.micro_usd {
            Some(cost) => self.micro_usd = self.micro_usd.saturating_add(cost),
            None => self.unpriced += 1,
        }
        self.input_tokens = self.input_tokens.saturating_add(event.usage.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(event.usage.output_tokens);
    }

    /// As shares.
    pub fn rates(&self) -> Rates {
        let checked = self.cross_checks.passed + self.cross_checks.failed;
        Rates {
            scores: self.scores,
            schema_compliance: share(self.compliant, self.scores),
            retry: share(self.retried, self.scores),
            fallback: share(self.fallback, self.scores),
            cross_check_pass: share(self.cross_checks.passed, checked),
            cross_checks: checked,
            validation_failures: self.validation_failures,
        }
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The places of an answer. A model chooses the names of keys and the number of items: what is none of these is `other`,
/// so that no answer makes up a label.
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
