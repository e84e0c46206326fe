//! The files of results. Each one is written to a temporary file, flushed to the disk and renamed, so that a file is whole or
//! absent.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use formwork_ledger::Database;
use rusqlite::params;

use super::tables::int;
use crate::BatchError;

/// Returns the name of a file of results: `part-00001.jsonl` has the first rows.
pub(super) fn name(kind: &str, part: u64) -> String {
    format!("{kind}-{:05}.jsonl", part + 1)
}

/// A file that appears under its name when it is whole.
struct Whole {
    temporary: PathBuf,
    path: PathBuf,
    file: Option<BufWriter<File>>,
}

impl Whole {
    fn new(folder: &Path, name: &str) -> Self {
        Self { temporary: folder.join(format!(".{name}.tmp")), path: folder.join(name), file: None }
    }

    fn line(&mut self, id: &str, line: &str) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let mut options = fs::OpenOptions::new();
                options.write(true).create(true).truncate(true);
                #[cfg(unix)]
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
                self.file.insert(BufWriter::with_capacity(1 << 18, options.open(&self.temporary)?))
            }
        };
        write!(file, "{{\"id\":{id},{}", line.strip_prefix('{').unwrap_or(line))?;
        file.write_all(b"\n")
    }

    /// Puts the file in its place; one without a line is removed.
    fn finish(self) -> io::Result<()> {
        let Some(file) = self.file else {
            return match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&self.temporary, &self.path)
    }
}

/// Writes the two files of a part with the results that are there. A [`Writer`] of the same folder must be [settled](Writer::settle).
pub(super) fn write(database: &Database, folder: &Path, part: u64, part_rows: u64) -> Result<(), BatchError> {
    let mut values = Whole::new(folder, &name("part", part));
    let mut rejected = Whole::new(folder, &name("rejected", part));
    let (from, to) = (int(part * part_rows), int((part + 1) * part_rows));
    let written = database.read(|file| {
        let mut select = file.prepare_cached(
            "SELECT rows.id, rows.state, line FROM rows JOIN answer ON answer.id = rows.answer
             WHERE rows.number >= ?1 AND rows.number < ?2 AND rows.state > 0 ORDER BY rows.number",
        )?;
        let mut rows = select.query(params![from, to])?;
        while let Some(row) = rows.next()? {
            let (id, line) = (row.get_ref(0)?.as_str()?, row.get_ref(2)?.as_str()?);
            let target = if row.get::<_, i64>(1)? == 1 { &mut values } else { &mut rejected };
            if let Err(error) = target.line(id, line) {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    })?;
    let finished = written
        .and_then(|()| values.finish())
        .and_then(|()| rejected.finish())
        .and_then(|()| File::open(folder)?.sync_all());
    finished.map_err(|error| BatchError::file(&folder.join(name("part", part)), &error))?;
    database
        .write(move |file| {
            file.execute("UPDATE parts SET written = 1 WHERE part = ?1 AND open = 0", [int(part)])
        })
        .wait()?;
    Ok(())
}

/// Removes the files of results, whose rows are others now.
pub(super) fn remove_all(folder: &Path) -> Result<(), BatchError> {
    let wrong = |error: io::Error| BatchError::file(folder, &error);
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if (name.starts_with("part-") || name.starts_with("rejected-")) && name.ends_with(".jsonl") {
            fs::remove_file(entry.path()).map_err(wrong)?;
        }
    }
    Ok(())
}

/// A task of the thread.
enum Task {
    Write(u64),
    /// The files before this task are written.
    Settled(Sender<()>),
}

/// A thread that writes the files whose rows all have a result.
#[derive(Debug)]
pub(super) struct Writer {
    parts: Mutex<Option<Sender<Task>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    failed: Arc<Mutex<Option<BatchError>>>,
}

impl Writer {
    pub(super) fn start(database: Database, folder: PathBuf, part_rows: u64) -> Result<Self, BatchError> {
        let (sender, receiver): (_, Receiver<Task>) = channel();
        let failed = Arc::new(Mutex::new(None));
        let of_thread = Arc::clone(&failed);
        let thread = std::thread::Builder::new()
            .name("formwork-parts".to_owned())
            .spawn(move || {
                for task in receiver {
                    match task {
                        Task::Write(part) => {
                            if let Err(error) = write(&database, &folder, part, part_rows) {
                                let mut failed = of_thread.lock().unwrap_or_else(PoisonError::into_inner);
                                failed.get_or_insert(error);
                            }
                        }
                        Task::Settled(sender) => _ = sender.send(()),
                    }
                }
            })
            .map_err(|error| BatchError::Engine(format!("a thread cannot be started: {error}")))?;
        Ok(Self { parts: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)), failed })
    }

    /// Returns at once.
    pub(super) fn push(&self, part: u64) {
        self.send(Task::Write(part));
    }

    /// Waits for the files that were pushed, before others write or remove files of the folder.
    pub(super) fn settle(&self) {
        let (sender, settled) = channel();
        self.send(Task::Settled(sender));
        // The sender is dropped if the thread has ended.
        _ = settled.recv();
    }

    fn send(&self, task: Task) {
        if let Some(parts) = &*self.parts.lock().unwrap_or_else(PoisonError::into_inner) {
            // The thread ends only when the sender is dropped.
            _ = parts.send(task);
        }
    }

    /// Waits for the files that were pushed.
    ///
    /// # Errors
    /// The first error of a file since the start.
    pub(super) fn close(&self) -> Result<(), BatchError> {
        drop(self.parts.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            _ = thread.join();
        }
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone().map_or(Ok(()), Err)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        _ = self.close();
    }
}
