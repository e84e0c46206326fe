use formwork_core::{JsonPath, Rule, Term};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ScoreBreakdown;

/// The rule name of the cross-check in violations.
pub const CROSS_CHECK: &str = "weightedSum";

/// The default maximum difference between a score and the weighted sum in points, inclusive: 2 % of 1000.
pub const TOLERANCE: f64 = 20.0;

/// The weights of the dimensions in tenths, in the order of the contract. Their sum is 10.
const WEIGHTS: [f64; 5] = [2.0, 2.0, 2.0, 2.5, 1.5];

/// The formula for the score of a breakdown.
///
/// The oracle's specification computes `(activity × 2 + maturity × 2 + diversity × 2 + riskBehavior × 2.5 + surveyMatch ×
/// 1.5) / 10`, and allows a difference of 20 points to a score of 0 to 1000. The result of that formula is 0 to 100:
/// taken literally, a wallet that is perfect in every dimension needs a score of 80 to 120. The specification explains
/// the 20 points as 2 % of 1000, so the sum is meant on the scale of the score, which is the default.
///
/// ```
/// use formwork_oracle::{CrossCheck, Formula};
///
/// assert_eq!(CrossCheck::default().formula, Formula::Consistent);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Formula {
    /// The weighted sum without the division: 0 to 1000, the scale of the score.
    #[default]
    Consistent,
    /// The literal specification with the division: 0 to 100.
    Literal,
}

/// The check of a score against its breakdown. It validates answers, narrows the range of a patch, and is sent with
/// calls.
///
/// ```
/// use formwork_oracle::{CrossCheck, Formula, ScoreBreakdown};
///
/// let breakdown = ScoreBreakdown { activity: 80, maturity: 70, diversity: 60, risk_behavior: 51, survey_match: 40 };
/// let check = CrossCheck::default();
/// assert_eq!(check.expected(&breakdown), 607.5);
/// assert_eq!(check.range(&breakdown), (588, 627));
/// assert!(check.passes(588, &breakdown) && !check.passes(587, &breakdown));
/// let literal = CrossCheck { formula: Formula::Literal, ..check };
/// assert!(literal.passes(60, &breakdown) && !literal.passes(605, &breakdown));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CrossCheck {
    /// The formula for the score.
    pub formula: Formula,
    /// The maximum difference between the score and the unrounded sum in points, inclusive (default: 20).
    pub tolerance: f64,
}

impl Default for CrossCheck {
    fn default() -> Self {
        Self { formula: Formula::Consistent, tolerance: TOLERANCE }
    }
}

