//! The numbers of a batch, for people and programs.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use formwork_batch::{BatchError, Control, Known, Stop, View, estimate};
use indicatif::HumanCount;

use crate::rows::{BatchEstimate, BatchOutput, BatchState};
use crate::{health, terminal};

/// The time over which the rate is measured.
const WINDOW: Duration = Duration::from_secs(30);

/// Returns the numbers of a batch.
pub(super) fn of(view: &View) -> Result<BatchOutput, BatchError> {
    let progress = view.progress()?;
    let process = view.process();
    let state = match (view.control()?, process) {
        (Control::Stop(Stop::Cancelled), _) => BatchState::Cancelled,
        (_, Some(_)) => BatchState::Running,
        (Control::Stop(_), None) => BatchState::Paused,
        (_, None) if progress.open() == 0 => BatchState::Done,
        (_, None) => BatchState::Open,
    };
    let cost_usd = (progress.unpriced == 0).then(|| progress.micro_usd as f64 / 1e6);
    // Invalid rows cost nothing, and were all rejected at the start.
    let invalid = progress.reasons.get("input").copied().unwrap_or_default();
    let (rows, finished) =
        (progress.rows.saturating_sub(invalid), progress.finished().saturating_sub(invalid));
    let expected_cost_usd =
        cost_usd.filter(|_| finished > 0).map(|cost| cost * rows as f64 / finished as f64);
    Ok(BatchOutput {
        folder: view.folder().display().to_string(),
        source: view.spec().source.clone(),
        state,
        process: process.filter(|id| *id > 0),
        rows: progress.rows,
        accepted: progress.accepted,
        rejected: progress.rejected,
        open: progress.open(),
        calls: progress.calls,
        input_tokens: progress.input_tokens,
        output_tokens: progress.output_tokens,
        cost_usd,
        expected_cost_usd,
        in_flight: progress.in_flight,
        reserved_cost_usd: progress.reserved_micro_usd as f64 / 1e6,
        uncertain: progress.uncertain,
        uncertain_cost_usd: progress.uncertain_micro_usd as f64 / 1e6,
        reasons: progress.reasons,
        in_force: health::of_batch(view)?,
        estimate: None,
    })
}

/// Returns the estimate of the cost of the whole batch, by the rows that have a result. `None` for fewer than two.
pub(super) fn estimated(view: &View) -> Result<Option<BatchEstimate>, BatchError> {
    let costs = view.row_costs()?;
    let money: Option<Vec<f64>> =
        costs.iter().map(|(micro_usd, ..)| micro_usd.map(|micro_usd| micro_usd as f64 / 1e6)).collect();
    // A cost of 0 means that the price of the model is unknown.
    let money = money.filter(|money| money.iter().any(|cost| *cost > 0.0));
    let unit = if money.is_some() { "usd" } else { "tokens" };
    let known = money.unwrap_or_else(|| costs.iter().map(|(_, tokens, _)| *tokens as f64).collect());
    let sample: Vec<Known> =
        costs.iter().zip(known).map(|((.., bytes), cost)| Known { length: *bytes as f64, cost }).collect();
    Ok(estimate(&sample, view.askable()?, view.open_bytes()? as f64).map(|found| BatchEstimate {
        sampled: found.sampled,
        rows: found.rows,
        unit,
        expected: found.expected,
        low: found.low,
        high: found.high,
    }))
}

/// Returns what this number of rows will cost, by the rows that have a result. `None` if none has.
pub(super) fn cost_of(view: &View, rows: u64) -> Result<Option<String>, BatchError> {
    Ok(estimated(view)?
        .map(|found| amount(found.expected / found.rows.max(1) as f64 * rows as f64, found.unit)))
}

/// Returns an amount for people: `$1.23`, `$0.0012`, `12,300 tokens`.
pub(super) fn amount(number: f64, unit: &str) -> String {
    match unit {
        "usd" if number >= 1.0 || number == 0.0 => format!("${number:.2}"),
        "usd" => format!("${number:.4}"),
        unit => format!("{} {unit}", HumanCount(number.round() as u64)),
    }
}

