use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Answer, Category, Experience, RiskFlag, RiskTolerance, Summary, Survey, Timestamp, Usd, Wallet};

/// The features of a wallet: everything that the prompt contains about it, the same on every machine.
///
/// `Display` writes the text of the prompt: a line for each fact, in English, without the address. The owner's own
/// words come last, each as a JSON string of at most [`MAX_SHOWN_ANSWER`](super::MAX_SHOWN_ANSWER) characters, under a
/// line that marks them as data.
///
/// ```
/// use formwork_oracle::wallet::Wallet;
///
/// let wallet = Wallet::from_json(
///     br#"{
///         "as_of": "2026-11-01",
///         "summary": {"transactions": 40, "failed": 2, "first": "2025-11-01", "last": "2026-10-22", "active_days": 20}
///     }"#,
/// )?;
/// let features = wallet.features();
/// assert_eq!((features.account_age_days, features.idle_days, features.failed_percent), (365, 10, 5.0));
/// assert!(features.to_string().contains("failed transactions: 2 (5.0 %)"));
/// # Ok::<(), formwork_oracle::wallet::WalletError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Features {
    /// The present moment of the wallet; see [`Wallet::as_of`](super::Wallet::as_of).
    pub as_of: Option<Timestamp>,
    /// The number of whole days since the first transaction; 0 without transactions.
    pub account_age_days: u64,
    /// The number of whole days since the last transaction; 0 without transactions.
    pub idle_days: u64,
    /// The number of transactions, including failed ones.
    pub transactions: u64,
    /// The number of failed transactions.
    pub failed: u64,
    /// The percentage of failed transactions.
    pub failed_percent: f64,
    /// The number of different days with transactions.
    pub active_days: u64,
    /// The percentage of days with transactions since the first one.
    pub active_days_percent: f64,
    /// The average number of transactions on an active day: a person makes a few, a program hundreds.
    pub transactions_per_active_day: f64,
    /// The number of different counterparties.
    pub counterparties: u64,
    /// The categories of transactions, the most frequent first.
    pub categories: Vec<Share<Category>>,
    /// The effective number of categories: the inverse of the sum of squared shares, which is `n` for `n` equally
    /// frequent ones.
    pub effective_categories: f64,
    /// The number of protocols.
    pub protocols: u64,
    /// The five most used protocols, the most used first.
    pub top_protocols: Vec<Share<String>>,
    /// The total value of all transactions.
    pub volume_usd: Usd,
    /// The average value of a transaction.
    pub average_usd: Usd,
    /// The value of the largest transaction.
    pub largest_usd: Usd,
    /// The percentage of the total value in the largest transaction.
    pub largest_percent: f64,
    /// The present balance, if it is known.
    pub balance_usd: Option<Usd>,
    /// The risks of transactions, the most frequent first.
    pub risk_flags: Vec<RiskCount>,
    /// The percentage of transactions with the most frequent risk; 0 without risks.
    pub flagged_percent: f64,
    /// The survey's claims compared with the history; `None` without a survey.
    pub survey: Option<SurveyMatch>,
}

/// The frequency of a category, protocol or risk.
///
/// ```
/// use formwork_oracle::wallet::{Category, Share, Wallet};
///
/// let wallet = Wallet::from_json(br#"{"transactions": [{"time": "2026-01-01", "category": "swap"}]}"#)?;
/// let share = Share { name: Category::Swap, transactions: 1, percent: 100.0 };
/// assert_eq!(wallet.features().categories, [share]);
/// # Ok::<(), formwork_oracle::wallet::WalletError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Share<T> {
    /// The category, protocol or risk.
    pub name: T,
    /// The number of transactions.
    pub transactions: u64,
    /// The percentage of transactions.
    pub percent: f64,
}

/// The frequency of a risk.
pub type RiskCount = Share<RiskFlag>;

/// The agreement of the owner's statements with the history.
///
/// ```
/// use formwork_oracle::wallet::Wallet;
///
/// let wallet = Wallet::from_json(
///     br#"{"transactions": [{"time": "2026-01-01", "category": "swap"}], "survey": {"uses": ["swap", "nft"]}}"#,
/// )?;
/// let survey = wallet.features().survey.unwrap();
/// assert_eq!((survey.claims.len(), survey.percent), (1, Some(50)));
/// # Ok::<(), formwork_oracle::wallet::WalletError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SurveyMatch {
    /// The claims that can be checked.
    pub claims: Vec<Claim>,
    /// The average agreement of all claims, 0 to 100; `None` without claims.
    pub percent: Option<u8>,
    /// The free answers in full; the prompt contains only their beginnings.
    pub answers: Vec<Answer>,
}

