//! The file that keeps evidence between processes.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use formwork_core::{Evidence, Time};

/// The maximum age of a line in milliseconds. The observations themselves end earlier.
const MAX_AGE: u64 = 24 * 60 * 60 * 1000;

/// The maximum number of lines that are read. If there are more, the oldest are removed when the file is read, and each time after
/// a process has appended this number.
const MAX_LINES: usize = 1_000;

/// A file with one JSON object per line, in the order of time. Several processes can append to it at once.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    /// The number of lines that this process has appended.
    appended: AtomicUsize,
}

impl File {
    /// Opens a file, which does not have to exist, and returns its evidence. Lines of earlier formats and invalid lines are
    /// ignored, because lost evidence costs only a few calls.
    pub(super) fn open(path: PathBuf) -> (Self, Vec<Evidence>) {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let (kept, is_long) = evidence(&text);
        let file = Self { path, appended: AtomicUsize::new(0) };
        if is_long {
            file.rewrite(|_| true);
        }
        (file, kept)
    }

    /// Appends evidence. A failure is only logged as a warning, because the next process can collect the evidence again.
    pub(super) fn note(&self, evidence: &Evidence) {
        self.warn(append(&self.path, &to_line(evidence)));
        if (self.appended.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(MAX_LINES) {
            self.rewrite(|_| true);
        }
    }

    /// Removes the evidence about a target, or about all targets.
    pub(super) fn forget(&self, target: Option<&str>) {
        if self.path.exists() {
            self.rewrite(|evidence| target.is_some_and(|target| evidence.target != target));
        }
    }

    /// Keeps the newest lines, and of these the ones that `is_kept` accepts. Other processes that append or rewrite wait
    /// meanwhile, so that no line of theirs is lost.
    fn rewrite(&self, is_kept: impl Fn(&Evidence) -> bool) {
        self.warn((|| {
            let mut file = OpenOptions::new().read(true).write(true).open(&self.path)?;
            file.lock()?;
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            let (mut kept, _) = evidence(&text);
            kept.retain(is_kept);
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(kept.iter().map(to_line).collect::<String>().as_bytes())
        })());
    }

    fn warn(&self, result: io::Result<()>) {
        if let Err(error) = result {
            tracing::warn!(target: "formwork", "{}: {error}", self.path.display());
        }
    }
}

/// Returns the evidence of the newest lines that are valid and not too old, and whether there are more lines.
fn evidence(text: &str) -> (Vec<Evidence>, bool) {
    let lines: Vec<&str> = text.lines().collect();
    let (now, skipped) = (now(), lines.len().saturating_sub(MAX_LINES));
    let valid = |line: &&str| -> Option<Evidence> {
        let mut evidence: Evidence = serde_json::from_str(line).ok()?;
        evidence.has_identity = true;
        // A clock that was set back must not make evidence last longer.
        let is_fresh = evidence.at.0 <= now && now - evidence.at.0 <= MAX_AGE;
        is_fresh.then_some(evidence)
    };
    (lines.iter().skip(skipped).filter_map(valid).collect(), skipped > 0)
}

fn to_line(evidence: &Evidence) -> String {
    serde_json::to_string(evidence).unwrap_or_default() + "\n"
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    // A process that rewrites the file has read it already. Closing the file unlocks it.
    file.lock()?;
    file.write_all(line.as_bytes())
}

/// Returns the time of the system's clock in milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the time of the system's clock.
pub(super) fn system_time() -> Time {
    Time(now())
}
