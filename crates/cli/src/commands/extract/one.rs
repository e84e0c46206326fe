//! Runs one extraction and prints its result.

use std::path::Path;

use formwork_core::{Confidence, Error, Outcome, cut, spaced};
use formwork_evidence::Disputed;
use formwork_extract::{CancellationToken, Extraction};
use serde::Serialize;
use serde_json::Value;

use super::stream;
use crate::commands::evidence;
use crate::exit::{Failed, Status};
use crate::output;
use crate::rows::ExtractOutput;
use crate::spinner::Spinner;
use crate::stderr::say;

/// The maximum length of a doubtful value in characters.
const MAX_VALUE: usize = 80;

/// The output of an extraction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output<'a> {
    /// Whether to print every event on standard error, instead of a progress line on a terminal.
    pub(crate) verbose: bool,
    /// Whether to print the value or the error with all calls and the evidence as JSON, instead of the value alone.
    pub(crate) json: bool,
    /// Whether to print every event as a line of JSON; the last line has the members of `json`.
    pub(crate) stream: bool,
    /// The evidence for people.
    pub(crate) shown: Option<Shown<'a>>,
    /// The confidence in the values, if the output has it.
    pub(crate) doubt: Option<Doubt>,
}

/// The settings of the confidence in values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Doubt {
    pub(crate) flag_below: Option<f64>,
}

impl Doubt {
    /// Returns the confidence in each value beside the answers of all targets.
    pub(super) fn of(self, outcome: &Outcome<Value>, answers: &[&Value]) -> Vec<Confidence> {
        // The only answer agrees with nothing but itself.
        let mut all = match answers {
            [] | [_] => outcome.confidence(),
            answers => outcome.confidence_among(answers),
        };
        all.iter_mut().for_each(|it| it.doubtful = self.flag_below.is_some_and(|limit| it.is_below(limit)));
        all
    }
}

/// The last line of a stream.
#[derive(Serialize)]
struct Last {
    event: &'static str,
    #[serde(flatten)]
    output: ExtractOutput,
}

/// The evidence for people.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'a> {
    /// The input text.
    pub(crate) text: &'a str,
    /// The title of the page.
    pub(crate) title: &'a str,
    /// Whether to print a table on standard error, unless the output is JSON.
    pub(crate) table: bool,
    /// The file of the page.
    pub(crate) html: Option<&'a Path>,
}

/// Runs the extraction and prints its result. `failed` returns the failure for an error, with its exit code.
pub(crate) async fn run(
    extraction: Extraction<Value>,
    cancel: &CancellationToken,
    output_as: Output<'_>,
    failed: impl FnOnce(&Error) -> Failed,
) -> Result<Status, Failed> {
    let result = answered(super::reported(extraction, output_as.verbose), cancel, output_as).await?;
    show(result, &[], Vec::new(), output_as, failed)
}

/// Runs the extraction, with a progress line unless its events are printed.
pub(super) async fn answered(
    extraction: Extraction<Value>,
    cancel: &CancellationToken,
    output_as: Output<'_>,
) -> Result<Result<Outcome<Value>, Error>, Failed> {
    let extraction = extraction.with_cancel(cancel.clone());
    let extraction = if output_as.verbose { extraction } else { extraction.with_observer(Spinner::new()) };
    Ok(if output_as.stream { stream::run(extraction).await? } else { extraction.run().await })
}

/// Prints a result. `answers` are those of all targets, if there are several.
pub(crate) fn show(
    result: Result<Outcome<Value>, Error>,
    answers: &[Value],
    disputed: Vec<Disputed>,
    output_as: Output<'_>,
    failed: impl FnOnce(&Error) -> Failed,
) -> Result<Status, Failed> {
    let confidence = result
        .as_ref()
        .ok()
        .zip(output_as.doubt)
        .map(|(outcome, doubt)| doubt.of(outcome, &answers.iter().collect::<Vec<_>>()));
    let is_json = output_as.json || output_as.stream;
    if is_json {
        let output = ExtractOutput::new(Value::Null, &result).with_evidence(&result);
        let output = ExtractOutput { confidence: confidence.clone(), disputed, ..output };
        if output_as.stream {
            output::row(&Last { event: if result.is_ok() { "done" } else { "error" }, output })?;
        } else {
            output::row(&output)?;
        }
    }
    let outcome = result.map_err(|error| failed(&error))?;
    if !is_json {
        output::line(spaced(&outcome.value))?;
    }
    if let Some(Shown { text, title, table, html }) = output_as.shown {
        if table && !is_json {
            say!("{}", evidence::table(outcome.evidence(), &outcome.value, text).trim_end());
        }
        html.map_or(Ok(()), |file| evidence::page(file, title, text, &outcome.value, outcome.evidence()))?;
    }
    let doubtful = confidence.unwrap_or_default().into_iter().filter(|it| it.doubtful && !is_json);
    for Confidence { path, score, probability, .. } in doubtful {
        let value = path
            .get(&outcome.value)
            .map(|value| cut(&value.to_string(), MAX_VALUE).into_owned())
            .unwrap_or_default();
        let (word, number) = probability.map_or(("score", score), |probability| ("probability", probability));
        say!("doubtful: {path} {value} ({word} {number:.2})");
    }
    Ok(Status::Ok)
}
