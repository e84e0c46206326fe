//! The tables of recorded answers about documents: the score of each model, doubtful leaves, and the merged answer.
//!
//! `cargo run -p formwork-eval --example documents -- documents.jsonl`; rows: `{"id", "schema", "gold", "answers": {"MODEL": value},
//! "pages"?: [text]}`.

use std::error::Error;

use formwork_eval::{Evaluation, Profile, auroc, counterparts, merge, scores};
use formwork_evidence::Index;
use serde_json::Value;

/// The models whose answers are merged.
const MODELS: [&str; 3] = ["gpt", "gemini", "claude"];
/// The share of leaves that a person would look at.
const FLAGGED: f64 = 0.15;
/// The weight of a value that stands in the input.
const FOUND: f64 = 0.3;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: documents FILE.jsonl")?;
    let text = std::fs::read_to_string(path)?;
    let rows: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let rows: Vec<&Value> =
        rows.iter().filter(|row| MODELS.iter().all(|model| row["answers"].get(model).is_some())).collect();
    let texts: Vec<String> = rows.iter().map(|row| pages(row)).collect();
    let indexes: Vec<Option<Index<'_>>> =
        texts.iter().map(|text| (!text.trim().is_empty()).then(|| Index::new(text))).collect();
    let names: Vec<&String> =
        rows.iter().filter_map(|row| row["answers"].as_object()).flat_map(|all| all.keys()).collect();
    let mut seen = Vec::new();
    println!(
        "{} documents, {} with text\n\n| answers | score |\n|---|---|",
        rows.len(),
        indexes.iter().flatten().count()
    );
    for name in names {
        if !seen.contains(&name) {
            println!(
                "| {name} | {:.2} |",
                100.0 * score(&rows, |row, _| rows[row]["answers"][name.as_str()].clone())?
            );
            seen.push(name);
        }
    }
    let merged = |row: usize, with_evidence: bool| {
        let answers = MODELS.map(|model| &rows[row]["answers"][model]);
        let found = |value: &Value| {
            indexes[row].as_ref().is_some_and(|index| with_evidence && index.states(value, 1))
        };
        merge(&answers, |_, value| if found(value) { FOUND } else { 0.0 }).value
    };
    println!("| merged: agreement | {:.2} |", 100.0 * score(&rows, |row, _| merged(row, false))?);
    println!(
        "| merged: agreement and evidence | {:.2} |\n",
        100.0 * score(&rows, |row, _| merged(row, true))?
    );
    println!(
        "| answers | leaves | wrong | errors among the {:.0} % most doubtful | AUROC | evidence alone (rows with text) |\n|---|---|---|---|---|---|",
        100.0 * FLAGGED
    );
    for model in MODELS {
        let (mut both, mut alone) = (Vec::new(), Vec::new());
        for (row, index) in rows.iter().zip(&indexes) {
            let answer = &row["answers"][model];
            let others: Vec<&Value> =
                MODELS.iter().filter(|other| **other != model).map(|other| &row["answers"][*other]).collect();
            let right = counterparts(answer, &row["gold"]);
            let right = right.iter().map(|it| it.has_item && it.is_equal());
            let of = |others: &[&Value]| scores(answer, others, index.as_ref(), Some(&row["schema"]));
            both.extend(of(&others).into_iter().zip(right.clone()).map(|(it, right)| (it.score, right)));
            if index.is_some() {
                alone.extend(of(&[]).into_iter().zip(right).map(|(it, right)| (it.score, right)));
            }
        }
        println!(
            "| {model} | {} | {} | {:.1} % | {:.3} | {:.1} % |",
            both.len(),
            both.iter().filter(|it| !it.1).count(),
            100.0 * caught(&both),
            auroc(&both).unwrap_or_default(),
            100.0 * caught(&alone)
        );
    }
    Ok(())
}

fn score(rows: &[&Value], answer: impl Fn(usize, &Value) -> Value) -> Result<f64, String> {
    let mut evaluation = Evaluation::new(Profile::Docubench);
    for (number, row) in rows.iter().enumerate() {
        evaluation.add(row["id"].clone(), Some(&row["schema"]), &row["gold"], Some(&answer(number, row)))?;
    }
    Ok(evaluation.report(1).score)
}

/// Returns the share of wrong leaves among the most doubtful leaves. Of leaves with the score at the border, it is the expected share.
fn caught(scored: &[(f64, bool)]) -> f64 {
    let mut sorted = scored.to_vec();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut left, mut found) = (FLAGGED * sorted.len() as f64, 0.0);
    for group in sorted.chunk_by(|one, other| one.0.total_cmp(&other.0).is_eq()) {
        let share = (left / group.len() as f64).clamp(0.0, 1.0);
        found += share * group.iter().filter(|(_, right)| !right).count() as f64;
        left -= group.len() as f64;
    }
    found / sorted.iter().filter(|(_, right)| !right).count().max(1) as f64
}

fn pages(row: &Value) -> String {
    let pages = row["pages"].as_array().into_iter().flatten().filter_map(Value::as_str);
    pages.collect::<Vec<_>>().join("\u{c}")
}
