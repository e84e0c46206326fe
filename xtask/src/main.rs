//! The project's own chores: `cargo xtask <chore>`.

mod bench;
mod chaos;
mod clients;
mod deny;
mod nightly;
mod registry;
mod schema;
mod servers;
mod soak;
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
    /// Kill batches, fill their disks, fail their providers, and compare the results with the provider's record
    Chaos(chaos::Args),
    /// Run clients of other languages against `formwork serve`, and compare requests with those of vendors' packages (needs
    /// Python and Node with their package registries)
    Clients(clients::Args),
    /// Score the crates on test data that nobody here wrote: `cargo evals corpora`
    #[command(disable_help_flag = true)]
    Corpora {
        /// The arguments of `cargo evals corpora`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Check what may come with Formwork, by deny.toml: banned crates, licences, sources
    Deny(deny::Args),
    /// Check what takes too long for every change: real servers, feature combinations, README's commands in release builds
    Nightly(nightly::Args),
    /// Look after what is known of models, crates/formwork-dialect/registry/models.toml
    Registry(registry::Args),
    /// Write schemas/*.json from the Rust types
    Schema(schema::Args),
    /// Start and stop real model servers to test against
    Servers(servers::Args),
    /// Run the gateway for a while with stalls, cut streams, failures and clients that leave
    Soak(soak::Args),
    /// Check what the compiler does not: layers, documents, tracked files
    Tidy(tidy::Args),
}

fn main() -> ExitCode {
    let done = match Args::parse().chore {
        Chore::Bench(args) => bench::run(&args),
        Chore::Chaos(args) => chaos::run(&args),
        Chore::Clients(args) => clients::run(&args),
        Chore::Corpora { args } => evaluate("corpora", &args),
        Chore::Deny(args) => deny::run(&args),
        Chore::Nightly(args) => nightly::run(&args),
        Chore::Registry(args) => registry::run(&args),
        Chore::Schema(args) => schema::run(&args),
        Chore::Servers(args) => servers::run(&args),
        Chore::Soak(args) => soak::run(&args),
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

/// Runs an evaluation, which is a program of its own because it needs more than the chores do.
fn evaluate(name: &str, args: &[String]) -> Result<(), String> {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--quiet", "--release", "--package", "formwork-evals", "--", name]).args(args);
    let status = cargo.status().map_err(|error| format!("cargo does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`cargo evals {name}` failed")) }
}
