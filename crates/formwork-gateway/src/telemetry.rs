//! Traces and metrics over OTLP, in the semantic conventions of OpenTelemetry for generative AI.
//!
//! The encoding is JSON over HTTP, which every collector takes (OTLP 1.x, "OTLP/HTTP"). The SDK would bring some thirty crates for
//! the two documents that are written here.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, Request, header};
use formwork_core::Time;
use formwork_http::{ConfigError, HttpTransport, Key};
use formwork_ledger::{AttemptRecord, RunOutcome, RunRecord};
use formwork_wire::{Bytes, Transport as _};
use serde_json::{Value, json};

use crate::access::now;
use crate::trace;

/// The pause between two exports.
const PAUSE: Duration = Duration::from_secs(5);

/// The maximum time of one export.
const LIMIT: Duration = Duration::from_secs(5);

/// The maximum number of spans that wait. Further spans are left out and counted.
const MAX_SPANS: usize = 8_192;

/// The bounds of the histograms that the conventions recommend: seconds of a call, and tokens.
const SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// Sends a span for each run and each of its calls to a collector, and the time and the tokens of calls as metrics. Texts of
/// prompts and answers are never sent. What the collector does not take is lost and counted; requests never wait for it.
///
/// The spans belong to the trace of the client's `traceparent`, if the request has one.
///
/// ```
/// use formwork_gateway::Telemetry;
///
/// let telemetry = Telemetry::new("http://localhost:4318", "formwork", &[])?;
/// # let _ = telemetry;
/// # Ok::<(), formwork_http::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Telemetry(Arc<Inner>);

struct Inner {
    transport: HttpTransport,
    service: String,
    started: Time,
    waiting: Mutex<Vec<Value>>,
    dropped: AtomicU64,
    calls: Mutex<BTreeMap<Series, Histogram>>,
    ids: (RandomState, AtomicU64),
}

/// The name of a metric, the provider, the model, and the kind of tokens or of error, which name a histogram. All of them are of the
/// configuration, so there are few.
type Series = (&'static str, &'static str, String, String);

#[derive(Debug, Default)]
struct Histogram {
    buckets: [u64; SECONDS.len() + 1],
    count: u64,
    sum: f64,
}

impl Histogram {
    fn add(&mut self, bounds: &[f64], value: f64) {
        let bucket = bounds.iter().position(|bound| value <= *bound).unwrap_or(bounds.len());
        self.buckets[bucket.min(SECONDS.len())] += 1;
        (self.count, self.sum) = (self.count + 1, self.sum + value);
    }
}

impl Telemetry {
    /// Creates an exporter. `endpoint` is the base URL of the collector, as `OTEL_EXPORTER_OTLP_ENDPOINT` has it; `service` is the
    /// name of the service; `headers` are sent with each export and never printed.
    ///
    /// # Errors
    /// [`ConfigError`] for an invalid URL or header.
    pub fn new(endpoint: &str, service: &str, headers: &[(String, String)]) -> Result<Self, ConfigError> {
        let transport =
            headers.iter().try_fold(HttpTransport::new(endpoint)?, |transport, (name, value)| {
                transport.with_secret_header(name, Key::new(format!("the header `{name}`"), value.clone())?)
            })?;
        Ok(Self(Arc::new(Inner {
            transport,
            service: service.to_owned(),
            started: now(),
            waiting: Mutex::default(),
            dropped: AtomicU64::new(0),
            calls: Mutex::default(),
            ids: (RandomState::new(), AtomicU64::new(0)),
        })))
    }

