use std::path::{Path, PathBuf};
use std::{error, fmt, io};

use super::Report;

/// The reason why schema files cannot be created, or differ from their types.
///
/// `Debug` writes the same text as `Display`, so that a test that returns or unwraps the error prints a readable diff.
///
/// ```
/// use formwork::golden::{Error, Folder};
///
/// let error = Folder::new("schemas").document("any", serde_json::json!(true)).lowered("latin").files().unwrap_err();
/// assert!(matches!(error, Error::Lowering { file, .. } if file == "any.latin.json"));
/// ```
#[non_exhaustive]
pub enum Error {
    /// Files differ from their types.
    Outdated(Report),
    /// The dialect cannot lower a schema.
    Lowering {
        /// The name of the file.
        file: String,
        /// The reason, and the fix.
        message: String,
    },
    /// Two schemas have the same file name.
    Duplicate {
        /// The name of the file.
        file: String,
    },
    /// A file or the folder cannot be read or written.
    Io {
        /// The path of the file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl Error {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outdated(report) => report.fmt(f),
            Self::Lowering { file, message } => write!(f, "{file} cannot be made: {message}"),
            Self::Duplicate { file } => write!(f, "two schemas have the file {file}: give one another name"),
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
