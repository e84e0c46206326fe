//! Development tasks of the project: `cargo xtask TASK`.

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
#[command(name = "cargo xtask", about = "Development tasks of the project")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Measure the overhead compared with plain code that uses the same crates, as ratios
    Bench(bench::Args),
    /// Run batches with killed processes, full disks and failing providers, and compare the results with the provider's record
    Chaos(chaos::Args),
    /// Run clients of other languages against `formwork serve`, and compare requests with those of vendors' packages (needs
    /// Python and Node with their package registries)
    Clients(clients::Args),
    /// Score the crates on third-party test data: `cargo evals corpora`
    #[command(disable_help_flag = true)]
    Corpora {
        /// The arguments of `cargo evals corpora`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Check the dependencies against deny.toml: banned crates, licences, sources
    Deny(deny::Args),
    /// Run the slow checks: real servers, feature combinations, the README's commands in release builds
    Nightly(nightly::Args),
    /// Check and update the registry of models, crates/formwork-dialect/registry/models.toml
    Registry(registry::Args),
    /// Generate schemas/*.json from the Rust types
    Schema(schema::Args),
    /// Start and stop real model servers for tests
    Servers(servers::Args),
    /// Run the gateway for some time with stalls, cut streams, failures and clients that disconnect
    Soak(soak::Args),
    /// Check the project's rules: layers, documents, tracked files, documentation comments
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

/// Runs an evaluation. It is a separate program because it has more dependencies than this one.
fn evaluate(name: &str, args: &[String]) -> Result<(), String> {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--quiet", "--release", "--package", "formwork-evals", "--", name]).args(args);
    let status = cargo.status().map_err(|error| format!("cargo does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`cargo evals {name}` failed")) }
}