/// Returns the cost so far and the expected one.
fn costs(numbers: &BatchOutput) -> String {
    match (numbers.cost_usd, numbers.expected_cost_usd) {
        (Some(cost), Some(expected)) if cost > 0.0 && numbers.open > 0 => {
            format!(", {} of about {}", amount(cost, "usd"), amount(expected, "usd"))
        }
        (Some(cost), _) if cost > 0.0 => format!(", {}", amount(cost, "usd")),
        _ => format!(", {}", amount((numbers.input_tokens + numbers.output_tokens) as f64, "tokens")),
    }
}

/// Returns the page of `formwork batch status`.
pub(super) fn page(numbers: &BatchOutput) -> String {
    let state = match (numbers.state, numbers.process) {
        (BatchState::Running, Some(process)) => format!("running (process {process})"),
        (BatchState::Running, None) => "running".to_owned(),
        (BatchState::Open, _) => format!("open: `formwork batch resume {}` goes on", numbers.folder),
        (BatchState::Paused, _) => format!("paused: `formwork batch resume {}` goes on", numbers.folder),
        (BatchState::Cancelled, _) => {
            format!("cancelled: `formwork batch retry {}` takes it back", numbers.folder)
        }
        (BatchState::Done, _) => "done".to_owned(),
    };
    let mut text = format!(
        "batch     {} (rows of {})\nstate     {state}\nrows      {}: {} with a value, {} rejected, {} open\ncalls     {}{}\n",
        numbers.folder,
        numbers.source,
        HumanCount(numbers.rows),
        HumanCount(numbers.accepted),
        HumanCount(numbers.rejected),
        HumanCount(numbers.open),
        HumanCount(numbers.calls),
        costs(numbers),
    );
    if numbers.in_flight > 0 {
        text.push_str(&format!(
            "in flight {} calls; they cost at most {}, which is not in the cost above\n",
            HumanCount(numbers.in_flight),
            amount(numbers.reserved_cost_usd, "usd")
        ));
    }
    if numbers.uncertain > 0 {
        text.push_str(&format!(
            "uncertain {} calls whose process died or was interrupted; they cost at most {}, which is not in the cost above\n",
            HumanCount(numbers.uncertain),
            amount(numbers.uncertain_cost_usd, "usd")
        ));
    }
    if let Some(estimate) = &numbers.estimate {
        text.push_str(&format!(
            "estimate  {} for all {} rows (90 %: {} to {}), from {} of them\n",
            amount(estimate.expected, estimate.unit),
            HumanCount(estimate.rows),
            amount(estimate.low, estimate.unit),
            amount(estimate.high, estimate.unit),
            HumanCount(estimate.sampled),
        ));
    }
    for (nth, (reason, rows)) in numbers.reasons.iter().enumerate() {
        let label = if nth == 0 { "rejected" } else { "" };
        text.push_str(&format!("{label:<9} {}: {reason}\n", HumanCount(*rows)));
    }
    for (nth, restriction) in numbers.in_force.iter().enumerate() {
        let label = if nth == 0 { "in force" } else { "" };
        text.push_str(&format!("{label:<9} {}\n", health::line(restriction)));
    }
    text
}

/// The measured speed of a batch.
#[derive(Debug, Default)]
pub(super) struct Rate(VecDeque<(Instant, u64)>);

impl Rate {
    /// Returns a line with the progress, the rate, the cost and the time left.
    pub(super) fn line(&mut self, numbers: &BatchOutput) -> String {
        let (now, finished) = (Instant::now(), numbers.accepted + numbers.rejected);
        self.0.push_back((now, finished));
        while self.0.len() > 2 && self.0.front().is_some_and(|(seen, _)| now.duration_since(*seen) > WINDOW) {
            self.0.pop_front();
        }
        let rate = self.0.front().map(|(seen, rows)| {
            finished.saturating_sub(*rows) as f64 / now.duration_since(*seen).as_secs_f64().max(1e-3)
        });
        let rate = rate.filter(|rate| *rate > 0.0);
        let speed = rate.map(|rate| format!(", {rate:.1} rows/s")).unwrap_or_default();
        let left = rate.filter(|_| numbers.open > 0).map(|rate| {
            let left = Duration::from_secs_f64((numbers.open as f64 / rate).min(1e9));
            format!(", {} left", terminal::seconds(left))
        });
        format!(
            "{} of {} rows, {} rejected{speed}{}{}",
            HumanCount(finished),
            HumanCount(numbers.rows),
            HumanCount(numbers.rejected),
            costs(numbers),
            left.unwrap_or_default()
        )
    }
}
