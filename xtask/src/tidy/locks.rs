//! Checks the lock files of the other workspaces in this repository. `--locked` refuses them after the dependencies of one of our
//! crates have changed.

use std::collections::BTreeSet;

use super::crates::Crate;

/// Returns the differences between a lock file and the manifests of our crates.
pub(super) fn check(name: &str, lock: &str, crates: &[Crate]) -> Vec<String> {
    let ours = packages(lock)
        .filter_map(|(package, locked)| Some((crates.iter().find(|member| member.name == package)?, locked)));
    let problems = ours.filter_map(|(member, locked)| {
        // Optional dependencies are locked only if something enables them.
        let known: BTreeSet<&str> = member.imports.iter().map(|import| import.name.as_str()).collect();
        let needed = member.imports.iter().filter(|import| !import.optional);
        let missing = needed.map(|import| import.name.as_str()).find(|import| !locked.contains(import));
        let extra = locked.iter().copied().find(|locked| !known.contains(locked));
        let what = missing.map(|missing| format!("lacks `{missing}`"));
        let what = what.or_else(|| extra.map(|extra| format!("still has `{extra}`")))?;
        let folder = name.trim_end_matches("/Cargo.lock");
        Some(format!("{name}: `{}` {what}: run `cargo metadata > /dev/null` in {folder}", member.name))
    });
    problems.collect()
}

/// Returns the packages of a lock file with the names of their dependencies.
fn packages(lock: &str) -> impl Iterator<Item = (&str, BTreeSet<&str>)> {
    lock.split("[[package]]").skip(1).filter_map(|package| {
        let name = package.lines().find_map(|line| line.strip_prefix("name = "))?.trim_matches('"');
        let list = package.split_once("dependencies = [").map_or("", |(_, list)| list);
        let names = list.lines().map(str::trim).take_while(|line| *line != "]");
        // The name is followed by the version if several versions are locked.
        let names = names.filter_map(|line| line.trim_matches(['"', ',']).split(' ').next());
        Some((name, names.filter(|name| !name.is_empty()).collect()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::crates::Import;
    use super::*;

    #[test]
    fn a_lock_file_agrees_with_the_manifests() {
        let import = |name: &str, optional| Import { name: name.to_owned(), optional };
        let member = Crate {
            name: "ours".to_owned(),
            imports: vec![import("serde", false), import("thiserror", false), import("clap", true)],
            ..Crate::default()
        };
        let problems = |dependencies: &str| {
            let lock = format!(
                "version = 4\n\n[[package]]\nname = \"other\"\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\ndependencies = [\n{dependencies}]\n"
            );
            check("examples/team/Cargo.lock", &lock, std::slice::from_ref(&member))
        };
        assert_eq!(problems(" \"serde\",\n \"thiserror 2.0.21\",\n"), [""; 0]);
        assert_eq!(problems(" \"clap\",\n \"serde\",\n \"thiserror\",\n"), [""; 0]);
        let cases = [
            (" \"serde\",\n", "lacks `thiserror`"),
            (" \"rand\",\n \"serde\",\n \"thiserror\",\n", "still has `rand`"),
        ];
        for (dependencies, expected) in cases {
            let found = problems(dependencies);
            assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
        }
    }
}
