//! Measures pairwise comparisons: the agreement with people, and the agreement of a judge with itself after swapping the texts.

use std::path::Path;

use formwork_extract::Backend;
use formwork_review::{Comparison, LlmReviewService, Pair, Preferred};
use serde_json::Value;

use super::judges::{Draws, pair_judge, right_twice};
use super::{patient, share};
use crate::corpora::{rows, text};

const CORPORA: [&str; 2] = ["judge_llmbar", "judge_pandalm"];

/// A row: two texts, and the one that people prefer.
struct Row {
    pair: Pair,
    better: String,
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

#[derive(Default)]
struct Score {
    rows: usize,
    agreed: usize,
    consistent: usize,
    /// The results of only one order.
    agreed_forward: usize,
    decided: usize,
    decided_right: usize,
    unanswered: usize,
}

impl Score {
    fn add(&mut self, row: &Row, comparison: &Comparison) {
        let truth = row.truth();
        self.rows += 1;
        self.agreed += usize::from(comparison.preferred == truth);
        self.consistent += usize::from(comparison.consistent);
        self.agreed_forward += usize::from(comparison.forward.preferred == truth);
        let decided = comparison.preferred != Preferred::Indeterminate;
        self.decided += usize::from(decided);
        self.decided_right += usize::from(decided && comparison.preferred == truth);
    }

    fn print(&self, title: &str) {
        println!("  {title}");
        println!(
            "    agrees with people: {} (one order alone: {})",
            share(self.agreed, self.rows),
            share(self.agreed_forward, self.rows)
        );
        println!("    says the same after swapping: {}", share(self.consistent, self.rows));
        println!(
            "    prefers one: {}, and the right one: {}",
            share(self.decided, self.rows),
            share(self.decided_right, self.decided)
        );
        if self.unanswered > 0 {
            println!("    no usable answer: {}", share(self.unanswered, self.rows + self.unanswered));
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
            let mut score = Score::default();
            let seeds = Draws::new(1);
            for row in &rows {
                let judge = pair_judge(&row.better, accuracy, bias, seeds.seed());
                let service = LlmReviewService::new(patient([Backend::from(judge)]));
                let comparison = service.compare(&row.pair).await.map_err(|error| format!("{error:#}"))?;
                score.add(row, &comparison);
            }
            let title = format!(
                "scripted judge, right {:.0} % of the time, takes the first unread {:.0} %: right both times {:.0} % expected",
                100.0 * accuracy,
                100.0 * bias,
                100.0 * right_twice(accuracy, bias)
            );
            score.print(&title);
        }
    }
    Ok(())
}

pub(super) async fn real(folder: &Path, backends: &[Backend], most: usize) -> Result<(), String> {
    for name in CORPORA {
        let rows = corpus(folder, name)?;
        let mut score = Score::default();
        // The rows are spread over the corpus, which is sorted by source, and limited to a small model's context window.
        let short: Vec<&Row> = rows
            .iter()
            .filter(|row| row.pair.task.len() + row.pair.a.len() + row.pair.b.len() < SHORT)
            .collect();
        let step = (short.len() / most.max(1)).max(1);
        for row in short.iter().step_by(step).take(most) {
            let agent = patient(backends.iter().cloned()).with_seed(1).with_max_tokens(200);
            match LlmReviewService::new(agent).compare(&row.pair).await {
                Ok(comparison) => score.add(row, &comparison),
                Err(error) if error.kind() == formwork_core::ErrorKind::Rejected => score.unanswered += 1,
                Err(error) => return Err(format!("{error:#}")),
            }
        }
        score.print(&format!(
            "{name}, the model, {} of the {} rows below {SHORT} bytes",
            score.rows,
            short.len()
        ));
    }
    Ok(())
}

/// The maximum length of a row for a real model in bytes.
const SHORT: usize = 1200;
