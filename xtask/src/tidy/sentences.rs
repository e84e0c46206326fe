//! Checks that documentation comments begin with a subject or a verb, and that setters state their default.

/// Words that leave the reader without a subject, at the beginning of any line of documentation.
const SUBJECTLESS: [&str; 12] = [
    "With", "And", "What", "The one", "Those", "Who", "That", "Such", "Whatever", "Whoever", "Somebody",
    "Nobody",
];

/// Words that stand for a noun at the beginning of a comment: `How many rows` is `The number of rows`.
const INDIRECT: [&str; 5] = ["How", "When", "Where", "Which", "Why"];

/// Returns the errors in the documentation comments of a source file, of private items too. Setters are checked in libraries only.
pub(super) fn check(name: &str, text: &str) -> Vec<String> {
    let is_library = name.starts_with("crates/") && name.contains("/src/");
    let mut problems = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        if let Some(comment_line) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) {
            let begins = |word: &&&str| {
                let rest = comment_line.trim_start().strip_prefix(**word);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ',', '.']))
            };
            let indirect = if comment.is_empty() { &INDIRECT[..] } else { &[] };
            if let Some(word) = SUBJECTLESS.iter().chain(indirect).find(begins) {
                problems.push(format!(
                    "{name}:{number}: a line of documentation begins with `{word}`: begin with a verb (`Returns …`, `Sets …`) or name the thing"
                ));
            }
            comment.push(comment_line);
        } else if !line.starts_with("#[") {
            let documented = std::mem::take(&mut comment);
            if let Some(setter) = setter(line).filter(|_| is_library && !says_default(&documented)) {
                problems.push(format!(
                    "{name}:{number}: the documentation of `{setter}` does not say the default: `(default: …)`"
                ));
            }
        }
    }
    problems
}

/// Returns the name of the public setter that begins on this line, if any.
fn setter(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub fn ").or_else(|| line.strip_prefix("pub const fn "))?;
    let (name, arguments) = rest.split_once('(')?;
    let of_self = ["self", "mut self"].iter().any(|own| arguments.starts_with(own));
    (name.starts_with("with_") && of_self).then_some(name)
}

fn says_default(documented: &[&str]) -> bool {
    documented.iter().any(|line| line.contains("default"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_names_its_subject() {
        let fine = "//! Reads text.\n\n/// Returns what was read.\n///\n/// Whatfor: whatever.\n/// When it is read.\nfn read() {}\n";
        assert_eq!(check("crates/a/src/lib.rs", fine), [""; 0]);
        for place in [
            "crates/a/src/lib.rs",
            "crates/a/tests/it/main.rs",
            "crates/a/examples/embed.rs",
            "xtask/src/main.rs",
            "measure/src/main.rs",
            "measure/src/bench/http/mod.rs",
            "examples/acme/acme/src/main.rs",
        ] {
            for word in SUBJECTLESS.iter().chain(&INDIRECT) {
                for text in [
                    format!("/// {word} was read.\nfn read() {{}}\n"),
                    format!("struct Private {{\n    /// {word} was read.\n    read: u32,\n}}\n"),
                    format!("//! {word} was read.\n"),
                ] {
                    let problems = check(place, &text);
                    assert!(
                        problems.len() == 1 && problems[0].contains(&format!("`{word}`")),
                        "{problems:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_setter_says_its_default() {
        let text = |documented: &str| {
            format!(
                "impl A {{\n    /// {documented}\n    #[must_use]\n    pub const fn with_size(mut self, size: u32) -> Self {{\n"
            )
        };
        assert_eq!(check("crates/a/src/a.rs", &text("Sets the size in bytes (default: 1).")), [""; 0]);
        let problems = check("crates/a/src/a.rs", &text("Sets the size in bytes."));
        assert!(problems.len() == 1 && problems[0].contains("`with_size`"), "{problems:?}");
        assert_eq!(check("crates/a/src/a.rs", "    pub fn with_none(of: u32) -> Self {\n"), [""; 0]);
        assert_eq!(check("crates/a/tests/it/a.rs", &text("Sets the size in bytes.")), [""; 0]);
    }
}
