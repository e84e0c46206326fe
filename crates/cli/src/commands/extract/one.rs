//! Runs one extraction and prints its result.

use formwork_core::{Error, spaced};
use formwork_extract::{CancellationToken, Extraction};
use serde::Serialize;
use serde_json::Value;

use super::report::Report;
use super::stream;
use crate::commands::evidence;
use crate::exit::{Failed, Status};
use crate::output;
use crate::rows::{ExtractOutput, SourceText};
use crate::spinner::Spinner;
use crate::stderr::say;

/// The output of an extraction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// Whether to print every event on standard error, instead of a progress line on a terminal.
    pub(crate) verbose: bool,
    /// Whether to print the value or the error with all calls as JSON, instead of the value alone.
    pub(crate) json: bool,
    /// Whether to print every event as a line of JSON; the last line has the members of `json`.
    pub(crate) stream: bool,
}

/// The last line of a stream.
#[derive(Serialize)]
struct Last {
    event: &'static str,
    #[serde(flatten)]
    output: ExtractOutput,
}

/// Runs the extraction. With a `source`, the JSON output has the evidence. `failed` returns the failure for an error, with its exit code.
pub(crate) async fn run(
    extraction: Extraction<Value>,
    cancel: &CancellationToken,
    output_as: Output,
    source: Option<&SourceText>,
    failed: impl FnOnce(&Error) -> Failed,
) -> Result<Status, Failed> {
    let extraction = extraction.with_cancel(cancel.clone());
    let extraction = if output_as.verbose {
        extraction.with_observer(Report)
    } else {
        extraction.with_observer(Spinner::new())
    };
    let result = if output_as.stream { stream::run(extraction).await? } else { extraction.run().await };
    if output_as.json || output_as.stream {
        let output = ExtractOutput::new(Value::Null, &result).with_evidence(source);
        if output_as.stream {
            output::row(&Last { event: if result.is_ok() { "done" } else { "error" }, output })?;
        } else {
            output::row(&output)?;
        }
    }
    match result {
        Ok(outcome) if !output_as.json && !output_as.stream => {
            output::line(spaced(&outcome.value))?;
            if let Some(source) = source.filter(|source| source.print) {
                let evidence = source.evidence(&outcome.value);
                say!("{}", evidence::table(&evidence, &outcome.value, &source.text).trim_end());
            }
        }
        Ok(_) => {}
        Err(error) => return Err(failed(&error)),
    }
    Ok(Status::Ok)
}
