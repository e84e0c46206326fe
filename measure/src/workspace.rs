//! The folders of the project, and its other commands.

use std::path::PathBuf;
use std::process::Command;

use crate::Failure;

/// Returns the folder of the project.
pub(crate) fn root() -> PathBuf {
    // The variable is read at run time and not at compile time, because checkouts may share a target folder.
    let here = std::env::var_os("CARGO_MANIFEST_DIR");
    let here = here.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().unwrap_or(&here).to_owned()
}

/// Returns cargo's target folder, which also has the temporary files of the measurements.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// Returns a command for the cargo that started this process, which shares the target folder of the project.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).env("CARGO_TARGET_DIR", target());
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

/// Runs a command and returns its output, or its error output if it fails.
pub(crate) fn stdout(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("cannot start {name}: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name} failed ({}): {}", output.status, words.trim()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
