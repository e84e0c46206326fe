use std::path::Path;

use rusqlite::Connection;

use crate::store::{Format, Store};
use crate::{Committed, Error, Ledger, Settings};

/// A SQLite file with tables of another crate, written as the ledger is: by one thread, in groups, with `synchronous=FULL`,
/// and with mode 0600.
///
/// ```
/// use formwork_ledger::{Database, Format};
///
/// const FORMAT: Format = Format { application: 0x1234, steps: &["CREATE TABLE fruit (name TEXT)"] };
///
/// let folder = tempfile::tempdir()?;
/// let database = Database::open(folder.path().join("fruit.db"), &FORMAT)?;
/// database.write(|file| file.execute("INSERT INTO fruit VALUES ('pear')", [])).wait()?;
/// let count: i64 = database.read(|file| file.query_row("SELECT count(*) FROM fruit", [], |row| row.get(0)))?;
/// assert_eq!(count, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Database(Ledger);

impl Database {
    /// Opens a file of this format, creates it if it does not exist, and brings a file of an older version to the newest
    /// format.
    ///
    /// # Errors
    /// As [`Ledger::open`].
    pub fn open(path: impl AsRef<Path>, format: &Format) -> Result<Self, Error> {
        Ledger::start(Store::open(path.as_ref(), format)?, Settings::default(), None).map(Self)
    }

    /// Opens a file of this format only for reading: neither the file nor its folder is written to, and they may be read-only. Writes
    /// fail.
    ///
    /// # Errors
    /// As [`Ledger::open`], and [`Error::File`] for a file of an older format, or with writes that were not brought into it.
    pub fn open_read_only(path: impl AsRef<Path>, format: &Format) -> Result<Self, Error> {
        Ledger::start(Store::open_read_only(path.as_ref(), format)?, Settings::default(), None).map(Self)
    }

    /// Runs a write in the next transaction, together with the writes that wait by then. An error undoes only this write; a
    /// full disk undoes all writes of the transaction, and each of them reports it.
    pub fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Committed<T> {
        self.0.submit(write)
    }

    /// Reads on the calling thread, beside the writer.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        self.0.core().store.read(read)
    }

    /// Writes what waits and ends the writer. Later writes fail with [`Error::Closed`].
    pub fn close(&self) {
        self.0.close();
    }
}
