//! Everything that the command prints. Whoever reads it may be gone (`| head -1`), which must not end in a panic: standard
//! output gives an error that ends the command quietly, standard error gives none.

use std::fmt;
use std::io::{self, Write as _};

use serde::Serialize;

use crate::exit::Failed;

/// Writes a line to standard error, in the way of `println!`.
macro_rules! say {
    ($($words:tt)*) => { $crate::output::error_line(format_args!($($words)*)) };
}
pub(crate) use say;

/// Writes a line to standard error. A failure is ignored: there is no other place to report it.
pub(crate) fn error_line(words: fmt::Arguments<'_>) {
    // One write for each line, so that those of several threads do not mix.
    error_text(&format!("{words}\n"));
}

/// Writes a text to standard error. A failure is ignored, as by [`error_line`].
pub(crate) fn error_text(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Writes a text to standard output, and hands it on at once.
///
/// # Errors
/// [`Failed`] if it cannot be written. A reader that has enough ends the command with exit code 0.
pub(crate) fn text(text: &str) -> Result<(), Failed> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes a line to standard output, and hands it on at once.
///
/// # Errors
/// As [`text`].
pub(crate) fn line(line: impl fmt::Display) -> Result<(), Failed> {
    text(&format!("{line}\n"))
}

/// Writes a value as one line of JSON to standard output, and hands it on at once: a program that waits for the answer to
/// its row gets it.
///
/// # Errors
/// As [`text`].
pub(crate) fn row(value: &impl Serialize) -> Result<(), Failed> {
    line(serde_json::to_string(value).map_err(io::Error::from)?)
}
