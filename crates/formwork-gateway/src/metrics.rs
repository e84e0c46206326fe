//! Counters in the text format of Prometheus. Every label has few values: clients cannot make up more.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use formwork_core::{Attempt, Verdict};
use formwork_ledger::Health;

/// The upper bounds of the histogram of durations, in seconds.
const BOUNDS: [f64; 10] = [0.005, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 120.0, 300.0];

/// The counters of the service.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<Counts>);

/// Counters by target and by a second label.
#[derive(Debug, Default)]
struct ByTarget(BTreeMap<String, BTreeMap<&'static str, u64>>);

impl ByTarget {
    fn add(&mut self, target: &str, label: &'static str, number: u64) {
        if !self.0.contains_key(target) {
            self.0.insert(target.to_owned(), BTreeMap::new());
        }
        if let Some(counts) = self.0.get_mut(target) {
            *counts.entry(label).or_default() += number;
        }
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &'static str, u64)> {
        self.0.iter().flat_map(|(target, counts)| {
            counts.iter().map(|(label, count)| (target.as_str(), *label, *count))
        })
    }
}

#[derive(Debug, Default)]
struct Counts {
    requests: BTreeMap<(&'static str, &'static str, u16), u64>,
    durations: BTreeMap<&'static str, ([u64; BOUNDS.len()], u64, f64)>,
    attempts: ByTarget,
    tokens: ByTarget,
    contracts: BTreeMap<&'static str, u64>,
    events: BTreeMap<&'static str, u64>,
    streams: i64,
}

impl Metrics {
    fn change(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Counts a response.
    pub(crate) fn request(&self, protocol: &'static str, method: &'static str, status: u16, took: Duration) {
        self.change(|counts| {
            *counts.requests.entry((protocol, method, status)).or_default() += 1;
            let (buckets, count, sum) = counts.durations.entry(protocol).or_default();
            let seconds = took.as_secs_f64();
            BOUNDS
                .iter()
                .zip(buckets)
                .filter(|(bound, _)| seconds <= **bound)
                .for_each(|(_, bucket)| *bucket += 1);
            (*count, *sum) = (*count + 1, *sum + seconds);
        });
    }

    /// Counts the calls of a run, by target and result.
    pub(crate) fn attempts(&self, attempts: &[Attempt]) {
        self.change(|counts| {
            for attempt in attempts {
                let result = match &attempt.verdict {
                    Verdict::Accepted => "accepted",
                    Verdict::Cancelled => "cancelled",
                    Verdict::Probe => "probe",
                    Verdict::Failed { failure } => failure.class(),
                };
                counts.attempts.add(&attempt.target, result, 1);
                counts.tokens.add(&attempt.target, "input", attempt.usage.input_tokens);
                counts.tokens.add(&attempt.target, "output", attempt.usage.output_tokens);
            }
        });
    }

    /// Counts a look at the compiled contracts.
    pub(crate) fn contract(&self, was_compiled: bool) {
        self.change(|counts| {
            *counts.contracts.entry(if was_compiled { "hit" } else { "miss" }).or_default() += 1
        });
    }

    /// Counts an event of a fixed name, such as a request that was refused because too many wait.
    pub(crate) fn event(&self, name: &'static str) {
        self.change(|counts| *counts.events.entry(name).or_default() += 1);
    }

    /// Counts open streams up or down.
    pub(crate) fn stream(&self, by: i64) {
        self.change(|counts| counts.streams += by);
    }

    /// Returns all of them in the text format of Prometheus.
    pub(crate) fn render(&self, waiting: usize, working: usize, ledger: Option<&Health>) -> String {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = String::new();
        let head = |out: &mut String, name: &str, kind: &str, help: &str| {
            _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        };
        head(&mut out, "formwork_requests_total", "counter", "Responses by protocol, method and status.");
        for ((protocol, method, status), count) in &counts.requests {
            _ = writeln!(
                out,
                "formwork_requests_total{{protocol=\"{protocol}\",method=\"{method}\",status=\"{status}\"}} {count}"
            );
        }
        head(&mut out, "formwork_request_seconds", "histogram", "Time until the head of the response.");
        for (protocol, (buckets, count, sum)) in &counts.durations {
            for (bound, bucket) in BOUNDS.iter().zip(buckets) {
                _ = writeln!(
                    out,
                    "formwork_request_seconds_bucket{{protocol=\"{protocol}\",le=\"{bound}\"}} {bucket}"
                );
            }
            _ = writeln!(
                out,
                "formwork_request_seconds_bucket{{protocol=\"{protocol}\",le=\"+Inf\"}} {count}"
            );
            _ = writeln!(out, "formwork_request_seconds_sum{{protocol=\"{protocol}\"}} {sum}");
            _ = writeln!(out, "formwork_request_seconds_count{{protocol=\"{protocol}\"}} {count}");
        }
        head(&mut out, "formwork_attempts_total", "counter", "Calls of models by target and result.");
        for (target, result, count) in counts.attempts.iter() {
            let target = label(target);
            _ = writeln!(out, "formwork_attempts_total{{target=\"{target}\",result=\"{result}\"}} {count}");
        }
        head(&mut out, "formwork_tokens_total", "counter", "Tokens by target and kind.");
        for (target, kind, count) in counts.tokens.iter() {
            _ = writeln!(
                out,
                "formwork_tokens_total{{target=\"{}\",kind=\"{kind}\"}} {count}",
                label(target)
            );
        }
        head(&mut out, "formwork_contracts_total", "counter", "Look-ups of compiled contracts.");
        for (result, count) in &counts.contracts {
            _ = writeln!(out, "formwork_contracts_total{{result=\"{result}\"}} {count}");
        }
        head(
            &mut out,
            "formwork_events_total",
            "counter",
            "Requests that were refused or broken off, by cause.",
        );
        for (event, count) in &counts.events {
            _ = writeln!(out, "formwork_events_total{{event=\"{event}\"}} {count}");
        }
        head(&mut out, "formwork_open_streams", "gauge", "Streams that are open.");
        _ = writeln!(out, "formwork_open_streams {}", counts.streams);
        head(&mut out, "formwork_requests_in_progress", "gauge", "Requests that are worked on.");
        _ = writeln!(out, "formwork_requests_in_progress {working}");
        head(&mut out, "formwork_requests_waiting", "gauge", "Requests that wait for their turn.");
        _ = writeln!(out, "formwork_requests_waiting {waiting}");
        if let Some(health) = ledger {
            for (name, help, value) in [
                ("formwork_ledger_recorded_total", "Runs that were written.", health.recorded),
                (
                    "formwork_ledger_shed_bodies_total",
                    "Runs that were written without their texts.",
                    health.shed_bodies,
                ),
                ("formwork_ledger_shed_runs_total", "Runs that were lost.", health.shed_runs),
                ("formwork_ledger_errors_total", "Writes that failed.", health.errors),
            ] {
                head(&mut out, name, "counter", help);
                _ = writeln!(out, "{name} {value}");
            }
        }
        out
    }
}

fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
