//! `cargo evals review`: measures the consistency and accuracy of reviews, and the agreement of judges with people.
//!
//! Judges with planted defects and scripted judges of known accuracy validate the measurement itself; `--model` and `--config` use real
//! models.

mod consistency;
mod judges;
mod pairs;
mod planted;
mod tally;

use std::path::PathBuf;

use formwork_extract::Backend;
use formwork_review::Agent;

use crate::bench::runtime;
use crate::extraction;
use consistency::VOTING;
use planted::PLANTED;
use tally::Tally;

#[derive(clap::Args)]
#[command(after_help = "\
Each judge has a table of six rows, each with its target and n. A row that a real judge misses is an error, unless --allow-missed is
given, and so is a defect of a planted judge that the table does not show.

Examples:
  cargo evals review --no-pairs
  cargo evals review --model --seeds 5 --rows 10 --allow-missed
  cargo evals review --config examples/servers.toml --judge llama-server --judge ollama")]
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
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A provider, list or alias of the configuration (repeatable): each is a judge, and is compared with the first one [default:
    /// its default targets are one judge]
    #[arg(long, value_name = "NAME", requires = "config")]
    judge: Vec<String>,
    /// Measure only consistency and accuracy
    #[arg(long)]
    no_pairs: bool,
    /// Measure only the agreement
    #[arg(long, conflicts_with = "no_pairs")]
    no_consistency: bool,
    /// Exit with 0 even if a real judge misses a row
    #[arg(long)]
    allow_missed: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let runtime = runtime().map_err(|error| format!("the runtime cannot be started: {error}"))?;
    runtime.block_on(async {
        println!("judges with planted defects");
        for planted in PLANTED {
            let tally = planted.tally().await?;
            print!("{tally}");
            planted.unseen(&tally).map_or(Ok(()), Err)?;
        }
        if !args.no_consistency {
            consistency::scripted(args.seeds).await?;
        }
        if !args.no_pairs {
            pairs::scripted(&args.folder).await?;
        }
        let mut judges: Vec<Tally> = Vec::new();
        for (name, backends) in judges_of(args).await? {
            // Votes change the consistency, so each number of votes is a judge.
            let voting = if args.no_consistency { &VOTING[..1] } else { &VOTING[..2] };
            for (nth, (voting, votes)) in voting.iter().enumerate() {
                let mut tally = Tally::of(format!("{name}, {voting}"));
                if !args.no_consistency {
                    consistency::real(&mut tally, &backends, *votes, args.seeds).await?;
                }
                if !args.no_pairs && nth == 0 {
                    pairs::real(&mut tally, &args.folder, &backends, args.rows).await?;
                }
                print!("{tally}");
                judges.push(tally);
            }
        }
        if let [first, others @ ..] = judges.as_slice() {
            others.iter().for_each(|other| println!("{}", other.beside(first)));
        }
        match judges.iter().find(|judge| judge.is_missed()) {
            Some(judge) if !args.allow_missed => {
                Err(format!("{}: a row is missed (--allow-missed accepts it)", judge.judge))
            }
            _ => Ok(()),
        }
    })
}

/// Returns the real judges, each with its name.
async fn judges_of(args: &Args) -> Result<Vec<(String, Vec<Backend>)>, String> {
    let mut judges = Vec::new();
    if args.model {
        let config = formwork::config::Config::from_toml("[providers.local]\nkind = \"local\"");
        let config = config.map_err(|error| error.to_string())?;
        let setup = formwork::Setup::open(&config, &formwork::providers::Providers::builtin()).await;
        judges.push(("local".to_owned(), setup.map_err(|error| error.to_string())?.backends().to_vec()));
    }
    if let Some(file) = &args.config {
        for name in &args.judge {
            judges.push((name.clone(), extraction::backends(file, name).await?));
        }
        if args.judge.is_empty() {
            let setup = formwork::Setup::find(Some(file)).await.map_err(|error| error.to_string())?;
            judges.push((file.display().to_string(), setup.backends().to_vec()));
        }
    }
    Ok(judges)
}

/// Returns an agent with a very long time limit, because slow models are measured, too.
fn patient(backends: impl IntoIterator<Item = Backend>) -> Agent {
    Agent::new(backends).with_time_limit(std::time::Duration::from_secs(3600))
}

/// Formats a share: `7 of 9 = 77.8 %`.
fn share(part: usize, of: usize) -> String {
    format!("{part} of {of} = {:.1} %", 100.0 * part as f64 / of.max(1) as f64)
}
