use std::fmt;

use secrecy::{ExposeSecret, SecretString};

use crate::ConfigError;

/// An API key. Its value is never printed, not even by [`Debug`](fmt::Debug), and its memory is wiped when it is dropped. A
/// transport with a key keeps a copy, in the header that it sends.
///
/// A configuration names the environment variable with the key, and never contains the key itself.
///
/// ```
/// use formwork_http::Key;
///
/// let error = Key::from_env("NO_SUCH_API_KEY").unwrap_err();
/// assert!(error.to_string().contains("NO_SUCH_API_KEY"));
/// assert!(Key::new("the vault", "sk-123".to_owned()).is_ok());
/// assert!(Key::of_header("the vault", "Basic dXNlcjpwYXNz".to_owned()).is_ok());
/// ```
#[derive(Clone)]
pub struct Key(SecretString);

impl Key {
    /// Reads a key from an environment variable.
    ///
    /// # Errors
    /// [`ConfigError::NoKey`] or [`ConfigError::BadKey`], which name the variable, if it is not set, is empty, or has a
    /// character that no key has: white space, a line break, a character outside of ASCII. [`ConfigError::KeyForName`] if the
    /// variable is not set and its name looks like a key itself.
    pub fn from_env(variable: &str) -> Result<Self, ConfigError> {
        let secret = match std::env::var(variable) {
            Ok(secret) => secret,
            Err(std::env::VarError::NotPresent) => return Err(ConfigError::missing(variable)),
            // This character leads to the message below that the value is not ASCII.
            Err(std::env::VarError::NotUnicode(_)) => "\u{fffd}".to_owned(),
        };
        Self::new(format!("the environment variable `{variable}`"), secret)
    }

    /// Creates a key from another source, such as a vault. `from` names the source in messages.
    ///
    /// # Errors
    /// [`ConfigError::BadKey`], under the conditions of [`from_env`](Self::from_env).
    pub fn new(from: impl Into<String>, secret: impl Into<SecretString>) -> Result<Self, ConfigError> {
        let secret = secret.into();
        match problem(secret.expose_secret()) {
            None => Ok(Self(secret)),
            Some(problem) => Err(ConfigError::BadKey { source_name: from.into(), problem }),
        }
    }

    /// Creates the secret value of a header, which may contain spaces, such as `Basic dXNlcjpwYXNz`. `from` names the source in
    /// messages.
    ///
    /// # Errors
    /// [`ConfigError::BadKey`], under the conditions of [`from_env`](Self::from_env), spaces aside.
    pub fn of_header(from: impl Into<String>, secret: impl Into<SecretString>) -> Result<Self, ConfigError> {
        let secret = secret.into();
        let words = SecretString::from(secret.expose_secret().replace(' ', ""));
        Self::new(from, words).map(|_| Self(secret))
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