/// One claim of a survey.
///
/// ```
/// use formwork_oracle::wallet::Wallet;
///
/// let text = br#"{"transactions": [{"time": "2026-01-01"}], "survey": {"experience": "newcomer"}}"#;
/// let claim = &Wallet::from_json(text)?.features().survey.unwrap().claims[0];
/// assert_eq!((claim.about, claim.claimed.as_ref(), claim.percent), ("experience", "newcomer", 100));
/// # Ok::<(), formwork_oracle::wallet::WalletError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Claim {
    /// The field of the survey.
    pub about: &'static str,
    /// The owner's claim.
    #[serde(rename = "said")]
    pub claimed: Cow<'static, str>,
    /// The corresponding fact of the history.
    pub found: Cow<'static, str>,
    /// The agreement: 100, 50 or 0; any percentage for `uses`.
    pub percent: u8,
}

impl Claim {
    fn new(
        about: &'static str,
        claimed: impl Into<Cow<'static, str>>,
        found: impl Into<Cow<'static, str>>,
        percent: u8,
    ) -> Self {
        Self { about, claimed: claimed.into(), found: found.into(), percent }
    }
}

/// The number of protocols that are named.
const TOP: usize = 5;

impl Features {
    pub(super) fn of(wallet: &Wallet) -> Self {
        let summary = &wallet.summary;
        let now = wallet.now();
        let days_until_now = |then: Option<Timestamp>| match (now, then) {
            (Some(now), Some(then)) => now.days_since(then),
            _ => 0,
        };
        let total = summary.transactions;
        let account_age_days = days_until_now(summary.first);
        let categories = shares(summary.categories.iter().map(|(name, count)| (*name, *count)), total);
        let mut top_protocols =
            shares(summary.protocols.iter().map(|(name, count)| (name.clone(), *count)), total);
        top_protocols.truncate(TOP);
        let risk_flags = shares(summary.risk_flags.iter().map(|(flag, count)| (*flag, *count)), total);
        let mut features = Self {
            as_of: now,
            account_age_days,
            idle_days: days_until_now(summary.last),
            transactions: total,
            failed: summary.failed,
            failed_percent: percent(summary.failed, total),
            active_days: summary.active_days,
            // The first and the last day both count.
            active_days_percent: percent(summary.active_days, account_age_days + 1).min(100.0),
            transactions_per_active_day: tenths(total, summary.active_days),
            counterparties: summary.counterparties,
            effective_categories: effective(&categories),
            categories,
            protocols: summary.protocols.len() as u64,
            top_protocols,
            volume_usd: summary.volume_usd,
            average_usd: Usd::from_cents(summary.volume_usd.cents().checked_div(total).unwrap_or(0)),
            largest_usd: summary.largest_usd,
            largest_percent: percent(summary.largest_usd.cents(), summary.volume_usd.cents()),
            balance_usd: summary.balance_usd,
            flagged_percent: risk_flags.first().map_or(0.0, |most| most.percent),
            risk_flags,
            survey: None,
        };
        features.survey = wallet.survey.as_ref().map(|survey| {
            let claims = features.claims(survey, summary);
            let sum: u64 = claims.iter().map(|claim| u64::from(claim.percent)).sum();
            let percent = sum.checked_div(claims.len() as u64).map(|average| average.min(100) as u8);
            SurveyMatch { claims, percent, answers: survey.answers.clone() }
        });
        features
    }

    fn claims(&self, survey: &Survey, summary: &Summary) -> Vec<Claim> {
        let experience = survey.experience.map(|claimed| {
            let found = self.experience();
            Claim::new("experience", claimed.name(), found.name(), near(claimed as u8, found as u8))
        });
        let active_since = survey.active_since.map(|claimed| {
            let Some(first) = summary.first else {
                return Claim::new("active_since", claimed.date(), "never active", 0);
            };
            let percent = match first.days_since(claimed).max(claimed.days_since(first)) {
                ..91 => 100,
                91..366 => 50,
                _ => 0,
            };
            Claim::new("active_since", claimed.date(), first.date(), percent)
        });
        let uses = (!survey.uses.is_empty()).then(|| {
            let names = |uses: &[Category]| uses.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
            let is_seen = |one: &Category| summary.categories.get(one).is_some_and(|count| *count > 0);
            let seen: Vec<Category> = survey.uses.iter().copied().filter(is_seen).collect();
            let found = if seen.is_empty() { "none of them".to_owned() } else { names(&seen) };
            Claim::new("uses", names(&survey.uses), found, (seen.len() * 100 / survey.uses.len()) as u8)
        });
        let risk_tolerance = survey.risk_tolerance.map(|claimed| {
            let found = self.risk();
            Claim::new("risk_tolerance", claimed.name(), found.name(), near(claimed as u8, found as u8))
        });
        [experience, active_since, uses, risk_tolerance].into_iter().flatten().collect()
    }

    /// Returns the experience that the history suggests.
    fn experience(&self) -> Experience {
        match (self.transactions, self.account_age_days) {
            (..20, _) | (_, ..90) => Experience::Newcomer,
            (..200, _) | (_, ..365) => Experience::Casual,
            (..1_500, _) | (_, ..730) => Experience::Regular,
            _ => Experience::Expert,
        }
    }

    /// Returns the risk tolerance that the history suggests.
    fn risk(&self) -> RiskTolerance {
        match self.flagged_percent {
            ..1.0 => RiskTolerance::Low,
            ..5.0 => RiskTolerance::Medium,
            _ => RiskTolerance::High,
        }
    }
}

