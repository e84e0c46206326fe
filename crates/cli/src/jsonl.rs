//! JSON Lines: one result row for each input row, in the same order.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::thread;

use formwork_json::{JsonPath, Level, read_bytes, read_exact};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::error::Category;
use serde_json::{Map, Value};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::exit::{Failed, Status};
use crate::files::{name, unmarked, warn_of};
use crate::rows::RowError;
use crate::{output, terminal};

/// Prints the result of each row of a file, or of standard input for `-`, before it reads the next one. An invalid row has a
/// result too, with its `id` if that can be read. The command fails if a row failed, unless failures are allowed.
pub(crate) fn each_row<I: DeserializeOwned, O: Serialize>(
    path: &Path,
    allow_failures: bool,
    answer: impl Fn(I) -> O,
    unreadable: impl Fn(Value, RowError) -> O,
    is_ok: fn(&O) -> bool,
) -> Result<Status, Failed> {
    let mut printed = Printed::new("rows", None);
    for row in rows(path)? {
        let answer = match row? {
            Ok(row) => answer(row),
            Err(BadRow { id, message }) => unreadable(id, RowError::Row { message }),
        };
        printed.row(&answer, is_ok(&answer))?;
    }
    Ok(Status::of(printed.all_ok || allow_failures))
}

/// Prints results of rows, and counts them on a terminal.
pub(crate) struct Printed {
    /// Whether all rows succeeded.
    pub(crate) all_ok: bool,
    progress: Option<terminal::Bar>,
}

impl Printed {
    pub(crate) fn new(what: &'static str, total: Option<u64>) -> Self {
        Self { all_ok: true, progress: terminal::count(what, total) }
    }

    /// Prints a result.
    ///
    /// # Errors
    /// The errors of [`output::row`].
    pub(crate) fn row(&mut self, row: &impl Serialize, is_ok: bool) -> Result<(), Failed> {
        self.all_ok &= is_ok;
        output::row(row)?;
        self.progress.iter().for_each(|bar| bar.inc(1));
        Ok(())
    }
}

/// A row, or the reason why a line is no row.
pub(crate) type Row<I> = Result<I, BadRow>;

/// A line that is no valid row.
#[derive(Debug)]
pub(crate) struct BadRow {
    /// The `id` of the row, as far as it can be read; null otherwise.
    pub(crate) id: Value,
    /// File, line and reason.
    pub(crate) message: String,
}

impl BadRow {
    fn new(line: &[u8], place: &str, error: &serde_json::Error) -> Self {
        let is_object = || serde_json::from_slice::<Map<String, Value>>(line).is_ok();
        let message = match error.classify() {
            Category::Data if is_object() => {
                // The parser reports line and column within this row.
                let reason = error.to_string();
                let reason = reason.split_once(" at line ").map_or(reason.as_str(), |(reason, _)| reason);
                format!("{place}: {reason}")
            }
            _ => format!("{place}: this line is not a JSON object: it breaks at column {}", error.column()),
        };
        Self { id: id(line), message }
    }
}

/// A row with its line, from 1.
pub(crate) type Numbered<I> = Result<(usize, Row<I>), Failed>;

/// Reads the rows with their lines in another thread, so that the command can react to Ctrl-C and print results while it waits for the next
/// row.
pub(crate) fn incoming<I: DeserializeOwned + Send + 'static>(
    path: &Path,
) -> Result<Receiver<Numbered<I>>, Failed> {
    let rows = numbered(path)?;
    read_in_thread("rows", move |sender| {
        for row in rows {
            if sender.blocking_send(row).is_err() {
                return;
            }
        }
    })
}

/// Reads `what` in another thread.
pub(crate) fn read_in_thread<T: Send + 'static>(
    what: &str,
    read: impl FnOnce(&Sender<T>) + Send + 'static,
) -> Result<Receiver<T>, Failed> {
    let (sender, receiver) = channel(1);
    thread::Builder::new()
        .name(what.to_owned())
        .spawn(move || read(&sender))
        .map_err(|error| Failed::usage(format!("cannot start a thread that reads the {what}: {error}")))?;
    Ok(receiver)
}

/// Iterates over the rows of a file, or of standard input for `-`. Empty lines are skipped.
fn rows<I: DeserializeOwned>(
    path: &Path,
) -> Result<impl Iterator<Item = Result<Row<I>, Failed>> + Send + use<I>, Failed> {
    Ok(numbered(path)?.map(|row| row.map(|(_, row)| row)))
}

/// Iterates over the rows of a file as [`rows`] does, each with its line, from 1.
pub(crate) fn numbered<I: DeserializeOwned>(
    path: &Path,
) -> Result<impl Iterator<Item = Numbered<I>> + Send + use<I>, Failed> {
    let file = name(path);
    let unreadable = {
        let file = file.clone();
        move |error: io::Error| Failed::usage(format!("cannot read {file}: {error}"))
    };
    let input: Box<dyn BufRead + Send> = if path == Path::new("-") {
        Box::new(BufReader::new(io::stdin()))
    } else {
        Box::new(BufReader::new(File::open(path).map_err(&unreadable)?))
    };
    let lines = input.split(b'\n').enumerate();
    Ok(lines.filter_map(move |(index, line)| match line {
        Err(error) => Some(Err(unreadable(error))),
        Ok(line) if unmarked(&line).trim_ascii().is_empty() => None,
        Ok(line) => Some(Ok((index + 1, row(&line, &format!("{file}:{}", index + 1))))),
    }))
}

/// Reads a row. Prints its [warnings](crate::files::warnings); a row with an integer that would change is no valid row.
fn row<I: DeserializeOwned>(line: &[u8], place: &str) -> Row<I> {
    let line = unmarked(line);
    let bad = |message: String| Err(BadRow { id: id(line), message });
    if let Err(error) = str::from_utf8(line) {
        let byte = error.valid_up_to() + 1;
        return bad(format!("{place}: byte {byte} of this line is not UTF-8: save the file as UTF-8"));
    }
    // The parser would read a list as the members of a row in their order.
    if !line.trim_ascii_start().starts_with(b"{") {
        return bad(format!("{place}: this line is not a JSON object"));
    }
    let row = serde_json::from_slice(line).map_err(|error| BadRow::new(line, place, &error))?;
    match read_exact(line) {
        Ok(document) => warn_of(place, line, &document),
        Err(error) => return bad(format!("{place}: {error}")),
    }
    Ok(row)
}

/// Returns the `id` of a row, as far as it can be read and kept exactly; null otherwise.
fn id(line: &[u8]) -> Value {
    // The tolerant reader finds the `id` of a truncated row, or of one with a superfluous comma.
    let read = read_bytes(line, Level::Clean).ok().map(|reading| reading.into_candidates().swap_remove(0));
    let of_id = JsonPath::root().key("id");
    let row = read.filter(|row| !row.rounded.iter().any(|number| number.path.is_within(&of_id)));
    row.and_then(|mut row| row.value.get_mut("id").map(Value::take)).unwrap_or_default()
}
