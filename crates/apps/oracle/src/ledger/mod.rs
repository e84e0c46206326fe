//! Stores scores on disk: [`Ledger`] appends each score as a line of JSON, and [`Entries`] reads them.
//!
//! The file is JSON Lines in UTF-8: each line is one [`ScoreEvent`], ends with a line feed, and is written at once. A
//! process that dies leaves at most its last line incomplete. The next process starts a new line, and a reader reports
//! the incomplete line by its number and continues. Several processes may append to one file.
//!
//! Lines contain personal data (addresses, texts of models): on Unix only the owner can read a new file.

mod entries;

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use entries::{Damaged, Entries, MAX_LINE};

use crate::{ScoreEvent, ScoreObserver};

/// Appends scores to a file; clones append to the same file. A ledger is an observer of an [`Oracle`](crate::Oracle).
///
/// As an observer it does not fail a score: a line that cannot be written is logged to `tracing` and counted by
/// [`Ledger::lost`].
///
/// ```
/// use formwork_oracle::ledger::{Entries, Ledger};
/// use formwork_oracle::{Oracle, wallet::Wallet};
/// use formwork_testkit::Scripted;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let path = std::env::temp_dir().join(format!("formwork-ledger-{}.jsonl", std::process::id()));
/// let (model, ledger) = (std::sync::Arc::new(Scripted::new(["{}", "{}", "{}"])), Ledger::open(&path)?);
/// let oracle = Oracle::builder().with_target(model).with_observer(ledger.clone()).build()?;
/// oracle.score(&Wallet::from_json(br#"{"transactions": []}"#)?).await?;
/// assert_eq!((Entries::open(ledger.path())?.count(), ledger.lost()), (1, 0));
/// # std::fs::remove_file(path)?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Ledger(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: Mutex<File>,
    is_synced: bool,
    lost: AtomicU64,
}

impl Ledger {
    /// Opens a file to append to, or creates it. An incomplete last line is ended first.
    ///
    /// # Errors
    /// The error of the file system, with the file's name.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        Self::open_with(path.into(), false)
    }

    /// Opens a file and flushes every line to disk before its score is returned, which survives a loss of power and
    /// takes milliseconds per score.
    ///
    /// # Errors
    /// The error of the file system, with the file's name.
    pub fn open_synced(path: impl Into<PathBuf>) -> io::Result<Self> {
        Self::open_with(path.into(), true)
    }

    fn open_with(path: PathBuf, is_synced: bool) -> io::Result<Self> {
        let opened = open(&path).and_then(|mut file| end_last_line(&mut file).map(|()| file));
        let file = opened.map_err(|error| named(&path, &error))?;
        Ok(Self(Arc::new(Inner { path, file: Mutex::new(file), is_synced, lost: AtomicU64::new(0) })))
    }

    /// Appends one score.
    ///
    /// # Errors
    /// The error of the file system, with the file's name.
    pub fn append(&self, event: &ScoreEvent) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        let mut file = self.0.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.write_all(&line);
        let written = if self.0.is_synced { written.and_then(|()| file.sync_data()) } else { written };
        if written.is_err() {
            // Part of the line may be written, as on a full disk, so the next score starts a new line.
            let _ = end_last_line(&mut file);
        }
        written.map_err(|error| named(&self.0.path, &error))
    }

    /// Returns the number of scores that could not be written.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

impl ScoreObserver for Ledger {
    fn scored(&self, event: &ScoreEvent) {
        if let Err(error) = self.append(event) {
            self.0.lost.fetch_add(1, Ordering::Relaxed);
            tracing::error!(target: "formwork_oracle", request_id = event.request_id, %error, "a score is not in the ledger");
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}

/// Writes a line feed if the file does not end with one.
fn end_last_line(file: &mut File) -> io::Result<()> {
    // A pipe, for example, has no end to read.
    if !file.metadata()?.is_file() || file.seek(SeekFrom::End(0))? == 0 {
        return Ok(());
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    if last == *b"\n" { Ok(()) } else { file.write_all(b"\n") }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write the ledger {}: {error}", path.display()))
}
