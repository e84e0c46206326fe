use std::borrow::Cow;
use std::sync::LazyLock;

use formwork_json::{PathPattern, PatternStep, Segment};
use regex::Regex;
use serde_json::Value;

use crate::Error;

/// The text in the place of a text or value that was removed.
pub const REDACTED: &str = "[redacted]";

/// API keys of Formwork and of vendors, by their prefixes, and the values of `Authorization` headers.
const KEYS: &str = concat!(
    r"\b(?:fw_[0-9a-f]{32,}|sk-[A-Za-z0-9_-]{16,}|sk_[A-Za-z0-9_]{16,}|AIza[A-Za-z0-9_-]{30,}|gsk_[A-Za-z0-9]{20,}",
    r"|hf_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{30,}|pplx-[A-Za-z0-9]{20,})",
    r"|\b[Bb]earer +[A-Za-z0-9._~+/-]{8,}=*",
);

static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(KEYS).ok());

/// Rules for texts that the ledger must not contain. API keys are always removed, also without any rule.
///
/// - A **pattern** is a regular expression. Its matches are removed from all texts of a run: bodies, messages, paths, tags and
///   the user.
/// - A **path** with wildcards (`$.patient.name`, `$.rows[*].email`) removes a value from requests and answers. A dialect
///   may have moved the value, a patch may use another name, and a request repeats earlier answers, so every member with the last
///   name of the path is removed, at any place. If there are paths, a body that is not JSON is omitted. Prose has no paths, so
///   only patterns remove text from it.
///
/// Tokens, times, cost and the names of targets, models and contracts stay.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::{Ledger, Redaction, RunRecord, Settings};
///
/// let redaction = Redaction::default().with_path("$.patient.name")?.with_pattern(r"\d{3}-\d{4}")?;
/// let ledger = Ledger::in_memory(Settings { bodies: true, redaction, ..Settings::default() })?;
/// let mut run = RunRecord::new("extract", Time(1_795_000_000_000));
/// run.request = Some(r#"{"patient": {"name": "Maria", "phone": "555-1234"}}"#.to_owned());
/// let id = run.id;
/// ledger.record(run);
/// ledger.flush_blocking()?;
/// let request = ledger.run(id)?.unwrap().request.unwrap();
/// assert!(!request.contains("Maria") && !request.contains("555-1234"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Redaction {
    paths: Vec<PathPattern>,
    patterns: Vec<Regex>,
    function: Option<fn(&str) -> String>,
}

impl Redaction {
    /// Adds a path (default: none).
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is not a path.
    pub fn with_path(mut self, path: &str) -> Result<Self, Error> {
        let wrong = |error| Error::Invalid(format!("`{path}` is not a path to redact: {error}"));
        self.paths.push(path.parse().map_err(wrong)?);
        Ok(self)
    }

    /// Adds a regular expression (default: none).
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is not a valid regular expression.
    pub fn with_pattern(mut self, pattern: &str) -> Result<Self, Error> {
        let wrong = |error| Error::Invalid(format!("`{pattern}` is not a pattern to redact: {error}"));
        self.patterns.push(Regex::new(pattern).map_err(wrong)?);
        Ok(self)
    }

    /// Sets a function that removes texts after the patterns (default: none). It is called when a run is written, so its rules
    /// may be known later than the ledger is opened.
    #[must_use]
    pub const fn with_function(mut self, function: fn(&str) -> String) -> Self {
        self.function = Some(function);
        self
    }

    /// Removes keys and the matches of the patterns.
    pub(crate) fn text(&self, text: &mut String) {
        let Some(keys) = &*KEY else {
            REDACTED.clone_into(text);
            return;
        };
        for pattern in std::iter::once(keys).chain(&self.patterns) {
            if let Cow::Owned(shorter) = pattern.replace_all(text, REDACTED) {
                *text = shorter;
            }
        }
        if let Some(function) = self.function {
            *text = function(text);
        }
    }

    /// Applies the rules to a request or an answer; `None` if it must be omitted completely.
    pub(crate) fn body(&self, mut text: String) -> Option<String> {
        if !self.paths.is_empty() {
            let mut document = serde_json::from_str(&text).ok()?;
            for pattern in &self.paths {
                remove_at(pattern, &mut document);
                remove_named(&last_name(pattern)?, &mut document);
            }
            text = document.to_string();
        }
        self.text(&mut text);
        Some(text)
    }
}

fn remove_at(pattern: &PathPattern, document: &mut Value) {
    let paths: Vec<_> = pattern.find(document).into_iter().map(|(path, _)| path).collect();
    for path in paths {
        if let Some(value) = path.get_mut(document) {
            *value = REDACTED.into();
        }
    }
}

/// Returns the last member name that a pattern spells out; `None` if it has wildcards and numbers only.
fn last_name(pattern: &PathPattern) -> Option<String> {
    pattern.steps().iter().rev().find_map(|step| match step {
        PatternStep::One(Segment::Key(name)) => Some(name.to_string()),
        _ => None,
    })
}

/// Replaces the value of every member with this name, in texts that hold JSON as well.
fn remove_named(name: &str, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| remove_named(name, item)),
        Value::Object(members) => {
            // A map that was written as a list has its names in values: `{"key": "email", "value": …}`.
            let is_entry = members.values().any(|value| value.as_str() == Some(name));
            for (member, value) in members.iter_mut() {
                if is_entry || is_about(member, name) {
                    *value = REDACTED.into();
                } else {
                    remove_named(name, value);
                }
            }
        }
        Value::String(text) if text.starts_with(['{', '[']) => {
            if let Ok(mut inner) = serde_json::from_str(text) {
                remove_named(name, &mut inner);
                *text = inner.to_string();
            }
        }
        _ => {}
    }
}

/// Returns whether a member has this name, or is the name of a patch for a value at or below such a member:
/// `rows[0].email`.
fn is_about(member: &str, name: &str) -> bool {
    member == name || member.split(['.', '[', ']', '\'', '"']).any(|part| part == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expression_for_keys_is_one() {
        assert!(KEY.is_some());
    }
}
