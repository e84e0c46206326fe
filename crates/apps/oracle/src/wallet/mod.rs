//! Wallets: their histories, read from files and requests, validated, and summarised for a prompt.
//!
//! - A [`Wallet`] is a [`Summary`] of its history and optionally a [`Survey`]. A list of [`Transaction`]s is folded
//!   into a summary while it is read, so its length does not matter for memory.
//! - A [`Reader`] reads JSON and CSV, including exports of block explorers. Its errors have file, line, JSON path and
//!   fix, as a [`WalletError`].
//! - [`Features`] are computed from a wallet, the same on every machine; their `Display` is the text of the prompt.
//!
//! No function here reads a clock: the age of a wallet depends on its own `as_of`, so the same wallet always gives the
//! same features.

mod count;
mod error;
mod explorer;
mod features;
mod kinds;
mod reader;
mod scalar;
mod show;
mod summary;
mod survey;
mod text;
mod timestamp;
mod transaction;
mod usd;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use error::WalletError;
pub use features::{Claim, Features, RiskCount, Share, SurveyMatch};
pub use kinds::{Category, Experience, RiskFlag, RiskTolerance};
pub use reader::Reader;
pub use show::{MAX_SHOWN_ANSWER, MAX_SHOWN_ANSWERS};
pub use summary::{MAX_NAME, MAX_PROTOCOLS, Summary};
pub use survey::{Answer, MAX_ANSWER, MAX_ANSWERS, MAX_QUESTION, Survey};
pub use timestamp::Timestamp;
pub use transaction::{Fold, MAX_ADDRESS, MAX_TRANSACTIONS, Transaction};
pub use usd::Usd;

/// A wallet to score.
///
/// In JSON it has either a `summary` or its `transactions`, oldest first:
///
/// ```
/// use formwork_oracle::wallet::Wallet;
///
/// let wallet = Wallet::from_json(
///     br#"{
///         "as_of": "2026-11-01",
///         "transactions": [
///             {"time": "2024-02-29T12:00:00Z", "category": "swap", "protocol": "Uniswap", "value_usd": 120.5},
///             {"time": "2026-10-30T08:00:00Z", "category": "lending", "protocol": "Aave", "value_usd": 2000}
///         ],
///         "survey": {"experience": "casual", "uses": ["swap", "nft"]}
///     }"#,
/// )?;
/// assert_eq!(wallet.summary.transactions, 2);
/// assert_eq!(wallet.features().account_age_days, 975);
///
/// let error = Wallet::from_json(br#"{"summary": {"transactions": -5, "active_days": 1}}"#).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "line 1, column 31: $.summary.transactions: -5 is negative: a count is a whole number from 0"
/// );
/// # Ok::<(), formwork_oracle::wallet::WalletError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Document")]
#[schemars(
    description = "A wallet to score: its history as a summary or as transactions, and perhaps a survey."
)]
pub struct Wallet {
    /// The wallet's address on the chain, if it is known; the prompt does not contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The present moment for all figures (default: the time of the last transaction).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Timestamp>,
    /// The history.
    pub summary: Summary,
    /// The owner's answers to a survey.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survey: Option<Survey>,
    /// The score that a person would give, for evaluation only. Neither the prompt nor the hash contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Band>,
}

/// The scores that a person would accept, both ends included.
///
/// ```
/// use formwork_oracle::wallet::Band;
///
/// let band = Band { min: 400, max: 500 };
/// assert!(band.contains(500) && !band.contains(501) && band.middle() == 450);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// The lowest accepted score.
    #[schemars(range(max = 1000))]
    pub min: u16,
    /// The highest accepted score.
    #[schemars(range(max = 1000))]
    pub max: u16,
}

impl Band {
    /// Returns whether the band contains a score.
    pub const fn contains(self, score: u16) -> bool {
        self.min <= score && score <= self.max
    }

    /// Returns the points from a score to the nearer end of the band; 0 within it.
    pub(crate) const fn distance(self, score: u16) -> u16 {
        self.min.saturating_sub(score) + score.saturating_sub(self.max)
    }

    /// Returns the middle of the band, rounded down.
    pub const fn middle(self) -> u16 {
        self.min.midpoint(self.max)
    }
}

