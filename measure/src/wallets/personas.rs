//! Kinds of wallet owners with typical habits.

use formwork_oracle::wallet::{Category, RiskFlag};
use serde::Deserialize;

/// The owners and the protocols that they use.
#[derive(Debug, Deserialize)]
pub(super) struct People {
    pub(super) personas: Vec<Habits>,
    /// Names of existing protocols.
    pub(super) protocols: Vec<String>,
}

impl People {
    pub(super) fn read() -> serde_json::Result<Self> {
        serde_json::from_str(include_str!("personas.json"))
    }
}

/// The habits of a persona. Ranges are inclusive. Numbers per thousand refer to transactions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Habits {
    pub(super) name: String,
    pub(super) age_days: (u64, u64),
    pub(super) idle_days: (u64, u64),
    pub(super) transactions: (u64, u64),
    /// The share of active days between the first and the last transaction, in percent.
    pub(super) active_percent: (u64, u64),
    pub(super) failed_permille: (u64, u64),
    /// The percentage of transactions with a new counterparty.
    pub(super) new_percent: (u64, u64),
    /// The kinds of transactions with their weights.
    pub(super) does: Vec<(Category, u64)>,
    pub(super) protocols: (u64, u64),
    /// The average value of a transaction in dollars.
    pub(super) average_usd: (u64, u64),
    pub(super) risks: Vec<(RiskFlag, u64, u64)>,
    pub(super) survey: Says,
}

/// The claims of a survey.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Says {
    Nothing,
    Truth,
    /// Exaggerated claims.
    Boasts,
    /// A prompt injection.
    Orders,
}
