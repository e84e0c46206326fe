//! A report for a terminal.

use std::fmt;

use super::{Report, Target};

/// The most reasons that are listed.
const MAX_REASONS: usize = 10;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<36} {:>8} {:>10} {:>8}", "", "target", "measured", "n")?;
        for Target { metric, target, shown, n, is_met, .. } in &self.targets {
            let verdict = match is_met {
                Some(true) => "met",
                Some(false) => "missed",
                None => "",
            };
            let line = format!("{metric:<36} {target:>8} {shown:>10} {n:>8}  {verdict}");
            writeln!(f, "{}", line.trim_end())?;
        }
        writeln!(f)?;
        if let Some(spread) = self.latency_ms {
            let seconds = |milliseconds: u64| milliseconds as f64 / 1000.0;
            let (min, p50, p99, max) =
                (seconds(spread.min), seconds(spread.p50), seconds(spread.p99), seconds(spread.max));
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
        if let Some(expected) = self.expected {
            let line = expected.correlation.map(|it| format!(", correlation {it:.2}")).unwrap_or_default();
            writeln!(
                f,
                "expected: {} of {} within, off by {:.0} points on average{line}",
                expected.within, expected.n, expected.mean_error
            )?;
        }
        if self.scores > 0 {
            let usd = self.micro_usd as f64 / 1e6;
            writeln!(
                f,
                "tokens: {} of prompts, {} of answers; cost: ${usd:.4}",
                self.input_tokens, self.output_tokens
            )?;
        }
        Ok(())
    }
}
