//! `formwork extract --store`: answers that are paid for are used again.

use std::sync::Arc;

use formwork_batch::{Answers, BatchError, Entry, Question};
use formwork_core::{Error, ErrorKind, Outcome};
use formwork_extract::{Extraction, Extractor};
use serde_json::{Value, json};

use super::Requests;
use super::schema::Usable;
use crate::stderr::say;

/// An extractor, and its question to the store if there is one.
#[derive(Debug, Clone)]
pub(super) struct Asks {
    pub(super) extractor: Extractor<Value>,
    question: Option<Question>,
}

/// The answer to one text.
pub(super) enum Begun {
    /// The store has it.
    Stored(Box<Outcome<Value>>),
    /// It is asked for, and stored in this entry.
    Run(Extraction<Value>, Option<Arc<Entry>>),
}

impl Requests<'_> {
    /// Returns the system prompt for a schema, if there is one.
    pub(super) fn system(&self, usable: &Usable) -> Option<String> {
        let parts: Vec<&str> =
            usable.instructions.iter().chain(&self.args.system).map(String::as_str).collect();
        Some(parts.join("\n\n")).filter(|_| !parts.is_empty())
    }

    pub(super) fn asks(&self, usable: Usable) -> Result<Asks, Error> {
        // As a batch has them, so that both find each other's answers.
        let prompt = json!({"instructions": self.system(&usable), "examples": usable.examples});
        let extractor = self.extractor(usable)?;
        let question = self
            .store
            .as_ref()
            .map(|_| Question::of(&extractor).with_models(self.opened.models()).with_prompt_of(&prompt));
        Ok(Asks { extractor, question })
    }

    /// Begins the answer to a text.
    pub(super) fn begin(&self, asks: &Asks, text: String, name: Option<&str>) -> Result<Begun, Error> {
        let Asks { extractor, question } = asks;
        let Some((answers, question)) = self.store.as_ref().zip(question.as_ref()) else {
            return Ok(Begun::Run(self.extraction(extractor, text, name), None));
        };
        begun(answers, question, extractor, text, |text| self.extraction(extractor, text, name))
    }
}

/// Begins the answer to a question about a text, which is stored.
pub(super) fn begun(
    answers: &Answers,
    question: &Question,
    extractor: &Extractor<Value>,
    text: String,
    run: impl FnOnce(String) -> Extraction<Value>,
) -> Result<Begun, Error> {
    let failed = |error: BatchError| Error::new(ErrorKind::Config, format!("--store: {error}"));
    if let Some(outcome) = answers.find(question, extractor, &text).map_err(failed)? {
        return Ok(Begun::Stored(Box::new(outcome)));
    }
    let entry = Arc::new(answers.entry(question, extractor, &text).map_err(failed)?);
    Ok(Begun::Run(run(text).with_journal(Arc::clone(&entry) as _), Some(entry)))
}

/// Stores a result.
pub(super) async fn keep(entry: Option<Arc<Entry>>, result: &Result<Outcome<Value>, Error>) {
    if let Some(entry) = entry
        && let Err(error) = entry.end(result).await
    {
        say!("warning: the answer is not stored: {error}");
    }
}
