//! Metrics of the service. Every label has few values: clients cannot make up more.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use formwork_core::Usage;
use formwork_ledger::{Health, StoredCall};
use formwork_serve::Queue;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The class of calls that succeeded.
const ACCEPTED: &str = "accepted";

/// The upper bounds of the histogram of durations, in seconds.
const BOUNDS: [f64; 10] = [0.005, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 120.0, 300.0];

/// A label whose values are fixed.
type Fixed = [(&'static str, &'static str); 1];

/// Counters with one label, whose values are fixed.
type Counters = Family<Fixed, Counter>;

/// Labels whose values come from the configuration.
type Labels<const COUNT: usize> = [(&'static str, String); COUNT];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    protocol: &'static str,
    method: &'static str,
    status: u16,
}

/// The counters of a target whose calls succeed, found with one look-up.
#[derive(Debug)]
struct OfTarget {
    accepted: Counter,
    /// Input, output, cached and reasoning tokens.
    tokens: [Counter; 4],
}

impl OfTarget {
    fn count(&self, call: &StoredCall) {
        let Usage { input_tokens, output_tokens, cached_tokens, reasoning_tokens, .. } = call.usage;
        let counts = [input_tokens, output_tokens, cached_tokens, reasoning_tokens];
        for (counter, count) in self.tokens.iter().zip(counts) {
            counter.inc_by(count);
        }
        self.accepted.inc_by(u64::from(call.class == ACCEPTED));
    }
}

/// The metrics of the service.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: Family<Request, Counter>,
    durations: Family<Fixed, Histogram, fn() -> Histogram>,
    firsts: Family<Fixed, Histogram, fn() -> Histogram>,
    cost: Family<Labels<1>, Counter<f64, AtomicU64>>,
    /// By target and result.
    calls: Family<Labels<2>, Counter>,
    /// By target and kind.
    tokens: Family<Labels<2>, Counter>,
    contracts: Counters,
    events: Counters,
    streams: Gauge,
    targets: RwLock<HashMap<String, OfTarget>>,
    registry: Registry,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut metrics = Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
            firsts: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
            cost: Family::default(),
            calls: Family::default(),
            tokens: Family::default(),
            contracts: Family::default(),
            events: Family::default(),
            streams: Gauge::default(),
            targets: RwLock::default(),
            registry: Registry::default(),
        };
        let registry = &mut metrics.registry;
        // The registry adds `_total` to the names of counters, and a full stop to help texts.
        let requests = metrics.requests.clone();
        registry.register("formwork_requests", "Responses by protocol, method and status", requests);
        let durations = metrics.durations.clone();
        registry.register("formwork_request_seconds", "Time until the end of the response", durations);
        let firsts = metrics.firsts.clone();
        let help = "Time until the first part of the answer";
        registry.register("formwork_first_part_seconds", help, firsts);
        let help = "Known cost by target, in US dollars";
        registry.register("formwork_cost_usd", help, metrics.cost.clone());
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
    pub(crate) fn request(&self, protocol: &'static str, method: &'static str, status: u16) {
        self.requests.get_or_create(&Request { protocol, method, status }).inc();
    }

    /// Counts the end of a response's body: after the time until its first part, if it had one, and its whole time.
    pub(crate) fn ended(&self, protocol: &'static str, first: Option<Duration>, took: Duration) {
        self.durations.get_or_create(&[("protocol", protocol)]).observe(took.as_secs_f64());
        if let Some(first) = first {
            self.firsts.get_or_create(&[("protocol", protocol)]).observe(first.as_secs_f64());
        }
    }

    /// Counts the calls of a run, by target and result; its tokens by kind, and its cost.
    pub(crate) fn calls(&self, calls: &[StoredCall]) {
        for call in calls {
            let target = &call.target;
            let known = self.targets.read().unwrap_or_else(PoisonError::into_inner);
            match known.get(target) {
                Some(known) => known.count(call),
                None => {
                    drop(known);
                    let known = self.of_target(target);
                    known.count(call);
                    let mut targets = self.targets.write().unwrap_or_else(PoisonError::into_inner);
                    targets.insert(target.clone(), known);
                }
            }
            if call.class != ACCEPTED {
                let labels = [("target", target.clone()), ("result", call.class.to_string())];
                self.calls.get_or_create(&labels).inc();
            }
            if let Some(micro_usd) = call.micro_usd {
                let cost = self.cost.get_or_create(&[("target", target.clone())]);
                cost.inc_by(micro_usd as f64 / 1e6);
            }
        }
    }

    fn of_target(&self, target: &str) -> OfTarget {
        let labels = |name, value: &str| [("target", target.to_owned()), (name, value.to_owned())];
        let tokens = |kind| self.tokens.get_or_create(&labels("kind", kind)).clone();
        OfTarget {
            accepted: self.calls.get_or_create(&labels("result", ACCEPTED)).clone(),
            tokens: ["input", "output", "cached", "reasoning"].map(tokens),
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
