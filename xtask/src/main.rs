//! The project's own chores: `cargo xtask <chore>`.

mod corpora;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own chores")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Score the crates on test data that nobody here wrote
    Corpora(corpora::Args),
}

fn main() -> Result<(), String> {
    match Args::parse().chore {
        Chore::Corpora(args) => corpora::run(&args),
    }
}
