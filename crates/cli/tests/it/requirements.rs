//! docs/requirements.md: every test that it names exists.

use std::fs;
use std::path::{Path, PathBuf};

/// The folders of the crates by the names that the page gives them.
const CRATES: [(&str, &str); 8] = [
    ("chat", "crates/apps/chat"),
    ("cli", "crates/cli"),
    ("core", "crates/core/core"),
    ("measure", "measure"),
    ("oracle", "crates/apps/oracle"),
    ("review", "crates/apps/review"),
    ("shape", "crates/apps/shape"),
    ("skill", "crates/apps/skill"),
];

fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect()
}

/// Returns whether a file of this name below the folder has the function.
fn has(folder: &Path, file: &str, function: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return has(&path, file, function);
        }
        path.file_name().is_some_and(|name| name == file)
            && fs::read_to_string(&path).unwrap().contains(&format!("fn {function}("))
    })
}

/// Returns what is wrong with the last cell of a row: a named test that does not exist, or no evidence at all.
fn wrong(shown_by: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut named = 0;
    for name in shown_by.split('`').skip(1).step_by(2).filter(|name| !name.starts_with("cargo ")) {
        let Some((file, function)) = name.split_once("::") else { continue };
        let Some((short, file)) = file.split_once(' ') else {
            wrong.push(format!("`{name}` names no crate"));
            continue;
        };
        let folder = CRATES.iter().find(|(known, _)| *known == short).map(|(_, folder)| root().join(folder));
        let exists = folder.is_some_and(|folder| {
            ["src", "tests"]
                .iter()
                .map(|part| folder.join(part))
                .any(|folder| folder.is_dir() && has(&folder, &format!("{file}.rs"), function))
        });
        named += usize::from(exists);
        if !exists {
            wrong.push(format!("`{name}` does not exist"));
        }
    }
    // Three words between quotation marks are a sentence.
    let sentences = shown_by.split('"').skip(1).step_by(2).filter(|one| one.split_whitespace().count() > 2);
    if shown_by.contains("cannot hold") && sentences.count() == 0 {
        wrong.push("no sentence of the document that cannot hold".to_owned());
    }
    if named == 0 && !shown_by.contains("`cargo ") && !shown_by.contains("cannot hold") {
        wrong.push("neither a test nor a command".to_owned());
    }
    wrong
}

#[test]
fn each_requirement_names_a_test_that_exists_a_command_or_the_reason_why_it_cannot_hold() {
    let page = fs::read_to_string(root().join("docs/requirements.md")).unwrap();
    let rows: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| {
            let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
            let (number, row) = row.split_once(" | ")?;
            number.parse::<u32>().ok()?;
            Some((number, row.rsplit_once(" | ")?.1))
        })
        .collect();
    let found: Vec<_> = rows
        .iter()
        .flat_map(|(number, by)| wrong(by).into_iter().map(move |wrong| format!("{number}: {wrong}")))
        .collect();
    assert_eq!(found, [""; 0]);
    let reasons = rows.iter().filter(|(_, by)| by.contains("cannot hold")).count();
    let holds = rows.len() - reasons;
    for counted in
        [format!("Of {} requirements {holds}\nhold", rows.len()), format!("other {reasons} contains")]
    {
        assert!(page.contains(&counted), "the page says `{counted}`");
    }
}

#[test]
fn a_row_without_evidence_or_with_a_test_that_does_not_exist_is_found() {
    for (by, says) in [
        ("`oracle flow::there_is_no_such_test`", "`oracle flow::there_is_no_such_test` does not exist"),
        (
            "`oracle metrics::the_policy_is_the_document_s`",
            "`oracle metrics::the_policy_is_the_document_s` does not exist",
        ),
        ("`flow::the_policy_is_the_document_s`", "`flow::the_policy_is_the_document_s` names no crate"),
        ("somebody says so", "neither a test nor a command"),
        ("cannot hold for \"some\" reason", "no sentence of the document that cannot hold"),
    ] {
        assert!(wrong(by).contains(&says.to_owned()), "{by}: {:?}", wrong(by));
    }
    assert_eq!(wrong("`oracle flow::the_policy_is_the_document_s`"), [""; 0]);
}
