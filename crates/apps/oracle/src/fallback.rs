//! The score without a model: a deterministic rule.
//!
//! The oracle uses it if no model gave an acceptable answer. It only knows counts, so it states how much a wallet is
//! used, not how prudently. With `t` transactions, `f` of them failed, over `d` days with `p` counterparties:
//!
//! | dimension | points, at most 100 |
//! |---|---|
//! | activity | one for every 5 transactions: `t / 5` |
//! | maturity | one for every 10 days from the first transaction to the last: `d / 10` |
//! | diversity | two for each counterparty: `2 * p` |
//! | riskBehavior | 50, less half the share of failed transactions: `50 - 50 * f / t`; 0 without any transaction |
//! | surveyMatch | 50 if the owner answered anything, else 0: answers are not read |
//!
//! All divisions round down. The score is the weighted sum of the [`CrossCheck`], rounded half up, so the answer passes
//! the schema and the cross-check like any other. The same counts always give the same answer.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::wallet::Features;
use crate::{AiScore, CrossCheck, ScoreBreakdown};

/// The counts that the rule uses.
///
/// ```
/// use formwork_oracle::{fallback::Counts, wallet::Wallet};
///
/// let wallet = Wallet::from_json(br#"{"transactions": [{"time": "2026-01-01", "failed": true}]}"#)?;
/// let counts = Counts::from(&wallet.features());
/// assert_eq!((counts.transactions, counts.failed, counts.days), (1, 1, 0));
/// # Ok::<(), formwork_oracle::wallet::WalletError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The number of transactions, including failed ones.
    pub transactions: u64,
    /// The number of failed transactions.
    pub failed: u64,
    /// The number of days from the first transaction to the last.
    pub days: u64,
    /// The number of different counterparties.
    pub counterparties: u64,
    /// The number of answers to the survey.
    pub answers: u64,
}

impl From<&Features> for Counts {
    fn from(features: &Features) -> Self {
        let answers = features.survey.as_ref().map_or(0, |survey| survey.claims.len() + survey.answers.len());
        Self {
            transactions: features.transactions,
            failed: features.failed,
            days: features.account_age_days.saturating_sub(features.idle_days),
            counterparties: features.counterparties,
            answers: answers as u64,
        }
    }
}

impl Counts {
    /// Returns the counts as the data of a run. Only the fallback reads them, so they are scored when it runs.
    pub(crate) fn to_data(self) -> Value {
        json!(self)
    }

    /// Returns the counts in the data of a run.
    pub(crate) fn from_data(data: &Value) -> Option<Self> {
        Self::deserialize(data).ok()
    }
}

/// Returns the fallback's answer for these counts, with the reasons for it.
///
/// ```
/// use formwork_oracle::CrossCheck;
/// use formwork_oracle::fallback::{Counts, score};
///
/// let counts = Counts { transactions: 200, failed: 10, days: 365, counterparties: 12, answers: 0 };
/// let answer = score(&counts, &CrossCheck::default());
/// assert_eq!((answer.breakdown.activity, answer.breakdown.maturity, answer.score), (40, 36, 320));
/// ```
pub fn score(counts: &Counts, check: &CrossCheck) -> AiScore {
    let Counts { transactions, failed, days, counterparties, answers } = *counts;
    let breakdown = ScoreBreakdown {
        activity: points(transactions / 5),
        maturity: points(days / 10),
        diversity: points(counterparties.saturating_mul(2)),
        risk_behavior: prudence(transactions, failed),
        survey_match: if answers > 0 { 50 } else { 0 },
    };
    AiScore {
        // The sum is from 0 to 1000, so `as` is exact.
        score: (check.expected(&breakdown) + 0.5).floor() as u16,
        breakdown,
        reasoning: format!(
            "Scored by counting, without a model: {transactions} transactions, {failed} of them failed, over {days} \
             days with {counterparties} counterparties."
        ),
        risk_factors: true_ones([
            (transactions == 0, "no transactions"),
            (transactions > 0 && days < 30, "less than a month of history"),
            (failed > transactions / 10, "more than a tenth of the transactions failed"),
        ]),
        strengths: true_ones([
            (days >= 730, "two years or more of history"),
            (transactions >= 250, "regular use"),
            (counterparties >= 25, "many counterparties"),
        ]),
    }
}

fn points(counted: u64) -> u8 {
    u8::try_from(counted.min(100)).unwrap_or(100)
}

fn prudence(transactions: u64, failed: u64) -> u8 {
    match transactions {
        0 => 0,
        // `u128` cannot overflow here, whatever the counts are.
        all => points(50 - (50 * u128::from(failed.min(all)) / u128::from(all)) as u64),
    }
}

/// Returns the words of the facts that hold.
fn true_ones(facts: [(bool, &str); 3]) -> Vec<String> {
    facts.into_iter().filter(|(holds, _)| *holds).map(|(_, words)| words.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AI_RESPONSE_SCHEMA, Formula};
    use formwork_core::{Context, Report, Validator as _};
    use proptest::prelude::*;

    #[test]
    fn counts_survive_the_way_through_a_run() {
        let counts = Counts { transactions: 7, failed: 1, days: 9, counterparties: 3, answers: 2 };
        assert_eq!(Counts::from_data(&counts.to_data()), Some(counts));
        assert_eq!(Counts::from_data(&Value::Null), None);
    }

    proptest! {
        #[test]
        fn it_is_always_valid(
            transactions: u64, failed: u64, days: u64, counterparties: u64, answers: u64, literal: bool
        ) {
            let counts = Counts { transactions, failed, days, counterparties, answers };
            let formula = if literal { Formula::Literal } else { Formula::Consistent };
            let check = CrossCheck { formula, tolerance: 0.5 };
            let value = serde_json::to_value(score(&counts, &check)).unwrap();
            let mut report = Report::default();
            formwork_schema::compile(&AI_RESPONSE_SCHEMA).unwrap().validate(&value, &Context::EMPTY, &mut report);
            check.rule().validate(&value, &Context::EMPTY, &mut report);
            prop_assert!(report.is_empty(), "{:?}", report.violations());
            prop_assert_eq!(score(&counts, &check), score(&counts, &check));
        }

        #[test]
        fn more_is_never_less(transactions in 0_u64..1000, more in 0_u64..1000) {
            let of = |transactions| {
                score(&Counts { transactions, days: 100, ..Counts::default() }, &CrossCheck::default()).score
            };
            prop_assert!(of(transactions + more) >= of(transactions));
        }
    }

    #[test]
    fn a_wallet_without_history_has_nothing() {
        let answer = score(&Counts::default(), &CrossCheck::default());
        assert_eq!((answer.score, answer.breakdown), (0, ScoreBreakdown::default()));
        assert_eq!(answer.risk_factors, ["no transactions"]);
        let best = Counts { transactions: 5000, failed: 0, days: 4000, counterparties: 90, answers: 5 };
        assert_eq!(
            score(&best, &CrossCheck::default()).score,
            800,
            "600 for its counts, 125 for no fault, 75 for answers"
        );
    }
}
