//! Checks the rows of the registry. Keys, values and the names of dialects are checked earlier, by the parser.

use formwork_dialect::registry::{Date, Entry, Pattern};

/// The number of days after its last check for which a row counts as current.
const FRESH: i64 = 90;

/// The result of a check: errors, and warnings about rows that are out of date.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) problems: Vec<String>,
    pub(super) warnings: Vec<String>,
}

/// Checks rows on a given day.
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
    // A retired model does not come back, so its row needs no further checks.
    (days > FRESH && !entry.retired).then(|| {
        format!(
            "`{}` was checked {days} days ago: look at its source again, then set `checked`",
            entry.patterns
        )
    })
}

/// Returns an error for each pattern that never matches, because an earlier pattern matches the same names.
fn never_matching(entries: &[Entry]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut before: Vec<&Pattern> = Vec::new();
    for pattern in entries.iter().flat_map(|entry| entry.patterns.iter()) {
        if let Some(first) = before.iter().find(|first| first.covers(pattern)) {
            let same = first.as_str().eq_ignore_ascii_case(pattern.as_str());
            problems.push(if same {
                format!("the pattern `{pattern}` is there twice: remove the second one, which never matches")
            } else {
                format!("the pattern `{pattern}` never matches: `{first}` before it matches the same names; move it up, or remove it")
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

    /// Rows with a pattern and additional keys.
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
        // A clock with a wrong date must not cause an error.
        assert_eq!(on("2020-01-01", &entries), Found::default());
    }

    #[test]
    fn a_pattern_that_never_matches_is_named_with_the_one_before_it() {
        let fine =
            rows(&[("\"gpt-4o-mini*\"", ""), ("[\"gpt-4o\", \"gpt-4o-2024-*\"]", ""), ("\"gpt-*\"", "")]);
        assert_eq!(never_matching(&fine), [""; 0]);
        for (first, second, says) in [
            ("\"gpt-*\"", "\"gpt-4o*\"", "`gpt-4o*` never matches: `gpt-*` before it"),
            ("\"gpt-4o\"", "\"openai/gpt-4o\"", "`openai/gpt-4o` never matches: `gpt-4o` before it"),
            ("[\"b\", \"a*\"]", "[\"c\", \"ab\"]", "`ab` never matches: `a*` before it"),
            ("\"a\"", "\"A\"", "`A` is there twice"),
            ("[\"a\", \"a\"]", "\"b\"", "`a` is there twice"),
        ] {
            let found = never_matching(&rows(&[(first, ""), (second, "")]));
            assert!(found.len() == 1 && found[0].contains(says), "{found:?}");
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
