//! Traces and metrics over OTLP, in the semantic conventions of OpenTelemetry for generative AI.
//!
//! The SDK of OpenTelemetry batches, aggregates and encodes; requests to the collector go through [`HttpTransport`].

mod export;
mod settings;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use formwork::config::Config;
use formwork_core::{Time, Usage};
use formwork_http::HttpTransport;
use formwork_ledger::{RunOutcome, RunRecord, StoredCall};
use opentelemetry::metrics::{AsyncInstrument, Histogram, MeterProvider as _};
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanKind, Status, TraceContextExt as _, TracerProvider as _,
};
use opentelemetry::{Array, Context, InstrumentationScope, KeyValue, Value};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_otlp::{MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider, Span,
};

use crate::access::now;
use crate::seen::Seen;
use export::{Bounded, Client, Counted, Runtime, Spans};

/// The maximum number of spans that wait for the collector.
const MAX_SPANS: usize = 8_192;

/// The maximum time of the last export, after the service has ended.
const FLUSH: Duration = Duration::from_secs(5);

// The names of the conventions. The constants of the crate `opentelemetry-semantic-conventions` are deprecated.
const DURATION: &str = "gen_ai.client.operation.duration";
const SERVER_DURATION: &str = "gen_ai.server.request.duration";
const FIRST_TOKEN: &str = "gen_ai.server.time_to_first_token";
const USAGE: &str = "gen_ai.client.token.usage";
const OPERATION: &str = "gen_ai.operation.name";
const PROVIDER: &str = "gen_ai.provider.name";
const MODEL: &str = "gen_ai.request.model";
const ANSWERED: &str = "gen_ai.response.model";
const FINISH: &str = "gen_ai.response.finish_reasons";
const CACHED_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
const COST: &str = "formwork.cost.usd";
const REQUEST: &str = "formwork.request";
const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
const TOKEN_TYPE: &str = "gen_ai.token.type";
const ERROR: &str = "error.type";

/// Returns the bounds of a histogram as the conventions recommend them: the first one, and each the factor of the one before.
fn bounds(first: f64, factor: f64) -> Vec<f64> {
    std::iter::successors(Some(first), |bound| Some(bound * factor)).take(14).collect()
}

/// Builds a [`Telemetry`].
#[derive(Debug, Clone)]
#[must_use]
pub struct TelemetryBuilder {
    traces: Option<HttpTransport>,
    metrics: Option<HttpTransport>,
    service: String,
    sampling: Option<f64>,
    interval: Duration,
    timeout: Duration,
}

impl TelemetryBuilder {
    formwork_core::setters! {
        /// Sends traces to the base URL of this transport, such as `http://localhost:4318/v1/traces` (default: nowhere).
        pub fn with_traces(Some(traces): HttpTransport);

        /// Sends metrics to the base URL of this transport, such as `http://localhost:4318/v1/metrics` (default: nowhere).
        pub fn with_metrics(Some(metrics): HttpTransport);

        /// Sets the name of the service (default: `formwork`).
        pub fn with_service(service: impl Into<String>);

        /// Sets the share of the traces that are exported, from 0 to 1 (default: every trace, whatever the client decided). With a share,
        /// the sampling decision in a client's `traceparent` has precedence. Metrics always cover every call.
        pub const fn with_sampling(Some(sampling): f64);

        /// Sets the time between two exports (default: 5 seconds). Traces are also exported as soon as 512 spans wait.
        pub const fn with_interval(interval: Duration);

        /// Sets the time limit of one export (default: 10 seconds).
        pub const fn with_timeout(timeout: Duration);
    }

