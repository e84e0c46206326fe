//! The process that uses a ledger: the mark by which its reservations are told from those of others, and in it the runs that are not
//! in the ledger yet.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::RunRecord;

/// The mark of a process: a locked file beside the ledger. The operating system releases the lock however the process ends.
///
/// Its first line says what it is. Each further line is a run that was recorded and is not in the ledger yet, without texts and violations. What is
/// written to a file survives the end of the process, however it ends, but not a loss of power.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    path: PathBuf,
    locked: File,
}

/// The first line of a mark. A mark without it is that of a process that has not locked it yet.
const HEAD: &[u8] = b"runs of a process of formwork that are not in the ledger yet\n";

/// The most bytes of a mark, so that a ledger that cannot be written for hours does not fill the disk.
const MAX: u64 = 64 << 20;

/// The part of a mark's name between that of the ledger and that of the process.
const INFIX: &str = "-process-";

impl Process {
    /// Returns the mark of this process for a ledger; `None` if no file can be made or locked there.
    pub(crate) fn new(ledger: &Path) -> Option<Self> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).ok()?;
        let name: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = mark(ledger, &name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut locked = options.open(&path).ok()?;
        // A process that opens the ledger locks each mark for a moment.
        if locked.lock().and_then(|()| locked.write_all(HEAD)).is_err() {
            _ = std::fs::remove_file(&path);
            return None;
        }
        Some(Self { name, path, locked })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Adds the line of a run to `noted` bytes of lines. Returns their length with it; `None` if the line cannot be written.
    pub(crate) fn note(&self, noted: u64, line: &[u8]) -> Option<u64> {
        let all = noted + line.len() as u64;
        if all > MAX {
            return None;
        }
        if (&self.locked).write_all(line).is_err() {
            // A part of a line must not become the beginning of the next one.
            _ = self.end_at(noted);
            return None;
        }
        Some(all)
    }

    /// Removes the first `done` of `noted` bytes of lines, and returns the length of the others.
    pub(crate) fn forget(&self, noted: u64, done: u64) -> u64 {
        let rest = noted.saturating_sub(done);
        match self.keep_last(noted, rest) {
            Ok(()) => rest,
            // The ledger ignores runs that it has.
            Err(_) => {
                _ = self.end_at(noted);
                noted
            }
        }
    }

    fn keep_last(&self, noted: u64, rest: u64) -> io::Result<()> {
        let head = HEAD.len() as u64;
        let mut file = &self.locked;
        if rest > 0 {
            // The others stay at the end until they are written again, so that a process that is killed meanwhile loses none of them.
            if rest * 2 > noted {
                return Err(io::ErrorKind::Other.into());
            }
            let mut lines = Vec::new();
            file.seek(SeekFrom::Start(head + noted - rest))?;
            file.take(rest).read_to_end(&mut lines)?;
            file.seek(SeekFrom::Start(head))?;
            file.write_all(&lines)?;
        }
        self.end_at(rest)
    }

    fn end_at(&self, noted: u64) -> io::Result<()> {
        let end = HEAD.len() as u64 + noted;
        self.locked.set_len(end)?;
        (&self.locked).seek(SeekFrom::Start(end)).map(drop)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Without the file the process counts as ended, which it has. The next one that opens the ledger records the runs of the file.
        if self.locked.metadata().is_ok_and(|file| file.len() <= HEAD.len() as u64) {
            _ = std::fs::remove_file(&self.path);
        }
    }
}

fn mark(ledger: &Path, name: &str) -> PathBuf {
    let mut path = ledger.as_os_str().to_owned();
    path.push(INFIX);
    path.push(name);
    path.into()
}

/// Returns whether a process has ended and its runs are in the ledger: its mark is gone, or nobody holds the lock and it has no runs.
pub(crate) fn has_ended(ledger: &Path, name: &str) -> bool {
    let path = mark(ledger, name);
    match File::open(&path).map(|file| file.try_lock()) {
        Ok(Err(TryLockError::WouldBlock)) => false,
        Ok(Ok(())) => {
            let is_empty = std::fs::metadata(&path).is_ok_and(|file| file.len() <= HEAD.len() as u64);
            if is_empty {
                _ = std::fs::remove_file(&path);
            }
            is_empty
        }
        Ok(Err(TryLockError::Error(_))) => false,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// The mark of a process that ended, with the runs that it had not written.
pub(crate) struct Left {
    pub(crate) name: String,
    pub(crate) runs: Vec<RunRecord>,
    path: PathBuf,
    _locked: File,
}

impl Left {
    /// Removes the mark: its runs are in the ledger.
    pub(crate) fn remove(self) {
        _ = std::fs::remove_file(&self.path);
    }
}

/// Returns the marks of processes that ended, locked, so that only this process records their runs.
pub(crate) fn left(ledger: &Path) -> Vec<Left> {
    let folder = ledger.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut start = ledger.file_name().map(OsString::from).unwrap_or_default();
    start.push(INFIX);
    let start = start.to_string_lossy().into_owned();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().strip_prefix(&start)?.to_owned();
        let mut file = File::open(entry.path()).ok()?;
        file.try_lock().ok()?;
        let mut lines = Vec::new();
        file.read_to_end(&mut lines).ok()?;
        let lines = lines.strip_prefix(HEAD)?;
        // The ends of lines that were written again are no runs.
        let runs =
            lines.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        Some(Left { name, runs, path: entry.path(), _locked: file })
    });
    all.collect()
}
