//! Counts scores: [`Metrics`] for Prometheus, [`Tally`] for programs that have the events.
//!
//! Names and units:
//!
//! | metric | labels | meaning |
//! |---|---|---|
//! | `formwork_oracle_scores_total` | `source`: `ai`, `fallback`, `none` | scores by source |
//! | `formwork_oracle_first_try_compliant_total` | | scores whose first answer was valid without an edit |
//! | `formwork_oracle_retried_total` | | scores with more than one answer because of its content |
//! | `formwork_oracle_validation_failures_total` | | rejected answers, including the last one before a fallback |
//! | `formwork_oracle_rejections_total` | `class`, `path` | violations of rejected answers |
//! | `formwork_oracle_faults_total` | `kind` | failed calls |
//! | `formwork_oracle_cross_checks_total` | `result`: `passed`, `failed` | answers that reached the cross-check |
//! | `formwork_oracle_attempts` | | histogram: attempts per score |
//! | `formwork_oracle_duration_seconds` | `source` | histogram: duration of a score, including backoff |
//! | `formwork_oracle_cost_usd_total` | | cost of all calls |
//! | `formwork_oracle_{schema_compliance,retry,fallback,cross_check_pass}_ratio` | | the same as ratios; absent without
//! scores |
//! | `gen_ai_client_operation_duration_seconds` | OpenTelemetry's | histogram: a call |
//! | `gen_ai_client_token_usage` | OpenTelemetry's | histogram: tokens of a call, by `gen_ai_token_type` |
//! | `http_server_request_duration_seconds` | OpenTelemetry's | histogram: a request to the service |
//!
//! The last three are `gen_ai.client.operation.duration`, `gen_ai.client.token.usage` and
//! `http.server.request.duration` of OpenTelemetry's semantic conventions, with its buckets, named by its rules for
//! Prometheus.
//!
//! The text format is OpenMetrics 1.0, written by `prometheus-client`.

mod registry;
mod tally;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use registry::Measured;
pub use tally::{Rates, Tally};

use crate::{ScoreEvent, ScoreObserver};

/// The media type of [`Metrics::render`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counts scores; clones share the counts. Metrics are an observer of an [`Oracle`](crate::Oracle).
///
/// ```
/// use formwork_oracle::metrics::Metrics;
///
/// let metrics = Metrics::new();
/// assert!(metrics.render().contains("# TYPE formwork_oracle_scores counter"));
/// assert_eq!(metrics.rates().scores, 0);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Metrics(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    tally: Mutex<Tally>,
    measured: Measured,
}

impl Metrics {
    /// Creates metrics with all counts at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns all metrics in the text format of OpenMetrics, which Prometheus reads.
    pub fn render(&self) -> String {
        let tally = self.tally().clone();
        self.0.measured.render(&tally)
    }

    /// Returns the ratios of the specification's success metrics.
    pub fn rates(&self) -> Rates {
        self.tally().rates()
    }

    /// Counts a score.
    pub fn count(&self, event: &ScoreEvent) {
        self.tally().add(event);
        self.0.measured.score(event);
    }

    /// Counts a request to the service, with the status of its response, for example `200`. `route` is the matched
    /// route, never the path of the request.
    pub fn request(&self, method: &str, route: &str, status: &str, took: Duration) {
        self.0.measured.request(method, route, status, took);
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.0.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScoreObserver for Metrics {
    fn scored(&self, event: &ScoreEvent) {
        self.count(event);
    }
}
