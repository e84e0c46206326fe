//! The file: how it is found to be a ledger, made, protected and brought to the newest format.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::Error;
use crate::bucket::bucket;
use crate::paths::general;

/// The format of a file: its tables, and the number that distinguishes it from other SQLite files.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The `application_id` in the header of the file.
    pub application: i64,
    /// The steps from an empty file to the newest format, in SQL. The format of a file is the number of applied steps.
    pub steps: &'static [&'static str],
}

/// The ledger of runs: `fwlg`.
pub(crate) const LEDGER: Format = Format { application: 0x6677_6c67, steps: &STEPS };

/// The first bytes of every SQLite file.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// The steps of the ledger of runs.
const STEPS: [&str; 14] = [
    include_str!("schema/0001_runs.sql"),
    include_str!("schema/0002_keys.sql"),
    include_str!("schema/0003_views.sql"),
    include_str!("schema/0004_warnings.sql"),
    include_str!("schema/0005_not_stated.sql"),
    include_str!("schema/0006_limits.sql"),
    include_str!("schema/0007_trust.sql"),
    include_str!("schema/0008_finish.sql"),
    include_str!("schema/0009_daily.sql"),
    include_str!("schema/0010_answers.sql"),
    include_str!("schema/0011_evidence.sql"),
    include_str!("schema/0012_handles.sql"),
    include_str!("schema/0013_reasons.sql"),
    include_str!("schema/0014_spend.sql"),
];

/// The flags of a connection that only reads.
const READING: OpenFlags =
    OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_URI).union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// The time for which a connection waits for another process that writes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The time between two looks at a file that another process writes, and the number of looks in five seconds and in five minutes.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS: (i32, i32) = (250, 15_000);

/// Waits while another process writes, for up to five minutes; returns whether to look again.
fn wait_for_others(looks: i32) -> bool {
    if looks > 0 && looks % LOOKS.0 == 0 {
        let seconds = looks / LOOKS.0 * 5;
        tracing::warn!(target: "formwork", "another process writes to the store for {seconds} s: this one waits for it");
    }
    std::thread::sleep(LOOK);
    looks < LOOKS.1
}

/// The connections of one process: one writes, one reads.
#[derive(Debug)]
pub(crate) struct Store {
    writer: Mutex<Connection>,
    /// `None` in memory, where the one connection does both.
    reader: Option<Mutex<Connection>>,
    pub(crate) is_read_only: bool,
    origin: Option<Origin>,
}

/// The file that was opened, to notice that its path has another file now, or none.
#[derive(Debug)]
struct Origin {
    path: PathBuf,
    #[cfg(unix)]
    file: (u64, u64),
}

impl Origin {
    /// Returns the file at a path; `None` if there is none.
    fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        #[cfg(unix)]
        let file = (std::os::unix::fs::MetadataExt::dev(&found), std::os::unix::fs::MetadataExt::ino(&found));
        #[cfg(not(unix))]
        drop(found);
        Some(Self {
            path: path.to_owned(),
            #[cfg(unix)]
            file,
        })
    }

    /// Returns whether the path still has this file. Where files have no numbers, an open file cannot be deleted or replaced.
    fn is_in_place(&self) -> bool {
        #[cfg(unix)]
        return Self::of(&self.path).is_some_and(|now| now.file == self.file);
        #[cfg(not(unix))]
        true
    }
}

impl Store {
    pub(crate) fn open(path: &Path, format: &Format) -> Result<Self, Error> {
        protect(path)?;
        check(path)?;
        // Taken before SQLite opens the path: a file that is replaced in between is noticed, too.
        let origin = Origin::of(path);
        let wrong = in_file(path);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connect = || Connection::open_with_flags(path, flags);
        let mut writer = connect().map_err(wrong)?;
        prepare(&mut writer, path, format)?;
        let reader = connect().and_then(|reader| {
            reader.busy_timeout(PATIENCE)?;
            reader.pragma_update(None, "query_only", true)?;
            functions(&reader)?;
            Ok(reader)
        });
        let reader = reader.map_err(wrong)?;
        Ok(Self { writer: Mutex::new(writer), reader: Some(Mutex::new(reader)), is_read_only: false, origin })
    }

    /// Attaches a file as the schema of this name to both connections, which wait for other processes from now on.
    pub(crate) fn attach(&self, path: &Path, name: &str) -> Result<(), Error> {
        let file = if self.is_read_only { read_only(path).0 } else { path.to_string_lossy().into_owned() };
        let sql = format!("ATTACH ?1 AS {name}");
        self.wait_for_others(path)?;
        self.each(|connection| connection.execute(&sql, [&file]).map(|_| ())).map_err(in_file(path))
    }

