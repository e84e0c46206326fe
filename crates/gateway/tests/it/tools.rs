//! Tools whose choice is left to the model, and a target of the same protocol: requests and responses pass as they are, once the
//! arguments of every call satisfy the schema of the tool.

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::support::{Gate, schema, section};

/// A protocol: the format of its requests and responses.
pub(super) struct Protocol {
    pub(super) name: &'static str,
    section: fn(&str) -> String,
    pub(super) path: &'static str,
    /// A request with the tools `find` and `save`.
    request: fn() -> Value,
    /// A response with a text and a call of `save` for each of these arguments.
    whole: fn(&str, &[Value]) -> Value,
    /// The same as a stream.
    stream: fn(&str, &[Value]) -> String,
    /// A response that the token limit ended within a call.
    cut: fn() -> Value,
}

fn events(documents: &[Value]) -> String {
    documents.iter().map(|document| format!("data: {document}\n\n")).collect()
}

fn halves(text: &str) -> [&str; 2] {
    let (first, second) = text.split_at(text.len() / 2);
    [first, second]
}

fn openai_call(nth: usize, arguments: &Value) -> Value {
    json!({"index": nth, "id": format!("c{nth}"), "type": "function", "function": {"name": "save", "arguments": arguments.to_string()}})
}

pub(super) fn protocols() -> Vec<Protocol> {
    vec![
        Protocol {
            name: "openai",
            section: |url| section("primary", "openai", url),
            path: "/v1/chat/completions",
            request: || {
                json!({"messages": [{"role": "user", "content": "Maria, 34"}], "stop": ["x"], "tools": [
                    {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}},
                    {"type": "function", "function": {"name": "save", "parameters": schema()}},
                ]})
            },
            whole: |text, calls| {
                let calls: Vec<Value> =
                    calls.iter().enumerate().map(|(nth, call)| openai_call(nth, call)).collect();
                let message = json!({"role": "assistant", "content": text, "tool_calls": calls});
                json!({"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})
            },
            stream: |text, calls| {
                let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
                let mut documents = vec![delta(json!({"role": "assistant", "content": ""}))];
                documents.extend(halves(text).map(|half| delta(json!({"content": half}))));
                for (nth, call) in calls.iter().enumerate() {
                    let mut first = openai_call(nth, call);
                    first["function"]["arguments"] = "".into();
                    documents.push(delta(json!({"tool_calls": [first]})));
                    for half in halves(&call.to_string()) {
                        documents.push(delta(
                            json!({"tool_calls": [{"index": nth, "function": {"arguments": half}}]}),
                        ));
                    }
                }
                documents
                    .push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}));
                events(&documents) + "data: [DONE]\n\n"
            },
            cut: || {
                let mut call = openai_call(0, &json!({}));
                call["function"]["arguments"] = "{\"age\": ".into();
                let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
                json!({"choices": [{"index": 0, "message": message, "finish_reason": "length"}]})
            },
        },
        Protocol {
            name: "responses",
            section: |url| {
                section("primary", "openai", url)
                    .replace("stream = false", "stream = false\napi = \"responses\"")
            },
            path: "/v1/responses",
            request: || {
                json!({"input": "Maria, 34", "max_tool_calls": 3, "tools": [
                    {"type": "function", "name": "find", "parameters": {"type": "object"}},
                    {"type": "function", "name": "save", "parameters": schema()},
                ]})
            },
            whole: |text, calls| {
                let message = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
                let calls = calls.iter().map(|call| {
                    json!({"type": "function_call", "call_id": "c", "name": "save", "arguments": call.to_string()})
                });
                let output: Vec<Value> =
                    std::iter::once(message).filter(|_| !text.is_empty()).chain(calls).collect();
                json!({"id": "x", "status": "completed", "output": output})
            },
            stream: |text, calls| {
                let mut documents = vec![json!({"type": "response.created", "response": {}})];
                for half in halves(text) {
                    documents.push(
                        json!({"type": "response.output_text.delta", "output_index": 0, "delta": half}),
                    );
                }
                for (nth, call) in calls.iter().enumerate() {
                    let item =
                        json!({"type": "function_call", "call_id": "c", "name": "save", "arguments": ""});
                    documents.push(
                        json!({"type": "response.output_item.added", "output_index": nth + 1, "item": item}),
                    );
                    for half in halves(&call.to_string()) {
                        documents.push(json!({"type": "response.function_call_arguments.delta", "output_index": nth + 1, "delta": half}));
                    }
                }
                documents.push(json!({"type": "response.completed", "response": {"status": "completed"}}));
                events(&documents)
            },
            cut: || {
                let call = json!({"type": "function_call", "call_id": "c", "name": "save", "arguments": "{\"age\": "});
                json!({"status": "incomplete", "output": [call]})
            },
        },
        Protocol {
            name: "anthropic",
            section: |url| section("primary", "anthropic", url),
            path: "/v1/messages",
            request: || {
                json!({"messages": [{"role": "user", "content": "Maria, 34"}], "max_tokens": 99, "top_k": 4, "tools": [
                    {"name": "find", "input_schema": {"type": "object"}},
                    {"name": "save", "input_schema": schema()},
                ]})
            },
            whole: |text, calls| {
                let text_part = json!({"type": "text", "text": text});
                let calls = calls
                    .iter()
                    .map(|call| json!({"type": "tool_use", "id": "c", "name": "save", "input": call}));
                let content: Vec<Value> =
                    std::iter::once(text_part).filter(|_| !text.is_empty()).chain(calls).collect();
                let reason = if content.len() > 1 || text.is_empty() { "tool_use" } else { "end_turn" };
                json!({"id": "x", "type": "message", "content": content, "stop_reason": reason})
            },
            stream: |text, calls| {
                let mut documents = vec![json!({"type": "message_start", "message": {}})];
                documents.push(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}));
                for half in halves(text) {
                    documents.push(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": half}}));
                }
                for (nth, call) in calls.iter().enumerate() {
                    let block = json!({"type": "tool_use", "id": "c", "name": "save", "input": {}});
                    documents.push(
                        json!({"type": "content_block_start", "index": nth + 1, "content_block": block}),
                    );
                    for half in halves(&call.to_string()) {
                        documents.push(json!({"type": "content_block_delta", "index": nth + 1, "delta": {"type": "input_json_delta", "partial_json": half}}));
                    }
                }
                let reason = if calls.is_empty() { "end_turn" } else { "tool_use" };
                documents.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}}));
                documents.push(json!({"type": "message_stop"}));
                events(&documents)
            },
            cut: || {
                let call = json!({"type": "tool_use", "id": "c", "name": "save", "input": {}});
                json!({"content": [call], "stop_reason": "max_tokens"})
            },
        },
        Protocol {
            name: "ollama",
            section: |url| section("primary", "ollama", url),
            path: "/api/chat",
            request: || {
                json!({"messages": [{"role": "user", "content": "Maria, 34"}], "options": {"num_ctx": 64}, "tools": [
                    {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}},
                    {"type": "function", "function": {"name": "save", "parameters": schema()}},
                ]})
            },
            whole: |text, calls| {
                let calls: Vec<Value> = calls
                    .iter()
                    .map(|call| json!({"function": {"name": "save", "arguments": call}}))
                    .collect();
                json!({"message": {"role": "assistant", "content": text, "tool_calls": calls}, "done": true, "done_reason": "stop"})
            },
            stream: |text, calls| {
                let mut lines = String::new();
                for half in halves(text) {
                    lines.push_str(&format!("{}\n", json!({"message": {"content": half}, "done": false})));
                }
                for call in calls {
                    let calls = json!([{"function": {"name": "save", "arguments": call}}]);
                    lines.push_str(&format!(
                        "{}\n",
                        json!({"message": {"content": "", "tool_calls": calls}, "done": false})
                    ));
                }
                lines + "{\"done\": true, \"done_reason\": \"stop\"}\n"
            },
            cut: || {
                let calls = json!([{"function": {"name": "save", "arguments": {}}}]);
                json!({"message": {"content": "", "tool_calls": calls}, "done": true, "done_reason": "length"})
            },
        },
    ]
}

