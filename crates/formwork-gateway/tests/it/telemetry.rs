//! Traces and metrics for a collector.

use formwork_gateway::Telemetry;
use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::support::{Gate, completion, openai, schema, targets};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The attributes of a span or of a point of a metric, by name.
fn attributes(of: &Value) -> Vec<(String, String)> {
    let one = |attribute: &Value| {
        let value = attribute["value"].as_object().unwrap().values().next().unwrap();
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (attribute["key"].as_str().unwrap().to_owned(), text)
    };
    of["attributes"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn runs_and_their_calls_are_spans_of_the_callers_trace_and_calls_are_metrics() {
    let collector = Server::start([Reply::json("{}")]).unwrap();
    let server = Server::start([completion(r#"{"age": "old"}"#), completion(r#"{"age": 34}"#)]).unwrap();
    let headers = [("x-team".to_owned(), "forms".to_owned())];
    let telemetry = Telemetry::new(&collector.url(), "tests", &headers).unwrap();
    let gate = Gate::start(targets(&openai(&server.url())).with_telemetry(telemetry));
    let mut body = json!({"model": "primary", "messages": [{"role": "user", "content": "Maria, a secret"}]});
    let plain = gate.post("/v1/chat/completions", &[], &body);
    body["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "person", "schema": schema()}});
    let contract = gate.post("/v1/chat/completions", &[("traceparent", PARENT)], &body);
    assert_eq!((plain.status, contract.status), (200, 200));
    let _ = plain.text();
    gate.join();

    let received = collector.received();
    let bodies = |path: &str| -> Vec<Value> {
        let of_path = received.iter().filter(|request| request.path == path);
        of_path.map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
    };
    assert!(received.iter().all(|request| request.header("x-team") == Some("forms")));
    assert!(received.iter().all(|request| !String::from_utf8_lossy(&request.body).contains("secret")));
    let spans: Vec<Value> = bodies("/v1/traces")
        .iter()
        .flat_map(|body| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone())
        .collect();
    let (of_trace, others): (Vec<_>, Vec<_>) =
        spans.iter().partition(|span| span["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736");
    let run = of_trace.iter().find(|span| span["kind"] == 2);
    let run = run.unwrap_or_else(|| panic!("{spans:#?}"));
    assert_eq!(run["parentSpanId"], "00f067aa0ba902b7");
    let calls: Vec<_> = of_trace.iter().filter(|span| span["kind"] == 3).collect();
    assert!(calls.iter().all(|call| call["parentSpanId"] == run["spanId"]), "{calls:?}");
    assert_eq!(calls.iter().filter(|call| call["status"]["code"] == 2).count(), calls.len() - 1);
    for call in &calls {
        let has = |key: &str, value: &str| attributes(call).iter().any(|own| own.0 == key && own.1 == value);
        assert!(has("gen_ai.operation.name", "chat") && has("gen_ai.provider.name", "openai"), "{call}");
        let (start, end) = (call["startTimeUnixNano"].as_str(), call["endTimeUnixNano"].as_str());
        assert!(start <= end && start >= run["startTimeUnixNano"].as_str(), "{call}");
    }
    // The request without a trace has one of its own.
    assert_eq!(others.len(), 2);
    assert_eq!((&others[0]["traceId"], &others[0]["parentSpanId"]), (&others[1]["traceId"], &json!("")));
    assert_eq!(others[0]["traceId"].as_str().unwrap().len(), 32);

    let last = bodies("/v1/metrics").pop().unwrap();
    let metrics = last["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    for (name, series) in [("gen_ai.client.operation.duration", 1), ("gen_ai.client.token.usage", 2)] {
        let metric = metrics.iter().find(|metric| metric["name"] == name).unwrap();
        let points = metric["histogram"]["dataPoints"].as_array().unwrap();
        assert!(points.len() >= series, "{metric}");
        for point in points {
            let counts = point["bucketCounts"].as_array().unwrap().iter();
            let sum: u64 = counts.map(|count| count.as_str().unwrap().parse::<u64>().unwrap()).sum();
            assert_eq!(point["count"].as_str().unwrap().parse(), Ok(sum), "{metric}");
            assert_eq!(point["bucketCounts"].as_array().unwrap().len(), 15);
        }
    }
}

#[test]
fn requests_do_not_wait_for_a_collector_that_is_gone() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let telemetry = Telemetry::new("http://127.0.0.1:1", "tests", &[]).unwrap();
    let gate = Gate::start(targets(&openai(&server.url())).with_telemetry(telemetry));
    let body = json!({"model": "primary", "messages": [{"role": "user", "content": "Maria, 34"}]});
    for _ in 0..20 {
        assert_eq!(gate.post("/v1/chat/completions", &[], &body).status, 200);
    }
}