    /// Starts the exporter, with one thread for traces and one for metrics. It exports while a gateway with it serves.
    ///
    /// # Errors
    /// [`TelemetryError`] if the SDK of OpenTelemetry rejects a setting of the environment.
    pub fn build(self) -> Result<Telemetry, TelemetryError> {
        let Self { traces, metrics, service, sampling, interval, timeout } = self;
        let resource = Resource::builder().with_service_name(service).build();
        let runtime = Runtime::default();
        let spans = Arc::new(Spans::default());

        let sampler = match sampling {
            None => Sampler::AlwaysOn,
            Some(ratio) => Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(ratio))),
        };
        let mut tracers = SdkTracerProvider::builder().with_resource(resource.clone());
        tracers = match traces {
            None => tracers.with_sampler(Sampler::AlwaysOff),
            Some(transport) => {
                let client = Client::new("traces", transport, runtime.clone(), timeout);
                let exporter = over(SpanExporter::builder().with_http(), client, timeout).build();
                let exporter = exporter.map_err(|error| TelemetryError(error.to_string()))?;
                let limits = BatchConfigBuilder::default()
                    .with_max_queue_size(MAX_SPANS)
                    .with_scheduled_delay(interval)
                    .build();
                let batches = BatchSpanProcessor::new(Counted::new(exporter, Arc::clone(&spans)), limits);
                tracers.with_sampler(sampler).with_span_processor(Bounded::new(batches, Arc::clone(&spans)))
            }
        };
        let tracers = tracers.build();

        let mut meters = SdkMeterProvider::builder().with_resource(resource);
        if let Some(transport) = metrics {
            let client = Client::new("metrics", transport, runtime.clone(), timeout);
            let exporter = over(MetricExporter::builder().with_http(), client, timeout).build();
            let exporter = exporter.map_err(|error| TelemetryError(error.to_string()))?;
            meters = meters.with_reader(PeriodicReader::builder(exporter).with_interval(interval).build());
        }
        let meters = meters.build();

        let scope = InstrumentationScope::builder("formwork").with_version(env!("CARGO_PKG_VERSION")).build();
        let meter = meters.meter_with_scope(scope.clone());
        let counted = Arc::clone(&spans);
        let counter = meter.u64_observable_counter("formwork.telemetry.spans_dropped").with_unit("{span}");
        let observe = move |counter: &dyn AsyncInstrument<u64>| match counted.dropped.load(Ordering::Relaxed)
        {
            0 => {}
            dropped => counter.observe(dropped, &[]),
        };
        // The provider keeps the callback.
        _ = counter.with_callback(observe).build();
        Ok(Telemetry(Arc::new(Inner {
            tracer: tracers.tracer_with_scope(scope),
            duration: meter.f64_histogram(DURATION).with_unit("s").with_boundaries(bounds(0.01, 2.0)).build(),
            requests: meter
                .f64_histogram(SERVER_DURATION)
                .with_unit("s")
                .with_boundaries(bounds(0.01, 2.0))
                .build(),
            firsts: meter
                .f64_histogram(FIRST_TOKEN)
                .with_unit("s")
                .with_boundaries(bounds(0.001, 2.5))
                .build(),
            usage: meter.u64_histogram(USAGE).with_unit("{token}").with_boundaries(bounds(1.0, 4.0)).build(),
            spans,
            tracers,
            meters,
            runtime,
        })))
    }
}

/// The reason why the exporter cannot be started. No message contains the value of a header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TelemetryError(String);

/// Sends a span for each run and each of its calls to a collector, and the time and the tokens of calls as metrics: OTLP, as protobuf
/// over HTTP. Texts of prompts and answers are never sent.
///
/// Requests never wait for the collector. At most 8,192 spans wait for it; further spans, and those that it does not take, are left out
/// and counted in the metric `formwork.telemetry.spans_dropped`. The spans belong to the trace of the client's `traceparent`, if the
/// request has one. The resource has the attributes of the environment variable `OTEL_RESOURCE_ATTRIBUTES`.
///
/// ```
/// use formwork_gateway::Telemetry;
/// use formwork_http::HttpTransport;
///
/// let telemetry = Telemetry::builder()
///     .with_traces(HttpTransport::new("http://localhost:4318/v1/traces")?)
///     .with_metrics(HttpTransport::new("http://localhost:4318/v1/metrics")?)
///     .build()?;
/// # let _ = telemetry;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Telemetry(Arc<Inner>);

struct Inner {
    tracers: SdkTracerProvider,
    meters: SdkMeterProvider,
    tracer: SdkTracer,
    duration: Histogram<f64>,
    /// The whole time of requests, and the time until the first part of a stream.
    requests: Histogram<f64>,
    firsts: Histogram<f64>,
    usage: Histogram<u64>,
    spans: Arc<Spans>,
    runtime: Runtime,
}

impl Telemetry {
    /// Returns a builder without a collector.
    pub fn builder() -> TelemetryBuilder {
        TelemetryBuilder {
            traces: None,
            metrics: None,
            service: "formwork".to_owned(),
            sampling: None,
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(10),
        }
    }

    /// Starts the exporter that the section `[telemetry]` of a configuration and the environment describe. Returns `None` without a
    /// collector, and if `OTEL_SDK_DISABLED` is `true`.
    ///
    /// The variables have precedence, each over the setting that it names: `OTEL_EXPORTER_OTLP_ENDPOINT` over `endpoint`,
    /// `OTEL_EXPORTER_OTLP_HEADERS` over all headers and the key, `OTEL_EXPORTER_OTLP_TIMEOUT` (milliseconds) over
    /// `timeout_seconds`, `OTEL_SERVICE_NAME` over `service`. `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` (the complete URL) and
    /// `OTEL_EXPORTER_OTLP_TRACES_HEADERS` have precedence over the variables for all signals, and `…_METRICS_…` likewise. An empty
    /// variable counts as absent.
    ///
    /// # Errors
    /// [`TelemetryError`] for an invalid setting, with the line of the file or the name of the variable.
    pub fn from_config(config: &Config) -> Result<Option<Self>, TelemetryError> {
        let builder = settings::read(config, &|name| std::env::var(name).ok())?;
        builder.map(TelemetryBuilder::build).transpose()
    }

