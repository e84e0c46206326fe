use std::path::{Path, PathBuf};
use std::{error, fmt, io};

use super::Report;

/// Why schema files cannot be made, or are not what their types say.
///
/// `Debug` writes the same text as `Display`, so that a test that returns the error or unwraps it prints the diff legibly.
#[non_exhaustive]
pub enum Error {
    /// Files differ from what their types say.
    Outdated(Report),
    /// A dialect makes no schema for a file.
    Lowering {
        /// The name of the file.
        file: String,
        /// The reason, and what to write instead.
        message: String,
    },
    /// Two schemas have the same file.
    Duplicate {
        /// The name of the file.
        file: String,
    },
    /// A file or the folder cannot be read or written.
    Io {
        /// The file or folder.
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
