//! The answers: recorded elsewhere, or by this command.

use std::collections::HashMap;
use std::path::Path;

use formwork_eval::Effort;
use serde_json::Value;

use super::notes::Notes;
use crate::exit::Failed;
use crate::files;
use crate::jsonl::{BadRow, numbered};
use crate::rows::EvalAnswer;

/// The answers of a configuration by their id, each with its file and line.
#[derive(Default)]
pub(super) struct Answers {
    pub(super) values: HashMap<String, (String, Value)>,
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
                    answers.efforts.extend(effort);
                    match answers.values.get(&id) {
                        // A later line is a later attempt at a row that had no answer.
                        Some((_, Value::Null)) if configuration.is_some() => {
                            answers.values.insert(id, (place, value));
                        }
                        Some((first, _)) => {
                            notes.failed(format!("{place}: the id {id} is that of {first}, which counts"));
                        }
                        None => {
                            answers.values.insert(id, (place, value));
                        }
                    }
                }
            }
        }
        Ok(answers)
    }
}