    /// Notes a run that has ended: a span for it, one for each call, and the metrics of both. `trace` has the valid headers of the
    /// caller's trace; `provider` names the protocol of a target.
    pub(crate) fn run(
        &self,
        run: &RunRecord,
        trace: &HeaderMap,
        seen: Option<&Seen>,
        provider: impl Fn(&str) -> &'static str,
    ) {
        let is_error = matches!(run.outcome, RunOutcome::Failed(_));
        let operation = operation("POST", &run.source);
        let mut labels = Vec::from_iter(operation.clone());
        labels.extend(run.calls.iter().rev().find_map(answered));
        labels.extend(is_error.then(|| KeyValue::new(ERROR, run.outcome.name())));
        self.0.requests.record(run.ended.since(run.started).as_secs_f64(), &labels);
        let mut attributes = labels.clone();
        attributes.extend([
            KeyValue::new("url.path", run.source.to_string()),
            KeyValue::new("formwork.run", run.id.to_string()),
            KeyValue::new("formwork.outcome", run.outcome.name()),
            number("formwork.calls", run.calls.len() as u64),
        ]);
        attributes.extend(used(run.usage, run.micro_usd));
        attributes.extend(run.contract.clone().map(|contract| KeyValue::new("formwork.contract", contract)));
        if let Some(seen) = seen {
            let asked = Some(seen.asked()).filter(|asked| !asked.is_empty());
            attributes.extend(asked.map(|asked| KeyValue::new(MODEL, asked)));
            attributes.push(KeyValue::new(REQUEST, seen.request.as_str().to_owned()));
            if let Some(first) = seen.first() {
                self.0.firsts.record(first.as_secs_f64(), &labels);
                attributes.push(KeyValue::new("formwork.time_to_first_token", first.as_secs_f64()));
            }
        }
        let name = format!("POST {}", run.source);
        let mut span = self.server(name, attributes, (run.started, is_error), trace);
        let own = Context::new().with_remote_span_context(span.span_context().clone());
        for call in &run.calls {
            self.call(&own, operation.as_ref(), call, provider(&call.target));
        }
        span.end_with_timestamp(system(run.ended));
    }

    /// Notes a request that came to no run, such as one without a valid key.
    pub(crate) fn refused(&self, seen: &Seen, status: u16) {
        let ended = now();
        let is_error = status >= 400;
        let mut attributes = Vec::from_iter(operation(seen.method(), seen.path()));
        if is_error {
            attributes.push(KeyValue::new(ERROR, status.to_string()));
            attributes.push(KeyValue::new("http.response.status_code", i64::from(status)));
        }
        self.0.requests.record(ended.since(seen.started()).as_secs_f64(), &attributes);
        attributes.extend([
            KeyValue::new("url.path", seen.path().to_owned()),
            KeyValue::new("formwork.run", seen.run.to_string()),
            KeyValue::new(REQUEST, seen.request.as_str().to_owned()),
        ]);
        let name = format!("{} {}", seen.method(), seen.path());
        let mut span = self.server(name, attributes, (seen.started(), is_error), seen.trace());
        span.end_with_timestamp(system(ended));
    }

    /// Starts the span of a request.
    fn server(
        &self,
        name: String,
        attributes: Vec<KeyValue>,
        (started, is_error): (Time, bool),
        trace: &HeaderMap,
    ) -> Span {
        let parent =
            TraceContextPropagator::new().extract_with_context(&Context::new(), &HeaderExtractor(trace));
        let span = SpanBuilder::from_name(name).with_kind(SpanKind::Server);
        self.span(span.with_attributes(attributes), started, is_error, &parent)
    }

    /// Starts a span.
    fn span(&self, span: SpanBuilder, started: Time, is_error: bool, parent: &Context) -> Span {
        let mut span = span.with_start_time(system(started)).start_with_context(&self.0.tracer, parent);
        if is_error {
            span.set_status(Status::error(""));
        }
        span
    }

