//! The result for people.

use formwork_eval::{Baseline, Comparison, Report, Spent};
use formwork_ledger::format_usd;

use crate::output;

/// Returns the results of several configurations.
pub(super) fn comparison(comparison: &Comparison) -> String {
    let header = ["configuration", "score", "95 %", "calls", "tokens", "US dollars", "median s", "95 % s"];
    let row = |report: &Report| {
        let name = report.name.clone().unwrap_or_default();
        let [calls, tokens, dollars, median, p95] = report.spent.map(effort).unwrap_or_default();
        [name, percent(report.score), range(report.interval), calls, tokens, dollars, median, p95]
    };
    let rows: Vec<_> =
        std::iter::once(header.map(str::to_owned)).chain(comparison.configurations.iter().map(row)).collect();
    let mut text = output::table(&rows, |column| column > 0);
    text.push('\n');
    for pair in &comparison.pairs {
        text.push_str(&difference(&format!("{} beside {}", pair.other, pair.one), &pair.comparison));
    }
    for one in &comparison.configurations {
        text.push_str(&format!("\n{}\n{}", one.name.as_deref().unwrap_or_default(), report(one)));
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.2}", 100.0 * share)
}

fn range(range: Option<[f64; 2]>) -> String {
    range.map(|[low, high]| format!("{} to {}", percent(low), percent(high))).unwrap_or_default()
}

fn effort(spent: Spent) -> [String; 5] {
    let dollars = spent.micro_usd.map_or_else(|| "unknown".to_owned(), format_usd);
    let seconds = |millis: u64| format!("{:.1}", millis as f64 / 1e3);
    let tokens = spent.input_tokens + spent.output_tokens;
    [
        spent.calls.to_string(),
        tokens.to_string(),
        dollars,
        seconds(spent.median_millis),
        seconds(spent.p95_millis),
    ]
}

fn difference(title: &str, baseline: &Baseline) -> String {
    let Baseline { score, difference, interval, probability_better, better, worse, equal, .. } = baseline;
    format!(
        "{title} {} %: difference {:+.2} points ({}), better in {better}, worse in {worse}, equal in {equal} document{}; probability of \
         being better {} %\n",
        percent(*score),
        100.0 * difference,
        range(Some(*interval)),
        if *equal == 1 { "" } else { "s" },
        percent(*probability_better),
    )
}

/// Returns the result of a configuration.
pub(super) fn report(report: &Report) -> String {
    let mut text = format!(
        "score {} % ({}), {} document{}",
        percent(report.score),
        range(report.interval),
        report.rows.len(),
        if report.rows.len() == 1 { "" } else { "s" }
    );
    if report.unanswered > 0 {
        text.push_str(&format!(", {} without an answer", report.unanswered));
    }
    if let Some([calls, tokens, dollars, median, _]) = report.spent.map(effort) {
        text.push_str(&format!("\n{calls} calls, {tokens} tokens, {dollars} US dollars, median {median} s"));
    }
    text.push_str("\n\n");
    let header = ["path", "accuracy", "95 %", "right", "wrong", "invented", "missing", "not stated"]
        .map(str::to_owned);
    let row = |path: &formwork_eval::PathReport| {
        let tally = path.tally;
        let [right, wrong, invented, missing, not_stated] =
            [tally.right, tally.wrong, tally.invented, tally.missing, tally.not_stated]
                .map(|count| count.to_string());
        let accuracy = path.accuracy.map(percent).unwrap_or_default();
        [path.path.clone(), accuracy, range(path.interval), right, wrong, invented, missing, not_stated]
    };
    let rows: Vec<_> = std::iter::once(header).chain(report.paths.iter().map(row)).collect();
    text.push_str(&output::table(&rows, |column| column > 0));
    let worst: Vec<String> =
        report.worst.iter().take(5).map(|row| format!("{} {}", row.id, percent(row.score))).collect();
    if !worst.is_empty() {
        text.push_str(&format!("\nlowest scores: {}\n", worst.join(", ")));
    }
    if let Some(baseline) = &report.baseline {
        text.push_str(&format!("\n{}", difference("baseline", baseline)));
    }
    for gate in &report.gates {
        let word = if gate.ok { "passed" } else { "failed" };
        text.push_str(&format!("gate {}: {word}, {}\n", gate.gate, percent(gate.value)));
    }
    text
}