    /// Notes a run that has ended: a span for it, one for each call, and the metrics of the calls. `provider` names the protocol of a
    /// target.
    pub(crate) fn run(&self, run: &RunRecord, headers: &HeaderMap, provider: impl Fn(&str) -> &'static str) {
        let own = format!("{:016x}{:016x}", self.id(), self.id());
        let trace = trace::id(headers).map_or(own, str::to_owned);
        let parent = headers.get("traceparent").and_then(|parent| parent.to_str().ok()?.split('-').nth(2));
        let id = format!("{:016x}", self.id());
        let mut attributes = vec![
            text("gen_ai.operation.name", "chat"),
            text("url.path", &run.source),
            text("formwork.run", &run.id.to_string()),
            text("formwork.outcome", run.outcome.name()),
            number("gen_ai.usage.input_tokens", run.usage.input_tokens),
            number("gen_ai.usage.output_tokens", run.usage.output_tokens),
        ];
        let contract = run.contract.as_deref().map(|contract| text("formwork.contract", contract));
        attributes.extend(contract);
        if let RunOutcome::Failed(_) = run.outcome {
            attributes.push(text("error.type", run.outcome.name()));
        }
        let is_error = matches!(run.outcome, RunOutcome::Failed(_));
        let mut spans = vec![json!({
            "traceId": trace, "spanId": id, "parentSpanId": parent.unwrap_or_default(),
            "name": format!("POST {}", run.source), "kind": 2, "attributes": attributes,
            "startTimeUnixNano": nanos(run.started), "endTimeUnixNano": nanos(run.ended),
            "status": {"code": if is_error { 2 } else { 0 }},
        })];
        for attempt in &run.attempts {
            spans.push(self.call(&trace, &id, attempt, provider(&attempt.target)));
        }
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_SPANS.saturating_sub(waiting.len());
        if spans.len() > room {
            self.0.dropped.fetch_add((spans.len() - room) as u64, Ordering::Relaxed);
            spans.truncate(room);
        }
        waiting.extend(spans);
    }

    /// Returns the span of a call, and adds the call to the metrics.
    fn call(&self, trace: &str, parent: &str, attempt: &AttemptRecord, provider: &'static str) -> Value {
        let is_accepted = attempt.class == "accepted";
        let error = if is_accepted { "" } else { attempt.class.as_ref() };
        let mut attributes = vec![
            text("gen_ai.operation.name", "chat"),
            text("gen_ai.provider.name", provider),
            text("gen_ai.request.model", &attempt.model),
            number("gen_ai.usage.input_tokens", attempt.usage.input_tokens),
            number("gen_ai.usage.output_tokens", attempt.usage.output_tokens),
            text("formwork.target", &attempt.target),
            number("formwork.violations", attempt.violations.len() as u64),
        ];
        if !is_accepted {
            attributes.push(text("error.type", error));
        }
        let mut calls = self.0.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let mut add = |name, kind: &str, bounds: &[f64], value: f64| {
            let series = (name, provider, attempt.model.clone(), kind.to_owned());
            calls.entry(series).or_default().add(bounds, value);
        };
        let seconds = attempt.ended.since(attempt.started).as_secs_f64();
        add(DURATION, error, &SECONDS, seconds);
        add(USAGE, "input", &TOKENS, attempt.usage.input_tokens as f64);
        add(USAGE, "output", &TOKENS, attempt.usage.output_tokens as f64);
        json!({
            "traceId": trace, "spanId": format!("{:016x}", self.id()), "parentSpanId": parent,
            "name": format!("chat {}", attempt.model), "kind": 3, "attributes": attributes,
            "startTimeUnixNano": nanos(attempt.started), "endTimeUnixNano": nanos(attempt.ended),
            "status": {"code": if is_accepted { 0 } else { 2 }},
        })
    }

    /// Returns a number that is not zero and differs each time; the keys of a process are random.
    fn id(&self) -> u64 {
        let (keys, next) = &self.0.ids;
        keys.hash_one(next.fetch_add(1, Ordering::Relaxed)).max(1)
    }

