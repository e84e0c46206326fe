use std::fmt;

use axum::http::HeaderMap;
use formwork_serve::presented_key;
use sha2::{Digest as _, Sha256};

/// The API key of the service. Only its SHA-256 digest is kept.
///
/// ```
/// use formwork_oracle::service::ApiKey;
///
/// assert!(ApiKey::new("0123456789abcdef").is_some());
/// assert!(ApiKey::new("too short").is_none());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey([u8; 32]);

/// The reason why a variable holds no usable key.
///
/// ```
/// use formwork_oracle::service::{ApiKey, ApiKeyError};
///
/// let error = ApiKey::from_env("FORMWORK_NO_SUCH_VARIABLE").unwrap_err();
/// assert_eq!(error, ApiKeyError::Missing("FORMWORK_NO_SUCH_VARIABLE".into()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiKeyError {
    /// The variable is not set.
    #[error("the environment variable {0} is not set: it holds the key that requests have to bring")]
    Missing(String),
    /// The value is too short, or contains characters that a header cannot have.
    #[error("the environment variable {0} holds no key: use at least {MIN_KEY} visible ASCII characters")]
    Unusable(String),
}

/// The minimum number of characters of a key; shorter ones can be guessed.
const MIN_KEY: usize = 16;

impl ApiKey {
    /// Reads the key from an environment variable.
    ///
    /// # Errors
    /// [`ApiKeyError`] if the variable is not set, or its value is shorter than 16 characters or not visible ASCII.
    pub fn from_env(name: &str) -> Result<Self, ApiKeyError> {
        match std::env::var_os(name) {
            None => Err(ApiKeyError::Missing(name.to_owned())),
            Some(key) => {
                key.to_str().and_then(Self::new).ok_or_else(|| ApiKeyError::Unusable(name.to_owned()))
            }
        }
    }

    /// Creates a key; `None` if it is shorter than 16 characters or not visible ASCII.
    pub fn new(key: &str) -> Option<Self> {
        let is_usable = key.len() >= MIN_KEY && key.bytes().all(|byte| byte.is_ascii_graphic());
        is_usable.then(|| Self(Sha256::digest(key).into()))
    }

    /// Returns whether a request has the key, as `Authorization: Bearer` or as `x-api-key`.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        presented_key(headers).is_some_and(|key| self.is(key))
    }

    /// Compares whole digests, so that the duration tells nothing about the key.
    fn is(&self, key: &str) -> bool {
        let other: [u8; 32] = Sha256::digest(key).into();
        let differences = self.0.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
        std::hint::black_box(differences) == 0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey([REDACTED])")
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header;

    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::HeaderName::from_static(name), value.parse().unwrap())])
    }

    #[test]
    fn a_key_is_taken_from_either_header_and_only_whole() {
        let key = ApiKey::new("correct-horse-battery").unwrap();
        assert!(key.is_in(&headers("authorization", "Bearer correct-horse-battery")));
        assert!(key.is_in(&headers("authorization", "bearer correct-horse-battery")));
        assert!(key.is_in(&headers("x-api-key", "correct-horse-battery")));
        for (name, value) in [
            ("authorization", "correct-horse-battery"),
            ("authorization", "Basic correct-horse-battery"),
            ("authorization", "Bearer correct-horse-batter"),
            ("authorization", "Bearer correct-horse-battery "),
            ("authorization", "Bearer"),
            ("x-api-key", ""),
            ("x-api-key", "Correct-horse-battery"),
        ] {
            assert!(!key.is_in(&headers(name, value)), "{name}: {value}");
        }
        assert!(!key.is_in(&HeaderMap::new()));
    }

    #[test]
    fn what_is_no_key_is_refused_and_never_shown() {
        assert!(ApiKey::new("short").is_none());
        assert!(ApiKey::new("with a space in it").is_none());
        assert_eq!(format!("{:?}", ApiKey::new("correct-horse-battery").unwrap()), "ApiKey([REDACTED])");
        let error = ApiKey::from_env("FORMWORK_NO_SUCH_KEY").unwrap_err();
        assert!(error.to_string().contains("FORMWORK_NO_SUCH_KEY is not set"));
    }
}
