//! Evaluations: `cargo evals <evaluation>`.

mod corpora;
mod review;
mod wallets;
mod wire;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo evals", about = "Evaluations on data that nobody in this project wrote")]
struct Args {
    #[command(subcommand)]
    evaluation: Evaluation,
}

#[derive(Subcommand)]
enum Evaluation {
    /// Score reading, judging and lowering on third-party test data
    Corpora(corpora::Args),
    /// Measure reviews: whether they are consistent, and whether judges agree with people
    Review(review::Args),
    /// Print wallets to evaluate the oracle with, each with the scores that are expected of it
    Wallets(wallets::Args),
    /// Read recorded responses of providers
    Wire(wire::Args),
}

fn main() -> ExitCode {
    let done = match Args::parse().evaluation {
        Evaluation::Corpora(args) => corpora::run(&args),
        Evaluation::Review(args) => review::run(&args),
        Evaluation::Wallets(args) => wallets::run(&args),
        Evaluation::Wire(args) => wire::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