    /// Exports until the future is done, and once more after it.
    pub(crate) async fn export_while<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            tokio::select! {
                output = &mut future => {
                    self.export().await;
                    return output;
                }
                () = tokio::time::sleep(PAUSE) => {}
            }
            // Waiting for a slow collector must not delay the end of the service.
            tokio::select! {
                output = &mut future => {
                    self.export().await;
                    return output;
                }
                () = self.export() => {}
            }
        }
    }

    async fn export(&self) {
        let spans = std::mem::take(&mut *self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        let resource = json!({"attributes": [text("service.name", &self.0.service)]});
        let scope = json!({"name": "formwork", "version": env!("CARGO_PKG_VERSION")});
        if !spans.is_empty() {
            let number = spans.len() as u64;
            let document = json!({"resourceSpans": [{
                "resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}],
            }]});
            if !self.send("/v1/traces", &document).await {
                self.0.dropped.fetch_add(number, Ordering::Relaxed);
            }
        }
        let metrics = self.metrics();
        if !metrics.is_empty() {
            let document = json!({"resourceMetrics": [{
                "resource": resource, "scopeMetrics": [{"scope": scope, "metrics": metrics}],
            }]});
            self.send("/v1/metrics", &document).await;
        }
    }

    fn metrics(&self) -> Vec<Value> {
        let end = nanos(now());
        let mut points: HashMap<&str, Vec<Value>> = HashMap::new();
        for ((name, provider, model, kind), histogram) in
            &*self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
        {
            let (label, bounds) =
                if *name == USAGE { ("gen_ai.token.type", TOKENS) } else { ("error.type", SECONDS) };
            let mut attributes = vec![
                text("gen_ai.operation.name", "chat"),
                text("gen_ai.provider.name", provider),
                text("gen_ai.request.model", model),
            ];
            if !kind.is_empty() {
                attributes.push(text(label, kind));
            }
            points.entry(name).or_default().push(json!({
                "attributes": attributes, "startTimeUnixNano": nanos(self.0.started), "timeUnixNano": end,
                "count": histogram.count.to_string(), "sum": histogram.sum,
                "bucketCounts": histogram.buckets.map(|count| count.to_string()), "explicitBounds": bounds,
            }));
        }
        let metric = |(name, unit): (&str, &str)| {
            let points = points.get(name)?;
            // 2 is `AGGREGATION_TEMPORALITY_CUMULATIVE` of OTLP.
            Some(
                json!({"name": name, "unit": unit, "histogram": {"aggregationTemporality": 2, "dataPoints": points}}),
            )
        };
        let dropped = self.0.dropped.load(Ordering::Relaxed);
        let lost = (dropped > 0).then(|| {
            json!({"name": "formwork.telemetry.spans_dropped", "unit": "{span}", "sum": {
                "aggregationTemporality": 2, "isMonotonic": true, "dataPoints": [{
                    "startTimeUnixNano": nanos(self.0.started), "timeUnixNano": end, "asInt": dropped.to_string(),
                }],
            }})
        });
        [(DURATION, "s"), (USAGE, "{token}")].into_iter().filter_map(metric).chain(lost).collect()
    }

    /// Sends a document. Returns whether the collector took it.
    async fn send(&self, path: &'static str, document: &Value) -> bool {
        let mut request = Request::new(Bytes::from(serde_json::to_vec(document).unwrap_or_default()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = axum::http::Uri::from_static(path);
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let sent = self.0.transport.send(request, Some(now().after(LIMIT))).await;
        let problem = match sent {
            Ok(response) if response.status().is_success() => return true,
            Ok(response) => response.status().to_string(),
            Err(fault) => fault.message,
        };
        tracing::warn!(target: "formwork_gateway", path, problem, "the collector did not take an export");
        false
    }
}

/// The names of the metrics.
const DURATION: &str = "gen_ai.client.operation.duration";
const USAGE: &str = "gen_ai.client.token.usage";

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// OTLP has integers as text, because numbers of JSON are not exact beyond 53 bits.
fn number(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

fn nanos(time: Time) -> String {
    (u128::from(time.0) * 1_000_000).to_string()
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").field("transport", &self.0.transport).finish_non_exhaustive()
    }
}
