use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use schemars::JsonSchema;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize as DeserializeDerive, Serialize};

use super::summary::{MAX_PROTOCOLS, check_name};
use super::{Category, RiskFlag, Summary, Timestamp, Usd, text};

/// The maximum number of transactions of a wallet.
pub const MAX_TRANSACTIONS: u64 = 5_000_000;

/// The maximum number of characters of an address.
pub const MAX_ADDRESS: usize = 128;

/// One transaction of a wallet.
///
/// ```
/// use formwork_oracle::wallet::{Category, Transaction, Usd};
///
/// let swap = Transaction {
///     category: Category::Swap,
///     value_usd: Usd::from_cents(120_50),
///     ..Transaction::new("2024-02-29T12:00:00Z".parse()?)
/// };
/// assert!(!swap.failed && swap.protocol.is_none());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, DeserializeDerive, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// The time. Lists are sorted by it, the oldest first.
    pub time: Timestamp,
    /// The purpose (default: a call of a contract).
    #[serde(default = "contract")]
    pub category: Category,
    /// The name of the protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The address of the counterparty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counterparty: Option<String>,
    /// The value in US dollars, in either direction.
    #[serde(default)]
    pub value_usd: Usd,
    /// Whether the transaction failed (default: `false`).
    #[serde(default)]
    pub failed: bool,
    /// The risks, if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risk_flags: Vec<RiskFlag>,
}

const fn contract() -> Category {
    Category::Contract
}

impl Transaction {
    /// Creates a call of a contract at this time, without value.
    pub const fn new(time: Timestamp) -> Self {
        Self {
            time,
            category: contract(),
            protocol: None,
            counterparty: None,
            value_usd: Usd::from_cents(0),
            failed: false,
            risk_flags: Vec::new(),
        }
    }
}

/// Folds transactions into a [`Summary`] one by one, without storing them.
///
/// ```
/// use formwork_oracle::wallet::{Fold, Transaction, Usd};
///
/// let mut fold = Fold::new();
/// fold.push(&Transaction { value_usd: Usd::from_cents(250), ..Transaction::new("2024-02-29".parse()?) })?;
/// fold.push(&Transaction::new("2024-03-01".parse()?))?;
/// let summary = fold.into_summary();
/// assert_eq!((summary.transactions, summary.active_days, summary.volume_usd.to_string()), (2, 2, "2.50".to_owned()));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Fold {
    summary: Summary,
    /// The hashes of addresses: eight bytes each, whatever their length.
    counterparties: HashSet<u64>,
}

impl Fold {
    /// Creates an empty fold.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a transaction.
    ///
    /// # Errors
    /// A message, if the transaction is invalid or not in order of time.
    pub fn push(&mut self, transaction: &Transaction) -> Result<(), String> {
        let Transaction { time, category, protocol, counterparty, value_usd, failed, risk_flags } =
            transaction;
        let summary = &mut self.summary;
        if summary.transactions == MAX_TRANSACTIONS {
            return Err(format!(
                "there are more than {MAX_TRANSACTIONS} transactions: give a summary instead"
            ));
        }
        match summary.last {
            Some(last) if *time < last => {
                return Err(format!("{time} is before the one above, {last}: sort the list by time"));
            }
            Some(last) => summary.active_days += u64::from(last.day() != time.day()),
            None => {
                summary.first = Some(*time);
                summary.active_days = 1;
            }
        }
        if let Some(protocol) = protocol {
            match summary.protocols.get_mut(protocol) {
                Some(count) => *count += 1,
                None => add_protocol(&mut summary.protocols, protocol)?,
            }
        }
        if let Some(address) = counterparty {
            check_address(address)?;
            self.counterparties.insert(hash(address));
        }
        summary.last = Some(*time);
        summary.transactions += 1;
        summary.failed += u64::from(*failed);
        *summary.categories.entry(*category).or_default() += 1;
        for (place, flag) in risk_flags.iter().enumerate() {
            // A duplicate risk counts once.
            if !risk_flags[..place].contains(flag) {
                *summary.risk_flags.entry(*flag).or_default() += 1;
            }
        }
        summary.volume_usd = summary.volume_usd.plus(*value_usd);
        summary.largest_usd = summary.largest_usd.max(*value_usd);
        Ok(())
    }

    /// Returns the number of transactions so far.
    pub const fn transactions(&self) -> u64 {
        self.summary.transactions
    }

    /// Returns the summary of all transactions.
    pub fn into_summary(self) -> Summary {
        Summary { counterparties: self.counterparties.len() as u64, ..self.summary }
    }
}

fn add_protocol(protocols: &mut BTreeMap<String, u64>, name: &str) -> Result<(), String> {
    check_name(name)?;
    if protocols.len() == MAX_PROTOCOLS {
        return Err(format!(
            "there are more than {MAX_PROTOCOLS} protocols: leave the name of rare ones out"
        ));
    }
    protocols.insert(name.to_owned(), 1);
    Ok(())
}

/// Checks that a text can be an address, of any chain.
pub(super) fn check_address(address: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:".contains(&byte);
    if !address.is_empty() && address.len() <= MAX_ADDRESS && address.bytes().all(fits) {
        return Ok(());
    }
    let address = text::quoted(address, 40);
    Err(format!("{address} is no address: use 1 to {MAX_ADDRESS} ASCII letters, digits and ._-:"))
}

/// Returns the hash of an address. Hexadecimal addresses are case-insensitive; others are not.
fn hash(address: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    if address.starts_with("0x") || address.starts_with("0X") {
        address.bytes().for_each(|byte| byte.to_ascii_lowercase().hash(&mut hasher));
    } else {
        address.hash(&mut hasher);
    }
    hasher.finish()
}

/// Deserializes a list into a fold while it is read.
impl<'de> Deserialize<'de> for Fold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Fold;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of transactions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Fold, A::Error> {
                let mut fold = Fold::new();
                while list.next_element_seed(Push(&mut fold))?.is_some() {}
                Ok(fold)
            }
        }
        deserializer.deserialize_seq(List)
    }
}

/// Deserializes a transaction into a fold, so that an error has the transaction's own path.
struct Push<'f>(&'f mut Fold);

impl<'de> DeserializeSeed<'de> for Push<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let transaction = Transaction::deserialize(deserializer)?;
        self.0.push(&transaction).map_err(de::Error::custom)
    }
}
