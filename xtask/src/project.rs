//! The folders of the project, and its cargo. `measure` has this file as a module, too.

use std::path::PathBuf;
use std::process::Command;

/// Returns the folder of the project.
pub(crate) fn root() -> PathBuf {
    // The variable is read at run time and not at compile time, because checkouts may share a target folder.
    let here = std::env::var_os("CARGO_MANIFEST_DIR");
    let here = here.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().unwrap_or(&here).to_owned()
}

/// Returns cargo's target folder, which also has the temporary files of tasks and measurements.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// Returns a command for the cargo that started this process.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // The package of this process is no package of the build: a build script that depends on its own (ring's) would run again, and all
    // that depends on it be compiled again.
    for (name, _) in std::env::vars_os() {
        let is_of_package =
            |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        if name.to_str().is_some_and(is_of_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command and returns its output, or its error output if it fails.
pub(crate) fn stdout(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("cannot start {name}: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{name} failed ({}): {}", output.status, words.trim()));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{name} printed something that is not UTF-8"))
}
