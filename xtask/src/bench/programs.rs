//! Programs that are built to be measured, most of them out of `bench/`.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::workspace;

/// Builds a program of `bench/`.
pub(super) fn peers(package: &str) -> Command {
    let mut cargo = workspace::cargo();
    let manifest = workspace::root().join("bench").join("Cargo.toml");
    cargo.args(["build", "--release", "--package", package, "--manifest-path"]).arg(manifest);
    cargo.env("CARGO_TARGET_DIR", workspace::target());
    cargo
}

/// Runs a release build, whose words the user sees, and says where the program is.
pub(super) fn built(cargo: &mut Command, program: &str) -> Result<PathBuf, String> {
    let status = cargo.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if !status.success() {
        return Err(format!("{program} cannot be built, see above"));
    }
    Ok(workspace::target().join("release").join(program).with_extension(std::env::consts::EXE_EXTENSION))
}

/// The line of JSON that a program of `bench/` prints.
pub(super) fn last_line(command: &mut Command) -> Result<Value, String> {
    let text = workspace::stdout(command)?;
    serde_json::from_str(text.trim()).map_err(|error| format!("{text}: {error}"))
}
