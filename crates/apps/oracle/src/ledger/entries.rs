use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use crate::ScoreEvent;

/// The maximum size of a line in bytes. An event with three long answers has about ten thousand.
pub const MAX_LINE: usize = 16 << 20;

/// Reads a ledger line by line: scores and damaged lines. A damaged line does not end the iteration; a read error does.
///
/// ```
/// use formwork_oracle::ledger::Entries;
///
/// let mut entries = Entries::new("{\"request_id\": \"1\", \"wal".as_bytes());
/// let damaged = entries.next().unwrap()?.unwrap_err();
/// assert_eq!(damaged.line, 1);
/// assert!(entries.next().is_none());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Entries<R> {
    reader: R,
    line: u64,
    bytes: Vec<u8>,
    is_done: bool,
}

/// A line of a ledger that is not a score.
///
/// ```
/// use formwork_oracle::ledger::Entries;
///
/// let damaged = Entries::new("{}\n".as_bytes()).next().unwrap()?.unwrap_err();
/// assert!(damaged.to_string().starts_with("line 1 is skipped: missing field"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is skipped: {message}")]
pub struct Damaged {
    /// The line, from 1.
    pub line: u64,
    /// The reason why it is not a score.
    pub message: String,
}

impl Entries<BufReader<File>> {
    /// Opens a ledger file for reading.
    ///
    /// # Errors
    /// [`io::Error`] with the path of the file if it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot read the ledger {}: {error}", path.display()))
        })?;
        Ok(Self::new(BufReader::new(file)))
    }
}

impl<R: BufRead> Entries<R> {
    /// Reads a ledger from any reader.
    pub const fn new(reader: R) -> Self {
        Self { reader, line: 0, bytes: Vec::new(), is_done: false }
    }

    /// Returns the next line that is not blank.
    fn line(&mut self) -> io::Result<Option<Result<ScoreEvent, Damaged>>> {
        loop {
            self.bytes.clear();
            let most = MAX_LINE as u64 + 1;
            if self.reader.by_ref().take(most).read_until(b'\n', &mut self.bytes)? == 0 {
                return Ok(None);
            }
            self.line += 1;
            let is_whole = self.bytes.ends_with(b"\n");
            if !is_whole && self.bytes.len() > MAX_LINE {
                self.reader.skip_until(b'\n')?;
                let message = format!("it has more than {MAX_LINE} bytes");
                return Ok(Some(Err(Damaged { line: self.line, message })));
            }
            if self.bytes.trim_ascii().is_empty() {
                continue;
            }
            return Ok(Some(serde_json::from_slice(&self.bytes).map_err(|error| {
                // serde_json counts lines within its input, which is a single line here.
                let error = error.to_string().replace(" at line 1 column ", " at column ");
                let message = if is_whole { error } else { format!("it is not finished: {error}") };
                Damaged { line: self.line, message }
            })));
        }
    }
}

impl<R: BufRead> Iterator for Entries<R> {
    type Item = io::Result<Result<ScoreEvent, Damaged>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let next = self.line().transpose();
        self.is_done = !matches!(next, Some(Ok(_)));
        next
    }
}
