//! The report on a ledger: the success metrics of the oracle's document with what was measured, and plots of it.

mod fit;
mod html;
mod plot;
mod svg;
mod table;

use std::collections::BTreeMap;

pub use fit::{Expected, Fit};
use schemars::JsonSchema;
use serde::Serialize;

use crate::metrics::{Rates, Tally};
use crate::wallet::Band;
use crate::{ScoreEvent, ScoreSource};

/// A ledger in figures. `Display` is the table for a terminal, [`Report::html`] a page, and it serialises as JSON.
///
/// ```
/// use formwork_oracle::report::Report;
///
/// let report = Report::of([]);
/// assert_eq!((report.scores, report.targets.len()), (0, 5));
/// assert!(report.targets.iter().all(|target| target.is_met.is_none()), "nothing is met by nothing");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// How many scores there are, those that failed included.
    pub scores: u64,
    /// The document's success metrics, in its order.
    pub targets: Vec<Target>,
    /// The shares behind them.
    pub rates: Rates,
    /// How long scores took, in milliseconds; `None` if there are none.
    pub latency_ms: Option<Spread>,
    /// How many scores took how many attempts; 0 are those without any answer of a model.
    pub attempts: BTreeMap<u32, u64>,
    /// Why answers were not accepted, the most frequent first.
    pub reasons: Vec<Reason>,
    /// Calls that brought no answer, by kind.
    pub faults: BTreeMap<String, u64>,
    /// Scores compared with what a person would give; `None` if no wallet says.
    pub expected: Option<Expected>,
    /// How many scores a model gave.
    pub model_scores: u64,
    /// How many of them have a reasoning that is copied word for word from an example.
    pub copied_reasonings: u64,
    /// How many of them list a risk or a strength without any text.
    pub blank_entries: u64,
    /// How many scores each model gave, or was asked last for.
    pub models: BTreeMap<String, u64>,
    /// How many scores each version of the prompt gave: name and the hash's beginning.
    pub prompts: BTreeMap<String, u64>,
    /// Tokens of all prompts.
    pub input_tokens: u64,
    /// Tokens of all answers.
    pub output_tokens: u64,
    /// The cost of everything, in millionths of a US dollar; `null` if the price of a call is not known.
    pub micro_usd: Option<u64>,
    /// The points of the plots.
    #[serde(skip)]
    points: Points,
}

/// One of the document's success metrics.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Target {
    /// The name of the metric.
    pub metric: String,
    /// The document's demand, in words.
    pub target: String,
    /// The measured value, a share of 1 or seconds; `None` of nothing.
    pub measured: Option<f64>,
    /// The same in words.
    pub shown: String,
    /// Of how many scores or answers.
    pub n: u64,
    /// Whether it is reached; `None` of nothing.
    pub is_met: Option<bool>,
}

/// How values are spread: percentiles by nearest rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Spread {
    /// The least.
    pub min: u64,
    /// Half of them are at most so much.
    pub p50: u64,
    /// 95 of a hundred are at most so much.
    pub p95: u64,
    /// 99 of a hundred are at most so much.
    pub p99: u64,
    /// The most.
    pub max: u64,
}

/// Why answers were not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Reason {
    /// The class of the failure.
    pub class: String,
    /// The place in the answer.
    pub path: String,
    /// How many violations.
    pub count: u64,
}

/// The points of plots.
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
    /// Counts events, in any order.
    pub fn of(events: impl IntoIterator<Item = ScoreEvent>) -> Self {
        let (mut tally, mut points) = (Tally::default(), Points::default());
        let (mut attempts, mut models, mut prompts) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (mut model_scores, mut copied_reasonings, mut blank_entries) = (0, 0, 0);
        for event in events {
            tally.add(&event);
            if let (Some(ScoreSource::Ai), Some(answer)) = (event.source, &event.answer) {
                let mut entries = answer.risk_factors.iter().chain(&answer.strengths);
                model_scores += 1;
                copied_reasonings += u64::from(event.copied.is_some());
                blank_entries += u64::from(entries.any(|entry| entry.trim().is_empty()));
            }
            points.latencies_ms.push(event.latency_ms);
            let last = event.answers().map(|attempt| attempt.attempt).max().unwrap_or(0);
            *attempts.entry(last).or_default() += 1;
            *models.entry(event.model).or_default() += 1;
            let hash = event.prompt.hash.get(..12).unwrap_or(&event.prompt.hash);
            *prompts.entry(format!("{} {hash}", event.prompt.name)).or_default() += 1;
            if let (Some(expected), Some(answer), Some(source)) = (event.expected, event.answer, event.source)
            {
                points.scores.push(Point { expected, score: answer.score, counted: event.counted, source });
            }
        }
        points.latencies_ms.sort_unstable();
        let latency_ms = Spread::of(&points.latencies_ms);
        let rates = tally.rates();
        let mut reasons: Vec<Reason> = tally
            .reasons
            .iter()
            .map(|((class, path), count)| Reason {
                class: (*class).to_owned(),
                path: (*path).to_owned(),
                count: *count,
            })
            .collect();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
        Self {
            scores: tally.scores,
            targets: targets(&rates, latency_ms),
            rates,
            latency_ms,
            attempts,
            reasons,
            faults: tally.faults,
            expected: Expected::of(&points.scores),
            model_scores,
            copied_reasonings,
            blank_entries,
            models,
            prompts,
            input_tokens: tally.input_tokens,
            output_tokens: tally.output_tokens,
            micro_usd: (tally.unpriced == 0).then_some(tally.micro_usd),
            points,
        }
    }

    /// A page that needs nothing else: the table, the figures, and plots of latency, attempts, scores against what was
    /// expected, and reasons of retries. `title` is shown as text.
    pub fn html(&self, title: &str) -> String {
        html::page(self, title)
    }
}

/// The document's "Success Metrics".
fn targets(rates: &Rates, latency_ms: Option<Spread>) -> Vec<Target> {
    let share = |metric: &str, target: &str, n: u64, measured: Option<f64>, is_met: fn(f64) -> bool| Target {
        metric: metric.to_owned(),
        target: target.to_owned(),
        measured,
        shown: measured.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0)),
        n,
        is_met: measured.map(is_met),
    };
    let p95 = latency_ms.map(|spread| spread.p95 as f64 / 1000.0);
    vec![
        share("schema compliance without retries", "> 95 %", rates.scores, rates.schema_compliance, |it| {
            it > 0.95
        }),
        share("scores that needed a retry", "< 5 %", rates.scores, rates.retry, |it| it < 0.05),
        share("scores by the fallback", "< 1 %", rates.scores, rates.fallback, |it| it < 0.01),
        share(
            "answers that pass the cross-check",
            "> 98 %",
            rates.cross_checks,
            rates.cross_check_pass,
            |it| it > 0.98,
        ),
        Target {
            metric: "latency, p95".to_owned(),
            target: "< 10 s".to_owned(),
            measured: p95,
            shown: p95.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.2} s")),
            n: rates.scores,
            is_met: p95.map(|seconds| seconds < 10.0),
        },
    ]
}

impl Spread {
    /// Of values in order.
    fn of(sorted: &[u64]) -> Option<Self> {
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let rank = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1];
        Some(Self { min, p50: rank(50), p95: rank(95), p99: rank(99), max })
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