    /// Makes both connections wait for other processes that write to this file for up to five minutes.
    pub(crate) fn wait_for_others(&self, path: &Path) -> Result<(), Error> {
        self.each(|connection| connection.busy_handler(Some(wait_for_others))).map_err(in_file(path))
    }

    fn each(&self, mut run: impl FnMut(&mut Connection) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        let both = [Some(&self.writer), self.reader.as_ref()];
        both.into_iter()
            .flatten()
            .try_for_each(|connection| run(&mut connection.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Opens a file without writing to it or to its folder. Another process may work on it, if the folder has SQLite's files for that.
    pub(crate) fn open_read_only(path: &Path, format: &Format) -> Result<Self, Error> {
        let (uri, has_writes) = read_only(path);
        Self::reading(path, &uri, has_writes, format)
    }

    fn reading(path: &Path, uri: &str, has_writes: bool, format: &Format) -> Result<Self, Error> {
        check(path)?;
        let origin = Origin::of(path);
        let wrong = |error: rusqlite::Error| {
            let copy = has_writes.then_some("; copy the folder to a place where it can be written");
            let hint = fix(&error, path).or(copy).unwrap_or_default();
            Error::File { path: path.to_owned(), message: format!("{error}{hint}") }
        };
        let connect = || {
            let file = Connection::open_with_flags(uri, READING)?;
            file.busy_timeout(PATIENCE)?;
            functions(&file)?;
            Ok(file)
        };
        let writer: Connection = connect().map_err(wrong)?;
        let found = |sql| writer.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(wrong);
        let (application, version) = (found("PRAGMA application_id")?, found("PRAGMA user_version")?);
        let known = format.steps.len() as i64;
        if application != format.application {
            let is_empty = found("SELECT count(*) FROM sqlite_schema")? == 0;
            let hint = Some(if is_empty { "it is empty" } else { "it is another program's database" });
            return Err(Error::NotALedger { path: path.to_owned(), hint });
        }
        if version > known {
            return Err(Error::Newer { path: path.to_owned(), found: version, known });
        }
        if version < known {
            let message = format!(
                "it has an older format: copy the folder to a place where it can be written, or bring a ledger up to date with \
                 `formwork runs list --ledger {}`",
                path.display()
            );
            return Err(Error::File { path: path.to_owned(), message });
        }
        let reader = connect().map_err(wrong)?;
        Ok(Self { writer: Mutex::new(writer), reader: Some(Mutex::new(reader)), is_read_only: true, origin })
    }

    /// Opens a file of the newest format that is never written by this process, and may be by another one. Where SQLite can make no
    /// files beside it, it is read as [`open_read_only`](Self::open_read_only) does.
    pub(crate) fn view(path: &Path, format: &Format) -> Result<Self, Error> {
        let address = address(path, "mode=ro");
        let opened = Connection::open_with_flags(&address, READING).and_then(|file| {
            file.busy_timeout(PATIENCE)?;
            file.query_row("PRAGMA user_version", [], |_| Ok(()))
        });
        match opened.err().and_then(|error| error.sqlite_error_code()) {
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::SystemIoFailure) => {
                Self::open_read_only(path, format)
            }
            _ => Self::reading(path, &address, true, format),
        }
    }

    pub(crate) fn in_memory() -> Result<Self, Error> {
        let mut writer = Connection::open_in_memory().map_err(|error| Error::write(&error))?;
        prepare(&mut writer, Path::new(":memory:"), &LEDGER)?;
        Ok(Self { writer: Mutex::new(writer), reader: None, is_read_only: false, origin: None })
    }

    /// Checks that the path of the file still has the file that was opened.
    ///
    /// # Errors
    /// [`Error::Replaced`].
    pub(crate) fn in_place(&self) -> Result<(), Error> {
        match &self.origin {
            Some(origin) if !origin.is_in_place() => Err(Error::Replaced { path: origin.path.clone() }),
            _ => Ok(()),
        }
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads with a closure.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        let reader =
            self.reader.as_ref().unwrap_or(&self.writer).lock().unwrap_or_else(PoisonError::into_inner);
        read(&reader).map_err(|error| Error::on(&reader, &error, false))
    }
}

/// Returns the address of a file that is only read, and whether it has writes that are not brought into it yet.
fn read_only(path: &Path) -> (String, bool) {
    let log = path.with_file_name(format!("{}-wal", path.file_name().unwrap_or_default().display()));
    let has_writes = std::fs::metadata(log).is_ok_and(|file| file.len() > 0);
    // An immutable file is read without SQLite's files beside it.
    (address(path, if has_writes { "mode=ro" } else { "mode=ro&immutable=1" }), has_writes)
}

/// Returns the address of a file with these parameters, as SQLite takes it.
fn address(path: &Path, parameters: &str) -> String {
    let name = path.display().to_string().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{name}?{parameters}")
}

/// Returns the conversion of SQLite's errors with a file.
fn in_file(path: &Path) -> impl Fn(rusqlite::Error) -> Error + Copy {
    |error| {
        let fix = fix(&error, path).unwrap_or_default();
        Error::File { path: path.to_owned(), message: format!("{error}{fix}") }
    }
}

/// Returns what helps against an error of a file that is opened.
fn fix(error: &rusqlite::Error, path: &Path) -> Option<&'static str> {
    match error.sqlite_error_code()? {
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            Some(": restore a backup of it, or move it away together with its files `-wal` and `-shm`")
        }
        ErrorCode::DatabaseBusy => Some(": another process holds it; try again when that has ended"),
        // The files beside it that SQLite cannot make are no writes that fail for a full disk.
        ErrorCode::SystemIoFailure if free_bytes(path).is_some_and(|free| free < BESIDE) => {
            Some(": the disk is full; make room on it")
        }
        _ => None,
    }
}

