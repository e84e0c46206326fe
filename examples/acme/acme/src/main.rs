//! The `formwork` command with one more provider and one more dialect.

use std::process::ExitCode;

use formwork::providers::Providers;

fn main() -> ExitCode {
    formwork_cli::run_with(acme_provider::add_to(Providers::builtin()))
}
