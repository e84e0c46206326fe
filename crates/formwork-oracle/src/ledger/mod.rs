//! Scores on disk: a [`Ledger`] writes a line of JSON for each, [`Entries`] reads them again.
//!
//! The file is JSON Lines in UTF-8: each line is one [`ScoreEvent`], ends with a line feed, and is written at once. A
//! process that dies leaves at most its last line unfinished; the next one begins a line of its own, and reading reports
//! the broken one by its number and goes on. Several processes may append to one file.
//!
//! Lines hold the users' data (addresses, what models wrote): on Unix only the owner may read a file that is created.

mod entries;

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use entries::{Damaged, Entries, MAX_LINE};

use crate::{ScoreEvent, ScoreObserver};

/// Appends scores to a file. Clones append to the same one; it is an observer of an [`Oracle`](crate::Oracle).
///
/// As an observer it cannot fail a score: a line that cannot be written is said to `tracing` and counted, see
/// [`Ledger::lost`].
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
    /// Opens a file to append to, or creates it. A last line that was not finished is ended first.
    ///
    /// # Errors
    /// As the file system says, with the file's name.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        Self::open_with(path.into(), false)
    }

    /// The same, and every line is on the disk itself before a score is done: what survives a loss of power, at the price
    /// of milliseconds for each.
    ///
    /// # Errors
    /// As the file system says, with the file's name.
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
    /// As the file system says, with the file's name.
    pub fn append(&self, event: &ScoreEvent) -> io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        let mut file = self.0.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.write_all(&line);
        let written = if self.0.is_synced { written.and_then(|()| file.sync_data()) } else { written };
        if written.is_err() {
            // Half of it may be there, as on a full disk: what comes next is a line of its own.
            let _ = end_last_line(&mut file);
        }
        written.map_err(|error| named(&self.0.path, &error))
    }

    /// How many scores could not be written.
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Ordering::Relaxed)
    }

    /// The file.
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
    // What is no plain file, such as a pipe, has no end to look at.
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
