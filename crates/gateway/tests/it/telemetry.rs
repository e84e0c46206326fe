//! Traces and metrics for a collector.

use std::time::{Duration, Instant};

use formwork_gateway::{Telemetry, TelemetryBuilder};
use formwork_http::{HttpTransport, Key};
use formwork_testkit::server::{Received, Reply, Server};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value as Any};
use opentelemetry_proto::tonic::metrics::v1::{HistogramDataPoint, metric::Data};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};
use prost::Message as _;
use serde_json::json;

use super::support::{Gate, completion, openai, schema, targets};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// An exporter to a collector, with a secret header.
fn telemetry(collector: &str) -> TelemetryBuilder {
    let transport = |path: &str| {
        let key = Key::new("the test", "hunter22".to_owned()).unwrap();
        HttpTransport::new(&format!("{collector}{path}")).unwrap().with_secret_header("x-team", key).unwrap()
    };
    Telemetry::builder()
        .with_service("tests")
        .with_traces(transport("/v1/traces"))
        .with_metrics(transport("/v1/metrics"))
}

fn spans(received: &[Received]) -> Vec<Span> {
    let of_traces = received.iter().filter(|request| request.path == "/v1/traces");
    let requests =
        of_traces.map(|request| ExportTraceServiceRequest::decode(request.body.as_slice()).unwrap());
    requests
        .flat_map(|request| request.resource_spans)
        .inspect(|spans| {
            let resource = spans.resource.as_ref().unwrap();
            assert!(has(&resource.attributes, "service.name", "tests"), "{resource:?}");
        })
        .flat_map(|spans| spans.scope_spans)
        .flat_map(|spans| spans.spans)
        .collect()
}

/// The points of a histogram in the last export.
fn points(received: &[Received], name: &str) -> Vec<HistogramDataPoint> {
    let last = received.iter().rfind(|request| request.path == "/v1/metrics").unwrap();
    let request = ExportMetricsServiceRequest::decode(last.body.as_slice()).unwrap();
    let metrics = request.resource_metrics.into_iter().flat_map(|metrics| metrics.scope_metrics);
    let metric = metrics.flat_map(|metrics| metrics.metrics).find(|metric| metric.name == name);
    match metric.unwrap().data.unwrap() {
        Data::Histogram(histogram) => histogram.data_points,
        other => panic!("{other:?}"),
    }
}

