use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use formwork_core::{CallRecord, Failure};
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::Tally;
use crate::{ScoreEvent, ScoreSource};

/// The maximum number of series of a family: servers report names of models, and must not grow the page without limit.
const MAX_SERIES: usize = 100;

/// The label value of everything beyond [`MAX_SERIES`].
const OTHER: &str = "other";

/// Bounds for attempts of a score, whose default maximum is three.
const ATTEMPTS: [f64; 5] = [1.0, 2.0, 3.0, 4.0, 6.0];

/// Bounds for seconds of a score, close to each other around the specification's 4 and 10.
const SCORE_SECONDS: [f64; 15] =
    [0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 15.0, 30.0, 60.0, 120.0];

/// The bounds that OpenTelemetry recommends for `gen_ai.client.operation.duration`.
const CALL_SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// The bounds that OpenTelemetry recommends for `gen_ai.client.token.usage`.
const TOKENS: [f64; 14] = [
    1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0,
    16777216.0, 67108864.0,
];

/// The bounds that OpenTelemetry recommends for `http.server.request.duration`.
const REQUEST_SECONDS: [f64; 14] =
    [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

/// A family of histograms: names and values of its labels.
type Histograms<const N: usize> = Family<[(&'static str, String); N], Histogram, fn() -> Histogram>;

/// A family of histograms with a maximum number of series.
#[derive(Debug)]
struct Series<const N: usize> {
    family: Histograms<N>,
    /// The number of series, and of values that found no place.
    count: AtomicUsize,
}

impl<const N: usize> Series<N> {
    fn new(histogram: fn() -> Histogram) -> Self {
        Self { family: Family::new_with_constructor(histogram), count: AtomicUsize::new(0) }
    }

    /// Adds a value to the series with these labels.
    fn observe(&self, labels: [(&'static str, &str); N], value: f64) {
        let mut labels = labels.map(|(name, value)| (name, value.to_owned()));
        let is_new = self.family.get(&labels).is_none();
        if is_new && self.count.fetch_add(1, Ordering::Relaxed) >= MAX_SERIES {
            labels = labels.map(|(name, _)| (name, OTHER.to_owned()));
        }
        self.family.get_or_create(&labels).observe(value);
    }
}

/// The histograms. The counters are derived from a [`Tally`] when the page is written.
#[derive(Debug)]
pub(super) struct Measured {
    attempts: Histogram,
    scores: Series<1>,
    calls: Series<4>,
    tokens: Series<4>,
    requests: Series<3>,
    registry: Registry,
}

impl Default for Measured {
    fn default() -> Self {
        let mut all = Self {
            attempts: Histogram::new(ATTEMPTS),
            scores: Series::new(|| Histogram::new(SCORE_SECONDS)),
            calls: Series::new(|| Histogram::new(CALL_SECONDS)),
            tokens: Series::new(|| Histogram::new(TOKENS)),
            requests: Series::new(|| Histogram::new(REQUEST_SECONDS)),
            registry: Registry::default(),
        };
        let registry = &mut all.registry;
        // The registry adds `_total` to the names of counters, and a full stop to help texts.
        registry.register("formwork_oracle_attempts", "Attempts of a score", all.attempts.clone());
        let help = "Time of a score, waits between calls included";
        registry.register("formwork_oracle_duration_seconds", help, all.scores.family.clone());
        let help = "GenAI operation duration";
        registry.register("gen_ai_client_operation_duration_seconds", help, all.calls.family.clone());
        let help = "Number of input and output tokens used";
        registry.register("gen_ai_client_token_usage", help, all.tokens.family.clone());
        let help = "Duration of HTTP server requests";
        registry.register("http_server_request_duration_seconds", help, all.requests.family.clone());
        all
    }
}

impl Measured {
    pub(super) fn score(&self, event: &ScoreEvent) {
        let attempts = event.answers().map(|call| call.attempt).max().unwrap_or(0);
        self.attempts.observe(f64::from(attempts));
        let source = event.source.map_or("none", ScoreSource::as_str);
        self.scores.observe([("source", source)], Duration::from_millis(event.latency_ms).as_secs_f64());
        for call in &event.calls {
            let labels = |last| {
                [
                    ("gen_ai_operation_name", "chat"),
                    ("gen_ai_provider_name", call.target.as_str()),
                    ("gen_ai_response_model", event.model.as_str()),
                    last,
                ]
            };
            let took = call.ended.since(call.started).as_secs_f64();
            self.calls.observe(labels(("error_type", error_type(call))), took);
            for (kind, tokens) in [("input", call.usage.input_tokens), ("output", call.usage.output_tokens)] {
                // The tokens of a call without an answer are unknown.
                if tokens > 0 {
                    self.tokens.observe(labels(("gen_ai_token_type", kind)), tokens as f64);
                }
            }
        }
    }

    pub(super) fn request(&self, method: &str, route: &str, status: &str, took: Duration) {
        let labels =
            [("http_request_method", method), ("http_route", route), ("http_response_status_code", status)];
        self.requests.observe(labels, took.as_secs_f64());
    }

    /// Returns the page of all metrics.
    pub(super) fn render(&self, tally: &Tally) -> String {
        let mut page = String::new();
        // Writing to a `String` cannot fail.
        _ = text::encode_registry(&mut page, &counters(tally))
            .and_then(|()| text::encode(&mut page, &self.registry));
        page
    }
}

/// Returns the counters and ratios of a tally.
fn counters(tally: &Tally) -> Registry {
    let Tally { scores, ai, fallback, compliant, retried, validation_failures, .. } = *tally;
    let rates = tally.rates();
    let mut registry = Registry::default();
    let sources = [("ai", ai), ("fallback", fallback), ("none", scores - ai - fallback)];
    let sources = family(sources.map(|(source, count)| ([("source", source)], count)));
    registry.register("formwork_oracle_scores", "Scores, by where they come from", sources);
    for (name, help, count) in [
        (
            "formwork_oracle_first_try_compliant",
            "Scores whose first answer was valid, without an edit",
            compliant,
        ),
        ("formwork_oracle_retried", "Scores whose model had to be asked again for its content", retried),
        ("formwork_oracle_validation_failures", "Answers that were not accepted", validation_failures),
    ] {
        registry.register(name, help, ConstCounter::new(count));
    }
    let reasons =
        tally.reasons.iter().map(|(&(class, path), &count)| ([("class", class), ("path", path)], count));
    registry.register(
        "formwork_oracle_rejections",
        "Violations of answers that were not accepted",
        family(reasons),
    );
    let faults = family(tally.faults.iter().map(|(kind, &count)| ([("kind", kind.clone())], count)));
    registry.register("formwork_oracle_faults", "Calls that brought no answer", faults);
    let checks = [("passed", tally.cross_checks.passed), ("failed", tally.cross_checks.failed)];
    let checks = family(checks.map(|(result, count)| ([("result", result)], count)));
    registry.register("formwork_oracle_cross_checks", "Answers that came as far as the cross-check", checks);
    let cost = ConstCounter::new(tally.micro_usd as f64 / 1e6);
    registry.register("formwork_oracle_cost_usd", "What all calls cost whose price is known", cost);
    for (name, help, ratio) in [
        ("schema_compliance", "Share of scores whose first answer was valid", rates.schema_compliance),
        ("retry", "Share of scores whose model had to be asked again", rates.retry),
        ("fallback", "Share of scores that the fallback gave", rates.fallback),
        (
            "cross_check_pass",
            "Share of cross-checks that passed; a score without a checked answer is a failed one",
            rates.cross_check_pass,
        ),
    ] {
        // A ratio without a denominator is undefined, so it is left out.
        if let Some(ratio) = ratio {
            registry.register(format!("formwork_oracle_{name}_ratio"), help, ConstGauge::new(ratio));
        }
    }
    registry
}

/// Returns a family of counters with these values.
fn family<L: Clone + std::hash::Hash + Eq>(
    samples: impl IntoIterator<Item = (L, u64)>,
) -> Family<L, Counter> {
    let family = Family::default();
    for (labels, count) in samples {
        let counter: Counter = family.get_or_create_owned(&labels);
        counter.inc_by(count);
    }
    family
}

/// Returns OpenTelemetry's `error.type`; empty without an error, which equals an absent label in Prometheus.
fn error_type(call: &CallRecord) -> &'static str {
    match call.verdict.failure() {
        Some(Failure::Fault(_)) => "fault",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_calls_itself_cannot_fill_the_memory() {
        let all = Measured::default();
        for number in 0..1_000 {
            all.scores.observe([("source", &number.to_string())], 1.0);
        }
        let page = all.render(&Tally::default());
        assert_eq!(page.matches("formwork_oracle_duration_seconds_count{").count(), MAX_SERIES + 1);
        assert!(page.contains("formwork_oracle_duration_seconds_count{source=\"other\"} 900\n"), "{page}");
    }

    #[test]
    fn values_of_labels_cannot_end_their_line() {
        let all = Measured::default();
        all.request("1\"} 5\nb_total\\", "/", "200", Duration::ZERO);
        let page = all.render(&Tally::default());
        assert!(
            page.contains("_sum{http_request_method=\"1\\\"} 5\\nb_total\\\\\",http_route=\"/\""),
            "{page}"
        );
    }

    #[test]
    fn a_histogram_is_cumulative_and_a_bound_belongs_to_its_own_bucket() {
        let all = Measured::default();
        for attempts in [0.5, 1.0, 1.5, 2.0, 6.5] {
            all.attempts.observe(attempts);
        }
        let page = all.render(&Tally::default());
        for line in [
            "sum 11.5",
            "count 5",
            "bucket{le=\"1.0\"} 2",
            "bucket{le=\"2.0\"} 4",
            "bucket{le=\"6.0\"} 4",
            "bucket{le=\"+Inf\"} 5",
        ] {
            assert!(page.contains(&format!("formwork_oracle_attempts_{line}\n")), "{line}\n{page}");
        }
    }
}