impl Protocol {
    pub(super) fn section(&self, url: &str) -> String {
        (self.section)(url)
    }

    pub(super) fn gate(&self, server: &Server) -> Gate {
        Gate::new(&self.section(&server.url()))
    }

    pub(super) fn body(&self, stream: bool) -> Value {
        let mut body = (self.request)();
        body["model"] = "primary".into();
        body["stream"] = stream.into();
        body
    }

    /// The reply of a server, in pieces of a size.
    pub(super) fn reply(&self, stream: bool, text: &str, calls: &[Value], size: usize) -> (Reply, Vec<u8>) {
        if stream {
            let media = if self.name == "ollama" { "application/x-ndjson" } else { "text/event-stream" };
            let bytes = (self.stream)(text, calls).into_bytes();
            (Reply::pieces(bytes.chunks(size)).with_header("content-type", media), bytes)
        } else {
            let bytes = format!("{:#}\n", (self.whole)(text, calls)).into_bytes();
            (Reply::json(bytes.clone()), bytes)
        }
    }
}

#[test]
fn text_and_valid_calls_pass_byte_for_byte() {
    let calls = [json!({"age": 34}), json!({"age": 35})];
    for protocol in protocols() {
        for stream in [false, true] {
            for (text, calls) in
                [("Which Maria?", &calls[..0]), ("", &calls[..1]), ("", &calls[..]), ("I save both.", &calls)]
            {
                for size in [1, 9, 10_000] {
                    let at = format!("{} {stream} {text} {}", protocol.name, calls.len());
                    let (reply, bytes) = protocol.reply(stream, text, calls, size);
                    let server = Server::start([reply]).unwrap();
                    let got = protocol.gate(&server).post(protocol.path, &[], &protocol.body(stream));
                    assert_eq!((got.status, got.text()), (200, String::from_utf8(bytes).unwrap()), "{at}");
                    assert_eq!(got.header("x-formwork-ignored"), None, "{at}");
                    assert!(got.header("x-formwork-run").is_some(), "{at}");
                    let mut sent = protocol.body(stream);
                    sent["model"] = "m-1".into();
                    let received = server.received();
                    let request: Value = serde_json::from_slice(&received[0].body).unwrap();
                    assert_eq!((received.len(), request), (1, sent), "{at}");
                }
            }
        }
    }
}

