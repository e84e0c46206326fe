//! `cargo evals documents`: recorded answers of several systems about documents, beside hand-verified values.
//!
//! The tables show the score of each system by DocuBench's rules, the answer that several models give together, how many errors stand among
//! the most doubtful values, and how well the probabilities of a calibration fit on documents that were not used for it. No model is called.

use std::path::PathBuf;

use formwork_eval::{Evaluation, Profile, Scored, auroc, calibrate};
use formwork_evidence::{Evidence, Index, counterparts, merge_with, scores};
use serde_json::{Value, json};

use crate::bench::process::cpu;
use crate::corpora::rows;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The documents: rows `{"id", "schema", "gold", "answers": {"SYSTEM": value}, "pages"?: [text]}`
    #[arg(long, default_value = "../shared/corpora/documents.jsonl")]
    rows: PathBuf,
    /// The models whose answers are merged and compared with each other
    #[arg(long, value_delimiter = ',', default_value = "gpt,gemini,claude")]
    models: Vec<String>,
    /// The share of the values that a person would look at
    #[arg(long, default_value_t = 0.15)]
    flagged: f64,
    /// Measure the index and the evidence of generated texts instead, in processor time
    #[arg(long)]
    speed: bool,
}

/// A document.
struct Document {
    id: Value,
    schema: Value,
    gold: Value,
    answers: serde_json::Map<String, Value>,
    text: String,
}

impl Document {
    fn of(row: &Value) -> Option<Self> {
        let pages = row["pages"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Some(Self {
            id: row["id"].clone(),
            schema: row["schema"].clone(),
            gold: row["gold"].clone(),
            answers: row["answers"].as_object()?.clone(),
            text: pages.collect::<Vec<_>>().join("\u{c}"),
        })
    }

    fn index(&self) -> Option<Index<'_>> {
        (!self.text.trim().is_empty()).then(|| Index::new(&self.text))
    }
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    if args.speed {
        return speed().map_err(|error| error.to_string());
    }
    let rows = rows(&args.rows)?;
    let is_answered =
        |document: &Document| args.models.iter().all(|model| document.answers.contains_key(model));
    let documents: Vec<Document> = rows.iter().filter_map(Document::of).filter(is_answered).collect();
    if documents.is_empty() {
        let (file, models) = (args.rows.display(), args.models.join(", "));
        return Err(format!("{file} has no document with answers of {models}"));
    }
    let indexes: Vec<Option<Index<'_>>> = documents.iter().map(Document::index).collect();
    println!("{} documents, {} with text\n", documents.len(), indexes.iter().flatten().count());
    systems(args, &documents, &indexes)?;
    doubt(args, &documents, &indexes);
    Ok(())
}

