//! Requests without a contract: passed through byte for byte, or translated.

use std::io::{Read as _, Write as _};

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::support::{Gate, completion, request, schema, section, ways};

/// An unusual body, which a reader and writer of JSON would change.
const BODY: &str = "{ \"id\" :\t\"x\", \"n\": 1.50, \"big\": 1234567890123456789012345678901234567890, \"choices\": [ ],\n \"extra\": {\"z\":1, \"a\": \"\\u00e9\"} }\n";

const EVENTS: &[u8] = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n: note\nevent: x\r\ndata:{}\n\ndata: [DONE]\n\ndata: {\"type\":\"message_stop\",\"done\":true}\n\n";

fn plain() -> [(&'static str, &'static str, &'static str, &'static str, Value); 4] {
    let messages = json!([{"role": "user", "content": "Hello"}]);
    [
        (
            "openai",
            "/v1/chat/completions",
            "/chat/completions",
            "",
            json!({"messages": messages, "unheard_of": 1}),
        ),
        (
            "anthropic",
            "/v1/messages",
            "/v1/messages",
            "",
            json!({"messages": messages, "max_tokens": 9, "top_k": 4}),
        ),
        ("ollama", "/api/chat", "/api/chat", "", json!({"messages": messages, "options": {"num_ctx": 64}})),
        ("ollama", "/api/generate", "/api/generate", "", json!({"prompt": "Hello", "raw": true})),
    ]
}

#[test]
fn numbers_of_requests_keep_their_digits_even_if_the_body_is_written_anew() {
    let digits = "1234567890123456789012345678901234567890";
    let server = Server::start([Reply::json(BODY)]).unwrap();
    let gate = Gate::new(&section("primary", "openai", &server.url()));
    let body = format!(r#"{{"model": "primary", "messages": [], "seed": {digits}, "top_p": 0.50}}"#);
    assert_eq!(gate.send(&request("/v1/chat/completions", &[], body.as_bytes())).status, 200);
    let sent = String::from_utf8(server.received()[0].body.clone()).unwrap();
    assert_eq!(sent, body.replace("primary", "m-1"));
    // Servers differ in which of two equal names they read, so the body has to be written anew.
    let double = body.replace("\"top_p\"", "\"top_p\": 0.25, \"top_p\"");
    let got = gate.send(&request("/v1/chat/completions", &[], double.as_bytes()));
    let sent = String::from_utf8(server.received()[1].body.clone()).unwrap();
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(sent, format!(r#"{{"messages":[],"model":"m-1","seed":{digits},"top_p":0.50}}"#));
}

#[test]
fn the_same_protocol_is_passed_through_byte_for_byte() {
    for (kind, path, upstream, _, mut body) in plain() {
        for (reply, expected) in [
            (Reply::json(BODY), BODY.as_bytes()),
            (Reply::pieces(EVENTS.chunks(1)).with_header("content-type", "text/event-stream"), EVENTS),
            (Reply::pieces(EVENTS.chunks(50)).with_header("content-type", "text/event-stream"), EVENTS),
        ] {
            let server = Server::start([reply]).unwrap();
            let gate = Gate::new(&section("primary", kind, &server.url()));
            body["model"] = "primary".into();
            let got = gate.post(path, &[("anthropic-version", "2023-06-01")], &body);
            assert_eq!((got.status, got.body.as_slice()), (200, expected), "{kind} {path}");
            let received = &server.received()[0];
            let mut request = body.clone();
            request["model"] = "m-1".into();
            assert_eq!(
                (received.path.as_str(), serde_json::from_slice::<Value>(&received.body).unwrap()),
                (upstream, request)
            );
            assert_eq!(received.header("anthropic-version"), Some("2023-06-01"));
        }
    }
}

#[test]
fn an_error_about_the_request_is_the_targets_own_and_others_are_ours() {
    for (upstream, expected) in
        [(400, 400), (422, 422), (401, 502), (403, 502), (404, 502), (429, 429), (500, 502), (529, 503)]
    {
        let reply = Reply::json(r#"{"error": {"message": "its own"}}"#).with_status(upstream);
        let server = Server::start([reply]).unwrap();
        let gate = Gate::new(&section("primary", "openai", &server.url()));
        let body = json!({"model": "primary", "messages": [{"role": "user", "content": "Hello"}]});
        let got = gate.post("/v1/chat/completions", &[], &body);
        assert_eq!(got.status, expected, "{upstream}: {}", got.text());
        assert!(got.json()["error"]["message"].is_string());
    }
}

#[test]
fn another_protocol_is_translated() {
    let answers = [
        (
            "openai",
            json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}]}),
        ),
        (
            "anthropic",
            json!({"id": "m", "type": "message", "role": "assistant", "model": "m-1", "content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}),
        ),
        (
            "ollama",
            json!({"model": "m-1", "message": {"role": "assistant", "content": "Hi."}, "done": true, "done_reason": "stop"}),
        ),
    ];
    for (kind, answer) in answers {
        for way in ways() {
            for stream in [false, true] {
                let server = Server::start([Reply::json(answer.to_string())]).unwrap();
                let gate = Gate::new(&section("primary", kind, &server.url()));
                let mut body = way.body("primary", stream);
                for name in ["response_format", "tools", "tool_choice", "text", "output_config", "format"] {
                    body.as_object_mut().unwrap().remove(name);
                }
                let got = gate.post(way.path, &[], &body);
                assert_eq!(got.status, 200, "{kind} {}: {}", way.name, got.text());
                assert!(got.text().contains("Hi."), "{kind} {} {stream}: {}", way.name, got.text());
            }
        }
    }
}

#[test]
fn embeddings_are_passed_through() {
    let server = Server::start([Reply::json(BODY)]).unwrap();
    let gate = Gate::new(&section("primary", "openai", &server.url()));
    let got = gate.post("/v1/embeddings", &[], &json!({"model": "primary", "input": "x"}));
    assert_eq!((got.status, got.text().as_str()), (200, BODY));
    assert_eq!(server.received()[0].path, "/embeddings");
    let gate = Gate::new(&section("primary", "ollama", &server.url()));
    assert_eq!(gate.post("/v1/embeddings", &[], &json!({"model": "primary", "input": "x"})).status, 400);
}

#[test]
fn tokens_are_counted_by_the_target_or_estimated() {
    let body = json!({"model": "primary", "messages": [{"role": "user", "content": "a".repeat(300)}]});
    let server = Server::start([Reply::json(r#"{"input_tokens": 77}"#)]).unwrap();
    let gate = Gate::new(&section("primary", "anthropic", &server.url()));
    let got = gate.post("/v1/messages/count_tokens", &[], &body);
    assert_eq!((got.status, got.text().as_str()), (200, r#"{"input_tokens": 77}"#));
    assert_eq!(server.received()[0].path, "/v1/messages/count_tokens");
    let gate = Gate::new(&section("primary", "openai", &server.url()));
    let got = gate.post("/v1/messages/count_tokens", &[], &body);
    assert_eq!(
        (got.json(), got.header("x-formwork-estimated")),
        (json!({"input_tokens": 104}), Some("input_tokens"))
    );
    assert_eq!(server.received().len(), 1);
    for path in ["/api/embed", "/api/embeddings"] {
        let server = Server::start([Reply::json(BODY)]).unwrap();
        let gate = Gate::new(&section("primary", "ollama", &server.url()));
        let got = gate.post(path, &[], &json!({"model": "primary", "input": "x"}));
        assert_eq!((got.text().as_str(), server.received()[0].path.as_str()), (BODY, path));
    }
}

#[test]
fn resources_that_are_not_there_are_404_in_the_form_of_their_protocol() {
    let gate = Gate::new(&section("primary", "openai", "http://127.0.0.1:9"));
    for (path, pointer) in [
        ("/v1/moderations", "/error/code"),
        ("/v1/audio/speech", "/error/code"),
        ("/v1/messages/batches", "/error/type"),
        ("/api/pull", "/error"),
    ] {
        let got = gate.post(path, &[], &json!({}));
        assert_eq!(got.status, 404, "{path}");
        assert!(got.json().pointer(pointer).is_some_and(Value::is_string), "{path}: {}", got.text());
    }
}

#[test]
fn the_code_of_a_refused_request_survives_a_contract_and_a_translation() {
    let long = json!({"message": "This model's maximum context length is 128 tokens.", "code": "context_length_exceeded"});
    let image = json!({"message": "no", "param": "messages[0].content", "code": "invalid_image_url"});
    // What is too long for a code says nothing.
    let odd = json!({"message": "no", "param": 7, "code": "x".repeat(500)});
    let errors = [
        (&long, "context_length_exceeded", Value::Null),
        (&image, "invalid_image_url", image["param"].clone()),
        (&odd, "invalid_request", Value::Null),
    ];
    let chat = || ways().into_iter().filter(|way| way.path.starts_with("/v1/chat"));
    for (error, code, param) in &errors {
        for (kind, way) in chat().flat_map(|way| [("openai", way), ("ollama", way)]) {
            for has_contract in [false, true] {
                let error = json!({"error": error}).to_string();
                let server = Server::start([Reply::json(error.as_str()).with_status(400)]).unwrap();
                let gate = Gate::new(&section("primary", kind, &server.url()));
                let mut body = way.body("primary", false);
                if !has_contract {
                    for name in ["response_format", "tools", "tool_choice"] {
                        body.as_object_mut().unwrap().remove(name);
                    }
                }
                let got = gate.post(way.path, &[], &body);
                let told = &got.json()["error"];
                if kind == "openai" && !has_contract {
                    // It passes as it is.
                    assert_eq!(got.text(), error);
                    continue;
                }
                let found = (got.status, &told["code"], &told["param"]);
                assert_eq!(found, (400, &json!(code), param), "{kind} {has_contract}: {told}");
            }
        }
    }
}

#[test]
fn a_stream_has_as_many_answers_as_are_asked_for() {
    let server = Server::start([completion(r#"{"age": 340}"#), completion(r#"{"age": 34}"#)]).unwrap();
    let gate = Gate::new(&section("primary", "openai", &server.url()));
    for way in ways().into_iter().filter(|way| way.path.starts_with("/v1/chat")) {
        let mut body = way.body("primary", true);
        body["n"] = 3.into();
        let documents = gate.post(way.path, &[], &body).documents();
        for index in 0..3 {
            let mine: Vec<Value> = documents
                .iter()
                .filter(|document| document["choices"][0]["index"] == index)
                .cloned()
                .collect();
            assert_eq!(way.streamed(&mine), r#"{"age":34}"#, "{} {index}: {documents:?}", way.name);
            let ends = mine.iter().filter(|document| document["choices"][0]["finish_reason"].is_string());
            assert_eq!(ends.count(), 1, "{} {index}", way.name);
        }
    }
}

#[test]
fn pages_of_an_allowed_origin_may_send_the_headers_of_the_official_clients() {
    let origin = "https://app.example.org";
    let config = section("primary", "openai", "http://127.0.0.1:9");
    let gate = Gate::start(super::support::targets(&config).with_origins(vec![origin.to_owned()]));
    for (from, status) in [(origin, 204), ("https://evil.example", 403)] {
        let asked = "authorization, content-type, x-stainless-lang, x-stainless-retry-count";
        let head = format!(
            "OPTIONS /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\norigin: {from}\r\naccess-control-request-method: POST\r\n\
             access-control-request-headers: {asked}\r\nconnection: close\r\n\r\n"
        );
        let got = gate.send(head.as_bytes());
        assert_eq!(got.status, status, "{from}");
        let is_allowed = status == 204;
        assert_eq!(got.header("access-control-allow-headers"), is_allowed.then_some(asked), "{from}");
        assert_eq!(got.header("access-control-allow-origin"), is_allowed.then_some(origin), "{from}");
    }
    // The page sees the status of every refusal of its request.
    let ledger = formwork_ledger::Ledger::in_memory(Default::default()).unwrap();
    ledger.add_key(formwork_ledger::NewKey::new("alice"), super::support::now()).unwrap();
    let builder = super::support::targets(&config).with_origins(vec![origin.to_owned()]).with_ledger(ledger);
    let gate = Gate::start(builder);
    for (headers, path, status) in [
        (&[("origin", origin)][..], "/v1/chat/completions", 401),
        (&[("origin", origin), ("x-api-key", "fw-nobody")], "/v1/chat/completions", 401),
        (&[("origin", origin), ("content-encoding", "gzip")], "/v1/messages", 401),
    ] {
        let got = gate.post(path, headers, &json!({"model": "primary"}));
        assert_eq!((got.status, got.header("access-control-allow-origin")), (status, Some(origin)));
    }
}

#[test]
fn a_vendors_header_of_several_lines_is_one_list() {
    let tools = json!([{"name": "find", "input_schema": {"type": "object"}}]);
    for tools in [Value::Null, tools] {
        let answer = json!({"type": "message", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"});
        let server = Server::start([Reply::json(answer.to_string())]).unwrap();
        let gate = Gate::new(&section("primary", "anthropic", &server.url()));
        let body = json!({
            "model": "primary", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}], "tools": tools,
        });
        let ask = |second: &str| {
            let headers =
                [("idempotency-key", "k"), ("anthropic-beta", "files-api"), ("anthropic-beta", second)];
            gate.post("/v1/messages", &headers, &body)
        };
        assert_eq!(ask("skills").status, 200, "{tools}");
        assert_eq!(server.received()[0].header("anthropic-beta"), Some("files-api,skills"), "{tools}");
        // Another line is another request.
        assert_eq!(ask("compact").status, 400, "{tools}");
    }
}

#[test]
fn a_beta_of_a_vendor_is_asked_of_its_target_beside_a_format() {
    let schema = schema();
    let openai =
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}});
    let anthropic =
        json!({"max_tokens": 9, "output_config": {"format": {"type": "json_schema", "schema": schema}}});
    let message = json!({"type": "message", "content": [{"type": "text", "text": "{\"age\":34}"}], "stop_reason": "end_turn"});
    for (kind, path, header, mut body, answer) in [
        ("openai", "/v1/chat/completions", "openai-beta", openai, completion("{\"age\":34}")),
        ("anthropic", "/v1/messages", "anthropic-beta", anthropic, Reply::json(message.to_string())),
    ] {
        let server = Server::start([answer]).unwrap();
        let gate = Gate::new(&section("primary", kind, &server.url()));
        (body["model"], body["messages"]) = ("primary".into(), json!([{"role": "user", "content": "Hello"}]));
        let got = gate.post(path, &[(header, "context-1m")], &body);
        assert_eq!(got.status, 200, "{}", got.text());
        assert_eq!(server.received()[0].header(header), Some("context-1m"), "{kind}");
    }
}

#[test]
fn a_stream_that_is_cut_within_an_event_has_whole_events_and_an_error() {
    let [openai, anthropic, ollama, _] = plain();
    let events =
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\nevent: x\ndata: {\"type\":\"x\",\"te";
    let lines = "{\"message\":{\"content\":\"a\"},\"done\":false}\n{\"message\":{\"con";
    for ((kind, path, _, _, mut body), text) in [(openai, events), (anthropic, events), (ollama, lines)] {
        for size in [1, 7, 1_000] {
            let pieces = text.as_bytes().chunks(size).map(<[u8]>::to_vec);
            let media = if kind == "ollama" { "application/x-ndjson" } else { "text/event-stream" };
            let server = Server::start([Reply::pieces(pieces).with_header("content-type", media)]).unwrap();
            let gate = Gate::new(&section("primary", kind, &server.url()));
            (body["model"], body["stream"]) = ("primary".into(), true.into());
            let got = gate.post(path, &[], &body);
            let text = got.text();
            let data = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
            let data: Vec<Value> = data
                .filter(|line| line.starts_with('{'))
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            assert_eq!(data.len(), 2, "{kind} {size}: {text}");
            assert!(!data[1]["error"].is_null(), "{kind} {size}: {text}");
        }
    }
}

/// Some servers end their events with one line end, and are not held back.
#[test]
fn lines_of_a_stream_pass_as_they_come() {
    let line = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n";
    let reply = Reply::endless(line).with_header("content-type", "text/event-stream");
    let server = Server::start([reply.with_pause(std::time::Duration::from_millis(1))]).unwrap();
    let gate = Gate::new(&section("primary", "openai", &server.url()));
    let [(_, path, _, _, mut body), ..] = plain();
    (body["model"], body["stream"]) = ("primary".into(), true.into());
    let mut socket = gate.connect();
    socket.write_all(&request(path, &[], body.to_string().as_bytes())).unwrap();
    let mut text = Vec::new();
    while !String::from_utf8_lossy(&text).contains("\"a\"") {
        let mut bytes = [0; 512];
        let read = socket.read(&mut bytes).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&text));
        text.extend_from_slice(&bytes[..read]);
    }
}

/// The beginning of such an event was passed on, and an error behind it would be a part of it.
#[test]
fn the_error_after_a_long_event_that_is_cut_can_be_read() {
    let pieces = ["data: {\"a\":\"".to_owned(), "x".repeat(5 << 20)];
    let reply = Reply::pieces(pieces).with_header("content-type", "text/event-stream");
    let server = Server::start([reply]).unwrap();
    let gate = Gate::new(&section("primary", "openai", &server.url()));
    let [(_, path, _, _, mut body), ..] = plain();
    (body["model"], body["stream"]) = ("primary".into(), true.into());
    let text = gate.post(path, &[], &body).text();
    let (long, error) = text.split_once("\n\n").unwrap();
    assert!(long.len() > 4 << 20 && error.starts_with("data: {\"error\""), "{error:.200}");
}

#[test]
fn the_callers_trace_goes_on_to_the_target() {
    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    let messages = json!([{"role": "user", "content": "Hello"}]);
    let tools = json!([{"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}]);
    let plain = json!({"messages": messages});
    let mut bodies = vec![
        ("/v1/chat/completions", plain.clone()),
        ("/v1/chat/completions", json!({"messages": messages, "tools": tools})),
        ("/api/chat", plain),
        ("/v1/embeddings", json!({"input": "Hello"})),
    ];
    bodies.extend(ways().into_iter().map(|way| (way.path, way.body("primary", false))));
    bodies.push(("/v1/extract", json!({"input": "Maria, 34", "schema": schema()})));
    for (path, mut body) in bodies {
        for stream in [false, true] {
            for (parent, expected) in [(PARENT, Some(PARENT)), ("00-1-2-3", None)] {
                let server = Server::start([completion(r#"{"age": 34}"#)]).unwrap();
                let gate = Gate::new(&section("primary", "openai", &server.url()));
                if path != "/v1/extract" {
                    body["model"] = "primary".into();
                }
                if path != "/v1/embeddings" {
                    body["stream"] = stream.into();
                }
                let got = gate.post(path, &[("traceparent", parent), ("tracestate", "a=1")], &body);
                assert_eq!(got.status, 200, "{path}: {}", got.text());
                let received = server.received();
                assert_eq!(received[0].header("traceparent"), expected, "{path} {stream} {body}");
                assert_eq!(received[0].header("tracestate"), expected.map(|_| "a=1"), "{path} {stream}");
            }
        }
    }
}

#[test]
fn a_secret_that_a_target_quotes_is_not_passed_on() {
    let secret = "sk-upstream-secret-123456";
    let error =
        json!({"error": {"message": format!("no: {secret}"), "type": "invalid_request_error"}}).to_string();
    let tools = json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]);
    let user = json!([{"role": "user", "content": "Hello"}]);
    let plain = json!({"model": "primary", "messages": user});
    let of = |more: Value| {
        let mut body = plain.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let event = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}}}}]}}\n\ndata: {error}\n\n"
    );
    let refused = |status| Reply::json(error.clone()).with_status(status);
    let streamed = || Reply::pieces([event.clone()]).with_header("content-type", "text/event-stream");
    for (path, body, reply) in [
        ("/v1/chat/completions", plain.clone(), refused(400)),
        ("/v1/chat/completions", plain.clone(), refused(422)),
        ("/v1/chat/completions", plain.clone(), refused(500)),
        ("/v1/chat/completions", of(json!({"tools": tools})), refused(400)),
        ("/v1/chat/completions", of(json!({"stream": true})), streamed()),
        ("/v1/chat/completions", of(json!({"stream": true, "tools": tools})), streamed()),
        ("/v1/embeddings", json!({"model": "primary", "input": "a"}), refused(400)),
    ] {
        let server = Server::start([reply]).unwrap();
        let config = section("primary", "openai", &server.url());
        let command = format!("api_key_command = [\"echo\", \"{secret}\"]");
        let gate = Gate::new(&config.replace("api_key_env = \"\"", &command));
        let got = gate.post(path, &[], &body);
        assert_eq!(server.received()[0].header("authorization"), Some(&*format!("Bearer {secret}")));
        assert!(got.text().contains("no: "), "{body}: {}", got.text());
        assert!(!got.text().contains(secret), "{body}: {}", got.text());
        if let Some(length) = got.header("content-length") {
            assert_eq!(length, got.body.len().to_string(), "{body}");
        }
    }
}

#[test]
fn an_empty_response_is_no_answer() {
    for (_, path, _, _, mut body) in plain() {
        for empty in [Reply::json(""), Reply::raw("HTTP/1.1 204 No Content\r\n\r\n")] {
            let kind = if path == "/v1/messages" {
                "anthropic"
            } else if path.starts_with("/api") {
                "ollama"
            } else {
                "openai"
            };
            let [first, second] = [empty, Reply::json(BODY)].map(|reply| Server::start([reply]).unwrap());
            let gate =
                Gate::new(&(section("first", kind, &first.url()) + &section("second", kind, &second.url())));
            body["model"] = "first,second".into();
            let got = gate.post(path, &[], &body);
            assert_eq!((got.status, got.text().as_str()), (200, BODY), "{path}");
            body["model"] = "first".into();
            assert_eq!(gate.post(path, &[], &body).status, 502, "{path}");
        }
    }
}

#[test]
fn a_stream_has_its_end_whatever_its_media_type_is_called() {
    let events = |end: &str| {
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}});
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}}}}]}}\n\ndata: {usage}\n\n{end}"
        )
    };
    let body = json!({"model": "primary", "messages": [], "stream": true});
    for media in ["text/event-stream", "Text/Event-Stream; charset=utf-8", "application/octet-stream"] {
        for (end, is_whole) in [("data: [DONE]\n\n", true), ("", false)] {
            let server =
                Server::start([Reply::pieces([events(end)]).with_header("content-type", media)]).unwrap();
            let ledger = formwork_ledger::Ledger::in_memory(Default::default()).unwrap();
            let config = section("primary", "openai", &server.url());
            let gate = Gate::start(super::support::targets(&config).with_ledger(ledger));
            let text = gate.post("/v1/chat/completions", &[], &body).text();
            assert!(!text.contains("usage"), "the client did not ask for it, {media}: {text}");
            assert_eq!(text.contains("\"error\""), !is_whole, "{media}: {text}");
        }
    }
}

#[test]
fn an_answer_that_would_be_fetched_later_is_refused() {
    let server = Server::start([Reply::json(BODY)]).unwrap();
    let config =
        section("primary", "openai", &server.url()).trim_end().to_owned() + "\napi = \"responses\"\n";
    let gate = Gate::new(&config);
    for (background, status) in [(true, 400), (false, 200)] {
        let body = json!({"model": "primary", "input": "Hello", "background": background});
        assert_eq!(gate.post("/v1/responses", &[], &body).status, status, "{background}");
    }
    assert_eq!(server.received().len(), 1);
}