impl Wallet {
    /// Creates a wallet with this history.
    ///
    /// # Errors
    /// [`WalletError`] if the figures contradict each other; see [`Summary::check`].
    pub fn new(summary: Summary) -> Result<Self, WalletError> {
        summary.check()?;
        Ok(Self { summary, ..Self::default() })
    }

    /// Parses a JSON document. [`Reader`] has more settings, and names of files in errors.
    ///
    /// # Errors
    /// [`WalletError`] with the reason and the location.
    pub fn from_json(json: &[u8]) -> Result<Self, WalletError> {
        Reader::new().slice(json)
    }

    /// Returns the features, for the prompt and for the fallback.
    pub fn features(&self) -> Features {
        Features::of(self)
    }

    /// Returns the present moment of the wallet; `None` without transactions and `as_of`.
    pub fn now(&self) -> Option<Timestamp> {
        self.as_of.or(self.summary.last)
    }

    /// Returns the canonical bytes: equal for a summary and its transactions, and independent of the order of keys and
    /// the notation of numbers. They exclude `expected`.
    pub fn canonical(&self) -> Vec<u8> {
        let canonical = Self { as_of: self.now(), expected: None, ..self.clone() };
        let mut bytes = Vec::with_capacity(1 << 11);
        // Fields have a fixed order, maps are sorted, amounts are in cents, and writing to memory cannot fail.
        _ = serde_json::to_writer(&mut bytes, &canonical);
        bytes
    }

    /// Returns the SHA-256 of the canonical bytes, as 64 hexadecimal digits.
    pub fn hash(&self) -> String {
        format!("{:x}", Sha256::digest(self.canonical()))
    }

    /// Checks everything that the types do not guarantee.
    fn check(&self) -> Result<(), WalletError> {
        if let Some(address) = &self.address {
            transaction::check_address(address).map_err(|message| WalletError::at("$.address", message))?;
        }
        self.summary.check()?;
        if let Some(survey) = &self.survey {
            survey.check()?;
        }
        if let (Some(as_of), Some(last)) = (self.as_of, self.summary.last)
            && last > as_of
        {
            let message =
                format!("{as_of} is before the last transaction, {last}, which would be in the future");
            return Err(WalletError::at("$.as_of", message));
        }
        if let (Some(now), Some(since)) =
            (self.now(), self.survey.as_ref().and_then(|survey| survey.active_since))
            && since > now
        {
            let message = format!("{since} is after {now}, so in the future: say when it began");
            return Err(WalletError::at("$.survey.active_since", message));
        }
        if let Some(Band { min, max }) = self.expected
            && (min > max || max > 1000)
        {
            let message = format!("{min} to {max} is no band of scores: 0 <= min <= max <= 1000");
            return Err(WalletError::at("$.expected", message));
        }
        Ok(())
    }
}

/// The JSON form of a wallet, with either a summary or transactions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Document {
    /// The wallet's address on the chain. The prompt does not contain it.
    address: Option<String>,
    /// The present moment for all figures (default: the time of the last transaction).
    as_of: Option<Timestamp>,
    /// The history in figures, in place of `transactions`.
    summary: Option<Summary>,
    /// The transactions, the oldest first, in place of `summary`.
    #[serde(default)]
    #[schemars(with = "Option<Vec<Transaction>>")]
    transactions: Option<Fold>,
    /// The owner's answers to a survey.
    survey: Option<Survey>,
    /// The score that a person would give, for evaluation only. The prompt does not contain it.
    expected: Option<Band>,
}

impl TryFrom<Document> for Wallet {
    type Error = WalletError;

    fn try_from(document: Document) -> Result<Self, WalletError> {
        let Document { address, as_of, summary, transactions, survey, expected } = document;
        let summary = match (summary, transactions) {
            (Some(summary), None) => summary,
            (None, Some(fold)) => fold.into_summary(),
            (Some(_), Some(_)) => {
                let message =
                    "there are a summary and transactions: give one of them, the other could differ";
                return Err(WalletError::at("$.transactions", message));
            }
            (None, None) => {
                let message = "there is no history: give `summary` or `transactions`; a wallet that never did \
                               anything has `\"transactions\": []`";
                return Err(WalletError::at("$", message));
            }
        };
        let wallet = Self { address, as_of, summary, survey, expected };
        wallet.check()?;
        Ok(wallet)
    }
}
