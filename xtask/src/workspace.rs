//! The folders of the workspace, and cargo's information about it.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    // The variable is read at run time and not at compile time, because checkouts may share a target folder.
    let here = std::env::var_os("CARGO_MANIFEST_DIR");
    let here = here.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    here.parent().unwrap_or(&here).to_owned()
}

/// Returns cargo's target folder, which also has the temporary files of the tasks.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// Returns a command for the cargo that started this process.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Returns the output of `cargo metadata` for a manifest, with features resolved for its whole workspace.
pub(crate) fn metadata(manifest: &str) -> Result<Value, String> {
    let arguments = ["metadata", "--format-version", "1", "--manifest-path", manifest];
    let text = stdout(cargo().args(arguments))?;
    serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))
}

/// Returns the names of all crates that `package` depends on with its default features, on any platform.
pub(crate) fn tree(package: &str) -> Result<Vec<String>, String> {
    let arguments =
        ["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--target", "all"];
    let text = stdout(cargo().args(arguments).args(["--format", "{p}"]))?;
    Ok(crates_of_tree(&text, package))
}

/// Returns each package of the workspace's dependency tree with its features, one per line. `edges` are the kinds of dependencies.
pub(crate) fn features(edges: &str) -> Result<String, String> {
    let arguments = ["tree", "--workspace", "--edges", edges, "--prefix", "none", "--format", "{p} [{f}]"];
    stdout(cargo().args(arguments))
}

/// Returns the names in the output of `cargo tree --prefix none`, sorted and without duplicates and `package`.
fn crates_of_tree(text: &str, package: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.split_whitespace().next());
    let mut names: Vec<String> = names.filter(|name| *name != package).map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_its_names_once_without_the_root() {
        let text = "a v0.1.0 (dir)\nserde v1.0.0\nb v0.1.0\nserde v1.0.0 (*)\n";
        assert_eq!(crates_of_tree(text, "a"), ["b", "serde"]);
    }
}
