use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reason why a text is not a registry, with its location.
///
/// ```
/// use formwork_dialect::registry::Registry;
///
/// let error = Registry::from_toml("[[model]]\nmatch = \"a\"\ntemprature = \"no\"\n").unwrap_err();
/// assert_eq!((error.line, error.column, error.key.as_str()), (3, 1, "model[0].temprature"));
/// assert_eq!(
///     error.to_string(),
///     "3:1: model[0].temprature: there is no such key: did you mean `temperature`?",
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RegistryError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The path of the key, for example `model[2].native`, where rows count from 0; empty if the text is not TOML.
    pub key: String,
    /// The message, for people.
    pub message: String,
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for RegistryError {}
