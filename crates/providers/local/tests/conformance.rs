//! Runs the trials for all providers on the model in this process.

use std::process::ExitCode;
use std::sync::Arc;

use formwork_conformance::{Live, Suite};
use formwork_core::SharedProvider;
use formwork_local::{Local, LocalOptions};

fn main() -> ExitCode {
    Suite::new().live(Live::new("local", "formwork models fetch", local).always()).run()
}

async fn local() -> Result<SharedProvider, String> {
    let local = Local::open(LocalOptions::new()).map_err(|error| error.to_string())?;
    Ok(Arc::new(local))
}
