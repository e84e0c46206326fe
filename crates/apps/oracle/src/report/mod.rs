//! Reports on a ledger: the measured success metrics of the specification, and plots.

mod fit;
mod html;
mod plot;
mod svg;
mod table;

use std::collections::BTreeMap;

pub use fit::{Expected, Fit};
use formwork_core::Trust;
use schemars::JsonSchema;
use serde::Serialize;

use crate::metrics::{Rates, Tally};
use crate::wallet::Band;
use crate::{ScoreEvent, ScoreSource};

/// The figures of a ledger. `Display` writes a table for a terminal, [`Report::html`] returns a page, and it serialises
/// to JSON.
///
/// ```
/// use formwork_oracle::report::Report;
///
/// let report = Report::of([]);
/// assert_eq!((report.scores, report.targets.len()), (0, 5));
/// assert!(report.targets.iter().all(|target| target.is_met.is_none()), "nothing is met by nothing");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// The number of scores, including failed ones.
    pub scores: u64,
    /// The specification's success metrics, in its order.
    pub targets: Vec<Target>,
    /// The ratios behind the metrics.
    pub rates: Rates,
    /// The duration of scores in milliseconds; `None` without scores.
    pub latency_ms: Option<Spread>,
    /// The number of scores by the number of attempts; 0 is a score without any answer of a model.
    pub attempts: BTreeMap<u32, u64>,
    /// The reasons of rejected answers, the most frequent first.
    pub reasons: Vec<Reason>,
    /// The number of failed calls, by kind.
    pub faults: BTreeMap<String, u64>,
    /// The agreement with the scores that a person would give; `None` if no wallet states them.
    pub expected: Option<Expected>,
    /// The number of scores by a model.
    pub model_scores: u64,
    /// The number of these scores whose reasoning is copied from an example.
    pub copied_reasonings: u64,
    /// The number of scores without any answer of a model. They are misses of every target.
    pub unanswered: u64,
    /// The number of these scores that list a blank risk or strength.
    pub blank_entries: u64,
    /// The number of scores by the model that gave the score or was called last.
    pub models: BTreeMap<String, u64>,
    /// The number of scores by version of the prompt: its name and the start of its hash.
    pub prompts: BTreeMap<String, u64>,
    /// The histories of the leaves of all answers: how many the models wrote freely, and which they did not.
    pub trust: Trust,
    /// The number of input tokens.
    pub input_tokens: u64,
    /// The number of output tokens.
    pub output_tokens: u64,
    /// The total cost in millionths of a US dollar; `null` if the price of any call is unknown.
    pub micro_usd: Option<u64>,
    /// The points of the plots.
    #[serde(skip)]
    points: Points,
}

/// One of the specification's success metrics.
///
/// ```
/// use formwork_oracle::report::Report;
///
/// let target = &Report::of([]).targets[0];
/// assert_eq!((target.target.as_str(), target.n, target.measured), ("> 95 %", 0, None));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Target {
    /// The name of the metric.
    pub metric: String,
    /// The required value, as text.
    pub target: String,
    /// The measured value, a ratio or seconds; `None` if nothing was measured.
    pub measured: Option<f64>,
    /// The measured value, as text.
    #[serde(rename = "shown")]
    pub measured_text: String,
    /// The number of scores or answers behind the value.
    pub n: u64,
    /// Whether the target is met; `None` if nothing was measured.
    pub is_met: Option<bool>,
}

/// The distribution of values: percentiles by the nearest-rank method.
///
/// ```
/// use formwork_oracle::report::Spread;
///
/// let spread = Spread { min: 1, p50: 4, p95: 9, p99: 9, max: 10 };
/// assert_eq!(serde_json::to_value(spread).unwrap()["p95"], 9);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Spread {
    /// The smallest value.
    pub min: u64,
    /// The median.
    pub p50: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The largest value.
    pub max: u64,
}

/// A reason for rejections, with its frequency.
///
/// ```
/// use formwork_oracle::report::Reason;
///
/// let reason = Reason { class: "schema".into(), path: "$.score".into(), count: 3 };
/// assert_eq!(serde_json::to_value(reason).unwrap()["count"], 3);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Reason {
    /// The class of the failure.
    pub class: String,
    /// The path in the answer.
    pub path: String,
    /// The number of violations.
    pub count: u64,
}

/// The points of the plots.
#[derive(Debug, Clone, Default, PartialEq)]
struct Points {
    latencies_ms: Vec<u64>,
    scores: Vec<Point>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    expected: Band,
    score: u16,
    counted: Option<u16>,
    source: ScoreSource,
}

