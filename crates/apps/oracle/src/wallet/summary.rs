use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::count::{count, counts};
use super::{Category, RiskFlag, Timestamp, Usd, WalletError, text};

/// The maximum number of protocols in a summary.
pub const MAX_PROTOCOLS: usize = 1_000;

/// The maximum number of characters of a protocol's name.
pub const MAX_NAME: usize = 64;

/// The history of a wallet in figures, given directly or folded from transactions.
///
/// All zeros is valid: a wallet without transactions.
///
/// ```
/// use formwork_oracle::wallet::Summary;
///
/// let summary = Summary { transactions: 3, failed: 4, ..Summary::default() };
/// assert_eq!(summary.check().unwrap_err().path(), Some("$.summary.first"));
/// assert!(Summary::default().check().is_ok());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// The number of transactions, including failed ones.
    #[serde(deserialize_with = "count")]
    pub transactions: u64,
    /// The number of failed transactions.
    #[serde(default, deserialize_with = "count")]
    pub failed: u64,
    /// The time of the first transaction; required if there are transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Timestamp>,
    /// The time of the last transaction; required if there are transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    /// The number of different days with transactions, in UTC.
    #[serde(deserialize_with = "count")]
    pub active_days: u64,
    /// The number of different counterparties.
    #[serde(default, deserialize_with = "count")]
    pub counterparties: u64,
    /// The number of transactions by category; absent categories count as 0.
    #[serde(default, deserialize_with = "counts", skip_serializing_if = "BTreeMap::is_empty")]
    pub categories: BTreeMap<Category, u64>,
    /// The number of transactions by protocol.
    #[serde(default, deserialize_with = "counts", skip_serializing_if = "BTreeMap::is_empty")]
    pub protocols: BTreeMap<String, u64>,
    /// The number of transactions by risk. A transaction can have several risks.
    #[serde(default, deserialize_with = "counts", skip_serializing_if = "BTreeMap::is_empty")]
    pub risk_flags: BTreeMap<RiskFlag, u64>,
    /// The total value of all transactions, in US dollars.
    #[serde(default)]
    pub volume_usd: Usd,
    /// The value of the largest transaction, in US dollars.
    #[serde(default)]
    pub largest_usd: Usd,
    /// The present balance in US dollars, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance_usd: Option<Usd>,
}

impl Summary {
    /// Checks that the figures do not contradict each other.
    ///
    /// # Errors
    /// [`WalletError`] for the first contradiction, with its JSON path in a wallet and the expectation.
    pub fn check(&self) -> Result<(), WalletError> {
        let Self { transactions, first, last, .. } = *self;
        let days = match (first, last) {
            (Some(first), Some(last)) if first > last => {
                let message = format!("{first} is after `last`, {last}: the first transaction comes first");
                return wrong("first", message);
            }
            (Some(first), Some(last)) => last.day() - first.day() + 1,
            (None, _) if transactions > 0 => {
                return wrong("first", "missing: say when the first transaction was");
            }
            (_, None) if transactions > 0 => {
                return wrong("last", "missing: say when the last transaction was");
            }
            _ => 0,
        };
        if transactions == 0 && (first.is_some() || last.is_some()) {
            let name = if first.is_some() { "first" } else { "last" };
            return wrong(name, "there are 0 transactions, so none has a time: leave it out");
        }
        for (name, value) in [
            ("failed", self.failed),
            ("active_days", self.active_days),
            ("counterparties", self.counterparties),
        ] {
            // A transaction can have many recipients, but not more than fit into a block.
            let most =
                if name == "counterparties" { transactions.saturating_mul(1_000) } else { transactions };
            if value > most {
                return wrong(name, format!("{value} is too many for {transactions} transactions"));
            }
        }
        if self.active_days > days {
            let message = format!("{} is more than the {days} days from `first` to `last`", self.active_days);
            return wrong("active_days", message);
        }
        if transactions > 0 && self.active_days == 0 {
            return wrong("active_days", "there are transactions, so there is a day: give at least 1");
        }
        let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::saturating_add);
        for (name, total) in [
            ("categories", sum(&mut self.categories.values().copied())),
            ("protocols", sum(&mut self.protocols.values().copied())),
        ] {
            if total > transactions {
                let message = format!("they add up to {total}, and there are {transactions} transactions");
                return wrong(name, message);
            }
        }
        if let Some((flag, count)) = self.risk_flags.iter().find(|(_, count)| **count > transactions) {
            let message = format!("{count} is too many for {transactions} transactions");
            return wrong(&format!("risk_flags.{flag}"), message);
        }
        if self.protocols.len() > MAX_PROTOCOLS {
            let message =
                format!("{} protocols: name at most {MAX_PROTOCOLS}, the most used", self.protocols.len());
            return wrong("protocols", message);
        }
        for name in self.protocols.keys() {
            check_name(name).or_else(|message| wrong("protocols", message))?;
        }
        if self.largest_usd > self.volume_usd {
            let message = format!("{} is more than `volume_usd`, {}", self.largest_usd, self.volume_usd);
            return wrong("largest_usd", message);
        }
        if transactions == 0 && self.volume_usd > Usd::default() {
            return wrong("volume_usd", "0 transactions move nothing: give 0, or the transactions");
        }
        Ok(())
    }
}

fn wrong(name: &str, message: impl Into<String>) -> Result<(), WalletError> {
    Err(WalletError::at(format!("$.summary.{name}"), message))
}

/// Checks the name of a protocol, which becomes part of the prompt.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let fits = |letter: char| letter.is_alphanumeric() || " ._-+&/:'".contains(letter);
    if name.trim().is_empty() {
        return Err("a protocol has no name: give it one, or leave it out".to_owned());
    }
    if name.chars().count() > MAX_NAME {
        let name = text::quoted(name, 40);
        return Err(format!("{name} is too long: the name of a protocol has at most {MAX_NAME} characters"));
    }
    if !name.chars().all(fits) {
        let name = text::quoted(name, 40);
        return Err(format!("{name} is no name of a protocol: use letters, digits, spaces and ._-+&/:'"));
    }
    Ok(())
}
