//! The `[redaction]` of the configuration, for all that the command writes beside its answers.

use std::sync::OnceLock;

use formwork::config::Redaction;

/// The `[redaction]` of the configuration that this process found first: a process reads one.
static REDACTION: OnceLock<Redaction> = OnceLock::new();

/// Keeps the first redaction. Returns whether it is the first.
pub(crate) fn keep(redaction: &Redaction) -> bool {
    REDACTION.set(redaction.clone()).is_ok()
}

/// Returns a text without the matches of `[redaction]`.
pub(crate) fn redacted(text: &str) -> String {
    REDACTION.get().map_or_else(|| text.to_owned(), |redaction| redaction.text(text).into_owned())
}
