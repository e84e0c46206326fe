//! Development tasks of the project: `cargo xtask TASK`.

mod clients;
mod deny;
mod nightly;
mod pages;
mod project;
mod registry;
mod schema;
mod servers;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::Parser as _;

#[derive(clap::Parser)]
#[command(name = "cargo xtask", about = "Development tasks of the project")]
enum Chore {
    /// Run clients of other languages against `formwork serve`, and compare requests with those of vendors' packages (needs
    /// Python and Node with their package registries)
    Clients(clients::Args),
    /// Check the dependencies against deny.toml: banned crates, licences, sources
    Deny(deny::Args),
    /// Run the slow checks: real servers, feature combinations, the README's commands in release builds
    Nightly(nightly::Args),
    /// Drive Chromium through the service's pages, with axe-core on each (needs Debian's chromium and chromium-driver, Python and
    /// Node with their package registries)
    Pages(pages::Args),
    /// Check and update the registry of models, crates/core/dialect/registry/models.toml
    #[command(subcommand)]
    Registry(registry::Action),
    /// Generate schemas/*.json from the Rust types
    Schema(schema::Args),
    /// Start and stop real model servers for tests
    #[command(subcommand)]
    Servers(servers::Action),
    /// Check the project's rules: layers, documents, tracked files, documentation comments
    Tidy(tidy::Args),
}

fn main() -> ExitCode {
    let done = match Chore::parse() {
        Chore::Clients(args) => clients::run(&args),
        Chore::Deny(args) => deny::run(&args),
        Chore::Nightly(args) => nightly::run(&args),
        Chore::Pages(args) => pages::run(&args),
        Chore::Registry(action) => registry::run(&action),
        Chore::Schema(args) => schema::run(&args),
        Chore::Servers(action) => servers::run(&action),
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
