//! The pool: the workers that have the same providers and policies, under service names of their own.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::message::PROTOCOL;

/// The workers that may process the rows of a batch. Each pool has services of its own in Restate, so that workers of another pool,
/// however late they are registered, get none of its rows.
///
/// ```
/// use formwork_batch::Pool;
/// use serde_json::json;
///
/// let settings = json!({"model": "gpt-5.4-mini", "retries": 3});
/// let pool = Pool::of(&settings);
/// assert_eq!(pool.target().map(str::len), Some(16));
/// assert_ne!(pool.name(), Pool::of(&json!({"model": "gpt-5.4", "retries": 3})).name());
/// assert_eq!(Pool::named("team-a", None)?.name(), "team-a");
/// assert!(Pool::named("team a", None).is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    name: String,
    target: Option<String>,
}

impl Pool {
    /// Returns the pool whose name is the digest of the settings of providers and policies, without secrets, and of the version of
    /// the messages.
    pub fn of(settings: &Value) -> Self {
        let name = target(settings);
        Self { target: Some(name.clone()), name }
    }

    /// Returns a pool with a name of its own. `settings` are those of the providers and policies, if this side knows them: rows for
    /// other settings are refused.
    ///
    /// # Errors
    /// The message for a name that is empty, has more than 64 characters or others than letters, digits, `-` and `_`.
    pub fn named(name: &str, settings: Option<&Value>) -> Result<Self, String> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name.is_empty() || name.len() > 64 || !name.bytes().all(is_plain) {
            return Err(format!("the pool {name:?} must have 1 to 64 letters, digits, `-` or `_`"));
        }
        Ok(Self { name: name.to_owned(), target: settings.map(target) })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the digest of providers and policies; `None` if they are not known.
    pub fn target(&self) -> Option<&str> {
        self.target.as_deref()
    }

    /// Returns the name of a service of the pool in Restate.
    pub(super) fn service(&self, service: &str) -> String {
        format!("{service}_{}", self.name)
    }
}

fn target(settings: &Value) -> String {
    let digest = format!("{:x}", Sha256::digest(format!("{PROTOCOL} {settings}")));
    digest.get(..16).unwrap_or_default().to_owned()
}
