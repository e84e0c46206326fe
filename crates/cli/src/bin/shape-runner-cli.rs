//! The command of the ShapeRunner document: `shape-runner-cli --input examples/feature-design-input.json`.

use std::process::ExitCode;

fn main() -> ExitCode {
    formwork_cli::run_shapes()
}
