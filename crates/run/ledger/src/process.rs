//! The process that reserves, so that the reservations of a process that died can be told from those of others.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// The mark of a process: a locked file beside the ledger. The operating system releases the lock however the process ends.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    path: PathBuf,
    _locked: File,
}

impl Process {
    /// Returns the mark of this process for a ledger; `None` if no file can be made or locked there.
    pub(crate) fn new(ledger: &Path) -> Option<Self> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).ok()?;
        let name: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = mark(ledger, &name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path).ok()?;
        file.try_lock().ok()?;
        Some(Self { name, path, _locked: file })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Without the file the process counts as ended, which it has.
        _ = std::fs::remove_file(&self.path);
    }
}

fn mark(ledger: &Path, name: &str) -> PathBuf {
    let mut path = ledger.as_os_str().to_owned();
    path.push(format!("-process-{name}"));
    path.into()
}

/// Returns whether a process has ended: its mark is gone, or nobody holds the lock.
pub(crate) fn has_ended(ledger: &Path, name: &str) -> bool {
    let path = mark(ledger, name);
    match File::open(&path).map(|file| file.try_lock()) {
        Ok(Err(TryLockError::WouldBlock)) => false,
        Ok(Ok(())) => {
            _ = std::fs::remove_file(&path);
            true
        }
        Ok(Err(TryLockError::Error(_))) => false,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}