impl Report {
    /// Creates a report of events, in any order.
    pub fn of(events: impl IntoIterator<Item = ScoreEvent>) -> Self {
        let (mut report, mut tally, mut delays) = (Self::default(), Tally::default(), Vec::new());
        for event in events {
            tally.add(&event);
            if let (Some(ScoreSource::Ai), Some(answer)) = (event.source, &event.answer) {
                let mut entries = answer.risk_factors.iter().chain(&answer.strengths);
                report.model_scores += 1;
                report.copied_reasonings += u64::from(event.copied.is_some());
                report.blank_entries += u64::from(entries.any(|entry| entry.trim().is_empty()));
            }
            let last = event.answers().map(|call| call.attempt).max().unwrap_or(0);
            report.points.latencies_ms.push(event.latency_ms);
            // A score without an answer is later than any other.
            delays.push(if last == 0 { u64::MAX } else { event.latency_ms });
            *report.attempts.entry(last).or_default() += 1;
            *report.models.entry(event.model).or_default() += 1;
            let hash = event.prompt.hash.get(..12).unwrap_or(&event.prompt.hash);
            *report.prompts.entry(format!("{} {hash}", event.prompt.name)).or_default() += 1;
            if let (Some(expected), Some(answer), Some(source)) = (event.expected, event.answer, event.source)
            {
                let point = Point { expected, score: answer.score, counted: event.counted, source };
                report.points.scores.push(point);
            }
        }
        report.points.latencies_ms.sort_unstable();
        delays.sort_unstable();
        let rates = tally.rates();
        let reasons = tally.reasons.iter().map(|(&(class, path), &count)| Reason {
            class: class.to_owned(),
            path: path.to_owned(),
            count,
        });
        let mut reasons: Vec<Reason> = reasons.collect();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
        Self {
            scores: tally.scores,
            targets: targets(&rates, Spread::of(&delays)),
            rates,
            latency_ms: Spread::of(&report.points.latencies_ms),
            reasons,
            faults: tally.faults,
            expected: Expected::of(&report.points.scores),
            unanswered: tally.unanswered,
            trust: tally.trust,
            input_tokens: tally.input_tokens,
            output_tokens: tally.output_tokens,
            micro_usd: (tally.unpriced == 0).then_some(tally.micro_usd),
            ..report
        }
    }

    /// Returns whether a target is missed. A report without scores misses all of them.
    pub fn is_missed(&self) -> bool {
        self.targets.iter().any(|target| target.is_met != Some(true))
    }

    /// Returns a self-contained HTML page: the table, the figures, and plots of latency, attempts, expected scores, and
    /// reasons of retries. `title` is escaped.
    pub fn html(&self, title: &str) -> String {
        html::page(self, title)
    }
}

/// Returns the specification's "Success Metrics".
///
/// `delays` are the durations of scores; one of `u64::MAX` had no answer.
fn targets(rates: &Rates, delays: Option<Spread>) -> Vec<Target> {
    let share = |metric: &str, sign: char, percent: f64, n: u64, measured: Option<f64>| Target {
        metric: metric.to_owned(),
        target: format!("{sign} {percent} %"),
        measured,
        measured_text: measured.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0)),
        n,
        is_met: measured.map(|share| {
            let measured = share * 100.0;
            if sign == '>' { measured > percent } else { measured < percent }
        }),
    };
    let is_answered = |spread: &Spread| spread.p95 < u64::MAX;
    let p95 = delays.filter(is_answered).map(|spread| spread.seconds()[2]);
    let without = if delays.is_some() { "no answer" } else { "-" };
    vec![
        share("schema compliance without retries", '>', 95.0, rates.scores, rates.schema_compliance),
        share("scores with a retry or no answer", '<', 5.0, rates.scores, rates.retry),
        share("scores that no model gave", '<', 1.0, rates.scores, rates.fallback),
        share("cross-checks that pass", '>', 98.0, rates.cross_checks, rates.cross_check_pass),
        Target {
            metric: "latency, p95".to_owned(),
            target: "< 10 s".to_owned(),
            measured: p95,
            measured_text: p95.map_or_else(|| without.to_owned(), |seconds| format!("{seconds:.2} s")),
            n: rates.scores,
            is_met: delays.map(|_| p95.is_some_and(|seconds| seconds < 10.0)),
        },
    ]
}

impl Target {
    /// Returns whether the target is met, in a word; nothing without a measured value.
    fn verdict(&self) -> &'static str {
        match self.is_met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "",
        }
    }
}

impl Spread {
    /// Returns the distribution of sorted values.
    fn of(sorted: &[u64]) -> Option<Self> {
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let rank = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
        Some(Self { min, p50: rank(50), p95: rank(95), p99: rank(99), max })
    }

    /// Returns the values in seconds, in ascending order.
    fn seconds(self) -> [f64; 5] {
        [self.min, self.p50, self.p95, self.p99, self.max].map(|milliseconds| milliseconds as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_there_are() {
        let values: Vec<u64> = (1..=100).collect();
        let spread = Spread::of(&values).unwrap();
        assert_eq!((spread.min, spread.p50, spread.p95, spread.p99, spread.max), (1, 50, 95, 99, 100));
        let one = Spread::of(&[7]).unwrap();
        assert_eq!((one.min, one.p50, one.p99), (7, 7, 7));
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn a_target_that_is_just_met_is_not() {
        let rates = Rates {
            scores: 100,
            schema_compliance: Some(0.95),
            retry: Some(0.05),
            fallback: Some(0.009),
            cross_check_pass: None,
            ..Rates::default()
        };
        let met: Vec<Option<bool>> = targets(&rates, None).iter().map(|target| target.is_met).collect();
        assert_eq!(met, [Some(false), Some(false), Some(true), None, None]);
    }
}
