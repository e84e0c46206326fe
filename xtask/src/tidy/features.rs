//! Checks that tests add no features to dependencies, because cargo would compile these dependencies a second time.

use std::collections::{BTreeMap, BTreeSet};

/// Returns an error for each package that the tests use with other features than the programs. The arguments are outputs of
/// `cargo tree --prefix none --format "{p} [{f}]"`.
pub(super) fn check(programs: &str, tests: &str) -> Vec<String> {
    let programs = packages(programs);
    let mut problems = Vec::new();
    for (package, sets) in packages(tests) {
        let Some(known) = programs.get(package) else { continue };
        for features in sets.difference(known) {
            problems.push(format!(
                "tests use {package} with the features {features}, and programs with {}, so it is compiled twice: name the difference in crates/dev/features/Cargo.toml",
                known.iter().copied().collect::<Vec<_>>().join(" or ")
            ));
        }
    }
    problems
}

/// Returns the sets of features with which each package is compiled; a procedural macro may need others than the program.
/// Packages of this workspace, which have a path, are left out.
fn packages(tree: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut packages: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let rows = tree.lines().filter(|line| !line.contains("(/"));
    for row in rows.filter_map(|line| line.trim_end_matches(" (*)").strip_suffix(']')?.split_once(" [")) {
        packages.entry(row.0).or_default().insert(row.1);
    }
    packages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_that_only_tests_add_is_reported() {
        let programs =
            "tokio v1.54.1 [rt,time]\nserde v1.0.0 [std] (*)\nserde v1.0.0 [alloc]\na v0.1.0 (/a) []\n";
        let tests = "tokio v1.54.1 [rt,test-util,time]\nserde v1.0.0 [std]\nproptest v1.0.0 [std]\na v0.1.0 (/a) [x]\n";
        let problems = check(programs, tests);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("tokio v1.54.1 with the features rt,test-util,time"), "{problems:?}");
        assert!(check(programs, programs).is_empty());
    }
}
