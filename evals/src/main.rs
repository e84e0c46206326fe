//! Evaluations: `cargo evals EVALUATION`.

mod corpora;
mod extraction;
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
    /// Score parsing, validation and lowering on third-party test data
    Corpora(corpora::Args),
    /// Extract arguments of functions by a real model, and count those that people accept
    Extraction(extraction::Args),
    /// Measure reviews: the consistency of verdicts, and the agreement of judges with people
    Review(review::Args),
    /// Print generated wallets for evaluations of the oracle, each with its expected scores
    Wallets(wallets::Args),
    /// Decode recorded responses of providers
    Wire(wire::Args),
}

fn main() -> ExitCode {
    let done = match Args::parse().evaluation {
        Evaluation::Corpora(args) => corpora::run(&args),
        Evaluation::Extraction(args) => extraction::run(&args),
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
