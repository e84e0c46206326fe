//! The answers: recorded elsewhere, or by this command.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use formwork_eval::Effort;
use serde_json::Value;

use super::notes::Notes;
use crate::exit::Failed;
use crate::files;
use crate::jsonl::{BadRow, numbered};
use crate::rows::EvalAnswer;

/// An answer: its file and line, and its value as JSON, which takes less memory than a parsed one.
struct Recorded {
    place: Box<str>,
    value: Box<str>,
}

/// The answers of a configuration by their id.
#[derive(Default)]
pub(super) struct Answers {
    values: HashMap<String, Recorded>,
    pub(super) efforts: Vec<Effort>,
}

impl Answers {
    /// Reads the answers of a file, or those of one configuration in it.
    pub(super) fn read(path: &Path, configuration: Option<&str>, notes: &mut Notes) -> Result<Self, Failed> {
        let mut answers = Self::default();
        for row in numbered::<EvalAnswer>(path)? {
            let (line, row) = row?;
            let place = format!("{}:{line}", files::name(path));
            match row {
                Err(BadRow { message, .. }) if configuration.is_none() => notes.failed(message),
                // The last line of a process that was killed.
                Err(_) => {}
                Ok(row) if configuration.is_some() && row.configuration.as_deref() != configuration => {}
                Ok(EvalAnswer { value: None, .. }) => {
                    notes.failed(format!("{place}: the row has no `value`: write null for no answer"));
                }
                Ok(EvalAnswer { id, value: Some(value), effort, .. }) => {
                    let id = id.to_string();
                    let recorded =
                        |place: String| Recorded { place: place.into(), value: value.to_string().into() };
                    answers.efforts.extend(effort);
                    match answers.values.get(&id) {
                        // A later line is a later attempt at a row that had no answer.
                        Some(Recorded { value: known, .. })
                            if configuration.is_some() && **known == *"null" =>
                        {
                            answers.values.insert(id, recorded(place));
                        }
                        Some(Recorded { place: first, .. }) => {
                            notes.failed(format!("{place}: the id {id} is that of {first}, which counts"));
                        }
                        None => {
                            answers.values.insert(id, recorded(place));
                        }
                    }
                }
            }
        }
        Ok(answers)
    }

    /// Takes the answer with this id, with its file and line.
    pub(super) fn take(&mut self, id: &str) -> Option<(Box<str>, Value)> {
        let Recorded { place, value } = self.values.remove(id)?;
        Some((place, serde_json::from_str(&value).unwrap_or_default()))
    }

    /// Returns the number of answers to no row of the gold, and the first of their places.
    pub(super) fn unknown(&self, seen: &HashSet<String>) -> Option<(usize, &str)> {
        let unknown = || self.values.iter().filter(|(id, _)| !seen.contains(*id));
        let first = unknown().map(|(_, recorded)| &*recorded.place).min()?;
        Some((unknown().count(), first))
    }
}
