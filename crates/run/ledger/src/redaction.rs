use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// The text in the place of a text or value that was removed.
pub const REDACTED: &str = "[redacted]";

/// API keys of Formwork and of vendors, by their prefixes, and the values of `Authorization` headers.
const KEYS: &str = concat!(
    r"\b(?:fw_[0-9a-f]{32,}|sk-[A-Za-z0-9_-]{16,}|sk_[A-Za-z0-9_]{16,}|AIza[A-Za-z0-9_-]{30,}|gsk_[A-Za-z0-9]{20,}",
    r"|hf_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{30,}|pplx-[A-Za-z0-9]{20,})",
    r"|\b[Bb]earer +[A-Za-z0-9._~+/-]{8,}=*",
);

static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(KEYS).ok());

/// The texts that the ledger must not contain: in bodies, messages, paths, tags and the user of a run.
///
/// API keys are always removed, and what a function of the caller removes. Tokens, times, cost and the names of targets, models
/// and contracts stay.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::{Ledger, Redaction, RunRecord, Settings};
///
/// let redaction = Redaction::default().with_function(|text| text.replace("Maria", "[redacted]"));
/// let ledger = Ledger::in_memory(Settings { bodies: true, redaction, ..Settings::default() })?;
/// let mut run = RunRecord::new("extract", Time(1_795_000_000_000));
/// run.request = Some(r#"{"patient": {"name": "Maria"}}"#.to_owned());
/// let id = run.id;
/// ledger.record(run);
/// ledger.flush_blocking()?;
/// assert!(!ledger.run(id)?.unwrap().request.unwrap().contains("Maria"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Redaction {
    function: Option<fn(&str) -> String>,
}

impl Redaction {
    /// Sets a function that returns a text without what must not be stored (default: none). It is called when a run is recorded and when it
    /// is written, so its rules may be known later than the ledger is opened.
    #[must_use]
    pub const fn with_function(mut self, function: fn(&str) -> String) -> Self {
        self.function = Some(function);
        self
    }

    /// Removes API keys, and then what the function removes.
    pub(crate) fn text(self, text: &mut String) {
        let Some(keys) = &*KEY else {
            REDACTED.clone_into(text);
            return;
        };
        if let Cow::Owned(shorter) = keys.replace_all(text, REDACTED) {
            *text = shorter;
        }
        if let Some(function) = self.function {
            *text = function(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expression_for_keys_is_one() {
        assert!(KEY.is_some());
    }
}
