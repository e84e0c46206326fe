/// The reason why a configuration is invalid, with the location and the fix.
///
/// ```
/// use formwork::config::Config;
///
/// let error = Config::from_toml("targets = []\n[providers.a]\nkind = \"ollama\"").unwrap_err();
/// assert_eq!(error.file, "the configuration");
/// assert!(error.message.contains("`targets` is empty"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {message}", .at.map_or_else(String::new, |(line, column)| format!(":{line}:{column}")))]
pub struct ConfigError {
    /// The path of the file, `the environment` or `the configuration`.
    pub file: String,
    /// The line and the column in characters, both from 1, if they are known.
    pub at: Option<(usize, usize)>,
    /// The message, in one line.
    pub message: String,
    pub(crate) lacks_key: bool,
    pub(crate) uses: Vec<String>,
}

impl ConfigError {
    pub(crate) fn new(file: &str, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), at: None, message: message.into(), lacks_key: false, uses: Vec::new() }
    }

    /// Returns the uses of secrets and programs that the file needs the user's trust for, each as a phrase; none for other errors.
    pub fn uses(&self) -> &[String] {
        &self.uses
    }

    /// Returns whether the only error is a missing API key: its environment variable is not set.
    pub const fn lacks_key(&self) -> bool {
        self.lacks_key
    }
}

impl From<ConfigError> for formwork_core::Error {
    fn from(error: ConfigError) -> Self {
        Self::new(formwork_core::ErrorKind::Config, error.to_string())
    }
}
