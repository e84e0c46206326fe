//! `cargo evals review`: measures the consistency and accuracy of reviews, and the agreement of judges with people.
//!
//! Scripted judges of known accuracy validate the measurement itself; `--model` and `--config` use real models.

mod consistency;
mod judges;
mod pairs;

use std::path::PathBuf;

use formwork_extract::Backend;
use formwork_review::Agent;

use crate::bench::runtime;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder of the corpora
    #[arg(long, default_value = "../shared/corpora")]
    folder: PathBuf,
    /// The number of rows of each corpus for a real model; scripted judges judge all rows
    #[arg(long, default_value_t = 20)]
    rows: usize,
    /// The number of seeds per review
    #[arg(long, default_value_t = 20)]
    seeds: u64,
    /// Also measure the in-process model
    #[arg(long)]
    model: bool,
    /// Also measure the models of this configuration
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    config: Option<PathBuf>,
    /// Measure only consistency and accuracy
    #[arg(long)]
    no_pairs: bool,
    /// Measure only the agreement
    #[arg(long, conflicts_with = "no_pairs")]
    no_consistency: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let runtime = runtime().map_err(|error| format!("the runtime cannot be started: {error}"))?;
    runtime.block_on(async {
        if !args.no_consistency {
            consistency::scripted(args.seeds).await?;
        }
        if !args.no_pairs {
            pairs::scripted(&args.folder).await?;
        }
        if !args.model && args.config.is_none() {
            return Ok(());
        }
        let backends = backends(args).await?;
        if !args.no_consistency {
            consistency::real(&backends, args.seeds).await?;
        }
        if !args.no_pairs {
            pairs::real(&args.folder, &backends, args.rows).await?;
        }
        Ok(())
    })
}

/// Returns the real models that are measured in addition to the scripted judges.
async fn backends(args: &Args) -> Result<Vec<Backend>, String> {
    let setup = match &args.config {
        Some(file) => formwork::Setup::find(Some(file)).await,
        None => {
            let config = formwork::config::Config::from_toml("[providers.local]\nkind = \"local\"");
            let config = config.map_err(|error| error.to_string())?;
            formwork::Setup::open(&config, &formwork::providers::Providers::builtin()).await
        }
    };
    Ok(setup.map_err(|error| error.to_string())?.backends().to_vec())
}

/// Returns an agent with a very long time limit, because slow models are measured, too.
fn patient(backends: impl IntoIterator<Item = Backend>) -> Agent {
    Agent::new(backends).with_time_limit(std::time::Duration::from_secs(3600))
}

/// Formats a share: `7 of 9 = 77.8 %`.
fn share(part: usize, of: usize) -> String {
    format!("{part} of {of} = {:.1} %", 100.0 * part as f64 / of.max(1) as f64)
}
