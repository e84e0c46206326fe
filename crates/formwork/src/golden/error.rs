use std::path::{Path, PathBuf};
use std::{fmt, io};

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
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Files differ from their types.
    #[error("{0}")]
    Outdated(Report),
    /// The dialect cannot lower a schema.
    #[error("{file} cannot be made: {message}")]
    Lowering {
        /// The name of the file.
        file: String,
        /// The reason, and the fix.
        message: String,
    },
    /// Two schemas have the same file name.
    #[error("two schemas have the file {file}: give one another name")]
    Duplicate {
        /// The name of the file.
        file: String,
    },
    /// A file or the folder cannot be read or written.
    #[error("{}: {source}", .path.display())]
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

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
