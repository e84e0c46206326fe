//! The folders of the project, and its other commands.

use std::path::PathBuf;
use std::process::Command;

use crate::Failure;
pub(crate) use crate::project::{root, stdout, target};

/// Returns a command for the cargo that started this process, which shares the target folder of the project.
pub(crate) fn cargo() -> Command {
    let mut command = crate::project::cargo();
    command.env("CARGO_TARGET_DIR", target());
    command
}

/// Returns the command that runs a server of `cargo xtask servers`, which is installed if it is missing. `port` is the port that it
/// listens at, if it is given that by its environment.
pub(crate) fn server(name: &str, port: u16) -> Result<Command, Failure> {
    let port = port.to_string();
    let lines = stdout(cargo().args(["xtask", "servers", "program", name, "--port", &port]))?;
    let mut lines = lines.lines();
    let mut command = Command::new(lines.next().ok_or("`cargo xtask servers program` prints nothing")?);
    command.envs(lines.filter_map(|line| line.split_once('=')));
    Ok(command)
}

/// Builds a program with visible output, and returns its path. `folder` is the one of the profile.
pub(crate) fn built(cargo: &mut Command, folder: &str, program: &str) -> Result<PathBuf, Failure> {
    if !cargo.status().map_err(|error| format!("cargo does not start: {error}"))?.success() {
        return Err(format!("{program} cannot be built, see above").into());
    }
    Ok(target().join(folder).join(program).with_extension(std::env::consts::EXE_EXTENSION))
}