/// The bytes of the smallest file that SQLite makes beside another one.
const BESIDE: u64 = 32 << 10;

/// Returns the number of bytes that are free on the disk of a file; `None` where the system does not tell.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let disk = rustix::fs::statvfs(path).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }
    #[cfg(not(unix))]
    {
        _ = path;
        None
    }
}

/// Returns the conversion of the system's errors with a file.
fn in_system(path: &Path) -> impl Fn(io::Error) -> Error + Copy {
    |error| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let message = match folder {
            Some(folder) => format!("the folder {} does not exist", folder.display()),
            None => error.to_string(),
        };
        Error::File { path: path.to_owned(), message }
    }
}

/// Makes sure that the file is there and that its owner alone reads and writes it.
fn protect(path: &Path) -> Result<(), Error> {
    let wrong = in_system(path);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).map_err(wrong)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = file.metadata().map_err(wrong)?.permissions().mode();
        if mode & 0o077 != 0 {
            tracing::warn!(path = %path.display(), "others could read the ledger: its mode is 0600 now");
            file.set_permissions(std::fs::Permissions::from_mode(0o600)).map_err(wrong)?;
        }
    }
    drop(file);
    Ok(())
}

/// Refuses files that are something else before SQLite touches them.
fn check(path: &Path) -> Result<(), Error> {
    let wrong = in_system(path);
    let mut head = Vec::new();
    File::open(path).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut head)).map_err(wrong)?;
    if head.is_empty() || head == MAGIC {
        return Ok(());
    }
    let hint = head.starts_with(b"{").then_some("it looks like JSON Lines, which `formwork oracle` writes");
    Err(Error::NotALedger { path: path.to_owned(), hint })
}

fn prepare(connection: &mut Connection, path: &Path, newest: &Format) -> Result<(), Error> {
    let wrong = in_file(path);
    (|| {
        connection.busy_timeout(PATIENCE)?;
        // Both must be set before the first table is created, and have no effect on an existing file.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        // Steps use them, too.
        functions(connection)
    })()
    .map_err(wrong)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(wrong)?;
    let found = |sql| transaction.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(wrong);
    let (application, format) = (found("PRAGMA application_id")?, found("PRAGMA user_version")?);
    let tables = found("SELECT count(*) FROM sqlite_schema")?;
    if application != newest.application && tables > 0 {
        let hint = Some("it is another program's database");
        return Err(Error::NotALedger { path: path.to_owned(), hint });
    }
    let known = newest.steps.len() as i64;
    if format > known {
        return Err(Error::Newer { path: path.to_owned(), found: format, known });
    }
    (|| {
        for step in newest.steps.iter().skip(usize::try_from(format).unwrap_or_default()) {
            transaction.execute_batch(step)?;
        }
        if format < known {
            transaction.pragma_update(None, "application_id", newest.application)?;
            transaction.pragma_update(None, "user_version", known)?;
        }
        transaction.commit()
    })()
    .map_err(wrong)?;
    (|| {
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "journal_size_limit", 16 << 20)?;
        // Deleted texts are overwritten.
        connection.pragma_update(None, "secure_delete", true)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(())
    })()
    .map_err(wrong)
}

