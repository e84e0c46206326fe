//! Metrics of the service. Every label has few values: clients cannot make up more.

use std::time::Duration;

use formwork_core::{CallRecord, CallResult};
use formwork_ledger::Health;
use formwork_serve::Queue;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The upper bounds of the histogram of durations, in seconds.
const BOUNDS: [f64; 10] = [0.005, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 120.0, 300.0];

/// Counters with one label, whose values are fixed.
type Counters = Family<[(&'static str, &'static str); 1], Counter>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    protocol: &'static str,
    method: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Protocol {
    protocol: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Called {
    target: String,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Tokens {
    target: String,
    kind: &'static str,
}

/// The metrics of the service.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: Family<Request, Counter>,
    durations: Family<Protocol, Histogram, fn() -> Histogram>,
    calls: Family<Called, Counter>,
    tokens: Family<Tokens, Counter>,
    contracts: Counters,
    events: Counters,
    streams: Gauge,
    registry: Registry,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut metrics = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
            calls: Family::default(),
            tokens: Family::default(),
            contracts: Family::default(),
            events: Family::default(),
            streams: Gauge::default(),
            registry: Registry::default(),
        };
        let registry = &mut metrics.registry;
        // The registry adds `_total` to the names of counters, and a full stop to help texts.
        let requests = metrics.requests.clone();
        registry.register("formwork_requests", "Responses by protocol, method and status", requests);
        let durations = metrics.durations.clone();
        registry.register("formwork_request_seconds", "Time until the head of the response", durations);
        let calls = metrics.calls.clone();
        registry.register("formwork_calls", "Calls of models by target and result", calls);
        registry.register("formwork_tokens", "Tokens by target and kind", metrics.tokens.clone());
        let contracts = metrics.contracts.clone();
        registry.register("formwork_contracts", "Look-ups of compiled contracts", contracts);
        let help = "Requests that were refused or broken off, by cause";
        registry.register("formwork_events", help, metrics.events.clone());
        registry.register("formwork_open_streams", "Streams that are open", metrics.streams.clone());
        metrics
    }

    /// Counts a response.
    pub(crate) fn request(&self, protocol: &'static str, method: &'static str, status: u16, took: Duration) {
        self.requests.get_or_create(&Request { protocol, method, status }).inc();
        self.durations.get_or_create(&Protocol { protocol }).observe(took.as_secs_f64());
    }

    /// Counts the calls of a run, by target and result.
    pub(crate) fn calls(&self, calls: &[CallRecord]) {
        for call in calls {
            let result = match &call.verdict {
                CallResult::Accepted => "accepted",
                CallResult::Cancelled => "cancelled",
                CallResult::Probe => "probe",
                CallResult::Failed { failure } => failure.class(),
            };
            self.calls.get_or_create(&Called { target: call.target.clone(), result }).inc();
            for (kind, tokens) in [("input", call.usage.input_tokens), ("output", call.usage.output_tokens)] {
                self.tokens.get_or_create(&Tokens { target: call.target.clone(), kind }).inc_by(tokens);
            }
        }
    }

    /// Counts a look at the compiled contracts.
    pub(crate) fn contract(&self, was_compiled: bool) {
        let result = if was_compiled { "hit" } else { "miss" };
        self.contracts.get_or_create(&[("result", result)]).inc();
    }

    /// Counts an event of a fixed name, such as a request that was refused because too many wait.
    pub(crate) fn event(&self, name: &'static str) {
        self.events.get_or_create(&[("event", name)]).inc();
    }

    /// Counts open streams up or down.
    pub(crate) fn stream(&self, by: i64) {
        self.streams.inc_by(by);
    }

    /// Returns all metrics in the text format of OpenMetrics.
    pub(crate) fn render(&self, queue: &Queue, ledger: Option<&Health>) -> String {
        let mut now = Registry::default();
        let working = ConstGauge::new(queue.working());
        now.register("formwork_requests_in_progress", "Requests that are worked on", working);
        let waiting = ConstGauge::new(queue.waiting());
        now.register("formwork_requests_waiting", "Requests that wait for their turn", waiting);
        if let Some(health) = ledger {
            for (name, help, value) in [
                ("formwork_ledger_recorded", "Runs that were written", health.recorded),
                (
                    "formwork_ledger_shed_bodies",
                    "Runs that were written without their texts",
                    health.shed_bodies,
                ),
                ("formwork_ledger_shed_runs", "Runs that were lost", health.shed_runs),
                ("formwork_ledger_errors", "Writes that failed", health.errors),
            ] {
                now.register(name, help, ConstCounter::new(value));
            }
        }
        let mut page = String::new();
        // Writing to a `String` cannot fail.
        _ = text::encode_registry(&mut page, &self.registry).and_then(|()| text::encode(&mut page, &now));
        page
    }
}
