//! Builds and runs the measured programs, most of which are in `bench/`.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::workspace;

/// Returns the command that builds a program of `bench/`.
pub(super) fn peers(package: &str) -> Command {
    let mut cargo = workspace::cargo();
    let manifest = workspace::root().join("bench").join("Cargo.toml");
    cargo.args(["build", "--release", "--package", package, "--manifest-path"]).arg(manifest);
    cargo.env("CARGO_TARGET_DIR", workspace::target());
    cargo
}

/// Runs a release build with visible output, and returns the path of the program.
pub(super) fn built(cargo: &mut Command, program: &str) -> Result<PathBuf, String> {
    let status = cargo.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if !status.success() {
        return Err(format!("{program} cannot be built, see above"));
    }
    Ok(workspace::target().join("release").join(program).with_extension(std::env::consts::EXE_EXTENSION))
}

/// Runs a program of `bench/` and returns its line of JSON.
pub(super) fn last_line(command: &mut Command) -> Result<Value, String> {
    let text = workspace::stdout(command)?;
    serde_json::from_str(text.trim()).map_err(|error| format!("{text}: {error}"))
}
