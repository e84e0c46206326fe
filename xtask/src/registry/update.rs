//! Compares the registry with a price file, and applies the differences to the text of the registry.

use std::collections::BTreeMap;

use formwork_dialect::registry::{Date, Entry, Registry};

use super::prices::Facts;

/// A difference between a row and a price file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    /// The index of the row.
    row: usize,
    /// The key of the row.
    key: &'static str,
    /// The line of the row, if it has the key.
    old: Option<String>,
    /// The new line, without the key.
    new: String,
}

/// The comparison of a registry with a price file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) differences: Vec<Difference>,
    /// Rows whose models have several values in the file. A person must decide about them.
    pub(super) unclear: Vec<String>,
    /// Models of the file that no row of their provider covers.
    pub(super) unknown: Vec<String>,
}

/// Compares the rows with the facts of a price file. Missing facts are added, except prices: a price is missing on purpose if it
/// does not depend on tokens alone.
pub(super) fn compare(registry: &Registry, facts: &[Facts]) -> Comparison {
    let mut comparison = Comparison::default();
    let mut of_rows: BTreeMap<usize, Vec<&Facts>> = BTreeMap::new();
    for fact in facts {
        let (provider, _) = fact.name.split_once('/').unwrap_or_default();
        let row = registry.entries().iter().position(|entry| entry.patterns.matches(&fact.name));
        match row.filter(|row| registry.entries().get(*row).is_some_and(|entry| entry.provider == provider)) {
            Some(row) => of_rows.entry(row).or_default().push(fact),
            None => comparison.unknown.push(fact.name.clone()),
        }
    }
    for (row, facts) in of_rows {
        let Some(entry) = registry.entries().get(row) else { continue };
        for (key, old, new) in values(entry, &facts) {
            match new.as_slice() {
                [] => {}
                [new] if old.as_ref() == Some(new) => {}
                [new] => comparison.differences.push(Difference { row, key, old, new: new.clone() }),
                several if old.as_ref().is_some_and(|old| several.contains(old)) => {}
                several => {
                    let old = old.unwrap_or_else(|| "nothing".to_owned());
                    let found = several.join(" or ");
                    comparison
                        .unclear
                        .push(format!("{}: {key} is {old}, the file has {found}", entry.family));
                }
            }
        }
    }
    comparison
}

/// Returns the compared keys, each with the row's value and the different values in the file, as TOML.
fn values(entry: &Entry, facts: &[&Facts]) -> Vec<(&'static str, Option<String>, Vec<String>)> {
    let distinct = |value: &dyn Fn(&Facts) -> Option<String>| {
        let mut found: Vec<String> = facts.iter().filter_map(|fact| value(fact)).collect();
        found.sort();
        found.dedup();
        found
    };
    let price = |price: formwork_core::Price| {
        let dollars = |micro: u64| micro as f64 / 1e6;
        format!("{{ input = {}, output = {} }}", dollars(price.input), dollars(price.output))
    };
    let tokens = |tokens: Option<u32>| tokens.map(|tokens| tokens.to_string());
    let mut all = vec![
        (
            "context_tokens",
            tokens(entry.context_tokens),
            distinct(&|fact| context(entry, fact).map(|tokens| tokens.to_string())),
        ),
        (
            "output_tokens",
            tokens(entry.output_tokens),
            distinct(&|fact| fact.output_tokens.map(|tokens| tokens.to_string())),
        ),
    ];
    if let Some(known) = entry.price {
        all.push(("price", Some(price(known)), distinct(&|fact| fact.price.map(price))));
    }
    // An input limit of only some of the models does not apply to the row.
    if facts.iter().all(|fact| input(entry, fact).is_some()) {
        let found = distinct(&|fact| input(entry, fact).map(|tokens| tokens.to_string()));
        all.push(("input_tokens", tokens(entry.input_tokens), found));
    }
    // A retirement date of only some of the models does not apply to the row.
    if !entry.retired && facts.iter().all(|fact| fact.retires.is_some()) {
        let day = |day: Date| format!("\"{day}\"");
        all.push(("retires", entry.retires.map(day), distinct(&|fact| fact.retires.map(day))));
    }
    all
}

/// Returns the context window of a model. The row's number may include the completion, and then agrees with the sum of both limits
/// in the file.
fn context(entry: &Entry, fact: &Facts) -> Option<u64> {
    let known = entry.context_tokens.map(u64::from);
    let whole = fact.input_tokens.map(|input| input.saturating_add(fact.output_tokens.unwrap_or_default()));
    fact.context_tokens.or(known.filter(|_| known == whole)).or(fact.input_tokens)
}

/// Returns the input limit of a model, if the file has one that is lower than the context window.
fn input(entry: &Entry, fact: &Facts) -> Option<u64> {
    fact.input_tokens.filter(|input| context(entry, fact).is_some_and(|context| *input < context))
}

impl Difference {
    /// Returns a line for people: `GPT-4o: output_tokens 4096 -> 16384`.
    pub(super) fn line(&self, registry: &Registry) -> String {
        let family = registry.entries().get(self.row).map_or("?", |entry| entry.family.as_str());
        format!("{family}: {} {} -> {}", self.key, self.old.as_deref().unwrap_or("(none)"), self.new)
    }
}

