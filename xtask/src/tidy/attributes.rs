//! Checks for attributes that silence lints or skip tests.

/// Returns an error for each forbidden attribute of a Rust file.
pub(super) fn check(name: &str, text: &str) -> Vec<String> {
    let in_tests = name.split('/').any(|part| matches!(part, "tests" | "examples"));
    let mut problems = Vec::new();
    let mut rest = text;
    let mut number = 0;
    while !rest.is_empty() {
        number += 1;
        let line = rest.split('\n').next().unwrap_or_default();
        if let Some(reason) = wrong(rest.trim_start_matches([' ', '\t']), in_tests) {
            problems.push(format!("{name}:{number}: {reason}"));
        }
        rest = rest.get(line.len() + 1..).unwrap_or_default();
    }
    problems
}

/// Returns the error of the attribute at the beginning of the text, if any.
fn wrong(text: &str, in_tests: bool) -> Option<&'static str> {
    let attribute = || text.split_once(")]").map_or(text, |(attribute, _)| attribute);
    if text.starts_with("#[ignore") {
        return Some("a slow test is switched on by an environment variable, never ignored");
    }
    if text.starts_with("#[allow(") || text.starts_with("#![allow(") {
        return Some("write `#[expect(…, reason = \"…\")]`: it says why, and warns once it is needless");
    }
    if text.starts_with("#![expect(") && !in_tests {
        return Some("expect it where it is, not in the whole file");
    }
    let expects = text.starts_with("#[expect(") || text.starts_with("#![expect(");
    (expects && !attribute().contains("reason")).then_some("an `expect` says why: add `reason = \"…\"`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        check("crates/a/src/lib.rs", text)
    }

    #[test]
    fn what_says_why_passes() {
        let text =
            "#[expect(\n    dead_code,\n    reason = \"only decoded\",\n)]\nstruct A;\n#[test]\nfn f() {}\n";
        assert_eq!(problems(text), [""; 0]);
        let text = "#![expect(clippy::unwrap_used, reason = \"a test may simply fail\")]";
        assert_eq!(check("crates/a/tests/it/main.rs", text), [""; 0]);
        assert_eq!(problems("let text = \"#[ignore]\"; // #[allow(x)]"), [""; 0]);
    }

    #[test]
    fn each_kind_of_silence_fails_with_its_line() {
        for (text, words) in [
            ("#[test]\n#[ignore = \"slow\"]\nfn f() {}", "environment variable"),
            ("\n    #[allow(dead_code)]", "expect"),
            ("//! A.\n#![allow(missing_docs)]", "expect"),
            ("//! A.\n#![expect(missing_docs, reason = \"later\")]", "not in the whole file"),
            ("\n#[expect(dead_code)]\nfn reason() {}", "says why"),
        ] {
            let found = problems(text);
            assert!(found.len() == 1 && found[0].starts_with("crates/a/src/lib.rs:2: "), "{text}: {found:?}");
            assert!(found[0].contains(words), "{found:?}");
        }
    }
}
