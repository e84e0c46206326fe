//! The `[redaction]` of the configuration and its secrets, for all that the command writes beside its answers.

use std::sync::OnceLock;

use formwork::config::Redaction;

/// The `[redaction]` of the configuration that this process found first: a process reads one.
static REDACTION: OnceLock<Redaction> = OnceLock::new();

/// Keeps the first redaction. Returns whether it is the first.
pub(crate) fn keep(redaction: &Redaction) -> bool {
    REDACTION.set(redaction.clone()).is_ok()
}

/// Returns a text without the secrets that this process sends, and without the matches of `[redaction]`.
pub(crate) fn redacted(text: &str) -> String {
    // Secrets first: a pattern that matches a part of one would hide the rest.
    let text = formwork::http::redact(text);
    match REDACTION.get() {
        Some(redaction) => redaction.text(&text).into_owned(),
        None => text,
    }
}