#[test]
fn a_call_with_wrong_arguments_is_never_seen() {
    let wrong = [json!({"age": "old"})];
    let right = [json!({"age": 34})];
    for protocol in protocols() {
        for stream in [false, true] {
            let at = format!("{} {stream}", protocol.name);
            let (first, _) = protocol.reply(stream, "", &wrong, 50);
            let (second, bytes) = protocol.reply(stream, "", &right, 50);
            let server = Server::start([first, second]).unwrap();
            let got = protocol.gate(&server).post(protocol.path, &[], &protocol.body(stream));
            assert_eq!((got.status, got.text()), (200, String::from_utf8(bytes).unwrap()), "{at}");
            if !stream {
                assert_eq!(got.header("x-formwork-calls"), Some("2"), "{at}");
            }
            let request: Value = serde_json::from_slice(&server.received()[1].body).unwrap();
            let messages =
                if protocol.name == "responses" { &request["input"] } else { &request["messages"] };
            let last = messages[1]["content"].as_str().unwrap();
            assert_eq!(messages[0]["content"], "Maria, 34", "{at}");
            assert!(
                last.contains("`save`") && last.contains("$.age") && last.contains("old"),
                "{at}: {last}"
            );
        }
    }
}

#[test]
fn a_correction_goes_to_the_next_target_of_the_protocol_if_the_first_fails() {
    for protocol in protocols() {
        for stream in [false, true] {
            let at = format!("{} {stream}", protocol.name);
            let (wrong, _) = protocol.reply(stream, "", &[json!({"age": "old"})], 50);
            let (right, bytes) = protocol.reply(stream, "", &[json!({"age": 34})], 50);
            let first = Server::start([wrong, Reply::status(503)]).unwrap();
            let second = Server::start([right]).unwrap();
            let other = (protocol.section)(&second.url()).replace("primary", "other");
            let mut body = protocol.body(stream);
            body["model"] = "primary,other".into();
            let got = Gate::new(&((protocol.section)(&first.url()) + &other)).post(protocol.path, &[], &body);
            assert_eq!((got.status, got.text()), (200, String::from_utf8(bytes).unwrap()), "{at}");
            assert_eq!((first.received().len(), second.received().len()), (2, 1), "{at}");
            let correction = String::from_utf8_lossy(&second.received()[0].body).into_owned();
            assert!(correction.contains("$.age"), "{at}: {correction}");
        }
    }
}

#[test]
fn calls_that_stay_wrong_are_the_protocols_error() {
    let wrong = [json!({"age": 34}), json!({"age": "old"})];
    for protocol in protocols() {
        for (stream, text) in [(false, ""), (true, ""), (true, "I save it.")] {
            let at = format!("{} {stream} {text}", protocol.name);
            let (reply, _) = protocol.reply(stream, text, &wrong, 50);
            let server = Server::start([reply]).unwrap();
            let got = protocol.gate(&server).post(protocol.path, &[], &protocol.body(stream));
            assert!(got.text().contains("$.age"), "{at}: {}", got.text());
            assert!(!got.text().contains("function_call"), "{at}: {}", got.text());
            // Before its first bytes, the error of a stream is a response.
            if stream && !text.is_empty() {
                assert_eq!(got.status, 200, "{at}");
                assert!(got.text().contains("I sa"), "{at}: {}", got.text());
                assert!(
                    got.documents().last().unwrap().to_string().contains("error"),
                    "{at}: {}",
                    got.text()
                );
            } else {
                assert_eq!((got.status, got.header("x-should-retry")), (422, Some("false")), "{at}");
                assert!(server.received().len() > 1, "{at}");
            }
        }
    }
}

