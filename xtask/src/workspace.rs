//! Cargo's information about the workspace.

use serde_json::Value;

pub(crate) use crate::project::{cargo, root, stdout, target};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_its_names_once_without_the_root() {
        let text = "a v0.1.0 (dir)\nserde v1.0.0\nb v0.1.0\nserde v1.0.0 (*)\n";
        assert_eq!(crates_of_tree(text, "a"), ["b", "serde"]);
    }
}
