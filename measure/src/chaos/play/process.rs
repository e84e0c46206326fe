//! Processes of a chaos test.

use std::io::{self, Read as _};
use std::process::{Child, Command};

use crate::Failure;

/// Starts a process.
pub(crate) fn spawned(command: &mut Command) -> Result<Child, Failure> {
    command.spawn().map_err(|error| format!("{}: {error}", command.get_program().display()).into())
}

/// Kills a process, and waits until it has ended.
pub(crate) fn killed(process: &mut Child) -> io::Result<()> {
    process.kill()?;
    process.wait().map(drop)
}

/// Sends a signal to a process.
pub(crate) fn signal(name: &str, process: &Child) -> io::Result<()> {
    let mut kill = Command::new("sh");
    kill.args(["-c", "kill -s \"$0\" \"$1\"", name, &process.id().to_string()]);
    kill.status().map(drop)
}

/// Returns the standard error of a process that has ended.
pub(super) fn errors(process: &mut Child) -> String {
    let mut errors = String::new();
    if let Some(mut stderr) = process.stderr.take() {
        _ = stderr.read_to_string(&mut errors);
    }
    errors
}
