//! The report for a terminal.

use std::fmt;

use super::{Fit, Report, Target};

/// The maximum number of reasons in the table.
const MAX_REASONS: usize = 10;

/// The conclusion about a model whose scores are further off than the fallback's.
pub(super) const MODEL_IS_WORSE: &str = "The model's scores are further off than counting is: they keep to the form, and do not judge the wallets.";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<36} {:>8} {:>10} {:>8}", "", "target", "measured", "n")?;
        for row in &self.targets {
            let (Target { metric, target, measured_text, n, .. }, verdict) = (row, row.verdict());
            let line = format!("{metric:<36} {target:>8} {measured_text:>10} {n:>8}  {verdict}");
            writeln!(f, "{}", line.trim_end())?;
        }
        writeln!(f)?;
        for (what, names) in [("model", &self.models), ("prompt", &self.prompts)] {
            for (name, scores) in names {
                let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
                writeln!(f, "{what}: {name}, {scores} of {} scores", self.scores)?;
            }
        }
        if self.unanswered > 0 {
            let (unanswered, scores) = (self.unanswered, self.scores);
            writeln!(
                f,
                "without an answer of a model: {unanswered} of {scores} scores, a miss of every target"
            )?;
        }
        if self.trust.leaves > 0 {
            writeln!(f, "history of the answers: {}", self.trust)?;
        }
        if let Some(spread) = self.latency_ms {
            let [min, p50, _, p99, max] = spread.seconds();
            writeln!(f, "latency: least {min:.2} s, p50 {p50:.2} s, p99 {p99:.2} s, most {max:.2} s")?;
        }
        let attempts: Vec<String> = self
            .attempts
            .iter()
            .map(|(attempts, scores)| match attempts {
                0 => format!("{scores} without an answer"),
                attempts => format!("{scores} with {attempts}"),
            })
            .collect();
        if !attempts.is_empty() {
            writeln!(f, "attempts: {}", attempts.join(", "))?;
        }
        for reason in self.reasons.iter().take(MAX_REASONS) {
            writeln!(f, "rejected: {} at {}, {} times", reason.class, reason.path, reason.count)?;
        }
        if let Some(more) = self.reasons.len().checked_sub(MAX_REASONS).filter(|more| *more > 0) {
            writeln!(f, "rejected: and for {more} more reasons")?;
        }
        for (kind, count) in &self.faults {
            writeln!(f, "no answer: {kind}, {count} times")?;
        }
        if let Some(expected) = &self.expected {
            writeln!(
                f,
                "{:<36} {:>8} {:>10} {:>8}  correlation",
                "expected of wallets", "in band", "off by", "n"
            )?;
            for (name, fit) in
                [("  the model", expected.model), ("  counting, the fallback", expected.fallback)]
            {
                if let Some(fit) = fit {
                    let (line, Fit { n, within, mean_error, .. }) = (fit.line(), fit);
                    writeln!(f, "{name:<36} {within:>8} {mean_error:>10.0} {n:>8}  {line}")?;
                }
            }
            if expected.is_model_worse() {
                writeln!(f, "{MODEL_IS_WORSE}")?;
            }
        }
        let Self { model_scores, copied_reasonings, blank_entries, .. } = self;
        if *copied_reasonings > 0 {
            writeln!(
                f,
                "reasonings copied word for word from an example: {copied_reasonings} of {model_scores}"
            )?;
        }
        if *blank_entries > 0 {
            writeln!(
                f,
                "answers that list a risk or a strength without any text: {blank_entries} of {model_scores}"
            )?;
        }
        if self.scores > 0 {
            let cost = cost(self.micro_usd);
            writeln!(
                f,
                "tokens: {} of prompts, {} of answers; cost: {cost}",
                self.input_tokens, self.output_tokens
            )?;
        }
        Ok(())
    }
}

/// Returns an amount of money as text.
pub(super) fn cost(micro_usd: Option<u64>) -> String {
    micro_usd.map_or_else(|| "of unknown price".to_owned(), |micro| format!("${:.4}", micro as f64 / 1e6))
}
