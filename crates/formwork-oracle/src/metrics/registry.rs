use std::time::Duration;

use formwork_core::{Attempt, Failure};

use super::Tally;
use super::histogram::{ATTEMPTS, CALL_SECONDS, Histogram, REQUEST_SECONDS, SCORE_SECONDS, TOKENS};
use super::text::{Labels, Page};
use crate::{ScoreEvent, ScoreSource};

/// The maximum number of series of a family: servers report names of models, and must not grow the page without limit.
const MAX_SERIES: usize = 100;

/// The label value of everything beyond [`MAX_SERIES`].
const OTHER: &str = "other";

/// All counters and histograms.
#[derive(Debug)]
pub(super) struct Registry {
    pub(super) tally: Tally,
    attempts: Histogram,
    scores: Series<1>,
    calls: Series<3>,
    tokens: Series<3>,
    requests: Series<3>,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            tally: Tally::default(),
            attempts: Histogram::new(ATTEMPTS),
            scores: Series::new(SCORE_SECONDS),
            calls: Series::new(CALL_SECONDS),
            tokens: Series::new(TOKENS),
            requests: Series::new(REQUEST_SECONDS),
        }
    }
}

impl Registry {
    pub(super) fn score(&mut self, event: &ScoreEvent) {
        self.tally.add(event);
        let attempts = event.answers().map(|attempt| attempt.attempt).max().unwrap_or(0);
        self.attempts.add(f64::from(attempts));
        let source = event.source.map_or("none", ScoreSource::as_str);
        self.scores.add([source], Duration::from_millis(event.latency_ms).as_secs_f64());
        for attempt in &event.attempts {
            let took = attempt.ended.since(attempt.started).as_secs_f64();
            self.calls.add([&attempt.target, &event.model, error_type(attempt)], took);
            for (kind, tokens) in
                [("input", attempt.usage.input_tokens), ("output", attempt.usage.output_tokens)]
            {
                // The tokens of a call without an answer are unknown.
                if tokens > 0 {
                    self.tokens.add([&attempt.target, &event.model, kind], tokens as f64);
                }
            }
        }
    }

    pub(super) fn request(&mut self, method: &str, route: &str, status: &str, took: Duration) {
        self.requests.add([method, route, status], took.as_secs_f64());
    }

    pub(super) fn render(&self) -> String {
        let mut page = Page::default();
        self.counters(&mut page);
        self.ratios(&mut page);
        let name = "formwork_oracle_attempts";
        page.family(name, "histogram", "Attempts of a score.");
        page.histogram(name, &[], &self.attempts);
        let name = "formwork_oracle_duration_seconds";
        page.family(name, "histogram", "Time of a score, waits between calls included.");
        self.scores.write(&mut page, name, ["source"], &[]);
        let name = "gen_ai_client_operation_duration_seconds";
        page.family(name, "histogram", "GenAI operation duration.");
        let labels = ["gen_ai_provider_name", "gen_ai_response_model", "error_type"];
        self.calls.write(&mut page, name, labels, OPERATION);
        let name = "gen_ai_client_token_usage";
        page.family(name, "histogram", "Number of input and output tokens used.");
        let labels = ["gen_ai_provider_name", "gen_ai_response_model", "gen_ai_token_type"];
        self.tokens.write(&mut page, name, labels, OPERATION);
        let name = "http_server_request_duration_seconds";
        page.family(name, "histogram", "Duration of HTTP server requests.");
        let labels = ["http_request_method", "http_route", "http_response_status_code"];
        self.requests.write(&mut page, name, labels, &[]);
        page.finish()
    }

