//! Wallets: what is known of one, read from files and requests, checked, and turned into what a model is shown.
//!
//! - A [`Wallet`] is a [`Summary`] of its history and perhaps a [`Survey`]. A list of [`Transaction`]s is folded into a
//!   summary while it is read, so a wallet with a million of them is as small as any.
//! - A [`Reader`] reads JSON and CSV, also as block explorers export them, and says what is wrong with them: file, line, JSON
//!   path and fix, as a [`WalletError`].
//! - [`Features`] are what is computed of it, the same on every machine; their `Display` is what the model sees.
//!
//! There is no clock here: how old a wallet is depends on its own `as_of`, so the same wallet is the same tomorrow.

mod count;
mod error;
mod explorer;
mod features;
mod kinds;
mod reader;
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Document")]
pub struct Wallet {
    /// Its address on the chain, if that matters to anybody: the model is not shown it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The moment that the figures are of: what counts as now. The last transaction's by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<Timestamp>,
    /// The history.
    pub summary: Summary,
    /// The owner's answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survey: Option<Survey>,
    /// The score that a person would give: for evaluation alone. The model is not shown it, and the hash is without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Band>,
}

/// Scores that a person would find right, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// The lowest.
    #[schemars(range(max = 1000))]
    pub min: u16,
    /// The highest.
    #[schemars(range(max = 1000))]
    pub max: u16,
}

impl Band {
    /// Whether a score is within.
    pub const fn contains(self, score: u16) -> bool {
        self.min <= score && score <= self.max
    }

    /// Its middle, rounded down.
    pub const fn middle(self) -> u16 {
        self.min.midpoint(self.max)
    }
}

impl Wallet {
    /// A wallet with this history.
    ///
    /// # Errors
    /// Figures that cannot be true together.
    pub fn new(summary: Summary) -> Result<Self, WalletError> {
        summary.check()?;
        Ok(Self { summary, ..Self::default() })
    }

    /// Reads a JSON document. [`Reader`] has more to say.
    ///
    /// # Errors
    /// [`WalletError`] with the reason and the place.
    pub fn from_json(json: &[u8]) -> Result<Self, WalletError> {
        Reader::new().slice(json)
    }

    /// Returns what a model is shown of it, and what is counted where there is no model.
    pub fn features(&self) -> Features {
        Features::of(self)
    }

    /// The moment that counts as now; `None` if nothing ever happened and nobody said.
    pub fn now(&self) -> Option<Timestamp> {
        self.as_of.or(self.summary.last)
    }

    /// Its canonical bytes: the same for the same wallet, given as a summary or as transactions, whatever the order of keys
    /// and the way that numbers are written. Without `expected`.
    pub fn canonical(&self) -> Vec<u8> {
        let canonical = Canonical {
            address: self.address.as_deref(),
            as_of: self.now(),
            summary: &self.summary,
            survey: self.survey.as_ref(),
        };
        let mut bytes = Vec::with_capacity(1 << 11);
        // Fields in order, maps sorted, amounts in cents: writing to memory cannot fail.
        _ = serde_json::to_writer(&mut bytes, &canonical);
        bytes
    }

    /// SHA-256 of the canonical bytes, as 64 hexadecimal digits.
    pub fn hash(&self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digest = Sha256::digest(self.canonical());
        let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
    }

    /// Everything that can be wrong with it apart from its types.
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

/// The members that make a wallet that wallet.
#[derive(Serialize)]
struct Canonical<'w> {
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<&'w str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of: Option<Timestamp>,
    summary: &'w Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    survey: Option<&'w Survey>,
}

impl JsonSchema for Wallet {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Wallet".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = Document::json_schema(generator);
        schema.insert(
            "description".to_owned(),
            "A wallet to score: its history as a summary or as transactions, and perhaps a survey.".into(),
        );
        schema
    }
}

/// A wallet as it is written: either way.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Document {
    /// Its address on the chain. The model is not shown it.
    #[serde(default)]
    address: Option<String>,
    /// The moment that the figures are of; the last transaction's by default.
    #[serde(default)]
    as_of: Option<Timestamp>,
    /// The history in figures; in place of `transactions`.
    #[serde(default)]
    summary: Option<Summary>,
    /// The transactions one by one, the oldest first; in place of `summary`.
    #[serde(default)]
    #[schemars(with = "Option<Vec<Transaction>>")]
    transactions: Option<Fold>,
    /// The owner's answers.
    #[serde(default)]
    survey: Option<Survey>,
    /// The score that a person would give, for evaluation. The model is not shown it.
    #[serde(default)]
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