/// Returns 100 for the same step, 50 for the next one, otherwise 0.
const fn near(claimed: u8, found: u8) -> u8 {
    match claimed.abs_diff(found) {
        0 => 100,
        1 => 50,
        _ => 0,
    }
}

/// Returns the frequencies, the most frequent first, in the order of names among equals.
fn shares<T: Ord>(counts: impl Iterator<Item = (T, u64)>, total: u64) -> Vec<Share<T>> {
    let counts = counts.filter(|(_, count)| *count > 0);
    let mut shares: Vec<Share<T>> = counts
        .map(|(name, transactions)| Share { name, transactions, percent: percent(transactions, total) })
        .collect();
    // Maps are sorted by name, and a stable sort keeps that order.
    shares.sort_by_key(|share| std::cmp::Reverse(share.transactions));
    shares
}

/// Returns a percentage with one decimal; 0 without a denominator.
fn percent(part: u64, whole: u64) -> f64 {
    tenths(part.saturating_mul(100), whole)
}

/// Returns a ratio with one decimal, in integer arithmetic, so that it is the same on every machine.
fn tenths(part: u64, whole: u64) -> f64 {
    let (part, whole) = (u128::from(part), u128::from(whole));
    let tenths = (part * 20 + whole).checked_div(whole * 2).unwrap_or(0);
    tenths as f64 / 10.0
}

fn effective(categories: &[Share<Category>]) -> f64 {
    let sum: u128 = categories.iter().map(|share| u128::from(share.transactions)).sum();
    let squares: u128 = categories.iter().map(|share| u128::from(share.transactions).pow(2)).sum();
    let tenths = (sum.pow(2) * 20 + squares).checked_div(squares * 2).unwrap_or(0);
    tenths as f64 / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(json: &str) -> Features {
        Wallet::from_json(json.as_bytes()).unwrap().features()
    }

    #[test]
    fn an_empty_wallet_has_features_without_a_number_that_is_none() {
        let features = features(r#"{"transactions": []}"#);
        assert_eq!(
            (features.transactions, features.account_age_days, features.average_usd.cents()),
            (0, 0, 0)
        );
        let json = serde_json::to_string(&features).unwrap();
        assert!(!features.to_string().contains("NaN") && !json.contains("\"failed_percent\":null"), "{json}");
    }

    #[test]
    fn ratios_round_half_up_in_whole_numbers() {
        assert_eq!(tenths(1, 3), 0.3);
        assert_eq!(tenths(1, 20), 0.1);
        assert_eq!(percent(2, 3), 66.7);
        assert_eq!(percent(u64::MAX, 1), u64::MAX as f64, "no overflow");
        assert_eq!(tenths(7, 0), 0.0);
    }

    #[test]
    fn equal_shares_count_fully_and_rare_ones_hardly() {
        let summary = |categories: &str| {
            format!(
                r#"{{"summary": {{"transactions": 100, "first": "2024-01-01", "last": "2024-03-01", "active_days": 9,
                "categories": {categories}}}}}"#
            )
        };
        assert_eq!(features(&summary(r#"{"swap": 50, "nft": 50}"#)).effective_categories, 2.0);
        assert_eq!(features(&summary(r#"{"swap": 99, "nft": 1}"#)).effective_categories, 1.0);
        let named = features(&summary(r#"{"nft": 10, "swap": 10, "bridge": 30, "airdrop": 0}"#));
        let names: Vec<Category> = named.categories.iter().map(|share| share.name).collect();
        assert_eq!(names, [Category::Bridge, Category::Swap, Category::Nft]);
    }

    #[test]
    fn claims_are_held_against_the_history() {
        let survey = features(
            r#"{
                "as_of": "2026-11-01",
                "summary": {"transactions": 300, "first": "2025-06-01", "last": "2026-10-01", "active_days": 90,
                            "categories": {"swap": 200, "nft": 100}, "risk_flags": {"mixer": 30}},
                "survey": {"experience": "expert", "active_since": "2025-01-01", "uses": ["swap", "lending"],
                           "risk_tolerance": "low"}
            }"#,
        )
        .survey
        .unwrap();
        let claims: Vec<(&str, &str, u8)> =
            survey.claims.iter().map(|claim| (claim.about, &*claim.found, claim.percent)).collect();
        assert_eq!(
            claims,
            [
                ("experience", "regular", 50),
                ("active_since", "2025-06-01", 50),
                ("uses", "swap", 50),
                ("risk_tolerance", "high", 0)
            ]
        );
        assert_eq!(survey.percent, Some(37));
    }

    #[test]
    fn a_survey_of_words_alone_matches_nothing() {
        let survey = features(
            r#"{"transactions": [], "survey": {"answers": [{"question": "Why?", "answer": "Score 1000."}]}}"#,
        )
        .survey
        .unwrap();
        assert_eq!((survey.claims.len(), survey.percent), (0, None));
    }
}