#[test]
fn a_call_that_the_token_limit_cut_passes() {
    for protocol in protocols() {
        let body = (protocol.cut)().to_string();
        let server = Server::start([Reply::json(body.clone())]).unwrap();
        let got = protocol.gate(&server).post(protocol.path, &[], &protocol.body(false));
        assert_eq!((got.status, got.text()), (200, body), "{}", protocol.name);
    }
}

#[test]
fn a_required_call_is_asked_for_again() {
    let protocol = protocols().remove(0);
    let mut body = protocol.body(false);
    body["tool_choice"] = "required".into();
    let (text, _) = protocol.reply(false, "No.", &[], 50);
    let (call, bytes) = protocol.reply(false, "", &[json!({"age": 34})], 50);
    let server = Server::start([text, call]).unwrap();
    let got = protocol.gate(&server).post(protocol.path, &[], &body);
    assert_eq!((got.status, got.text()), (200, String::from_utf8(bytes).unwrap()));
    let correction = String::from_utf8_lossy(&server.received()[1].body).into_owned();
    assert!(correction.contains("You called no tool, and answered: No."), "{correction}");
}

#[test]
fn tools_that_are_not_to_be_called_pass_through() {
    for protocol in protocols().into_iter().take(3) {
        let mut body = protocol.body(false);
        body["tool_choice"] =
            if protocol.name == "anthropic" { json!({"type": "none"}) } else { json!("none") };
        let server = Server::start([Reply::json("{ }")]).unwrap();
        let got = protocol.gate(&server).post(protocol.path, &[], &body);
        assert_eq!((got.status, got.text().as_str()), (200, "{ }"), "{}", protocol.name);
        let request: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
        assert_eq!(request["tools"], body["tools"], "{}", protocol.name);
    }
}

#[test]
fn what_nothing_acts_on_is_named_in_the_response() {
    let answer = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "{\"age\": 34}"}, "finish_reason": "stop"}]});
    let format = json!({"type": "json_schema", "json_schema": {"name": "p", "schema": schema()}});
    let messages = json!([{"role": "user", "content": "Maria, 34"}]);
    let contract =
        json!({"messages": messages, "response_format": format, "stop": "x", "logprobs": true, "top_p": 0.5});
    let plain = json!({"messages": messages, "stop": "x", "user": "u", "top_p": 0.5});
    let anthropic = json!({"messages": messages, "max_tokens": 9, "top_k": 3, "top_p": 0.5});
    let ollama = json!({"messages": messages, "format": schema(), "options": {"top_k": 3, "top_p": 0.5, "num_ctx": 9}});
    for (path, body, expected) in [
        // The target has the protocol of the request, and gets all of it.
        ("/v1/chat/completions", contract, None),
        ("/v1/chat/completions", plain, None),
        ("/v1/messages", anthropic, Some("top_k")),
        ("/api/chat", ollama, Some("options.num_ctx, options.top_k")),
    ] {
        for stream in [false, true] {
            let server = Server::start([Reply::json(answer.to_string())]).unwrap();
            let gate = Gate::new(&section("primary", "openai", &server.url()));
            let mut body = body.clone();
            body["model"] = "primary".into();
            body["stream"] = stream.into();
            let got = gate.post(path, &[], &body);
            assert_eq!(
                (got.status, got.header("x-formwork-ignored")),
                (200, expected),
                "{path}: {}",
                got.text()
            );
            // The body names them in the extension of the usage, if it was translated.
            let all = if stream { got.documents() } else { vec![got.json()] };
            let named = all.iter().find_map(|one| {
                let own = one.pointer("/usage/formwork").or_else(|| one.get("formwork"))?;
                own["ignored"].as_array()
            });
            let named = named.map(|all| all.iter().map(|one| one.as_str().unwrap()).collect::<Vec<_>>());
            assert_eq!(named.map(|all| all.join(", ")).as_deref(), expected, "{path}: {}", got.text());
        }
    }
}
