use formwork_oracle::wallet::{Band, Features, RiskFlag};

/// The scores that the rubric gives without a model. Generated wallets are expected to have them, and reports are compared with
/// them. They are not the oracle's fallback. Each part is from 0 to 100.
///
/// | part | rises with | is held down by |
/// |---|---|---|
/// | activity | transactions: 10 are 20, 100 are 45, 1000 are 75, 5000 are 90 | 90 idle days and more; a program's pace |
/// | maturity | age: 90 days are 20, a year 50, two 70, four 90 | fewer than 10 active days |
/// | diversity | the mean of categories in effect, protocols and counterparties | |
/// | risk_behavior | starts at 95 | each flag by its weight and share; failed transactions |
/// | survey_match | how well claims fit | 50 without any |
#[derive(Debug, Clone, Copy)]
pub(super) struct Reference {
    activity: u8,
    maturity: u8,
    diversity: u8,
    /// 100 is without risk.
    risk_behavior: u8,
    survey_match: u8,
}

/// The maximum deviation of an expected score from the reference.
const WIDTH: u16 = 75;

impl Reference {
    /// Returns the scores of features.
    pub(super) fn of(features: &Features) -> Self {
        let survey = features.survey.as_ref().and_then(|survey| survey.percent);
        Self {
            activity: activity(features),
            maturity: maturity(features),
            diversity: diversity(features),
            risk_behavior: risk_behavior(features),
            survey_match: survey.unwrap_or(50),
        }
    }

    /// Returns the weighted sum (weights 2, 2, 2, 2.5 and 1.5), rounded, from 0 to 1000.
    const fn score(self) -> u16 {
        let twice = 4 * (self.activity as u16 + self.maturity as u16 + self.diversity as u16)
            + 5 * self.risk_behavior as u16
            + 3 * self.survey_match as u16;
        twice.div_ceil(2)
    }

    /// Returns the range of expected scores around the reference.
    pub(super) fn band(self) -> Band {
        let score = self.score();
        Band { min: score.saturating_sub(WIDTH), max: (score + WIDTH).min(1000) }
    }
}

fn activity(features: &Features) -> u8 {
    let busy = between(
        features.transactions,
        &[(0, 0), (10, 20), (100, 45), (1_000, 75), (5_000, 90), (20_000, 100)],
    );
    let recent = between(features.idle_days, &[(0, 100), (30, 100), (90, 80), (365, 40), (1_095, 15)]);
    let by_hand = if features.transactions_per_active_day > 50.0 { 60 } else { 100 };
    part(busy, recent.min(by_hand))
}

fn maturity(features: &Features) -> u8 {
    let age = between(
        features.account_age_days,
        &[(0, 0), (90, 20), (365, 50), (730, 70), (1_460, 90), (2_555, 100)],
    );
    let used = between(features.active_days, &[(0, 0), (1, 40), (10, 100)]);
    part(age, used)
}

fn diversity(features: &Features) -> u8 {
    let effective = (features.effective_categories * 10.0) as u64;
    let categories = between(effective, &[(0, 0), (10, 15), (20, 40), (40, 80), (60, 100)]);
    let protocols = between(features.protocols, &[(0, 0), (1, 15), (5, 50), (15, 85), (30, 100)]);
    let others = between(features.counterparties, &[(0, 0), (5, 20), (50, 55), (300, 85), (1_000, 100)]);
    ((u16::from(categories) + u16::from(protocols) + u16::from(others)) / 3) as u8
}

fn risk_behavior(features: &Features) -> u8 {
    if features.transactions == 0 {
        return 50;
    }
    let mut loss = 0;
    for flag in &features.risk_flags {
        // A part of the deduction applies to the first occurrence. The rest grows with the share, up to 10 % of all transactions.
        let (once, most) = match flag.name {
            RiskFlag::Sanctioned | RiskFlag::Exploit => (45, 85),
            RiskFlag::Mixer | RiskFlag::Phishing => (25, 75),
            RiskFlag::WashTrading => (15, 60),
            RiskFlag::RugPull | RiskFlag::Liquidation => (5, 35),
            RiskFlag::UnverifiedContract => (2, 25),
        };
        let usual = (flag.percent * 10.0) as u64;
        loss += once + u32::from(between(usual, &[(0, 0), (100, 100)])) * (most - once) / 100;
    }
    let failed = (features.failed_percent * 10.0) as u64;
    loss += u32::from(between(failed, &[(0, 0), (50, 0), (200, 15), (500, 30)]));
    95 - loss.min(95) as u8
}

