//! One extraction from its first question to what is printed of it.

use formwork_core::{Error, spaced};
use formwork_extract::{CancellationToken, Extraction};
use serde_json::Value;

use super::report::Report;
use crate::exit::{Failed, Status};
use crate::output;
use crate::rows::ExtractOutput;
use crate::spinner::Spinner;

/// How it is told and printed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Telling {
    /// Everything that happens, on standard error; else something that turns, on a terminal.
    pub(crate) verbose: bool,
    /// The value with its history, or the error with it; else the value alone.
    pub(crate) json: bool,
}

/// Runs it; `failed` gives an error its exit code.
pub(crate) async fn run(
    extraction: Extraction<Value>,
    cancel: &CancellationToken,
    telling: Telling,
    failed: impl FnOnce(&Error) -> Failed,
) -> Result<Status, Failed> {
    let extraction = extraction.with_cancel(cancel.clone());
    let extraction = if telling.verbose {
        extraction.with_observer(Report)
    } else {
        extraction.with_observer(Spinner::new())
    };
    let result = extraction.run().await;
    if telling.json {
        output::row(&ExtractOutput::new(Value::Null, &result))?;
    }
    match result {
        Ok(outcome) if !telling.json => output::line(spaced(&outcome.value))?,
        Ok(_) => {}
        Err(error) => return Err(failed(&error)),
    }
    Ok(Status::Ok)
}
