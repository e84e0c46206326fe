//! What the rows are checked for. Keys, values and the names of dialects were checked when they were read.

use formwork_dialect::registry::{Date, Entry, Pattern};

/// For how many days a row is taken to be true after it was looked at.
const FRESH: i64 = 90;

/// What is wrong, and what may come to be.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) problems: Vec<String>,
    pub(super) warnings: Vec<String>,
}

/// Everything that is to be said of these rows on this day.
pub(super) fn check(entries: &[Entry], today: Date) -> Found {
    let mut found = Found { problems: never_matching(entries), warnings: Vec::new() };
    for entry in entries {
        found.problems.extend(not_marked(entry, today));
        found.warnings.extend(stale(entry, today));
    }
    found
}

fn not_marked(entry: &Entry, today: Date) -> Option<String> {
    let last = entry.retires.filter(|last| *last < today && !entry.retired)?;
    Some(format!(
        "`{}` retired on {last}: mark it with `retired = true`, or correct `retires`",
        entry.patterns
    ))
}

fn stale(entry: &Entry, today: Date) -> Option<String> {
    let days = today.days_since_epoch() - entry.checked.days_since_epoch();
    // What is gone stays gone.
    (days > FRESH && !entry.retired).then(|| {
        format!(
            "`{}` was checked {days} days ago: look at its source again, then set `checked`",
            entry.patterns
        )
    })
}

/// Patterns behind others that match all that they match.
fn never_matching(entries: &[Entry]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut before: Vec<&Pattern> = Vec::new();
    for pattern in entries.iter().flat_map(|entry| entry.patterns.iter()) {
        if let Some(first) = before.iter().find(|first| first.covers(pattern)) {
            let same = first.as_str().eq_ignore_ascii_case(pattern.as_str());
            problems.push(if same {
                format!("`{pattern}` stands there twice: the second one never matches; remove one")
            } else {
                format!("`{pattern}` never matches: `{first}` stands before it; move it up, or remove it")
            });
        }
        before.push(pattern);
    }
    problems
}

#[cfg(test)]
mod tests {
    use formwork_dialect::registry::Registry;

    use super::*;

    /// Rows of a pattern, and further keys.
    fn rows(rows: &[(&str, &str)]) -> Vec<Entry> {
        let text: String = rows
            .iter()
            .map(|(pattern, more)| {
                format!(
                    "[[model]]\nmatch = {pattern}\nfamily = \"F\"\nprovider = \"p\"\nnative = \"none\"\n\
                     source = \"s\"\nchecked = \"2026-11-21\"\n{more}\n"
                )
            })
            .collect();
        Registry::from_toml(&text).unwrap().entries().to_vec()
    }

    fn on(day: &str, entries: &[Entry]) -> Found {
        check(entries, day.parse().unwrap())
    }

    #[test]
    fn the_registry_was_right_when_it_was_checked() {
        let entries = Registry::embedded().entries();
        assert_eq!(on("2026-11-21", entries), Found::default());
    }

    #[test]
    fn what_retired_has_to_be_marked() {
        let announced = rows(&[("\"a\"", "retires = \"2026-11-30\"")]);
        assert_eq!(on("2026-11-30", &announced).problems, [""; 0]);
        let found = on("2026-12-01", &announced).problems;
        assert!(found.len() == 1 && found[0].starts_with("`a` retired on 2026-11-30: mark it"), "{found:?}");
        let marked =
            rows(&[("\"a\"", "retires = \"2026-11-30\"\nretired = true"), ("\"b\"", "retired = true")]);
        assert_eq!(on("2030-01-01", &marked), Found::default());
    }

    #[test]
    fn what_nobody_looked_at_for_long_is_a_warning() {
        let entries = rows(&[("[\"a\", \"b\"]", ""), ("\"c\"", "retired = true")]);
        assert_eq!(on("2027-02-19", &entries), Found::default());
        let found = on("2027-02-20", &entries);
        assert!(found.problems.is_empty() && found.warnings.len() == 1, "{found:?}");
        assert!(found.warnings[0].starts_with("`a, b` was checked 91 days ago"), "{found:?}");
        // A clock that goes wrong is no reason.
        assert_eq!(on("2020-01-01", &entries), Found::default());
    }

    #[test]
    fn what_never_matches_is_named_with_what_stands_before_it() {
        let fine =
            rows(&[("\"gpt-4o-mini*\"", ""), ("[\"gpt-4o\", \"gpt-4o-2024-*\"]", ""), ("\"gpt-*\"", "")]);
        assert_eq!(never_matching(&fine), [""; 0]);
        for (first, second, says) in [
            ("\"gpt-*\"", "\"gpt-4o*\"", "`gpt-4o*` never matches: `gpt-*` stands before it"),
            ("\"gpt-4o\"", "\"openai/gpt-4o\"", "`openai/gpt-4o` never matches: `gpt-4o` stands"),
            ("[\"b\", \"a*\"]", "[\"c\", \"ab\"]", "`ab` never matches: `a*` stands"),
            ("\"a\"", "\"A\"", "`A` stands there twice"),
            ("[\"a\", \"a\"]", "\"b\"", "`a` stands there twice"),
        ] {
            let found = never_matching(&rows(&[(first, ""), (second, "")]));
            assert!(found.len() == 1 && found[0].starts_with(says), "{found:?}");
        }
    }

    #[test]
    fn a_dialect_that_there_is_not_does_not_get_so_far() {
        let text = "[[model]]\nmatch = \"a\"\nfamily = \"F\"\nprovider = \"p\"\nnative = \"schema\"\n\
            dialect = \"opnai\"\nsource = \"s\"\nchecked = \"2026-11-21\"\n";
        let error = Registry::from_toml(text).unwrap_err().to_string();
        assert_eq!(error, "6:11: model[0].dialect: there is no dialect `opnai`: did you mean `openai`?");
    }

    #[test]
    fn the_clock_gives_a_day() {
        assert!(super::super::clock().unwrap() >= "2026-11-21".parse().unwrap());
    }
}
