//! The project's own chores: `cargo xtask <chore>`.

mod bench;
mod corpora;
mod schema;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own chores")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Measure against plain code with the same crates, in ratios of one run
    Bench(bench::Args),
    /// Score the crates on test data that nobody here wrote
    Corpora(corpora::Args),
    /// Write schemas/*.json from the Rust types
    Schema(schema::Args),
    /// Check what the compiler does not: layers, documents, tracked files
    Tidy(tidy::Args),
}

fn main() -> ExitCode {
    let done = match Args::parse().chore {
        Chore::Bench(args) => bench::run(&args),
        Chore::Corpora(args) => corpora::run(&args),
        Chore::Schema(args) => schema::run(&args),
        Chore::Tidy(args) => tidy::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
