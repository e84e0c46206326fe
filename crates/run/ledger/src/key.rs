//! A key with its rights, and its secret.

use std::fmt;

use formwork_core::Time;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{Error, Period};

/// The start of every secret.
pub(crate) const PREFIX: &str = "fw_";

/// The number of characters of a secret that are stored, so that people recognise it.
const HINT: usize = 11;

/// Names a key within its ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(pub(crate) i64);

impl KeyId {
    /// No key, for [`RunQuery::key`](crate::RunQuery::key).
    pub const NONE: Self = Self(0);
}

/// The permissions of a key.
///
/// ```
/// use formwork_ledger::KeyRole;
///
/// assert_eq!(KeyRole::default(), KeyRole::Client);
/// assert_eq!(KeyRole::Admin.name(), "admin");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyRole {
    /// May make requests and read its own runs.
    #[default]
    Client,
    /// May also read the pages, the metrics and all runs.
    Admin,
}

impl KeyRole {
    /// Returns the name in the file and in JSON: `client` or `admin`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Admin => "admin",
        }
    }
}

/// The settings of a new key. Only the name is required.
///
/// ```
/// use formwork_ledger::{KeyRole, NewKey};
///
/// // 5 US dollars, 60 requests per minute.
/// let new = NewKey { budget: Some(5_000_000), rpm: Some(60), ..NewKey::new("alice") };
/// assert_eq!((new.role, new.expires), (KeyRole::Client, None));
/// ```
#[derive(Debug, Clone, Default)]
pub struct NewKey {
    /// A name for people, of 1 to 64 characters; no two keys of a ledger have the same.
    pub name: String,
    /// The budget of the key, in millionths of a US dollar (default: no limit).
    pub budget: Option<u64>,
    /// The time after which the budget is whole again (default: never).
    pub period: Option<Period>,
    /// The maximum number of tokens per minute, of prompts and answers together (default: no limit).
    pub tpm: Option<u32>,
    /// The maximum number of requests that are open at once (default: no limit).
    pub max_open: Option<u32>,
    /// The maximum number of requests per minute (default: no limit).
    pub rpm: Option<u32>,
    /// The models, targets and aliases that the key may use (default: empty, which allows all).
    pub models: Vec<String>,
    /// The time at which the key expires (default: never).
    pub expires: Option<Time>,
    /// The permissions (default: [`KeyRole::Client`]).
    pub role: KeyRole,
}

impl NewKey {
    /// Returns a client's key without limits.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// A key, without its secret.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::{Ledger, NewKey, Settings};
///
/// let ledger = Ledger::in_memory(Settings::default())?;
/// let new = NewKey { models: vec!["fast".to_owned()], ..NewKey::new("alice") };
/// let (key, secret) = ledger.add_key(new, Time(1_795_000_000_000))?;
/// assert!(key.allows("fast") && !key.allows("clever") && secret.reveal().starts_with("fw"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Key {
    /// Its id.
    pub id: KeyId,
    /// Its name.
    pub name: String,
    /// The first characters of the secret.
    pub hint: String,
    /// The rights of its holder.
    pub role: KeyRole,
    /// The budget, in millionths of a US dollar; `None` is no limit.
    pub budget: Option<u64>,
    /// The time after which the budget is whole again; `None` is never.
    pub period: Option<Period>,
    /// The beginning of the period of the last reservation.
    pub period_start: Time,
    /// The part of `spent` that was spent before that period.
    pub spent_before: u64,
    /// The cost of all settled calls, in millionths of a US dollar.
    pub spent: u64,
    /// The amount that is reserved for calls in flight, and for calls whose process died before it settled them.
    pub held: u64,
    /// The maximum number of requests per minute; `None` is no limit.
    pub rpm: Option<u32>,
    /// The maximum number of tokens per minute; `None` is no limit.
    pub tpm: Option<u32>,
    /// The maximum number of requests that are open at once; `None` is no limit.
    pub max_open: Option<u32>,
    /// The models, targets and aliases that may be asked; empty allows all.
    pub models: Vec<String>,
    /// The time at which the key was added.
    pub created: Time,
    /// The time at which the key expires.
    pub expires: Option<Time>,
    /// The time at which the key was revoked.
    pub revoked: Option<Time>,
}

impl Key {
    /// Returns whether a model, target or alias of this name may be asked.
    pub fn allows(&self, model: &str) -> bool {
        self.models.is_empty() || self.models.iter().any(|allowed| allowed == model)
    }

    /// Returns the cost of the calls that count against the budget at this time, in millionths of a US dollar: those of the period, or
    /// all without one.
    pub fn spent_in_period(&self, now: Time) -> u64 {
        match self.period.is_some_and(|period| self.period_start < period.start(now)) {
            true => 0,
            false => self.spent.saturating_sub(self.spent_before),
        }
    }

    /// Returns how much may still be reserved at this time, in millionths of a US dollar; `None` without limit.
    pub fn left(&self, now: Time) -> Option<u64> {
        let spent = self.spent_in_period(now);
        self.budget.map(|budget| budget.saturating_sub(spent.saturating_add(self.held)))
    }
}

/// The secret of a key. It is available only once: the ledger stores only its hash.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::{Ledger, NewKey, Settings};
///
/// let ledger = Ledger::in_memory(Settings::default())?;
/// let now = Time(1_795_000_000_000);
/// let (key, secret) = ledger.add_key(NewKey::new("alice"), now)?;
/// assert!(secret.reveal().starts_with("fw_"));
/// assert!(!format!("{secret:?}").contains(secret.reveal()));
/// assert_eq!(ledger.find_key(secret.reveal(), now)?.id, key.id);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(crate) fn random() -> Result<Self, Error> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).map_err(|error| {
            Error::Invalid(format!("the system has no random numbers for a key: {error}"))
        })?;
        Ok(Self(bytes.iter().fold(PREFIX.to_owned(), |text, byte| text + &format!("{byte:02x}"))))
    }

    /// Returns the text that a client presents.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub(crate) fn hint(&self) -> String {
        self.0.chars().take(HINT).collect()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({}…)", self.hint())
    }
}

/// The reason why a presented key is refused.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::{KeyError, Ledger, Settings};
///
/// let ledger = Ledger::in_memory(Settings::default())?;
/// let refused = ledger.find_key("fw_0123", Time(1_795_000_000_000)).unwrap_err();
/// assert_eq!(refused, KeyError::Unknown);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// No key has this secret.
    #[error("the API key is unknown")]
    Unknown,
    /// The key has expired.
    #[error("the API key `{0}` has expired")]
    Expired(String),
    /// The key was revoked, or its secret was replaced.
    #[error("the API key `{0}` has been revoked")]
    Revoked(String),
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] Error),
}

pub(crate) type Hash = [u8; 32];

pub(crate) fn hash(secret: &str) -> Hash {
    Sha256::digest(secret.as_bytes()).into()
}
