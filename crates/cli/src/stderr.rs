//! Standard error. A closed pipe must not cause a panic.

use std::fmt;
use std::io::{self, Write as _};

use crate::{redaction, terminal};

/// Writes a formatted line to standard error, like `eprintln!`.
macro_rules! say {
    ($($words:tt)*) => { $crate::stderr::error_line(format_args!($($words)*)) };
}
pub(crate) use say;

/// Writes a line to standard error. A failure is ignored: there is no other place to report it.
pub(crate) fn error_line(words: fmt::Arguments<'_>) {
    // Each line is one write, so that lines of several threads do not mix.
    error_text(&format!("{words}\n"));
}

/// Writes a text to standard error, without the matches of `[redaction]`. A failure is ignored, as by [`error_line`].
pub(crate) fn error_text(text: &str) {
    let text = redaction::redacted(text);
    let _ = terminal::beside(|| io::stderr().lock().write_all(text.as_bytes()));
}
