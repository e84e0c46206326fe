//! `cargo evals documents`: recorded answers of several systems about documents, beside hand-verified values.
//!
//! The tables show the score of each system by DocuBench's rules, the answer that several models give together, how many errors stand among
//! the most doubtful values, and how well the probabilities of a calibration fit on documents that were not used for it. No model is called.

use std::collections::HashMap;
use std::path::PathBuf;

use formwork_eval::{Evaluation, Profile, Scored, auroc, calibrate};
use formwork_evidence::{
    Counterpart, Evidence, Index, LeafScore, Status, counterparts, is_stated, merge, scores,
};
use serde_json::{Value, json};

use crate::bench::process::cpu;
use crate::corpora::rows;
use crate::mixed::{STEP, mixed};

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
        Some(merge(&answers, index).value)
    };
    print("merged by agreement", &|_, document| merged(document, None))?;
    print("merged by agreement and evidence", &|number, document| {
        merged(document, indexes.get(number).and_then(Option::as_ref))
    })?;
    println!();
    Ok(())
}

/// A leaf of an answer.
struct Leaf {
    scored: Scored,
    /// All signals of the leaf itself: how many other answers have its value and its item, its presence in the text, and its form.
    signals: String,
    /// The kind of its signals: a number of [`KINDS`].
    kind: usize,
    /// Whether a signal speaks against it.
    is_doubted: bool,
}

/// The kinds of wrong values by what speaks against them.
const KINDS: [&str; 4] =
    ["agreed, in the text", "agreed, no text or no value", "agreed, not in the text", "disputed"];

impl Leaf {
    fn all(
        number: usize,
        document: &Document,
        answer: &Value,
        others: &[&Value],
        evidence: Option<&[Evidence]>,
    ) -> Vec<Self> {
        let schema = Some(&document.schema);
        // Without other answers and evidence, only the form of a value lowers its score.
        let forms = scores(answer, &[], None, schema);
        let beside: Vec<_> = others.iter().map(|other| counterparts(answer, other)).collect();
        let leaf = |(nth, (gold, score)): (usize, (Counterpart<'_>, LeafScore))| {
            let mut beside: Vec<_> =
                beside.iter().filter_map(|all| all.get(nth)).map(|it| (it.has_item, it.is_equal())).collect();
            beside.sort_unstable();
            let is_agreed = beside.iter().all(|it| *it == (true, true));
            let status =
                evidence.and_then(|all| all.iter().find(|it| it.path == gold.path)).map(|it| it.status);
            let status = status.filter(|_| is_stated(Some(gold.value)));
            let form = forms.get(nth).map_or(1.0, |it| it.score);
            let kind = match status {
                _ if !is_agreed => 3,
                Some(Status::NotFound) => 2,
                None => 1,
                Some(_) => 0,
            };
            Self {
                scored: Scored { document: number, score: score.score, right: gold.agrees() },
                signals: format!("{beside:?} {status:?} {form}"),
                kind,
                is_doubted: kind > 1 || form < 0.5 || others.is_empty() && status.is_none(),
            }
        };
        let scored = scores(answer, others, evidence, schema);
        counterparts(answer, &document.gold).into_iter().zip(scored).enumerate().map(leaf).collect()
    }
}

/// Prints how well the scores of values tell right from wrong, and how well any order could by the same signals.
fn doubt(args: &Args, documents: &[Document], indexes: &[Option<Index<'_>>]) {
    println!(
        "| answers | values | wrong | errors among the {:.0} % most doubtful | 95 % | AUROC | calibration error, other half | best order of signals | at most | other errors: {} |",
        100.0 * args.flagged,
        KINDS.join("; ")
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
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
            let evidence = index.as_ref().map(|index| index.evidence(answer, Some(&document.schema)));
            both.extend(Leaf::all(number, document, answer, &others, evidence.as_deref()));
            if index.is_some() {
                alone.extend(Leaf::all(number, document, answer, &[], evidence.as_deref()));
            }
        }
        for (name, leaves, others, goal) in [
            (model.clone(), both, args.models.len() - 1, 0.8),
            (format!("{model}, evidence alone"), alone, 0, 0.4),
        ] {
            row(args, &name, &leaves, others, goal);
        }
    }
}

fn row(args: &Args, name: &str, leaves: &[Leaf], others: usize, goal: f64) {
    let scored: Vec<Scored> = leaves.iter().map(|leaf| leaf.scored).collect();
    let pairs: Vec<(f64, bool)> = scored.iter().map(|leaf| (leaf.score, leaf.right)).collect();
    let error = calibrate(name, others, true, &scored)
        .map_or_else(|| "too few".to_owned(), |it| format!("{:.3}", it.error));
    let wrong: Vec<&Leaf> = leaves.iter().filter(|leaf| !leaf.scored.right).collect();
    let caught = |score: &dyn Fn(&Leaf) -> f64| {
        let flagged = flagged(&leaves.iter().map(score).collect::<Vec<_>>(), args.flagged);
        let mut missed = [0.0; KINDS.len()];
        let found = leaves.iter().zip(flagged).filter(|(leaf, _)| !leaf.scored.right).map(|(leaf, share)| {
            missed[leaf.kind] += 1.0 - share;
            share
        });
        (found.sum::<f64>() / wrong.len().max(1) as f64, missed)
    };
    let (found, missed) = caught(&|leaf| leaf.scored.score);
    // In hindsight: leaves with the same signals have the same place, by their share of right ones.
    let mut right: HashMap<&str, (f64, f64)> = HashMap::new();
    for leaf in leaves {
        let (sum, count) = right.entry(&leaf.signals).or_default();
        (*sum, *count) = (*sum + f64::from(u8::from(leaf.scored.right)), *count + 1.0);
    }
    let (by_signals, _) =
        caught(&|leaf| right.get(leaf.signals.as_str()).map_or(1.0, |(sum, count)| sum / count));
    // With the gold: all doubted errors, then leaves that nothing speaks against, in a random order.
    let (at_most, _) = caught(&|leaf| match leaf.is_doubted {
        true if leaf.scored.right => 2.0,
        true => 0.0,
        false => 1.0,
    });
    let [low, high] = interval(&scored, args.flagged);
    let mark = match found < goal {
        true if by_signals < goal => ", missed, and by the best order of signals",
        true => ", missed",
        false => "",
    };
    println!(
        "| {name} | {} | {} | {:.1} % (goal {:.0}{mark}) | {:.1} to {:.1} | {:.3} | {error} | {:.1} % | {:.1} % | {} |",
        leaves.len(),
        wrong.len(),
        100.0 * found,
        100.0 * goal,
        100.0 * low,
        100.0 * high,
        auroc(&pairs).unwrap_or_default(),
        100.0 * by_signals,
        100.0 * at_most,
        missed.map(|count| format!("{count:.0}")).join(", ")
    );
}

/// The number of resamples of an interval.
const RESAMPLES: u64 = 400;

/// Returns the 95 % interval of the share of wrong leaves that are among the most doubtful ones, by resampling whole documents: the
/// errors of one model are often those of one column of one document.
fn interval(leaves: &[Scored], share: f64) -> [f64; 2] {
    let documents: Vec<&[Scored]> = leaves.chunk_by(|one, other| one.document == other.document).collect();
    let mut state = 0_u64;
    let mut found: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn = documents.iter().flat_map(|_| {
                state = state.wrapping_add(STEP);
                let nth = mixed(state) % documents.len().max(1) as u64;
                documents.get(nth as usize).copied().unwrap_or_default()
            });
            let (scores, right): (Vec<f64>, Vec<bool>) = drawn.map(|leaf| (leaf.score, leaf.right)).unzip();
            let of_wrong = flagged(&scores, share).into_iter().zip(&right).filter(|(_, right)| !**right);
            let (sum, count) =
                of_wrong.fold((0.0, 0.0), |(sum, count), (share, _)| (sum + share, count + 1.0));
            sum / f64::max(count, 1.0)
        })
        .collect();
    found.sort_by(f64::total_cmp);
    let at = |quantile: f64| found.get((quantile * RESAMPLES as f64) as usize).copied().unwrap_or_default();
    [at(0.025), at(0.975)]
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