/// Returns the text of the registry with these differences applied. Everything else stays unchanged, including comments. Changed
/// rows get `today` as the date of the check.
pub(super) fn write(text: &str, differences: &[Difference], today: Date) -> String {
    let mut row = None;
    let mut out = String::with_capacity(text.len());
    let of = |row: Option<usize>| differences.iter().filter(move |difference| Some(difference.row) == row);
    for line in text.lines() {
        if line.trim() == "[[model]]" {
            row = Some(row.map_or(0, |row| row + 1));
        }
        let key = line.split_once('=').map_or("", |(key, _)| key.trim());
        // New keys are inserted before `source`, as in the other rows.
        if key == "source" {
            for added in of(row).filter(|difference| difference.old.is_none()) {
                out.push_str(&format!("{} = {}\n", added.key, added.new));
            }
        }
        match of(row).find(|difference| difference.key == key && difference.old.is_some()) {
            Some(changed) => out.push_str(&format!("{key} = {}\n", changed.new)),
            None if key == "checked" && of(row).next().is_some() => {
                out.push_str(&format!("checked = \"{today}\"\n"));
            }
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::prices;
    use super::*;

    const ROWS: &str = "# Models\n\n[[model]]\nmatch = [\"a-1\", \"a-1-*\"]\nfamily = \"A\"\nprovider = \"openai\"\n\
        native = \"none\"\ncontext_tokens = 100\nprice = { input = 0.1, output = 0.25 }\nsource = \"s\"\n\
        checked = \"2026-11-21\"\n\n# Of another vendor\n\n[[model]]\nmatch = \"b-*\"\nfamily = \"B\"\n\
        provider = \"mistral\"\nnative = \"none\"\nsource = \"s\"\nchecked = \"2026-11-21\"\n";

    fn facts(models: &[(&str, &str)]) -> Vec<Facts> {
        let entries: Vec<String> = models
            .iter()
            .map(|(name, more)| {
                let provider = name.split('/').next().unwrap();
                format!("\"{name}\": {{\"litellm_provider\": \"{provider}\", \"mode\": \"chat\"{more}}}")
            })
            .collect();
        prices::read(&format!("{{{}}}", entries.join(","))).unwrap()
    }

    #[test]
    fn what_differs_is_printed_and_written_and_then_nothing_differs() {
        let registry = Registry::from_toml(ROWS).unwrap();
        let dear = ", \"input_cost_per_token\": 2e-7, \"output_cost_per_token\": 2.5e-7";
        let facts = facts(&[
            (
                "openai/a-1",
                &format!(
                    "{dear}, \"max_input_tokens\": 200, \"max_output_tokens\": 50, \"deprecation_date\": \"2027-01-31\""
                ),
            ),
            ("openai/a-1-mini", &format!("{dear}, \"deprecation_date\": \"2027-01-31\"")),
            ("mistral/b-2", dear),
            ("openai/b-3", ""),
        ]);
        let found = compare(&registry, &facts);
        let lines: Vec<_> = found.differences.iter().map(|difference| difference.line(&registry)).collect();
        let expected = [
            "A: context_tokens 100 -> 200",
            "A: output_tokens (none) -> 50",
            "A: price { input = 0.1, output = 0.25 } -> { input = 0.2, output = 0.25 }",
            "A: retires (none) -> \"2027-01-31\"",
        ];
        assert_eq!(lines, expected);
        // B's row has no price, and no price is added.
        assert_eq!((found.unclear.len(), found.unknown), (0, vec!["openai/b-3".to_owned()]));
        let written = write(ROWS, &found.differences, "2026-12-01".parse().unwrap());
        let after = Registry::from_toml(&written).unwrap();
        assert_eq!(compare(&after, &facts).differences, []);
        assert_eq!(after.entries()[0].checked.to_string(), "2026-12-01");
        assert_eq!(after.entries()[1], registry.entries()[1]);
        assert!(written.starts_with("# Models\n") && written.contains("\n# Of another vendor\n"));
        assert_eq!(write(ROWS, &[], "2026-12-01".parse().unwrap()), ROWS);
    }

    #[test]
    fn several_values_are_for_a_person() {
        let registry = Registry::from_toml(ROWS).unwrap();
        let window = |tokens: u32| format!(", \"max_input_tokens\": {tokens}");
        let found =
            compare(&registry, &facts(&[("openai/a-1", &window(200)), ("openai/a-1-x", &window(300))]));
        assert_eq!(found.differences, []);
        assert_eq!(found.unclear, ["A: context_tokens is 100, the file has 200 or 300"]);
        // If one of several values is the row's, the row describes the smallest of the models.
        let found =
            compare(&registry, &facts(&[("openai/a-1", &window(100)), ("openai/a-1-x", &window(300))]));
        assert_eq!(found, Comparison::default());
        // A retirement date of one model does not apply to the row. The limits of prompt and completion add up to the context window.
        let whole = format!("{}, \"max_output_tokens\": 40", window(60));
        let last = format!("{whole}, \"deprecation_date\": \"2027-01-31\"");
        let of = |models: &[(&str, &str)]| -> Vec<_> {
            let found = compare(&registry, &facts(models));
            found.differences.iter().map(|difference| difference.line(&registry)).collect()
        };
        let both = ["A: output_tokens (none) -> 40", "A: input_tokens (none) -> 60"];
        assert_eq!(of(&[("openai/a-1", &whole), ("openai/a-1-x", &last)]), both);
        // An input limit of one model does not apply to the row either.
        let without = ", \"max_input_tokens\": 100, \"max_output_tokens\": 40";
        assert_eq!(of(&[("openai/a-1", &whole), ("openai/a-1-x", without)]), both[..1]);
    }
}