    fn counters(&self, page: &mut Page) {
        let Tally { scores, ai, fallback, .. } = self.tally;
        let name = "formwork_oracle_scores_total";
        page.family(name, "counter", "Scores, by where they come from.");
        for (source, count) in [("ai", ai), ("fallback", fallback), ("none", scores - ai - fallback)] {
            page.sample(name, &[("source", source)], count as f64);
        }
        for (name, help, count) in [
            (
                "formwork_oracle_first_try_compliant_total",
                "Scores whose first answer was valid, without an edit.",
                self.tally.compliant,
            ),
            (
                "formwork_oracle_retried_total",
                "Scores whose model had to be asked again for its content.",
                self.tally.retried,
            ),
            (
                "formwork_oracle_validation_failures_total",
                "Answers that were not accepted.",
                self.tally.validation_failures,
            ),
        ] {
            page.family(name, "counter", help);
            page.sample(name, &[], count as f64);
        }
        let name = "formwork_oracle_rejections_total";
        page.family(name, "counter", "Violations of answers that were not accepted.");
        for ((class, path), count) in &self.tally.reasons {
            page.sample(name, &[("class", class), ("path", path)], *count as f64);
        }
        let name = "formwork_oracle_faults_total";
        page.family(name, "counter", "Calls that brought no answer.");
        for (kind, count) in &self.tally.faults {
            page.sample(name, &[("kind", kind)], *count as f64);
        }
        let name = "formwork_oracle_cross_checks_total";
        page.family(name, "counter", "Answers that came as far as the cross-check.");
        page.sample(name, &[("result", "passed")], self.tally.cross_checks.passed as f64);
        page.sample(name, &[("result", "failed")], self.tally.cross_checks.failed as f64);
        let name = "formwork_oracle_cost_usd_total";
        page.family(name, "counter", "What all calls cost whose price is known.");
        page.sample(name, &[], self.tally.micro_usd as f64 / 1e6);
    }

    fn ratios(&self, page: &mut Page) {
        let rates = self.tally.rates();
        for (what, help, ratio) in [
            ("schema_compliance", "Share of scores whose first answer was valid.", rates.schema_compliance),
            ("retry", "Share of scores whose model had to be asked again.", rates.retry),
            ("fallback", "Share of scores that the fallback gave.", rates.fallback),
            ("cross_check_pass", "Share of answers that passed the cross-check.", rates.cross_check_pass),
        ] {
            // A ratio without a denominator is undefined, so it is left out.
            if let Some(ratio) = ratio {
                let name = format!("formwork_oracle_{what}_ratio");
                page.family(&name, "gauge", help);
                page.sample(&name, &[], ratio);
            }
        }
    }
}

const OPERATION: &Labels<'_> = &[("gen_ai_operation_name", "chat")];

/// Returns OpenTelemetry's `error.type`; empty without an error, which equals an absent label in Prometheus.
fn error_type(attempt: &Attempt) -> &'static str {
    match attempt.verdict.failure() {
        Some(Failure::Fault(_)) => "fault",
        _ => "",
    }
}

/// Histograms of one family by the values of their labels, in the order of their first appearance. There are few, so a
/// linear search needs no allocated key.
#[derive(Debug)]
struct Series<const N: usize> {
    bounds: &'static [f64],
    of: Vec<([String; N], Histogram)>,
}

impl<const N: usize> Series<N> {
    const fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, of: Vec::new() }
    }

    fn add(&mut self, labels: [&str; N], value: f64) {
        match self.of.iter().position(|(other, _)| *other == labels) {
            Some(place) => self.of[place].1.add(value),
            None if self.of.len() >= MAX_SERIES && labels != [OTHER; N] => self.add([OTHER; N], value),
            None => {
                let mut histogram = Histogram::new(self.bounds);
                histogram.add(value);
                self.of.push((labels.map(str::to_owned), histogram));
            }
        }
    }

    fn write(&self, page: &mut Page, name: &str, labels: [&str; N], also: &Labels<'_>) {
        for (values, histogram) in &self.of {
            let own = labels.iter().copied().zip(values.iter().map(String::as_str));
            let all: Vec<(&str, &str)> = also.iter().copied().chain(own).collect();
            page.histogram(name, &all, histogram);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_calls_itself_cannot_fill_the_memory() {
        let mut series = Series::new(TOKENS);
        for number in 0..1_000 {
            series.add([&number.to_string()], 1.0);
        }
        assert_eq!(series.of.len(), MAX_SERIES + 1);
        assert_eq!(series.of[MAX_SERIES].1.count(), 900);
    }
}
