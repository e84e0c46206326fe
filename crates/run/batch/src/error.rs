use std::io;
use std::path::{Path, PathBuf};

/// The reason why an operation of a batch failed. Each message says what failed, where, and what to do.
///
/// ```
/// use formwork_batch::{BatchError, View};
///
/// let error = View::open("no-such-folder").unwrap_err();
/// assert!(matches!(error, BatchError::NoBatch(_)));
/// assert_eq!(error.to_string(), "no-such-folder holds no batch: start one with `formwork batch run`");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// A file or folder cannot be read or written.
    #[error("{}: {message}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's message.
        message: String,
    },
    /// The folder holds files of something else.
    #[error("{} is not empty and holds no batch: name a new folder", .0.display())]
    NotABatch(PathBuf),
    /// The folder has no batch yet.
    #[error("{} holds no batch: start one with `formwork batch run`", .0.display())]
    NoBatch(PathBuf),
    /// The folder holds a batch of other rows.
    #[error("{} holds a batch of other rows: {difference}; name another folder, or continue that batch with `formwork batch resume {}`", path.display(), path.display())]
    OtherBatch {
        /// The folder.
        path: PathBuf,
        /// The first difference.
        difference: String,
    },
    /// The contract differs from the one that the batch was started with.
    #[error("the contract differs from the one of the batch in {}: {difference}; use the old contract, or start the rows that it concerns anew with --new-contract", path.display())]
    OtherContract {
        /// The folder.
        path: PathBuf,
        /// The places that differ.
        difference: String,
    },
    /// Another process works on the batch.
    #[error("another process works on the batch in {}{}: wait for its end, or stop it with `formwork batch pause {}`", path.display(), process.map(|id| format!(" (process {id})")).unwrap_or_default(), path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
        /// The id of the process, where it is known.
        process: Option<u32>,
    },
    /// The batch was cancelled.
    #[error("the batch in {} was cancelled: `formwork batch retry {}` opens its rows again", .0.display(), .0.display())]
    Cancelled(PathBuf),
    /// The input cannot be read as rows.
    #[error("{place}: {message}")]
    Input {
        /// The file, with the line where it is known.
        place: String,
        /// The reason and the remedy.
        message: String,
    },
    /// The store cannot be opened, read or written.
    #[error("the batch's store: {0}")]
    Store(#[from] formwork_ledger::Error),
    /// An engine cannot carry out the rows.
    #[error("{0}")]
    Engine(String),
}

impl BatchError {
    /// Returns the error of a file operation.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        Self::File { path: path.to_owned(), message: error.to_string() }
    }

    /// Returns whether the disk is full.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Store(formwork_ledger::Error::Storage { is_full, .. }) => *is_full,
            Self::File { message, .. } => message.contains("os error 28"),
            _ => false,
        }
    }
}
