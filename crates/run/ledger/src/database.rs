use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::store::{Format, LEDGER, Store};
use crate::{Committed, Error, Ledger, Settings};

/// A ledger with a SQLite file of another crate attached to it. Both are written as a ledger is: by one thread, in groups, with
/// `synchronous=FULL`, and with mode 0600. A write waits for other processes for up to five minutes, and says so.
///
/// A transaction that writes to both files is atomic in each of them, and the ledger is committed first.
///
/// ```
/// use formwork_ledger::{Database, Format};
///
/// const FORMAT: Format = Format { application: 0x1234, steps: &["CREATE TABLE fruit (name TEXT)"] };
///
/// let folder = tempfile::tempdir()?;
/// let store = folder.path().join("store.db");
/// let database = Database::open(folder.path().join("fruit.db"), &FORMAT, "other", |_| Ok((store, false)))?;
/// database.write(|file| file.execute("INSERT INTO other.fruit VALUES ('pear')", [])).wait()?;
/// let count: i64 = database.read(|file| file.query_row("SELECT count(*) FROM fruit", [], |row| row.get(0)))?;
/// assert_eq!(count, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Database(Ledger);

impl Database {
    /// Opens a file of this format, and attaches it as the schema `name` to a ledger. `ledger` reads the path of the ledger from the
    /// file, and says whether the ledger must exist. Files that do not exist are created, and files of an older version are brought to
    /// the newest format.
    ///
    /// # Errors
    /// As [`Ledger::open`], and [`Error::File`] if the ledger must exist and does not.
    pub fn open(
        path: impl AsRef<Path>,
        format: &Format,
        name: &str,
        ledger: impl FnOnce(&Connection) -> rusqlite::Result<(PathBuf, bool)>,
    ) -> Result<Self, Error> {
        let (place, must_exist) = Store::open(path.as_ref(), format)?.read(ledger)?;
        if must_exist && !place.exists() {
            let message = format!("the answers of {} are in this file: put it back", path.as_ref().display());
            return Err(Error::File { path: place, message });
        }
        let store = Store::open(&place, &LEDGER)?;
        store.attach(path.as_ref(), name)?;
        Ledger::start(store, Settings::default(), Some(place)).map(Self)
    }

    /// Opens a ledger alone, and creates it if it does not exist.
    ///
    /// # Errors
    /// As [`Ledger::open`].
    pub fn of_ledger(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let store = Store::open(path, &LEDGER)?;
        store.wait_for_others(path)?;
        Ledger::start(store, Settings::default(), Some(path.to_owned())).map(Self)
    }

    /// Opens both files as [`open`](Self::open) does, but only for reading: neither they nor their folders are written to, and may be
    /// read-only. Writes fail.
    ///
    /// # Errors
    /// As [`Ledger::open`], and [`Error::File`] for a file that does not exist, of an older format, or with writes that were not brought
    /// into it.
    pub fn open_read_only(
        path: impl AsRef<Path>,
        format: &Format,
        name: &str,
        ledger: impl FnOnce(&Connection) -> rusqlite::Result<(PathBuf, bool)>,
    ) -> Result<Self, Error> {
        let (place, _) = Store::open_read_only(path.as_ref(), format)?.read(ledger)?;
        let store = Store::open_read_only(&place, &LEDGER)?;
        store.attach(path.as_ref(), name)?;
        Ledger::start(store, Settings::default(), None).map(Self)
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
