//! The `formwork` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    formwork_cli::run()
}
