//! Standard output. Its reader may be gone (`| head -1`), which must not end in a panic but end the command quietly.

use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

use crate::exit::Failed;
use crate::terminal;

/// Writes a text to standard output, and hands it on at once.
///
/// # Errors
/// [`Failed`] if it cannot be written. A reader that has enough ends the command with exit code 0.
pub(crate) fn text(text: &str) -> Result<(), Failed> {
    let write = || {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    };
    // Progress lines stand where the text would go only if both streams are terminals.
    if io::stdout().is_terminal() {
        terminal::beside(write)?
    } else {
        write()?
    }
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
