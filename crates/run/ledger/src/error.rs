use std::path::PathBuf;

use rusqlite::{Connection, ErrorCode};

use crate::RecordId;

/// The reason why an operation of the ledger failed. [`Ledger::record`](crate::Ledger::record) never returns one.
///
/// ```
/// use formwork_ledger::{Error, Ledger, Settings};
///
/// let file = tempfile::NamedTempFile::new()?;
/// std::fs::write(file.path(), "a letter")?;
/// let error = Ledger::open(file.path(), Settings::default()).unwrap_err();
/// assert!(matches!(error, Error::NotALedger { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be opened, created or protected.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's or SQLite's message.
        message: String,
    },
    /// The file holds something else.
    #[error("{} is not a ledger of formwork{}", path.display(), .hint.map(|hint| format!(": {hint}")).unwrap_or_default())]
    NotALedger {
        /// The file.
        path: PathBuf,
        /// The likely kind of the file, where it is known.
        hint: Option<&'static str>,
    },
    /// A later version of formwork wrote the file.
    #[error(
        "{} has format {found}, and this version of formwork knows formats up to {known}: use a newer version of formwork",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        found: i64,
        /// The newest format that this version reads.
        known: i64,
    },
    /// The path of the open file has another file now, or none: records would be lost, and keys are not those of the new file.
    #[error("{} was deleted or replaced: start the service again", path.display())]
    Replaced {
        /// The path.
        path: PathBuf,
    },
    /// Reading or writing the open file failed.
    #[error("the ledger cannot be {}: {message}", if *.is_write { "written" } else { "read" })]
    Storage {
        /// SQLite's message.
        message: String,
        /// Whether the disk, or the size that the settings allow, is used up.
        is_full: bool,
        /// Whether it happened while writing.
        is_write: bool,
    },
    /// The ledger was closed, or its writer has ended.
    #[error("the ledger is closed")]
    Closed,
    /// A text is not the id of a run.
    #[error("`{0}` is not the id of a run: ids look like run_01hzy3k8w2m4q")]
    NotAnId(String),
    /// The ledger has no such run.
    #[error("the ledger has no run {0}")]
    NoSuchRun(RecordId),
    /// The ledger has no such key.
    #[error("the ledger has no key named `{name}`{}", names(known))]
    NoSuchKey {
        /// The name that was given.
        name: String,
        /// The names of the keys that there are.
        known: Vec<String>,
    },
    /// Another key has this name.
    #[error("the ledger has a key named `{0}` already: revoke or rotate it, or choose another name")]
    KeyExists(String),
    /// A setting of a key or a query cannot be used.
    #[error("{0}")]
    Invalid(String),
}

fn names(known: &[String]) -> String {
    /// Names that an error lists.
    const SHOWN: usize = 10;
    if known.is_empty() {
        return ": it has no keys yet".to_owned();
    }
    let listed: Vec<_> = known.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = if known.len() > SHOWN { ", …" } else { "" };
    format!("; its keys are {}{more}", listed.join(", "))
}

impl Error {
    /// Returns the error of a failed write.
    pub(crate) fn write(error: &rusqlite::Error) -> Self {
        Self::Storage { message: error.to_string(), is_full: is_full(error), is_write: true }
    }

    /// Returns the error of a failed read or write on a connection. That of a damaged file has the first damaged place.
    pub(crate) fn on(connection: &Connection, error: &rusqlite::Error, is_write: bool) -> Self {
        let mut message = error.to_string();
        if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) {
            let place = damage(connection).map(|place| format!(" ({place})")).unwrap_or_default();
            message = format!(
                "{message}{place}: go on with a copy of the file, or save what can be read with `sqlite3 FILE .recover`"
            );
        }
        Self::Storage { message, is_full: is_full(error), is_write }
    }
}

/// Returns the first damaged place of the files of a connection, as SQLite's check finds it, with the path of the file.
fn damage(connection: &Connection) -> rusqlite::Result<String> {
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    let mut files = connection.prepare("SELECT name, file FROM pragma_database_list")?;
    let files = files.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    files.flatten().try_fold(found.replace('\n', " "), |text, (name, file)| {
        Ok(text.replace(&format!("*** in database {name} ***"), &file))
    })
}

/// Returns whether the disk or the file was full.
pub(crate) fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}
