//! Checks that each crate is documented: in docs/ARCHITECTURE.md, by its lints, and by examples.

use super::crates::Crate;

/// Crates without an example, because they are not embedded, or because examples of other crates show them.
const WITHOUT_EXAMPLE: &[&str] =
    &["candle-peer", "formwork-cli", "formwork-features", "formwork-measure", "formwork-testkit", "xtask"];

/// Returns an error for each crate that docs/ARCHITECTURE.md does not name.
pub(super) fn architecture(crates: &[Crate], text: Option<&str>) -> Vec<String> {
    let Some(text) = text else {
        return vec!["docs/ARCHITECTURE.md is missing: it says what each crate is for".to_owned()];
    };
    let unnamed = crates.iter().filter(|member| !names(text, &member.name));
    unnamed
        .map(|member| format!("docs/ARCHITECTURE.md does not name {}: say there what it is for", member.name))
        .collect()
}

/// Returns whether a text contains a name as a whole word: `formwork-core` does not contain `formwork`.
fn names(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + name.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// Checks that a crate's manifest inherits the lints of the workspace.
pub(super) fn manifest(name: &str, text: &str) -> Option<String> {
    let lints =
        text.split("[lints]").nth(1).is_some_and(|rest| rest.trim_start().starts_with("workspace = true"));
    (!lints).then(|| format!("{name}: its Cargo.toml lacks `[lints]` with `workspace = true`"))
}

/// Checks that a crate has an example, on its first page or in its folder `examples`, and that each file of this folder begins with a
/// comment about its purpose.
pub(super) fn examples(name: &str, page: &str, texts: &[String]) -> Option<String> {
    if WITHOUT_EXAMPLE.contains(&name) {
        return None;
    }
    if texts.is_empty() && !page.lines().any(|line| line.starts_with("//! ```")) {
        return Some(format!(
            "{name} has no example: show on the first page of its documentation how it is used alone"
        ));
    }
    let undocumented = texts.iter().any(|text| !text.starts_with("//! "));
    undocumented.then(|| format!("{name}: an example does not begin with a `//!` comment about its purpose"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str) -> Crate {
        Crate { name: name.to_owned(), ..Crate::default() }
    }

    #[test]
    fn a_crate_that_the_architecture_does_not_name_fails() {
        let crates = [member("formwork"), member("formwork-core")];
        let text = "| 1 | `formwork-core` | decides |\n| 7 | `formwork-corel`, `my-formwork` |";
        let problems = architecture(&crates, Some(text));
        assert_eq!(problems, ["docs/ARCHITECTURE.md does not name formwork: say there what it is for"]);
        assert_eq!(architecture(&crates, Some("`formwork-core` under `formwork`.")), [""; 0]);
    }

    #[test]
    fn no_architecture_at_all_fails() {
        assert!(architecture(&[], None)[0].contains("ARCHITECTURE.md is missing"));
    }

    #[test]
    fn a_manifest_without_the_lints_fails() {
        assert_eq!(manifest("a", "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"), None);
        assert!(manifest("a", "[package]\nversion.workspace = true\n").unwrap().contains("[lints]"));
    }

    #[test]
    fn a_crate_without_a_documented_example_fails() {
        assert_eq!(examples("formwork-core", "", &["//! Drives a run.\n".to_owned()]), None);
        assert_eq!(examples("formwork-core", "//! Runs.\n//!\n//! ```\n//! use it;\n//! ```\n", &[]), None);
        assert_eq!(examples("formwork-cli", "", &[]), None);
        assert!(examples("formwork-core", "//! Runs.\n/// ```\n", &[]).unwrap().contains("no example"));
        assert!(examples("formwork-core", "", &["fn main() {}".to_owned()]).unwrap().contains("`//!`"));
    }
}
