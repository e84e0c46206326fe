//! The process that reserves, so that the reservations of a process that died can be told from those of others.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use rusqlite::params;

use crate::insert::{amount, number};
use crate::{Error, Ledger};

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
fn has_ended(ledger: &Path, name: &str) -> bool {
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

/// Reservations of processes that ended before they settled them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Released {
    /// The number of reservations.
    pub count: u64,
    /// Their sum, in millionths of a US dollar: the most that their calls have cost.
    pub amount: u64,
}

/// Reservations of processes that ended.
impl Ledger {
    /// Releases the reservations of processes that ended before they settled them, so that budgets have them again. The cost of their
    /// calls is not known: it is between nothing and [`Released::amount`]. Reservations of processes that run are left as they are. Blocks
    /// the thread; a service calls it when it starts.
    ///
    /// # Errors
    /// [`Error::Storage`].
    ///
    /// ```
    /// use formwork_ledger::{Ledger, Settings};
    ///
    /// let ledger = Ledger::in_memory(Settings::default())?;
    /// assert_eq!(ledger.release_ended()?.count, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn release_ended(&self) -> Result<Released, Error> {
        let Some(place) = self.core().place().map(Path::to_owned) else { return Ok(Released::default()) };
        let processes: Vec<String> = self.core().store.read(|connection| {
            let sql = "SELECT DISTINCT process FROM spending WHERE actual IS NULL AND process IS NOT NULL";
            connection.prepare_cached(sql)?.query_map([], |row| row.get(0))?.collect()
        })?;
        let mut released = Released::default();
        for process in processes.into_iter().filter(|process| has_ended(&place, process)) {
            let (count, sum) = self
                .submit(move |connection| {
                    let sql = "SELECT key, count(*), sum(reserved) FROM spending
                        WHERE process = ?1 AND actual IS NULL GROUP BY key";
                    let mut statement = connection.prepare_cached(sql)?;
                    let rows = statement.query_map([&process], |row| {
                        Ok((
                            row.get::<_, i64>(0)?,
                            row.get::<_, i64>(1)?,
                            amount(row, 2)?.unwrap_or_default(),
                        ))
                    })?;
                    let (mut count, mut sum) = (0_u64, 0_u64);
                    for row in rows.collect::<rusqlite::Result<Vec<_>>>()? {
                        connection.execute(
                            "UPDATE key SET held = max(held - ?2, 0) WHERE id = ?1",
                            params![row.0, number(row.2)],
                        )?;
                        count += row.1.unsigned_abs();
                        sum = sum.saturating_add(row.2);
                    }
                    let sql = "UPDATE spending SET actual = 0 WHERE process = ?1 AND actual IS NULL";
                    connection.execute(sql, [&process])?;
                    Ok((count, sum))
                })
                .wait()?;
            released.count += count;
            released.amount = released.amount.saturating_add(sum);
        }
        Ok(released)
    }
}
