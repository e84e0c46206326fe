//! Everything that measures: evaluations, benchmarks, chaos and soak tests, as `cargo evals NAME`.

mod accepted;
mod bench;
mod chaos;
mod corpora;
mod cpu;
mod data;
mod documents;
mod extraction;
mod grounded;
mod mixed;
#[path = "../../xtask/src/project.rs"]
mod project;
mod review;
mod scripted;
mod wallets;
mod wire;
mod workspace;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser as _;

/// The allocator of the `formwork` command; both sides of a benchmark have it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// An error, which ends the program.
type Failure = Box<dyn Error + Send + Sync>;

#[derive(clap::Parser)]
#[command(name = "cargo evals", about = "Evaluations, benchmarks, chaos and soak tests")]
enum Evaluation {
    /// Measure the overhead compared with plain code that uses the same crates, as ratios
    Bench(bench::Args),
    /// Run batches with killed processes, full disks and failing providers, and compare the results with the provider's record
    Chaos(chaos::Args),
    /// Score parsing, validation and lowering on third-party test data
    Corpora(corpora::Args),
    /// Score recorded answers about documents, merge them, and find doubtful values; no model is called
    Documents(documents::Args),
    /// Extract arguments of functions or entities by a real model and its peers, and count those that people accept
    Extraction(extraction::Args),
    /// Extract entities and arguments of functions in process, with and without decoding along the text, and score the confidence
    Grounded(grounded::Args),
    /// Measure reviews: the consistency of verdicts, and the agreement of judges with people
    Review(review::Args),
    /// Run the gateway for some time with stalls, cut streams, failures and clients that disconnect
    Soak(bench::soak::Args),
    /// Print generated wallets for evaluations of the oracle, each with its expected scores
    Wallets(wallets::Args),
    /// Decode recorded responses of providers
    Wire(wire::Args),
    /// Run a part of a benchmark, which needs a process of its own
    #[command(hide = true)]
    Part {
        /// The name of the part and its arguments
        args: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Evaluation::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(evaluation: Evaluation) -> Result<(), Failure> {
    match evaluation {
        Evaluation::Bench(args) => bench::run(&args)?,
        Evaluation::Chaos(args) => chaos::run(&args)?,
        Evaluation::Corpora(args) => corpora::run(&args)?,
        Evaluation::Documents(args) => documents::run(&args)?,
        Evaluation::Extraction(args) => extraction::run(&args)?,
        Evaluation::Grounded(args) => grounded::run(&args)?,
        Evaluation::Part { args } => bench::parts::run(&args)?,
        Evaluation::Review(args) => review::run(&args)?,
        Evaluation::Soak(args) => bench::soak::run(&args)?,
        Evaluation::Wallets(args) => wallets::run(&args)?,
        Evaluation::Wire(args) => wire::run(&args)?,
    }
    Ok(())
}