    /// Exports the span of a call, and adds the call to the metrics.
    fn call(
        &self,
        parent: &Context,
        operation: Option<&KeyValue>,
        call: &StoredCall,
        provider: &'static str,
    ) {
        let labels = [KeyValue::new(PROVIDER, provider), KeyValue::new(MODEL, call.model.clone())];
        let error = (call.class != "accepted").then(|| KeyValue::new(ERROR, call.class.to_string()));
        let with = |more| operation.into_iter().chain(&labels).cloned().chain(more).collect::<Vec<_>>();
        let seconds = call.ended.since(call.started).as_secs_f64();
        self.0.duration.record(seconds, &with(error.clone()));
        // A call without usage, such as one that failed, is no call of 0 tokens.
        let tokens = [("input", call.usage.input_tokens), ("output", call.usage.output_tokens)];
        for (kind, tokens) in tokens.into_iter().filter(|_| call.usage != Usage::default()) {
            self.0.usage.record(tokens, &with(Some(KeyValue::new(TOKEN_TYPE, kind))));
        }

        let is_error = error.is_some();
        let mut attributes = with(error);
        attributes.extend(used(call.usage, call.micro_usd));
        attributes.extend(answered(call));
        attributes.extend(
            call.finish
                .clone()
                .map(|finish| KeyValue::new(FINISH, Value::Array(Array::String(vec![finish.into()])))),
        );
        attributes.extend([
            KeyValue::new("formwork.target", call.target.clone()),
            number("formwork.violations", call.violations.len() as u64 + call.left_out),
        ]);
        let span = SpanBuilder::from_name(format!("chat {}", call.model)).with_kind(SpanKind::Client);
        let mut span = self.span(span.with_attributes(attributes), call.started, is_error, parent);
        span.end_with_timestamp(system(call.ended));
    }

    /// Exports until the future is done, and once more after it, for at most [`FLUSH`].
    pub(crate) async fn export_while<F: Future>(&self, future: F) -> F::Output {
        self.0.runtime.enter();
        let output = future.await;
        let (tracers, meters) = (self.0.tracers.clone(), self.0.meters.clone());
        let flushed = tokio::task::spawn_blocking(move || {
            // A failed export has been logged and counted. Metrics come last, because they have the count.
            _ = tracers.force_flush();
            _ = meters.force_flush();
        });
        _ = tokio::time::timeout(FLUSH, flushed).await;
        output
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.runtime.leave();
        let (tracers, meters) = (self.tracers.clone(), self.meters.clone());
        // The SDK waits up to 5 seconds for each of its threads, which the thread of the caller must not do.
        let shutdown = move || {
            _ = tracers.shutdown();
            _ = meters.shutdown();
        };
        _ = std::thread::Builder::new().name("telemetry shutdown".to_owned()).spawn(shutdown);
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The exporters of the SDK would print the headers of the environment.
        f.debug_struct("Telemetry").field("spans", &self.0.spans).finish_non_exhaustive()
    }
}

/// Sets how an exporter sends: to the base URL of the client's transport, and not to one that it would read from the environment.
fn over<B: WithExportConfig + WithHttpConfig>(exporter: B, client: Client, timeout: Duration) -> B {
    let exporter = exporter.with_http_client(client).with_endpoint("/");
    exporter.with_protocol(Protocol::HttpBinary).with_timeout(timeout)
}

/// Returns the attribute of the operation of a request; `None` for a request that calls no model.
fn operation(method: &str, path: &str) -> Option<KeyValue> {
    let name = match path {
        _ if method != "POST" => return None,
        "/v1/embeddings" | "/api/embed" | "/api/embeddings" => "embeddings",
        "/api/generate" => "text_completion",
        "/v1/messages/count_tokens" => "count_tokens",
        "/v1/chat/completions" | "/v1/responses" | "/v1/messages" | "/v1/extract" | "/api/chat" => "chat",
        _ => return None,
    };
    Some(KeyValue::new(OPERATION, name))
}

/// Returns the attribute of the model that answered a call, as the provider names it; `None` if it is not known.
fn answered(call: &StoredCall) -> Option<KeyValue> {
    call.answered.clone().map(|model| KeyValue::new(ANSWERED, model))
}

/// Returns the attributes of tokens by kind, and of the cost, if it is known.
fn used(usage: Usage, micro_usd: Option<u64>) -> impl Iterator<Item = KeyValue> {
    let tokens = [
        number(INPUT_TOKENS, usage.input_tokens),
        number(OUTPUT_TOKENS, usage.output_tokens),
        number(CACHED_TOKENS, usage.cached_tokens),
        number(REASONING_TOKENS, usage.reasoning_tokens),
    ];
    let cost = micro_usd.map(|micro_usd| KeyValue::new(COST, micro_usd as f64 / 1e6));
    tokens.into_iter().chain(cost)
}

/// OTLP has signed integers.
fn number(key: &'static str, value: u64) -> KeyValue {
    KeyValue::new(key, i64::try_from(value).unwrap_or(i64::MAX))
}

fn system(time: Time) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(time.0)
}

#[cfg(test)]
mod tests;
