//! Checks that documentation comments begin with a subject or a verb, and that setters state their default.

/// Words that leave the reader without a subject.
const SUBJECTLESS: [&str; 9] = ["With", "And", "What", "The one", "Those", "Who", "That", "Such", "Whatever"];

/// Returns the errors in the documentation comments of a library's source file.
pub(super) fn check(name: &str, text: &str) -> Vec<String> {
    if !name.starts_with("crates/") || !name.contains("/src/") {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        if let Some(said) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) {
            let begins = |word: &&&str| {
                let rest = said.trim_start().strip_prefix(**word);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ',', '.']))
            };
            if let Some(word) = SUBJECTLESS.iter().find(begins) {
                problems.push(format!(
                    "{name}:{number}: a line of documentation begins with `{word}`: begin with a verb (`Returns …`, `Sets …`) or name the thing"
                ));
            }
            comment.push(said);
        } else if !line.starts_with("#[") {
            let documented = std::mem::take(&mut comment);
            if let Some(setter) = setter(line).filter(|_| !says_default(&documented)) {
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
        let fine =
            "//! Reads text.\n\n/// Returns what was read.\n///\n/// Whatfor: whatever.\nfn read() {}\n";
        assert_eq!(check("crates/a/src/lib.rs", fine), [""; 0]);
        for word in SUBJECTLESS {
            let text = format!("/// {word} was read.\nfn read() {{}}\n");
            let problems = check("crates/a/src/lib.rs", &text);
            assert!(problems.len() == 1 && problems[0].contains(&format!("`{word}`")), "{problems:?}");
            assert_eq!(check("crates/a/tests/it/main.rs", &text), [""; 0]);
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
    }
}
