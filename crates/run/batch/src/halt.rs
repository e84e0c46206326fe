//! Runs that are carried on by one call.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use formwork_core::{Error, ErrorKind, Outcome, Run};
use formwork_extract::{Extraction, Journal};
use serde_json::Value;

/// Keeps the run at its next step, and ends the extraction there.
#[derive(Default)]
struct Halt(Mutex<Option<Run>>);

#[async_trait]
impl Journal for Halt {
    async fn store(&self, run: &Run) -> Result<(), Error> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(run.clone());
        Err(Error::new(ErrorKind::Cancelled, "the run goes on elsewhere"))
    }
}

/// Carries an extraction on until its run has to be stored. Returns the run, or the result of the run if it has ended.
pub(crate) async fn one_step(extraction: Extraction<Value>) -> Result<Run, Result<Outcome<Value>, Error>> {
    let halt = Arc::new(Halt::default());
    let result = extraction.with_journal(Arc::clone(&halt) as _).run().await;
    let halted = halt.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    halted.ok_or(result)
}
