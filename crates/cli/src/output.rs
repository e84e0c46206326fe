//! Standard output. If its reader has closed the pipe (`| head -1`), the command ends quietly and without a panic.

use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

use crate::exit::Failed;
use crate::terminal;

/// Writes a text to standard output and flushes it.
///
/// # Errors
/// [`Failed`] if the write fails. A closed pipe ends the command with exit code 0.
pub(crate) fn text(text: &str) -> Result<(), Failed> {
    let write = || {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    };
    // Progress lines are in the way only if both streams are terminals.
    if io::stdout().is_terminal() {
        terminal::beside(write)?
    } else {
        write()?
    }
    Ok(())
}

/// Writes a line to standard output and flushes it.
///
/// # Errors
/// The errors of [`text`].
pub(crate) fn line(line: impl fmt::Display) -> Result<(), Failed> {
    text(&format!("{line}\n"))
}

/// Writes a value as one line of JSON to standard output and flushes it, because programs wait for the result of each row.
///
/// # Errors
/// The errors of [`text`].
pub(crate) fn row(value: &impl Serialize) -> Result<(), Failed> {
    if io::stdout().is_terminal() {
        return line(serde_json::to_string(value).map_err(io::Error::from)?);
    }
    // A result of a million rows is written as it is converted.
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    serde_json::to_writer(&mut out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    out.flush()?;
    Ok(())
}

/// Returns rows as lines of cells of the same width; `is_right` says which columns are aligned right.
pub(crate) fn table<const COLUMNS: usize>(
    rows: &[[String; COLUMNS]],
    is_right: impl Fn(usize) -> bool,
) -> String {
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    });
    let line = |row: &[String; COLUMNS]| {
        let cells =
            row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match is_right(column) {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// Writes a value as one line of JSON if `json`, otherwise the text of `words` for people, which ends with a line break.
///
/// # Errors
/// The errors of [`text`].
pub(crate) fn either(
    json: bool,
    value: &impl Serialize,
    words: impl FnOnce() -> String,
) -> Result<(), Failed> {
    if json { row(value) } else { text(&words()) }
}
