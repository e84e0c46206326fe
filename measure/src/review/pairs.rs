//! Measures pairwise comparisons: the agreement with people, and the agreement of a judge with itself after swapping the texts.

use std::path::Path;

use formwork_core::ErrorKind;
use formwork_extract::Backend;
use formwork_review::{Agent, LlmReviewService, Pair, Preferred};
use serde_json::Value;

use super::judges::{Draws, pair_judge, right_twice};
use super::patient;
use super::tally::Tally;
use crate::corpora::{rows, text};

const CORPORA: [&str; 2] = ["judge_llmbar", "judge_pandalm"];

/// A row: two texts, and the one that people prefer.
pub(super) struct Row {
    pub(super) pair: Pair,
    pub(super) better: String,
}

impl Row {
    fn new(row: &Value) -> Self {
        let input = text(row, "input");
        let task = text(row, "instruction");
        let task = if input.is_empty() { task.to_owned() } else { format!("{task}\n\n{input}") };
        let pair = Pair { task, a: text(row, "a").to_owned(), b: text(row, "b").to_owned() };
        Self { pair, better: text(row, "better").to_owned() }
    }

    /// Converts a preference; a tie is an indeterminate verdict.
    fn truth(&self) -> Preferred {
        match self.better.as_str() {
            "a" => Preferred::A,
            "b" => Preferred::B,
            _ => Preferred::Indeterminate,
        }
    }
}

fn corpus(folder: &Path, name: &str) -> Result<Vec<Row>, String> {
    Ok(rows(&folder.join(format!("{name}.jsonl")))?.iter().map(Row::new).collect())
}

pub(super) async fn scripted(folder: &Path) -> Result<(), String> {
    for name in CORPORA {
        let rows = corpus(folder, name)?;
        println!("{name}, {} rows, ties are indeterminate", rows.len());
        for (accuracy, bias) in [(1.0, 0.0), (0.8, 0.0), (0.5, 0.0), (1.0, 0.5), (1.0, 1.0)] {
            let (mut tally, seeds) = (Tally::default(), Draws::new(1));
            for row in &rows {
                let judge = Backend::from(pair_judge(&row.better, accuracy, bias, seeds.seed()));
                compare(&mut tally, patient([judge]), row).await?;
            }
            let [.., agreed, steady] = tally.rows();
            println!(
                "  scripted judge, right {:.0} % of the time, takes the first unread {:.0} %: right both times {:.0} % expected\n    {agreed}\n    {steady}",
                100.0 * accuracy,
                100.0 * bias,
                100.0 * right_twice(accuracy, bias)
            );
        }
    }
    Ok(())
}

/// Adds the preferences of a real judge about `most` rows of each corpus.
pub(super) async fn real(
    tally: &mut Tally,
    folder: &Path,
    backends: &[Backend],
    most: usize,
) -> Result<(), String> {
    for name in CORPORA {
        let rows = corpus(folder, name)?;
        // The rows are spread over the corpus, which is sorted by source, and limited to a small model's context window.
        let is_short = |row: &&Row| row.pair.task.len() + row.pair.a.len() + row.pair.b.len() < SHORT;
        let short: Vec<&Row> = rows.iter().filter(is_short).collect();
        let step = (short.len() / most.max(1)).max(1);
        for row in short.iter().step_by(step).take(most) {
            let agent = patient(backends.iter().cloned()).with_seed(1).with_max_tokens(200);
            compare(tally, agent, row).await?;
        }
    }
    Ok(())
}

/// Adds the preference of a judge about one pair. An error of the configuration is an error; other errors are no answer.
pub(super) async fn compare(tally: &mut Tally, agent: Agent, row: &Row) -> Result<(), String> {
    let service = LlmReviewService::new(agent.with_observer(tally.watch.clone()));
    let comparison = match service.compare(&row.pair).await {
        Ok(comparison) => Some(comparison),
        Err(error) if matches!(error.kind(), ErrorKind::Config | ErrorKind::Schema) => {
            return Err(format!("{error:#}"));
        }
        Err(_) => None,
    };
    tally.pairs.push((row.truth(), comparison));
    Ok(())
}

/// The maximum length of a row for a real model in bytes.
const SHORT: usize = 1200;
