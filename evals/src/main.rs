//! Evaluations: `cargo evals <evaluation>`.

mod corpora;

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
}

fn main() -> ExitCode {
    let done = match Args::parse().evaluation {
        Evaluation::Corpora(args) => corpora::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
