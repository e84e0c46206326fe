use std::fmt;

/// A configuration that cannot be used: where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, or `the configuration`.
    pub file: String,
    /// Line and column, from 1, in characters.
    pub at: Option<(usize, usize)>,
    /// One line for people.
    pub message: String,
    pub(crate) lacks_key: bool,
}

impl ConfigError {
    pub(crate) fn new(file: &str, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), at: None, message: message.into(), lacks_key: false }
    }

    /// Returns whether nothing is wrong but a key: the environment variable that holds it is not set.
    pub const fn lacks_key(&self) -> bool {
        self.lacks_key
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some((line, column)) => write!(f, "{}:{line}:{column}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for ConfigError {}

impl From<ConfigError> for formwork_core::Error {
    fn from(error: ConfigError) -> Self {
        Self::new(formwork_core::ErrorKind::Config, error.to_string())
    }
}
