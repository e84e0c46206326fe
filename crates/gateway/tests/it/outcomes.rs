//! Every outcome in every protocol.

use std::sync::Arc;

use async_trait::async_trait;
use formwork::config::Defaults;
use formwork_core::{Answer, Calibrations, Call, Capabilities, Enforcement, Fault, Provider};
use formwork_extract::Backend;
use formwork_gateway::{Gateway, Target};
use formwork_ledger::{Ledger, RunQuery, Settings};
use formwork_testkit::Scripted;
use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::support::{Gate, Received, Way, completion, finished, limits, openai, targets, ways};

/// The expected response to a client.
enum Expected {
    /// The value, after so many calls.
    Value(usize),
    Refusal,
    Truncated,
    /// An error with this status, `x-should-retry` and `retry-after`.
    Error(u16, &'static str, Option<&'static str>),
}

fn cases() -> Vec<(&'static str, Vec<Reply>, Expected)> {
    let refusal =
        || finished(&json!({"role": "assistant", "content": null, "refusal": "I will not."}), "stop");
    let cut = || finished(&json!({"role": "assistant", "content": "{\"ag"}), "length");
    vec![
        ("right at once", vec![completion(r#"{"age": 34}"#)], Expected::Value(1)),
        ("right in prose", vec![completion("Sure:\n```json\n{\"age\": 34}\n```")], Expected::Value(1)),
        (
            "wrong, then right",
            vec![completion(r#"{"age": 340}"#), completion(r#"{"age": 34}"#)],
            Expected::Value(2),
        ),
        (
            "no JSON, then right",
            vec![completion("Maria is 34."), completion(r#"{"age": 34}"#)],
            Expected::Value(2),
        ),
        ("refused", vec![refusal()], Expected::Refusal),
        ("truncated", vec![cut()], Expected::Truncated),
        ("unmendable", vec![completion(r#"{"age": "old"}"#)], Expected::Error(422, "false", None)),
        (
            "rate-limited",
            vec![Reply::status(429).with_header("retry-after", "7")],
            Expected::Error(429, "true", Some("7")),
        ),
        ("down", vec![Reply::status(503)], Expected::Error(503, "true", Some("1"))),
        ("overloaded", vec![Reply::status(529)], Expected::Error(503, "true", Some("1"))),
        ("an error of the server", vec![Reply::status(500)], Expected::Error(502, "true", Some("1"))),
        ("hangs up", vec![Reply::raw([])], Expected::Error(503, "true", Some("1"))),
        ("our key is wrong", vec![Reply::status(401)], Expected::Error(502, "false", None)),
        ("our key is not allowed", vec![Reply::status(403)], Expected::Error(502, "false", None)),
        ("a web page", vec![Reply::html("<html>")], Expected::Error(502, "false", None)),
    ]
}

#[test]
fn every_outcome_has_the_words_of_every_protocol() {
    for way in ways() {
        for (case, replies, seen) in cases() {
            let server = Server::start(replies).unwrap();
            let gate = Gate::new(&openai(&server.url()));
            let got = gate.post(way.path, &[], &way.body("primary", false));
            check(&format!("{}, {case}", way.name), way, &got, &seen);
        }
    }
}

/// An error of the server is none of its load, in the words of each protocol.
#[test]
fn an_error_of_the_server_is_not_called_overloaded() {
    for (status, is_load) in [(500, false), (502, false), (503, true), (529, true)] {
        for way in ways() {
            for is_plain in [false, true] {
                let server = Server::start([Reply::status(status)]).unwrap();
                let mut body = way.body("primary", false);
                if is_plain {
                    for name in ["response_format", "text", "tools", "tool_choice", "output_config", "format"]
                    {
                        body.as_object_mut().unwrap().remove(name);
                    }
                }
                let got = Gate::new(&openai(&server.url())).post(way.path, &[], &body);
                let (at, error) = (format!("{}, {status}, {is_plain}: {}", way.name, got.text()), got.json());
                assert_eq!(got.status, if is_load { 503 } else { 502 }, "{at}");
                assert_eq!(way.message(&error).contains("overloaded"), is_load, "{at}");
                match way.path {
                    "/v1/messages" => {
                        let expected = if is_load { "overloaded_error" } else { "api_error" };
                        assert_eq!(error["error"]["type"], expected, "{at}");
                    }
                    "/v1/chat/completions" | "/v1/responses" => {
                        let expected = if is_load { "no_target_available" } else { "bad_gateway" };
                        assert_eq!(error["error"]["code"], expected, "{at}");
                    }
                    _ => {}
                }
            }
        }
    }
}

/// The address of a target is for the log and the ledger.
#[test]
fn no_client_sees_the_address_of_a_target() {
    let hangs_up = Server::start([Reply::raw([])]).unwrap();
    let half =
        Reply::raw(*b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{");
    let cut = Server::start([half]).unwrap();
    let odd = Server::start([Reply::raw(*b"SSH-2.0-OpenSSH_9.9\r\n")]).unwrap();
    for url in ["http://127.0.0.1:9", &hangs_up.url(), &cut.url(), &odd.url()] {
        let ledger = Ledger::in_memory(Settings::default()).unwrap();
        let builder = targets(&openai(url)).with_limits(limits()).with_ledger(ledger.clone());
        let gate = Gate::start(builder);
        let tools =
            json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]);
        let messages = json!([{"role": "user", "content": "Hi"}]);
        let mut requests: Vec<_> = ways()
            .iter()
            .flat_map(|way| [false, true].map(|stream| (way.path, way.body("primary", stream))))
            .collect();
        requests.push(("/v1/chat/completions", json!({"model": "primary", "messages": messages})));
        requests.push((
            "/v1/chat/completions",
            json!({"model": "primary", "messages": messages, "tools": tools}),
        ));
        requests.push(("/v1/messages", json!({"model": "primary", "messages": messages, "max_tokens": 9})));
        requests.push(("/v1/extract", json!({"input": "Maria, 34", "schema": super::support::schema()})));
        requests.push((
            "/v1/extract",
            json!({"input": "Maria, 34", "schema": super::support::schema(), "stream": true}),
        ));
        for (path, body) in requests {
            let got = gate.post(path, &[], &body);
            let text = String::from_utf8_lossy(&got.body).into_owned();
            let is_passed = path == "/v1/chat/completions" && got.status == 200 && text == "{";
            assert!(text.contains("error") || is_passed, "{path}: {text}");
            assert!(!text.contains("127.0.0.1"), "{path} of {url}: {text}");
        }
        ledger.flush_blocking().unwrap();
        let runs = ledger.runs(&RunQuery::default()).unwrap().runs;
        assert!(runs.iter().any(|run| run.message.as_deref().is_some_and(|text| text.contains("127.0.0.1"))));
    }
    // Neither in the history of a value.
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let down = super::support::section("down", "openai", "http://127.0.0.1:9");
    for stream in [false, true] {
        let gate = Gate::new(&(down.clone() + &openai(&server.url())));
        let body = json!({"input": "Maria, 34", "schema": super::support::schema(), "targets": ["down", "primary"], "stream": stream});
        let got = gate.post("/v1/extract", &[], &body);
        assert!(got.text().contains("unreachable") && got.text().contains(r#"{"age":34}"#), "{}", got.text());
        assert!(!got.text().contains("127.0.0.1"), "{}", got.text());
    }
}

/// A model may decline without a word.
#[test]
fn an_empty_refusal_has_no_words() {
    let body = json!({"id": "x", "type": "message", "role": "assistant", "content": [], "stop_reason": "refusal", "usage": {"input_tokens": 9, "output_tokens": 1}});
    for way in ways() {
        for stream in [false, true] {
            let server = Server::start([Reply::json(body.to_string())]).unwrap();
            let gate = Gate::new(&super::support::section("primary", "anthropic", &server.url()));
            let got = gate.post(way.path, &[], &way.body("primary", stream));
            let at = format!("{}, stream {stream}: {}", way.name, got.text());
            assert_eq!(got.status, 200, "{at}");
            assert!(!got.text().contains("gave no"), "{at}");
            if stream {
                assert_eq!(way.streamed(&got.documents()), "", "{at}");
            } else {
                assert_eq!(way.refusal(&got.json()), "", "{at}");
            }
            if way.path == "/v1/messages" {
                assert!(!got.text().contains(r#""text":"""#), "Anthropic takes no empty text back: {at}");
            }
        }
    }
}

#[test]
fn what_was_done_to_an_answer_is_named_in_a_header() {
    for (text, named) in [
        (r#"{"age": 34}"#, None),
        ("Sure: {\"age\": 34}", None),
        (r#"{"age": 34,}"#, Some("repaired")),
        (r#"{"age": 33, "age": 34}"#, Some("duplicate_key")),
        ("{\"age\": 33}\n{\"age\": 34}", Some("documents")),
    ] {
        for way in ways() {
            let server = Server::start([completion(text)]).unwrap();
            let got = Gate::new(&openai(&server.url())).post(way.path, &[], &way.body("primary", false));
            check(&format!("{}, {text}", way.name), way, &got, &Expected::Value(1));
            assert_eq!(got.header("x-formwork-warnings"), named, "{}, {text}", way.name);
        }
    }
}

#[test]
fn a_wrapped_schema_is_unwrapped_and_named_in_a_header() {
    let server =
        Server::start([completion(r#"{"totally": "wrong"}"#), completion(r#"{"age": 34}"#)]).unwrap();
    let inner = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
    let body = json!({
        "model": "primary", "messages": [{"role": "user", "content": "Maria, 34"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"name": "x", "input_schema": inner}}},
    });
    let got = Gate::new(&openai(&server.url())).post("/v1/chat/completions", &[], &body);
    // The first answer shows that the server does not enforce the schema.
    let warnings = got.header("x-formwork-warnings");
    assert_eq!((got.status, warnings), (200, Some("unwrapped, weaker_mode")), "{}", got.text());
    assert_eq!(server.received().len(), 2, "the first answer breaks the schema");
}

/// A header and a member of the body say what is done with values that do not fit.
#[test]
fn values_that_do_not_fit_are_converted_as_the_request_says() {
    for way in ways() {
        let server = Server::start([completion(r#"{"age": "34"}"#), completion(r#"{"age": 35}"#)]).unwrap();
        let gate = Gate::new(&openai(&server.url()));
        let got = gate.post(way.path, &[("x-formwork-coerce", "ask")], &way.body("primary", false));
        assert_eq!((got.status, server.received().len()), (200, 2), "{}: {}", way.name, got.text());
        let got = gate.post(way.path, &[("x-formwork-coerce", "fixed")], &way.body("primary", false));
        assert_eq!(got.status, 400, "{}: {}", way.name, got.text());
    }
    let server = Server::start([completion(r#"{"age": "34"}"#)]).unwrap();
    let gate = Gate::new(&openai(&server.url()));
    let body = json!({"input": "Maria", "schema": super::support::schema()});
    let got = gate.post("/v1/extract", &[], &body).json();
    assert_eq!(got["value"], json!({"age": 34}), "{got}");
    assert_eq!(server.received().len(), 1);
}

/// A header, the schema of the request and a member of the body allow `null`; the usage lists the member.
#[test]
fn members_that_the_text_does_not_state_are_listed_in_every_protocol() {
    for way in ways() {
        let server = Server::start([completion(r#"{"age": null}"#)]).unwrap();
        let gate = Gate::new(&openai(&server.url()));
        let got = gate.post(way.path, &[("x-formwork-absent", "all")], &way.body("primary", false));
        let body = got.json();
        assert_eq!(got.status, 200, "{}: {body}", way.name);
        assert_eq!(
            serde_json::from_str::<Value>(&way.text(&body)).unwrap(),
            json!({"age": null}),
            "{}",
            way.name
        );
        assert!(body.to_string().contains(r#""not_stated":["$.age"]"#), "{}: {body}", way.name);
        assert!(
            body.to_string().contains(r#""not_stated":{"count":1,"paths":["$.age"]}"#),
            "{}: {body}",
            way.name
        );
        let got = gate.post(way.path, &[("x-formwork-absent", "age")], &way.body("primary", false));
        assert_eq!(got.status, 400, "{}: {}", way.name, got.text());
        // Without it the run ends after two answers.
        let got = gate.post(way.path, &[], &way.body("primary", false));
        assert_eq!((got.status, server.received().len()), (422, 3), "{}: {}", way.name, got.text());
    }
    let server = Server::start([completion(r#"{"age": null}"#)]).unwrap();
    let gate = Gate::new(&openai(&server.url()));
    let mut marked = super::support::schema();
    marked["properties"]["age"]["x-formwork-absent"] = json!(true);
    for body in [
        json!({"input": "Maria", "schema": marked}),
        json!({"input": "Maria", "schema": super::support::schema(), "absent": ["$.age"]}),
    ] {
        let got = gate.post("/v1/extract", &[], &body).json();
        assert_eq!((&got["value"], &got["not_stated"]), (&json!({"age": null}), &json!(["$.age"])), "{got}");
        assert_eq!(got["trust"]["other"]["not_stated"]["count"], 1, "{got}");
    }
    let got = gate.post("/v1/extract", &[], &json!({"input": "Maria", "schema": super::support::schema()}));
    assert_eq!((got.status, &got.json()["error"]["code"]), (422, &json!("not_stated")), "{}", got.text());
}

/// The search for places costs as much as the rest of a small request.
#[test]
fn the_ledger_has_the_evidence_of_a_run_where_it_keeps_texts() {
    for keeps_texts in [true, false] {
        let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
        let ledger = Ledger::in_memory(Settings { bodies: true, ..Settings::default() }).unwrap();
        let gateway = targets(&openai(&server.url())).with_limits(limits()).with_ledger(ledger.clone());
        let gate = Gate::start(if keeps_texts { gateway.with_bodies() } else { gateway });
        let way = &ways()[0];
        assert_eq!(gate.post(way.path, &[], &way.body("primary", false)).status, 200);
        ledger.flush_blocking().unwrap();
        let runs = ledger.runs(&RunQuery::default()).unwrap().runs;
        assert_eq!((runs.len(), runs[0].evidence.is_some()), (1, keeps_texts), "{runs:?}");
    }
}

/// The usage has the place of each value if the request asks for it.
#[test]
fn evidence_is_in_the_usage_of_every_protocol_that_is_asked_for_it() {
    for way in ways() {
        let server = Server::start([completion(r#"{"age": 34}"#), completion(r#"{"age": 34}"#)]).unwrap();
        let gate = Gate::new(&openai(&server.url()));
        for (headers, is_there) in [(&[("x-formwork-evidence", "on")][..], true), (&[], false)] {
            let got = gate.post(way.path, headers, &way.body("primary", false));
            let body = got.json();
            assert_eq!(got.status, 200, "{}: {body}", way.name);
            let text = body.to_string();
            assert_eq!(text.contains(r#""evidence":[{"path":"$.age","#), is_there, "{}: {text}", way.name);
            assert_eq!(text.contains(r#""confidence":[{"path":"$.age","#), is_there, "{}: {text}", way.name);
        }
        let got = gate.post(way.path, &[("x-formwork-evidence", "yes")], &way.body("primary", false));
        assert_eq!(got.status, 400, "{}: {}", way.name, got.text());
    }
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let gate = Gate::new(&openai(&server.url()));
    for (input, status) in [("Maria is 34.", "exact"), ("Maria is 43.", "not_found")] {
        let body = json!({"input": input, "schema": super::support::schema(), "evidence": true});
        let got = gate.post("/v1/extract", &[], &body).json();
        assert_eq!(got["evidence"][0]["status"], status, "{got}");
        assert_eq!(got["confidence"][0]["path"], "$.age", "{got}");
    }
}

/// The confidence is a probability by the calibration of the target that answers.
#[test]
fn the_confidence_is_calibrated_by_the_target_that_answers() {
    for (configuration, probability) in [("primary", json!(0.9)), ("other", Value::Null)] {
        let fitted = json!({"calibrations": [{"configuration": configuration, "others": 0, "evidence": true, "documents": 9,
            "leaves": 99, "error": 0.01, "points": [[0.5, 0.9]]}]});
        let calibrations: Calibrations = serde_json::from_value(fitted).unwrap();
        let calibrations = Some(Arc::new(calibrations));
        let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
        let gateway = targets(&openai(&server.url())).with_limits(limits());
        let gate = Gate::start(gateway.with_defaults(Defaults { calibrations, ..Defaults::default() }));
        let body = json!({"input": "Maria is 34.", "schema": super::support::schema(), "evidence": true});
        let got = gate.post("/v1/extract", &[], &body).json();
        assert_eq!(got["confidence"][0]["probability"], probability, "{got}");
    }
}

fn check(case: &str, way: Way, got: &Received, seen: &Expected) {
    let body = got.json();
    match seen {
        Expected::Value(calls) => {
            assert_eq!(got.status, 200, "{case}: {body}");
            let value: Value =
                serde_json::from_str(&way.text(&body)).unwrap_or_else(|_| panic!("{case}: {body}"));
            assert_eq!(value, json!({"age": 34}), "{case}");
            assert_eq!(got.header("x-formwork-calls"), Some(calls.to_string().as_str()), "{case}");
            assert!(got.header("x-formwork-run").unwrap().starts_with("run"), "{case}");
        }
        Expected::Refusal => {
            assert_eq!(got.status, 200, "{case}: {body}");
            assert_eq!(way.refusal(&body), "I will not.", "{case}: {body}");
        }
        Expected::Truncated => {
            assert_eq!((got.status, way.finish(&body).as_str()), (200, way.length), "{case}: {body}");
        }
        Expected::Error(status, should_retry, retry_after) => {
            assert_eq!(got.status, *status, "{case}: {body}");
            assert!(!way.message(&body).is_empty(), "{case}: {body}");
            assert_eq!(got.header("x-should-retry"), Some(*should_retry), "{case}");
            assert_eq!(got.header("retry-after"), *retry_after, "{case}");
            if *status == 422 {
                let text = body.to_string();
                assert!(text.contains("$.age") && text.contains("integer"), "{case}: {text}");
            }
        }
    }
}

/// A model that never answers.
#[derive(Debug)]
struct Silent(Capabilities);

#[async_trait]
impl Provider for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    async fn call(&self, _: &Call) -> Result<Answer, Fault> {
        std::future::pending().await
    }
}

fn in_process(model: Arc<dyn Provider>) -> Gate {
    let target = Target::new(Backend::from(model), None, "m-1");
    Gate::start(Gateway::builder().with_target(target).with_limits(limits()))
}

#[test]
fn a_deadline_is_a_504() {
    // The result is the same on a slow machine: the first deadline passes before the call, the second during it.
    for deadline in ["0.000001", "0.05"] {
        for way in ways() {
            let gate = in_process(Arc::new(Silent(Capabilities::new(Enforcement::Schema))));
            let got = gate.post(way.path, &[("x-formwork-deadline", deadline)], &way.body("default", false));
            check(way.name, way, &got, &Expected::Error(504, "false", None));
        }
    }
}

#[test]
fn an_unknown_model_is_a_404_with_the_names() {
    for way in ways() {
        let gate = Gate::new(&openai("http://127.0.0.1:1"));
        let got = gate.post(way.path, &[], &way.body("primry", false));
        let body = got.json();
        assert_eq!(
            (got.status, (way.unknown_model)(&body).as_str()),
            (404, "model_not_found"),
            "{}",
            way.name
        );
        let message = way.message(&body);
        assert!(message.contains("did you mean `primary`?") && message.contains("default"), "{message}");
    }
}

#[test]
fn the_next_target_answers_when_the_first_is_down() {
    for way in ways() {
        let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
        let config = format!(
            "targets = [\"down\", \"up\"]\n[lists.best]\ntargets = [\"down\", \"up\"]\n{}{}",
            super::support::section("down", "openai", "http://127.0.0.1:9"),
            super::support::section("up", "openai", &server.url()),
        );
        for model in ["best", "default", "down,up", "best:latest"] {
            let gate = Gate::new(&config);
            let got = gate.post(way.path, &[], &way.body(model, false));
            assert_eq!(got.status, 200, "{} {model}: {}", way.name, got.text());
            assert_eq!(way.text(&got.json()).replace(' ', ""), r#"{"age":34}"#);
        }
    }
}

#[test]
fn targets_of_a_list_are_asked_first_as_often_as_their_weights_say() {
    let plain = json!({"messages": [{"role": "user", "content": "Hello"}]});
    let ways = ways();
    for body in [ways[0].body("", false), plain] {
        let servers = [(); 3].map(|()| Server::start([completion(r#"{"age": 34}"#)]).unwrap());
        let mut config = "[lists.even]\ntargets = [\"a\", \"b\", \"c\"]\norder = \"round-robin\"\n\
                          [lists.uneven]\ntargets = [\"a\", \"b\", \"c\"]\nweights = [2, 1, 0]\n"
            .to_owned();
        for (name, server) in ["a", "b", "c"].into_iter().zip(&servers) {
            config.push_str(&super::support::section(name, "openai", &server.url()));
        }
        let gate = Gate::new(&format!("targets = [\"a\", \"b\", \"c\"]\n{config}"));
        let mut expected = [0; 3];
        for (list, more) in [("even", [2, 2, 2]), ("uneven", [4, 2, 0]), ("default", [6, 0, 0])] {
            for _ in 0..6 {
                let mut body = body.clone();
                body["model"] = list.into();
                assert_eq!(gate.post("/v1/chat/completions", &[], &body).status, 200, "{list}");
                // Lists of names take no turn.
                assert_eq!(gate.get(&format!("/v1/models/{list}")).status, 200);
            }
            expected = [0, 1, 2].map(|nth| expected[nth] + more[nth]);
            let requests = [0, 1, 2].map(|nth: usize| servers[nth].received().len());
            assert_eq!(requests, expected, "{list}");
        }
    }
}

#[test]
fn several_tools_are_one_contract() {
    let tools = json!([
        {"type": "function", "function": {"name": "person", "description": "Saves a person", "parameters": super::support::schema()}},
        {"type": "function", "function": {"name": "nobody", "parameters": {"type": "object", "properties": {}}}},
    ]);
    let wrong = r#"{"tool": "person", "arguments": {"age": "old"}}"#;
    let right = r#"{"tool": "person", "arguments": {"age": 34}}"#;
    let text = r#"{"text": "Hello."}"#;
    for (choice, replies, called) in [
        ("auto", vec![wrong, right], true),
        ("required", vec![wrong, right], true),
        ("auto", vec![text], false),
    ] {
        for stream in [false, true] {
            let gate = in_process(Arc::new(Scripted::new(replies.clone())));
            let body = json!({
                "model": "default", "messages": [{"role": "user", "content": "Maria, 34"}], "tools": tools,
                "tool_choice": choice, "stream": stream,
            });
            let got = gate.post("/v1/chat/completions", &[], &body);
            assert_eq!(got.status, 200, "{}", got.text());
            let documents = if stream { got.documents() } else { vec![got.json()] };
            let member = if stream { "delta" } else { "message" };
            let pick = |pointer: &str| -> String {
                let pointer = format!("/choices/0/{member}/{pointer}");
                documents.iter().filter_map(|one| one.pointer(&pointer)?.as_str()).collect()
            };
            if called {
                assert_eq!(pick("tool_calls/0/function/name"), "person", "{choice}");
                assert_eq!(pick("tool_calls/0/function/arguments"), r#"{"age":34}"#, "{choice}");
            } else {
                assert_eq!(pick("content"), "Hello.", "{choice}");
            }
        }
    }
}

#[test]
fn several_answers_are_several_runs() {
    let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
    let gate = Gate::new(&openai(&server.url()));
    let way = ways()[0];
    let mut body = way.body("primary", false);
    body["n"] = 3.into();
    let got = gate.post(way.path, &[], &body).json();
    assert_eq!(got["choices"].as_array().unwrap().len(), 3);
    assert_eq!((&got["usage"]["prompt_tokens"], server.received().len()), (&json!(30), 3));
    // As many as OpenAI's API gives, and no more.
    body["n"] = 128.into();
    let got = gate.post(way.path, &[], &body);
    assert_eq!(
        (got.status, got.json()["choices"].as_array().map(Vec::len)),
        (200, Some(128)),
        "{}",
        got.text()
    );
    body["n"] = 129.into();
    assert_eq!(gate.post(way.path, &[], &body).status, 400);
}