/// Prints the score of each system, and of the answers that the models give together.
fn systems(args: &Args, documents: &[Document], indexes: &[Option<Index<'_>>]) -> Result<(), String> {
    println!("| answers | score | 95 % |\n|---|---|---|");
    let print = |name: &str, answer: &dyn Fn(usize, &Document) -> Option<Value>| -> Result<(), String> {
        let mut evaluation = Evaluation::new(Profile::Docubench);
        for (number, document) in documents.iter().enumerate() {
            let answer = answer(number, document);
            evaluation.add(document.id.clone(), Some(&document.schema), &document.gold, answer.as_ref())?;
        }
        let report = evaluation.report(1);
        let [low, high] = report.interval.unwrap_or_default().map(|share| 100.0 * share);
        println!("| {name} | {:.2} | {low:.2} to {high:.2} |", 100.0 * report.score);
        Ok(())
    };
    let mut names: Vec<&String> = Vec::new();
    for name in documents.iter().flat_map(|document| document.answers.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in names {
        print(name, &|_, document| document.answers.get(name).cloned())?;
    }
    let merged = |document: &Document, index: Option<&Index<'_>>| {
        let answers: Vec<&Value> =
            args.models.iter().filter_map(|model| document.answers.get(model)).collect();
        Some(merge_with(&answers, index).value)
    };
    print("merged by agreement", &|_, document| merged(document, None))?;
    print("merged by agreement and evidence", &|number, document| {
        merged(document, indexes.get(number).and_then(Option::as_ref))
    })?;
    println!();
    Ok(())
}

/// Prints how well the scores of values tell right from wrong.
fn doubt(args: &Args, documents: &[Document], indexes: &[Option<Index<'_>>]) {
    println!(
        "| answers | values | wrong | errors among the {:.0} % most doubtful | AUROC | calibration error, other half | by evidence alone: errors, AUROC, calibration error |",
        100.0 * args.flagged
    );
    println!("|---|---|---|---|---|---|---|");
    for model in &args.models {
        let (mut both, mut alone) = (Vec::new(), Vec::new());
        for (number, (document, index)) in documents.iter().zip(indexes).enumerate() {
            let Some(answer) = document.answers.get(model) else { continue };
            let others: Vec<&Value> = args
                .models
                .iter()
                .filter(|other| *other != model)
                .filter_map(|other| document.answers.get(other))
                .collect();
            let right: Vec<bool> =
                counterparts(answer, &document.gold).iter().map(|it| it.has_item && it.is_equal()).collect();
            let evidence = index.as_ref().map(|index| index.evidence(answer, Some(&document.schema)));
            let of = |others: &[&Value], evidence: Option<&[Evidence]>| {
                let scores = scores(answer, others, evidence, Some(&document.schema));
                let scored = scores.into_iter().zip(&right);
                scored
                    .map(|(leaf, right)| Scored { document: number, score: leaf.score, right: *right })
                    .collect::<Vec<_>>()
            };
            both.extend(of(&others, evidence.as_deref()));
            if index.is_some() {
                alone.extend(of(&[], evidence.as_deref()));
            }
        }
        let wrong = both.iter().filter(|leaf| !leaf.right).count();
        let [of_both, of_alone] = [&both, &alone].map(|scored| {
            let pairs: Vec<(f64, bool)> = scored.iter().map(|leaf| (leaf.score, leaf.right)).collect();
            let calibration = calibrate(model, args.models.len() - 1, true, scored);
            let error = calibration.map_or_else(|| "too few".to_owned(), |it| format!("{:.3}", it.error));
            (100.0 * caught(&pairs, args.flagged), auroc(&pairs).unwrap_or_default(), error)
        });
        println!(
            "| {model} | {} | {wrong} | {:.1} % | {:.3} | {} | {:.1} %, {:.3}, {} |",
            both.len(),
            of_both.0,
            of_both.1,
            of_both.2,
            of_alone.0,
            of_alone.1,
            of_alone.2
        );
    }
}

/// The number of repetitions of the evidence, whose mean is printed.
const REPEATED: u32 = 20;

/// Prints the processor time for the index of a text, and for the evidence of 100 leaves in it.
fn speed() -> Result<(), crate::Failure> {
    println!(
        "| text | index (goal 1.5 s for 10 MB) | evidence of 100 leaves (goal 2 ms, 150 ms) | found |\n|---|---|---|---|"
    );
    for size in [100_000, 10_000_000] {
        let (mut text, mut count) = (String::new(), 0_u64);
        while text.len() < size {
            text += &invoice(count);
            count += 1;
        }
        let before = cpu()?;
        let index = Index::new(&text);
        let indexed = cpu()?;
        let items: Value = (0..25).map(|nth| value(nth * (count / 26) + 3)).collect::<Vec<_>>().into();
        let mut evidence = Vec::new();
        for _ in 0..REPEATED {
            evidence = index.evidence(&items, None);
        }
        let found = cpu()?;
        println!(
            "| {} kB | {:.3} s | {:.1} ms | {} of {} |",
            text.len() / 1000,
            (indexed - before) / 1e6,
            (found - indexed) / 1e3 / f64::from(REPEATED),
            evidence.iter().filter(|it| !it.spans.is_empty()).count(),
            evidence.len()
        );
    }
    Ok(())
}

fn invoice(nth: u64) -> String {
    let (name, surname, day, year) = (nth % 977, nth % 991, 1 + nth % 28, nth % 30);
    let (whole, cents) = (nth * 7 % 10_007, nth % 100);
    format!(
        "Invoice {nth} for Name{name} Surname{surname} of {day} March 20{year:02}: total {whole}.{cents:02} EUR, {} pieces\n",
        nth % 13
    )
}

fn value(nth: u64) -> Value {
    let total = (nth * 7 % 10_007) as f64 + (nth % 100) as f64 / 100.0;
    json!({
        "customer": format!("Name{} Surname{}", nth % 977, nth % 991),
        "number": nth.to_string(),
        "total": total,
        "date": format!("20{:02}-03-{:02}", nth % 30, 1 + nth % 28)
    })
}

/// Returns the share of wrong values among the most doubtful ones. Of values with the score at the border, it is the expected share.
fn caught(scored: &[(f64, bool)], flagged: f64) -> f64 {
    let mut sorted = scored.to_vec();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut left, mut found) = (flagged * sorted.len() as f64, 0.0);
    for group in sorted.chunk_by(|one, other| one.0.total_cmp(&other.0).is_eq()) {
        let share = (left / group.len() as f64).clamp(0.0, 1.0);
        found += share * group.iter().filter(|(_, right)| !right).count() as f64;
        left -= group.len() as f64;
    }
    found / sorted.iter().filter(|(_, right)| !right).count().max(1) as f64
}