/// Adds `general(path)`, which queries compare paths by, and `bucket(millis)`, the class of a duration.
fn functions(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("general", 1, flags, |context| {
        context.get::<String>(0).map(|path| general(&path).into_owned())
    })?;
    connection.create_scalar_function("bucket", 1, flags, |context| {
        context.get::<i64>(0).map(|millis| bucket(millis.max(0).unsigned_abs()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_without_writing_beside_it() {
        const FORMAT: Format =
            Format { application: 7, steps: &["CREATE TABLE t (n); INSERT INTO t VALUES (1)"] };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a#b?.db");
        drop(Store::open(&path, &FORMAT).unwrap());
        let files = || {
            let mut names: Vec<_> =
                std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = (files(), std::fs::read(&path).unwrap());
        let store = Store::open_read_only(&path, &FORMAT).unwrap();
        let count =
            |file: &Connection| file.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0));
        assert_eq!(store.read(count).unwrap(), 1);
        assert!(store.writer().execute("INSERT INTO t VALUES (2)", []).is_err());
        assert_eq!(before.0, ["a#b?.db"]);
        assert_eq!(before, (files(), std::fs::read(&path).unwrap()));
        drop(store);
        for (format, says) in [
            (Format { application: 8, ..FORMAT }, "another program's database"),
            (Format { steps: &[], ..FORMAT }, "has format 1"),
            (Format { steps: &["", ""], ..FORMAT }, "an older format: copy the folder"),
        ] {
            let error = Store::open_read_only(&path, &format).map(drop).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let empty = folder.path().join("empty.db");
        std::fs::write(&empty, "").unwrap();
        let error = Store::open_read_only(&empty, &FORMAT).map(drop).unwrap_err().to_string();
        assert!(error.ends_with("is not a ledger of formwork: it is empty"), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_error_of_a_full_disk_says_so() {
        let code = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        let folder = tempfile::tempdir().unwrap();
        // `/proc` has no free space.
        let full = Path::new("/proc/version");
        for (path, error, says) in [
            (full, code(rusqlite::ffi::SQLITE_IOERR), Some("disk is full")),
            (full, code(rusqlite::ffi::SQLITE_BUSY), Some("another process")),
            (full, code(rusqlite::ffi::SQLITE_PERM), None),
            (folder.path(), code(rusqlite::ffi::SQLITE_IOERR), None),
        ] {
            let found = fix(&error, path);
            assert_eq!(
                found.is_some_and(|fix| fix.contains(says.unwrap_or(fix))),
                says.is_some(),
                "{error}: {found:?}"
            );
        }
    }

    #[test]
    fn every_older_format_becomes_the_newest_and_keeps_its_rows_and_budgets() {
        let folder = tempfile::tempdir().unwrap();
        for format in 0..=STEPS.len() {
            let path = folder.path().join(format!("{format}.db"));
            let old = Connection::open(&path).unwrap();
            functions(&old).unwrap();
            for step in &STEPS[..format] {
                old.execute_batch(step).unwrap();
            }
            if format > 1 {
                let key = "INSERT INTO key (name, hash, hint, role, budget, spent, created) VALUES ('k', x'01', 'fw', 'user', 900, 250, 1)";
                old.execute_batch(key).unwrap();
            }
            if format > 0 {
                old.execute_batch("INSERT INTO hourly_reason VALUES (1, 'type', '$', 'm', 'c', 7)").unwrap();
                old.pragma_update(None, "application_id", LEDGER.application).unwrap();
                old.pragma_update(None, "user_version", format as i64).unwrap();
            }
            drop(old);
            let store = Store::open(&path, &LEDGER).unwrap();
            let kept: i64 = store
                .read(|reader| {
                    reader.query_row("SELECT coalesce(sum(count), 0) FROM reasons", [], |row| row.get(0))
                })
                .unwrap();
            assert_eq!(kept, if format > 0 { 7 } else { 0 }, "format {format}");
            let budgets = |reader: &Connection| {
                reader.query_row("SELECT count(*), coalesce(sum(budget - spent), 0) FROM key", [], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
                })
            };
            let expected = if format > 1 { (1, 650) } else { (0, 0) };
            assert_eq!(store.read(budgets).unwrap(), expected, "format {format}");
            let schema = |connection: &Connection| -> Vec<Option<String>> {
                let mut rows = connection.prepare("SELECT sql FROM sqlite_schema ORDER BY name").unwrap();
                rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
            };
            let fresh = Store::in_memory().unwrap();
            assert_eq!(store.read(|reader| Ok(schema(reader))), fresh.read(|reader| Ok(schema(reader))));
        }
    }
}