fn has(attributes: &[KeyValue], key: &str, value: &str) -> bool {
    attributes.iter().filter(|own| own.key == key).any(|own| {
        match own.value.as_ref().unwrap().value.as_ref() {
            Some(Any::StringValue(own)) => own == value,
            Some(Any::IntValue(own)) => own.to_string() == value,
            _ => false,
        }
    })
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn runs_and_their_calls_are_spans_of_the_callers_trace_and_calls_are_metrics() {
    let collector = Server::start([Reply::status(200)]).unwrap();
    let server = Server::start([completion(r#"{"age": "old"}"#), completion(r#"{"age": 34}"#)]).unwrap();
    let telemetry = telemetry(&collector.url()).build().unwrap();
    let shown = format!("{telemetry:?}");
    assert!(shown.contains("dropped: 0") && !shown.contains("hunter22"), "{shown}");
    let gate = Gate::start(targets(&openai(&server.url())).with_telemetry(telemetry));
    let mut body = json!({"model": "primary", "messages": [{"role": "user", "content": "Maria, a secret"}]});
    let plain = gate.post("/v1/chat/completions", &[], &body);
    body["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "person", "schema": schema()}});
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let headers = [("traceparent", parent.as_str()), ("tracestate", "vendor=1")];
    let contract = gate.post("/v1/chat/completions", &headers, &body);
    assert_eq!((plain.status, contract.status), (200, 200));
    let _ = plain.text();
    gate.join();

    let received = collector.received();
    for request in &received {
        assert_eq!(request.header("x-team"), Some("hunter22"));
        assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
        assert!(!String::from_utf8_lossy(&request.body).contains("secret"));
    }
    let spans = spans(&received);
    let (of_trace, others): (Vec<&Span>, Vec<_>) =
        spans.iter().partition(|span| hex(&span.trace_id) == TRACE);
    let run = of_trace.iter().find(|span| span.kind == SpanKind::Server as i32);
    let run = run.unwrap_or_else(|| panic!("{spans:#?}"));
    assert_eq!((hex(&run.parent_span_id), run.trace_state.as_str()), (PARENT.to_owned(), "vendor=1"));
    assert_eq!(
        (run.name.as_str(), run.status.as_ref().map_or(0, |status| status.code)),
        ("POST /v1/chat/completions", 0)
    );
    let calls: Vec<_> = of_trace.iter().filter(|span| span.kind == SpanKind::Client as i32).collect();
    assert!(calls.iter().all(|call| call.parent_span_id == run.span_id), "{calls:?}");
    let failed =
        |call: &Span| call.status.as_ref().is_some_and(|status| status.code == StatusCode::Error as i32);
    assert_eq!(calls.iter().filter(|call| failed(call)).count(), calls.len() - 1);
    for call in &calls {
        let has = |key: &str, value: &str| has(&call.attributes, key, value);
        assert!(has("gen_ai.operation.name", "chat") && has("gen_ai.provider.name", "openai"), "{call:?}");
        assert_eq!(failed(call), has("error.type", "invalid"), "{call:?}");
        assert!(has("gen_ai.request.model", "m-1") && has("gen_ai.response.model", "m-1-2026"), "{call:?}");
        assert!(call.start_time_unix_nano <= call.end_time_unix_nano);
        assert!(call.start_time_unix_nano >= run.start_time_unix_nano);
        assert!(call.end_time_unix_nano <= run.end_time_unix_nano);
    }
    // The request without a trace has one of its own.
    assert_eq!(others.len(), 2);
    assert_eq!(others[0].trace_id, others[1].trace_id);
    assert!(others.iter().any(|span| span.parent_span_id.is_empty()) && others[0].trace_id.len() == 16);

    let durations = points(&received, "gen_ai.client.operation.duration");
    let tokens = points(&received, "gen_ai.client.token.usage");
    let number = (calls.len() + 1) as u64;
    assert_eq!(durations.iter().map(|point| point.count).sum::<u64>(), number);
    for (kind, key) in [("input", "gen_ai.usage.input_tokens"), ("output", "gen_ai.usage.output_tokens")] {
        let of_kind = tokens.iter().filter(|point| has(&point.attributes, "gen_ai.token.type", kind));
        let (count, sum) =
            of_kind.fold((0, 0.0), |(count, sum), point| (count + point.count, sum + point.sum.unwrap()));
        let used = spans.iter().filter(|span| span.kind == SpanKind::Client as i32).map(|span| {
            let value =
                span.attributes.iter().find(|own| own.key == key).unwrap().value.clone().unwrap().value;
            let Some(Any::IntValue(used)) = value else { panic!("{span:?}") };
            used as f64
        });
        assert_eq!((count, sum), (number, used.sum()), "{tokens:?}");
    }
    for point in durations.iter().chain(&tokens) {
        assert_eq!((point.bucket_counts.iter().sum::<u64>(), point.bucket_counts.len()), (point.count, 15));
        let bounds = &point.explicit_bounds;
        assert!([(0.01, 81.92), (1.0, 67_108_864.0)].contains(&(bounds[0], bounds[13])), "{bounds:?}");
    }
}

#[test]
fn requests_do_not_wait_for_a_collector_that_is_gone_or_silent_and_the_end_waits_for_a_limited_time() {
    let silent = Server::start([Reply::silent()]).unwrap();
    for collector in ["http://127.0.0.1:1", &silent.url()] {
        let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
        let telemetry = telemetry(collector).with_interval(Duration::from_millis(20));
        let telemetry = telemetry.with_timeout(Duration::from_millis(500)).build().unwrap();
        let gate = Gate::start(targets(&openai(&server.url())).with_telemetry(telemetry));
        let body = json!({"model": "primary", "messages": [{"role": "user", "content": "Maria, 34"}]});
        let started = Instant::now();
        for _ in 0..20 {
            assert_eq!(gate.post("/v1/chat/completions", &[], &body).status, 200);
        }
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        let stopped = Instant::now();
        gate.join();
        assert!(stopped.elapsed() < Duration::from_secs(10), "{:?}", stopped.elapsed());
    }
}

#[test]
fn spans_of_refused_and_passed_requests_follow_the_conventions() {
    let collector = Server::start([Reply::status(200)]).unwrap();
    let stream = "data: {\"model\":\"m-1-2026\",\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n\
                  data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":9,\
                  \"completion_tokens\":2,\"completion_tokens_details\":{\"reasoning_tokens\":1}}}\n\ndata: [DONE]\n\n";
    let server = Server::start([Reply::status(200)
        .with_header("content-type", "text/event-stream")
        .with_body(stream)])
    .unwrap();
    let telemetry = telemetry(&collector.url()).build().unwrap();
    let gate = Gate::start(targets(&openai(&server.url())).with_telemetry(telemetry));
    let mut body =
        json!({"model": "default", "stream": true, "messages": [{"role": "user", "content": "Hi"}]});
    let headers = [("x-request-id", "order-7")];
    assert_eq!(gate.post("/v1/chat/completions", &headers, &body).status, 200);
    body["model"] = json!("none");
    assert_eq!(gate.post("/v1/chat/completions", &headers, &body).status, 404);
    gate.join();
    let received = collector.received();
    let spans = spans(&received);
    let server = |is_error: bool| {
        let code = if is_error { StatusCode::Error as i32 } else { StatusCode::Unset as i32 };
        let is = |span: &&Span| {
            span.kind == SpanKind::Server as i32
                && span.status.as_ref().map_or(0, |status| status.code) == code
        };
        spans.iter().find(is).unwrap_or_else(|| panic!("{spans:#?}"))
    };
    let refused = server(true);
    assert!(
        has(&refused.attributes, "error.type", "404")
            && has(&refused.attributes, "formwork.request", "order-7")
    );
    let passed = server(false);
    for (key, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.request.model", "default"),
        ("gen_ai.response.model", "m-1-2026"),
        ("gen_ai.usage.reasoning.output_tokens", "1"),
        ("formwork.request", "order-7"),
    ] {
        assert!(has(&passed.attributes, key, value), "{key}: {:?}", passed.attributes);
    }
    assert!(passed.attributes.iter().any(|own| own.key == "formwork.time_to_first_token"));
    let call = spans.iter().find(|span| span.kind == SpanKind::Client as i32).unwrap();
    assert!(has(&call.attributes, "gen_ai.response.model", "m-1-2026"), "{call:?}");
    let finish = call.attributes.iter().find(|own| own.key == "gen_ai.response.finish_reasons").unwrap();
    assert!(format!("{finish:?}").contains("length"), "{finish:?}");
    let count = |name| points(&received, name).iter().map(|point| point.count).sum::<u64>();
    assert_eq!((count("gen_ai.server.request.duration"), count("gen_ai.server.time_to_first_token")), (2, 1));
}

#[test]
fn attributes_name_only_models_operations_and_tokens_that_there_were() {
    let collector = Server::start([Reply::status(200)]).unwrap();
    let server = Server::start([Reply::status(400), completion(r#"{"age": 34}"#)]).unwrap();
    let telemetry = telemetry(&collector.url()).build().unwrap();
    let gate = Gate::start(targets(&openai(&server.url())).with_telemetry(telemetry));
    let body = json!({"model": "primary", "messages": [{"role": "user", "content": "Maria, 34"}]});
    let extract = json!({"input": "Maria, 34", "schema": schema()});
    assert_ne!(gate.post("/v1/chat/completions", &[], &body).status, 200);
    assert_eq!(gate.post("/v1/extract", &[], &extract).status, 200);
    assert_eq!(gate.get("/v1/models").status, 200);
    assert_eq!(gate.get("/v1/models/none").status, 404);
    assert_eq!(gate.post("/api/show", &[], &json!({"model": "none"})).status, 404);
    gate.join();
    let received = collector.received();
    let spans = spans(&received);
    for (name, operation, model) in [
        ("POST /v1/chat/completions", true, false),
        ("POST /v1/extract", true, true),
        ("GET /v1/models", false, false),
        ("GET /v1/models/none", false, false),
        ("POST /api/show", false, false),
    ] {
        let span =
            spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}: {spans:#?}"));
        let names = |key: &str| span.attributes.iter().any(|own| own.key == key);
        assert_eq!(
            (names("gen_ai.operation.name"), has(&span.attributes, "gen_ai.response.model", "m-1-2026")),
            (operation, model),
            "{span:#?}"
        );
        assert_eq!(names("gen_ai.response.model"), model, "{span:#?}");
    }
    let labels = points(&received, "gen_ai.server.request.duration");
    let named =
        labels.iter().filter(|point| point.attributes.iter().any(|own| own.key == "gen_ai.response.model"));
    assert_eq!(named.count(), 1, "{labels:#?}");
    // The failed call is a call without tokens.
    let calls =
        points(&received, "gen_ai.client.operation.duration").iter().map(|point| point.count).sum::<u64>();
    let tokens: Vec<_> = points(&received, "gen_ai.client.token.usage");
    assert_eq!((calls, tokens.iter().map(|point| point.count).collect::<Vec<_>>()), (2, vec![1, 1]));
}