/// Interpolates between the points of a table with an increasing first column.
fn between(at: u64, table: &[(u64, u8)]) -> u8 {
    let after = table.partition_point(|(point, _)| *point <= at);
    let Some((low, low_value)) = after.checked_sub(1).and_then(|before| table.get(before)) else {
        return table.first().map_or(0, |(_, value)| *value);
    };
    let Some((high, high_value)) = table.get(after) else { return *low_value };
    let (low_value, high_value) = (i64::from(*low_value), i64::from(*high_value));
    // Tables span a few thousands, so this stays small.
    let step = (high_value - low_value) * (at - low) as i64 / (high - low) as i64;
    (low_value + step).clamp(0, 100) as u8
}

/// Returns a percentage of a value.
const fn part(value: u8, percent: u8) -> u8 {
    (value as u16 * percent as u16 / 100) as u8
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use formwork_oracle::wallet::{Reader, Wallet};
    use proptest::prelude::*;

    use super::*;

    const TABLE: &[(u64, u8)] = &[(0, 100), (30, 100), (90, 80), (365, 40)];

    #[test]
    fn points_of_a_table_are_met_and_its_ends_hold() {
        for (point, value) in TABLE {
            assert_eq!(between(*point, TABLE), *value);
        }
        assert_eq!(between(60, TABLE), 90);
        assert_eq!(between(u64::MAX, TABLE), 40);
    }

    #[test]
    fn the_sum_is_the_documents() {
        let all = |value| Reference {
            activity: value,
            maturity: value,
            diversity: value,
            risk_behavior: value,
            survey_match: value,
        };
        assert_eq!((all(0).score(), all(100).score(), all(50).score()), (0, 1000, 500));
        let document =
            Reference { activity: 80, maturity: 70, diversity: 60, risk_behavior: 51, survey_match: 40 };
        assert_eq!(document.score(), 608, "607.5, rounded");
        assert_eq!(all(0).band(), Band { min: 0, max: 75 });
        assert_eq!(all(100).band(), Band { min: 925, max: 1000 });
    }

    #[test]
    fn risks_weigh_more_the_more_usual_they_are() {
        let risk = |flags: &str| {
            let json = format!(
                r#"{{"summary": {{"transactions": 1000, "first": "2024-01-01", "last": "2024-06-01", "active_days": 50,
                "risk_flags": {flags}}}}}"#
            );
            Reference::of(&Wallet::from_json(json.as_bytes()).unwrap().features()).risk_behavior
        };
        assert_eq!(risk("{}"), 95);
        assert_eq!(risk(r#"{"mixer": 1}"#), 70);
        assert_eq!(risk(r#"{"mixer": 100}"#), 20);
        assert_eq!(risk(r#"{"sanctioned": 500, "mixer": 500}"#), 0);
    }

    proptest! {
        #[test]
        fn a_table_is_never_left(at: u64) {
            prop_assert!((40..=100).contains(&between(at, TABLE)));
        }
    }

    #[test]
    fn each_example_is_within_the_band_that_a_person_gave_it() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/wallets");
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files = entries.filter(|path| path.extension().is_some_and(|other| other == "json"));
        let wallets: Vec<(String, Wallet)> =
            files.map(|path| (path.display().to_string(), Reader::new().file(&path).unwrap())).collect();
        assert!(wallets.len() >= 30, "{}", wallets.len());
        let mut off = Vec::new();
        for (name, wallet) in &wallets {
            let (reference, band) = (Reference::of(&wallet.features()), wallet.expected.unwrap());
            assert!(band.max - band.min <= 200, "{name}: a band of {band:?} says nothing");
            if !band.contains(reference.score()) {
                off.push(format!("{name}: {} by {reference:?}, expected {band:?}", reference.score()));
            }
        }
        assert!(off.is_empty(), "{}", off.join("\n"));
        let (low, high): (Vec<_>, Vec<_>) =
            wallets.iter().filter_map(|(_, wallet)| wallet.expected).partition(|band| band.middle() < 500);
        assert!(low.len() >= 10 && high.len() >= 10, "varied: {} and {}", low.len(), high.len());
    }
}