/// Returns the chance of each leaf to be among the share with the lowest scores; leaves with the score at the border have the same one.
fn flagged(scores: &[f64], share: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|one, other| scores[*one].total_cmp(&scores[*other]));
    let (mut left, mut chances) = (share * scores.len() as f64, vec![0.0; scores.len()]);
    for group in order.chunk_by(|one, other| scores[*one] == scores[*other]) {
        group.iter().for_each(|leaf| chances[*leaf] = (left / group.len() as f64).clamp(0.0, 1.0));
        left -= group.len() as f64;
    }
    chances
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_with_the_lowest_scores_is_flagged_and_equal_scores_have_equal_chances() {
        assert_eq!(flagged(&[0.9, 0.1, 0.5, 0.5], 0.5), [0.0, 1.0, 0.5, 0.5]);
        assert_eq!(flagged(&[0.3, 0.3], 1.0), [1.0, 1.0]);
        assert!(flagged(&[], 0.5).is_empty());
    }

    #[test]
    fn the_interval_of_errors_that_stand_in_one_document_is_wide() {
        let leaf = |document, score, right| Scored { document, score, right };
        let interval = |leaves: [Vec<Scored>; 20]| interval(&leaves.concat(), 0.1);
        // The most doubtful value of each document is wrong.
        let even = std::array::from_fn(|document| {
            (0..10).map(|nth| leaf(document, f64::from(nth), nth > 0)).collect()
        });
        assert_eq!(interval(even), [1.0, 1.0]);
        // All values of two documents are wrong, and all or none of a document are doubtful.
        let odd = std::array::from_fn(|document| match document {
            0 => vec![leaf(0, 0.0, false); 10],
            1 => vec![leaf(1, 1.0, false); 10],
            _ => vec![leaf(document, 0.5, true); 10],
        });
        let [low, high] = interval(odd);
        assert!(low == 0.0 && high == 1.0, "{low} {high}");
    }

    #[test]
    fn the_signals_of_a_leaf_say_what_speaks_against_it() {
        let gold = json!({"a": "x", "b": "y", "c": 1, "d": null});
        let row = json!({"id": 1, "schema": {}, "gold": gold, "answers": {"m": gold}, "pages": ["x, z"]});
        let document = Document::of(&row).unwrap();
        let answer = json!({"a": "x", "b": "z", "c": 0, "d": null});
        let evidence = document.index().map(|index| index.evidence(&answer, None));
        let of = |others: &[&Value]| Leaf::all(0, &document, &answer, others, evidence.as_deref());
        let shown = |leaves: Vec<Leaf>| {
            leaves.iter().map(|it| (it.scored.right, it.kind, it.is_doubted)).collect::<Vec<_>>()
        };
        let expected = [(true, 0, false), (false, 3, true), (false, 2, true), (true, 1, false)];
        assert_eq!(shown(of(&[&json!({"a": "x", "b": "y", "c": 0})])), expected);
        let alone = [(true, 0, false), (false, 0, false), (false, 2, true), (true, 1, true)];
        assert_eq!(shown(of(&[])), alone, "the wrong text stands in the input");
    }
}
