//! The two sets of texts with known values: entities in sentences, and arguments of functions in questions.

use std::path::PathBuf;

use formwork_core::{JsonPath, Rule};
use serde_json::Value;

use crate::corpora::{rows, text};
use crate::mixed::{STEP, mixed};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Data {
    /// Persons, organizations, locations and others in sentences of news
    Entities,
    /// Arguments of functions in questions
    Functions,
}

/// The rows to ask.
#[derive(clap::Args)]
pub(crate) struct Drawn {
    /// The folder with `extraction_conllpp.jsonl` and `extraction_bfcl.jsonl`
    #[arg(long, default_value = "../shared/corpora")]
    folder: PathBuf,
    /// The number of rows, drawn by the seed
    #[arg(long, default_value_t = 100)]
    count: usize,
    /// The seed of the drawing
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// A file with examples that precede each row: lines with `input` and `answer` [default: no examples]
    #[arg(long, value_name = "FILE")]
    examples: Option<PathBuf>,
}

impl Drawn {
    /// Returns the drawn rows and the examples.
    pub(crate) fn read(&self, data: Data) -> Result<(Vec<Value>, Vec<Value>), String> {
        let mut drawn = rows(&self.folder.join(data.file()))?;
        draw(&mut drawn, self.count, self.seed);
        Ok((drawn, self.examples.as_deref().map(rows).transpose()?.unwrap_or_default()))
    }
}

impl Data {
    fn file(self) -> &'static str {
        match self {
            Self::Entities => "extraction_conllpp.jsonl",
            Self::Functions => "extraction_bfcl.jsonl",
        }
    }

    /// Returns the name of the answer to a row.
    pub(crate) fn name(self, row: &Value) -> &str {
        match self {
            Self::Entities => "entities",
            Self::Functions => text(&row["function"], "name"),
        }
    }

    /// Returns the task of a row.
    pub(crate) fn system(self, row: &Value) -> &str {
        match self {
            Self::Entities => text(row, "system"),
            Self::Functions => text(&row["function"], "description"),
        }
    }

    /// Returns the text in which the values of a row stand.
    pub(crate) fn input(self, row: &Value) -> String {
        match self {
            Self::Entities => text(row, "text").to_owned(),
            Self::Functions => {
                let messages = row["messages"].as_array().into_iter().flatten();
                messages.map(|message| text(message, "content")).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

/// Keeps `count` rows, drawn by a seed (the first steps of a Fisher-Yates shuffle).
fn draw(rows: &mut Vec<Value>, count: usize, seed: u64) {
    let mut state = mixed(seed);
    for at in 0..count.min(rows.len()) {
        state = state.wrapping_add(STEP);
        let left = (rows.len() - at) as u64;
        rows.swap(at, at + usize::try_from(mixed(state) % left).unwrap_or_default());
    }
    rows.truncate(count);
}

/// Returns the rule `grounded` for each text of a schema that the schema does not list.
pub(crate) fn grounded_texts(schema: &Value) -> Vec<Rule> {
    let mut rules = Vec::new();
    add_texts(schema, "$", &mut rules);
    rules
}

fn add_texts(part: &Value, path: &str, rules: &mut Vec<Rule>) {
    if part["type"] == "string" && part.get("enum").is_none() {
        rules.extend(path.parse().map(Rule::grounded));
    }
    for (name, member) in part["properties"].as_object().into_iter().flatten() {
        add_texts(member, &JsonPath::root().key(name).to_string().replacen('$', path, 1), rules);
    }
    if let Some(items) = part.get("items") {
        add_texts(items, &format!("{path}[*]"), rules);
    }
}

/// Returns whether each entity of an answer is one of the gold, where each entity of the gold counts once.
pub(crate) fn hits(answer: &Value, gold: &Value) -> Vec<bool> {
    let mut left: Vec<(&str, &Value)> = entities(gold).collect();
    let is_hit = |one| left.iter().position(|gold| *gold == one).map(|at| left.swap_remove(at)).is_some();
    entities(answer).map(is_hit).collect()
}

/// Returns the entities of an answer with their types, in the order of the value.
pub(crate) fn entities(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let lists = value.as_object().into_iter().flatten();
    lists.flat_map(|(name, list)| list.as_array().into_iter().flatten().map(move |one| (name.as_str(), one)))
}

/// Returns the harmonic mean of precision and recall, in percent.
pub(crate) fn f1(hits: usize, given: usize, wanted: usize) -> f64 {
    200.0 * hits as f64 / (given + wanted).max(1) as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_seed_draws_the_same_rows_and_another_one_others() {
        let drawn = |seed| {
            let mut rows: Vec<Value> = (0..50).map(Value::from).collect();
            draw(&mut rows, 10, seed);
            rows
        };
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        let mut all = drawn(3);
        all.sort_by_key(Value::as_u64);
        all.dedup();
        assert_eq!(all.len(), 10);
    }

    #[test]
    fn an_entity_counts_once_and_with_its_type() {
        let gold = json!({"person": ["Ann", "Bo"], "location": ["Rome", "Rome"]});
        let hits = |value: Value| hits(&value, &gold);
        assert_eq!(hits(gold.clone()), [true; 4]);
        assert_eq!(hits(json!({"person": ["Ann", "Ann", "Rome"]})), [true, false, false]);
        assert_eq!(
            hits(json!({"location": ["Rome", "Rome", "Rome"], "other": ["Bo"]})),
            [true, true, false, false]
        );
        assert_eq!((hits(json!("Ann")), hits(json!(null))), (vec![], vec![]));
        assert_eq!((f1(3, 3, 3), f1(0, 3, 3), f1(0, 0, 0), f1(1, 2, 2)), (100.0, 0.0, 0.0, 50.0));
    }

    #[test]
    fn texts_without_a_list_are_grounded() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string", "enum": ["x"]},
            "c d": {"type": "array", "items": {"type": "object", "properties": {"e": {"type": "string"}, "f": {"type": "integer"}}}}}});
        assert_eq!(
            grounded_texts(&schema),
            ["$.a", "$['c d'][*].e"].map(|path| Rule::grounded(path.parse().unwrap()))
        );
    }
}