impl CrossCheck {
    /// Returns the weights of the dimensions, with their names in JSON.
    pub fn weights(&self) -> [(&'static str, f64); 5] {
        let divisor = match self.formula {
            Formula::Consistent => 1.0,
            Formula::Literal => 10.0,
        };
        let dimensions = ScoreBreakdown::default().dimensions();
        std::array::from_fn(|nth| (dimensions[nth].0, WEIGHTS[nth] / divisor))
    }

    /// Returns the check as a rule of the contract.
    pub fn rule(&self) -> Rule {
        let breakdown = JsonPath::root().key("scoreBreakdown");
        let terms = self.weights().map(|(name, weight)| Term { path: breakdown.key(name).into(), weight });
        Rule::WeightedSum {
            target: JsonPath::root().key("score").into(),
            terms: terms.into(),
            tolerance: self.tolerance,
        }
    }

    /// Returns the unrounded weighted sum.
    pub fn expected(&self, breakdown: &ScoreBreakdown) -> f64 {
        let values = breakdown.dimensions().map(|(_, value)| f64::from(value));
        // The sum in tenths is exact, so a half point does not depend on the order of the terms.
        let tenths: f64 = values.iter().zip(WEIGHTS).map(|(value, weight)| value * weight).sum();
        match self.formula {
            Formula::Consistent => tenths,
            Formula::Literal => tenths / 10.0,
        }
    }

    /// Returns the lowest and the highest score that pass, within 0 to 1000.
    pub fn range(&self, breakdown: &ScoreBreakdown) -> (u16, u16) {
        let sum = self.expected(breakdown);
        // `as` is exact from 0 to 1000.
        let whole = |bound: f64| bound.clamp(0.0, 1000.0) as u16;
        (whole((sum - self.tolerance).ceil()), whole((sum + self.tolerance).floor()))
    }

    /// Returns whether a score passes.
    pub fn passes(&self, score: u16, breakdown: &ScoreBreakdown) -> bool {
        (f64::from(score) - self.expected(breakdown)).abs() <= self.tolerance
    }

    /// Returns the formula as text, for prompts.
    pub fn words(&self) -> String {
        let terms = self.weights().map(|(name, weight)| format!("{name} * {}", tidy(weight)));
        terms.join(" + ")
    }
}

/// Returns a weight without binary rounding errors.
fn tidy(weight: f64) -> f64 {
    (weight * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use formwork_core::{Context, Report};
    use proptest::prelude::*;
    use serde_json::json;

    fn breakdown() -> impl Strategy<Value = ScoreBreakdown> {
        proptest::array::uniform5(0_u8..=100).prop_map(
            |[activity, maturity, diversity, risk_behavior, survey_match]| ScoreBreakdown {
                activity,
                maturity,
                diversity,
                risk_behavior,
                survey_match,
            },
        )
    }

    proptest! {
        #[test]
        fn the_rule_and_the_range_say_the_same(
            breakdown in breakdown(), score in 0_u16..=1000, literal: bool, tolerance in 0_u8..40
        ) {
            let formula = if literal { Formula::Literal } else { Formula::Consistent };
            let check = CrossCheck { formula, tolerance: f64::from(tolerance) };
            let (low, high) = check.range(&breakdown);
            prop_assert_eq!(check.passes(score, &breakdown), (low..=high).contains(&score));
            let mut report = Report::default();
            let value = json!({"score": score, "scoreBreakdown": breakdown});
            check.rule().validate(&value, &Context::EMPTY, &mut report);
            prop_assert_eq!(report.is_empty(), check.passes(score, &breakdown));
        }

        #[test]
        fn a_violation_expects_a_score_that_the_schema_has(
            breakdown in breakdown(), score in 0_u16..=1000, literal: bool, tolerance in 0_u8..=100
        ) {
            let formula = if literal { Formula::Literal } else { Formula::Consistent };
            let check = CrossCheck { formula, tolerance: f64::from(tolerance) };
            let answer = json!({
                "score": score, "scoreBreakdown": breakdown, "risk_factors": [], "strengths": [],
                "reasoning": "A text that is as long as the schema of the answer wants it to be at the very least.",
            });
            let judgement = crate::contract(&check).unwrap().judge(&answer, &Context::EMPTY);
            for violation in judgement.violations.iter().filter(|violation| violation.rule == CROSS_CHECK) {
                let expected = violation.expected.as_str();
                let bounds = expected.strip_prefix("from ").and_then(|bounds| bounds.split_once(" to ")).unwrap();
                let (low, high): (f64, f64) = (bounds.0.parse().unwrap(), bounds.1.parse().unwrap());
                prop_assert!(0.0 <= low && low <= high && high <= 1000.0, "{}", expected);
            }
            let passes = check.passes(score, &breakdown);
            prop_assert_eq!(judgement.violations.iter().any(|found| found.rule == CROSS_CHECK), !passes);
        }

        #[test]
        fn narrowing_leaves_a_score_and_only_right_ones(breakdown in breakdown()) {
            let check = CrossCheck::default();
            let (path, schema) = check.rule().narrow(&json!({"scoreBreakdown": breakdown})).unwrap();
            prop_assert_eq!(path.to_string(), "$.score");
            let (low, high) = check.range(&breakdown);
            prop_assert!(low <= high);
            prop_assert_eq!(schema["minimum"].as_f64().unwrap().ceil().max(0.0), f64::from(low));
            prop_assert_eq!(schema["maximum"].as_f64().unwrap().floor().min(1000.0), f64::from(high));
        }
    }

    #[test]
    fn the_words_are_the_formula() {
        let words = "activity * 2 + maturity * 2 + diversity * 2 + riskBehavior * 2.5 + surveyMatch * 1.5";
        assert_eq!(CrossCheck::default().words(), words);
        let literal = CrossCheck { formula: Formula::Literal, ..CrossCheck::default() };
        assert!(literal.words().ends_with("riskBehavior * 0.25 + surveyMatch * 0.15"), "{}", literal.words());
    }
}
