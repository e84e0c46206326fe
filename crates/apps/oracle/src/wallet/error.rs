use std::fmt;

/// The reason why a wallet cannot be used: the location, the mistake and the fix.
///
/// `Display` is one line, such as `whale.json:4:25: $.summary.transactions: -5 is negative: a count is a whole number
/// from 0`.
///
/// ```
/// use formwork_oracle::wallet::Wallet;
///
/// let error = Wallet::from_json(br#"{"summary": {"transactions": -5}}"#).unwrap_err();
/// assert_eq!((error.file(), error.line(), error.path()), (None, Some(1), Some("$.summary.transactions")));
/// assert_eq!(error.message(), "-5 is negative: a count is a whole number from 0");
/// ```
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalletError {
    file: Option<String>,
    line: Option<(usize, usize)>,
    path: Option<String>,
    message: String,
}

impl WalletError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { file: None, line: None, path: None, message: message.into() }
    }

    pub(crate) fn at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: Some(path.into()), ..Self::new(message) }
    }

    pub(crate) fn in_file(self, file: &str) -> Self {
        Self { file: Some(file.to_owned()), ..self }
    }

    pub(crate) fn on_line(self, line: usize, column: usize) -> Self {
        Self { line: Some((line, column)), ..self }
    }

    /// Returns the name of the file, as it was passed to the reader.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Returns the line, from 1, if it is known.
    pub fn line(&self) -> Option<usize> {
        self.line.map(|(line, _)| line)
    }

    /// Returns the JSON path in the document, if it is known.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// Returns the reason and the fix.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for WalletError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some((line, 0))) => write!(f, "{file}:{line}: ")?,
            (Some(file), Some((line, column))) => write!(f, "{file}:{line}:{column}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, Some((line, 0))) => write!(f, "line {line}: ")?,
            (None, Some((line, column))) => write!(f, "line {line}, column {column}: ")?,
            (None, None) => {}
        }
        if let Some(path) = &self.path {
            write!(f, "{path}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for WalletError {}
