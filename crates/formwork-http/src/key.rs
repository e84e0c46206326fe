use std::fmt;

use secrecy::{ExposeSecret, SecretString};

use crate::ConfigError;

/// An API key. It is never shown, not by [`Debug`](fmt::Debug) either, and its memory is wiped when it is dropped; a
/// transport that has it holds a copy, the header that it sends.
///
/// Configuration names the variable that holds it, and never the key itself.
///
/// ```
/// use formwork_http::Key;
///
/// let error = Key::from_env("NO_SUCH_API_KEY").unwrap_err();
/// assert!(error.to_string().contains("NO_SUCH_API_KEY"));
/// ```
#[derive(Clone)]
pub struct Key(SecretString);

impl Key {
    /// The key that an environment variable holds.
    ///
    /// # Errors
    /// If it is not set, empty, or holds what no key has: white space, a line break, a character outside of ASCII. The
    /// error names the variable.
    pub fn from_env(variable: &str) -> Result<Self, ConfigError> {
        let secret = match std::env::var(variable) {
            Ok(secret) => secret,
            Err(std::env::VarError::NotPresent) => {
                return Err(ConfigError::NoKey { variable: variable.to_owned() });
            }
            // The words below say what is wrong with it: it is not ASCII.
            Err(std::env::VarError::NotUnicode(_)) => "\u{fffd}".to_owned(),
        };
        Self::new(format!("the environment variable `{variable}`"), secret)
    }

    /// A key from somewhere else, such as a vault. `from` is for messages and says from where.
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub fn new(from: impl Into<String>, secret: impl Into<SecretString>) -> Result<Self, ConfigError> {
        let secret = secret.into();
        match problem(secret.expose_secret()) {
            None => Ok(Self(secret)),
            Some(problem) => Err(ConfigError::BadKey { source_name: from.into(), problem }),
        }
    }

    pub(crate) fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

fn problem(secret: &str) -> Option<&'static str> {
    if secret.trim().is_empty() {
        return Some("is empty");
    }
    if secret.contains(['\n', '\r']) {
        return Some("has a line break in it: was it read from a file with its last newline?");
    }
    if secret.contains(char::is_whitespace) {
        return Some("has white space in it");
    }
    (!secret.bytes().all(|byte| byte.is_ascii_graphic())).then_some("has characters in it that are not ASCII")
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key([redacted])")
    }
}
