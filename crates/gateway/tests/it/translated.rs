//! Requests with tools and settings for targets of other protocols: translated, with tools of the target's own.

use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::support::{Gate, completion, section};
use super::tools::{Protocol, protocols};

/// The text of a response, and the arguments of the calls of `save` in it.
fn seen(protocol: &Protocol, documents: &[Value]) -> (String, Vec<Value>) {
    let (mut text, mut calls) = (String::new(), Vec::<String>::new());
    let mut add = |nth: usize, piece: &str| {
        calls.resize(calls.len().max(nth + 1), String::new());
        calls[nth].push_str(piece);
    };
    let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for document in documents {
        match protocol.name {
            "openai" => {
                let choice = &document["choices"][0];
                let message = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
                text += &string(&message["content"]);
                for (nth, call) in list(&message["tool_calls"]).iter().enumerate() {
                    let nth = call["index"].as_u64().map_or(nth, |nth| nth as usize);
                    add(nth, &string(&call["function"]["arguments"]));
                }
            }
            "responses" => {
                let body = if document["output"].is_array() { document } else { &document["response"] };
                for item in list(&body["output"]) {
                    text += &string(&item["content"][0]["text"]);
                    if item["type"] == "function_call" {
                        let nth = list(&body["output"])
                            .iter()
                            .filter(|one| one["type"] == "function_call")
                            .position(|one| *one == item)
                            .unwrap();
                        add(nth, &string(&item["arguments"]));
                    }
                }
            }
            "anthropic" => {
                let blocks = list(&document["content"]);
                for block in &blocks {
                    text += &string(&block["text"]);
                }
                for (nth, call) in blocks.iter().filter(|block| block["type"] == "tool_use").enumerate() {
                    add(nth, &call["input"].to_string());
                }
                text += &string(&document["delta"]["text"]);
                if let Some(piece) = document["delta"]["partial_json"].as_str() {
                    // The text is the first block.
                    add(document["index"].as_u64().unwrap() as usize - 1, piece);
                }
            }
            _ => {
                text += &string(&document["message"]["content"]);
                for (nth, call) in list(&document["message"]["tool_calls"]).iter().enumerate() {
                    add(nth, &call["function"]["arguments"].to_string());
                }
            }
        }
    }
    (text, calls.iter().map(|call| serde_json::from_str(call).unwrap()).collect())
}

#[test]
fn several_calls_beside_a_text_come_through_between_all_protocols_and_hold() {
    let wrong = [json!({"age": 34}), json!({"age": "old"})];
    let right = [json!({"age": 34}), json!({"age": 35})];
    for client in protocols() {
        for target in protocols().into_iter().filter(|target| target.name != client.name) {
            for stream in [false, true] {
                let at = format!("{} to {}, {stream}", client.name, target.name);
                let replies = [("", &wrong), ("I save both.", &right)];
                let server =
                    Server::start(replies.map(|(text, calls)| target.reply(false, text, calls, 90).0))
                        .unwrap();
                let gate = target.gate(&server);
                let got = gate.post(client.path, &[], &client.body(stream));
                assert_eq!(got.status, 200, "{at}: {}", got.text());
                let documents = if stream { got.documents() } else { vec![got.json()] };
                let (text, calls) = seen(&client, &documents);
                assert_eq!((text.as_str(), &calls[..]), ("I save both.", &right[..]), "{at}: {}", got.text());
                let sent: Vec<Value> =
                    server.received().iter().map(|one| serde_json::from_slice(&one.body).unwrap()).collect();
                assert_eq!((sent.len(), sent[0]["tools"].as_array().map(Vec::len)), (2, Some(2)), "{at}");
                assert!(sent[1].to_string().contains("$.age"), "{at}");
            }
        }
    }
}

#[test]
fn calls_that_stay_wrong_are_an_error_in_each_protocol() {
    let wrong = [json!({"age": "old"})];
    for client in protocols().into_iter().filter(|client| client.name != "openai") {
        for (stream, text) in [(false, ""), (true, ""), (true, "I save it.")] {
            let at = format!("{} {stream} {text}", client.name);
            let target = &protocols()[0];
            let server = Server::start([target.reply(false, text, &wrong, 90).0]).unwrap();
            let got = target.gate(&server).post(client.path, &[], &client.body(stream));
            assert_eq!(got.status, if text.is_empty() { 422 } else { 200 }, "{at}: {}", got.text());
            assert!(got.text().contains("$.age") && !got.text().contains("tool_use"), "{at}: {}", got.text());
        }
    }
}

/// Official clients repeat a request by its status and this header.
#[test]
fn a_stream_whose_target_has_no_time_has_the_status_of_that() {
    for client in protocols() {
        for target in protocols() {
            let server = Server::start([Reply::status(429).with_header("retry-after", "7")]).unwrap();
            let got = target.gate(&server).post(client.path, &[], &client.body(true));
            let at = format!("{} to {}: {}", client.name, target.name, got.text());
            assert_eq!((got.status, got.header("retry-after")), (429, Some("7")), "{at}");
        }
    }
}

#[test]
fn a_format_beside_tools_is_judged_where_no_tool_is_called() {
    let mut body = protocols()[2].body(false);
    body["output_config"] = json!({"format": {"type": "json_schema", "schema": super::support::schema()}});
    let server = Server::start([completion("{\"age\": 340}"), completion("So: {\"age\": 34}")]).unwrap();
    let gate = Gate::new(&section("primary", "openai", &server.url()));
    let got = gate.post("/v1/messages", &[], &body);
    assert_eq!(
        (got.status, &got.json()["content"][0]["text"]),
        (200, &json!("{\"age\":34}")),
        "{}",
        got.text()
    );
    assert_eq!(server.received().len(), 2);
}

#[test]
fn settings_are_those_of_the_targets_protocol_for_texts_tools_and_contracts() {
    let messages = json!([{"role": "user", "content": "Maria, 34"}]);
    let format = json!({"format": {"type": "json_schema", "schema": super::support::schema()}});
    let tools = json!([{"name": "save", "input_schema": super::support::schema()}]);
    for (more, stop) in [
        (json!({}), json!(["END"])),
        (json!({"output_config": format}), json!(["END"])),
        (json!({"tools": tools}), json!(["END"])),
    ] {
        let mut body = json!({
            "model": "primary", "max_tokens": 9, "messages": messages, "stop_sequences": ["END"], "top_k": 3, "top_p": 0.5,
            "metadata": {"user_id": "u-1"},
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let server = Server::start([completion("{\"age\": 34}")]).unwrap();
        let gate = Gate::new(&section("primary", "openai", &server.url()));
        let got = gate.post("/v1/messages", &[], &body);
        // Chat Completions have no `top_k`.
        assert_eq!((got.status, got.header("x-formwork-ignored")), (200, Some("top_k")), "{}", got.text());
        let sent: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
        assert_eq!((&sent["stop"], &sent["top_p"]), (&stop, &json!(0.5)), "{sent}");
        assert_eq!(sent["safety_identifier"], "u-1", "{sent}");
        // In the other direction.
        let mut body =
            json!({"model": "primary", "messages": messages, "stop": "END", "reasoning_effort": "low"});
        if !more["tools"].is_null() {
            let function = json!({"name": "save", "parameters": super::support::schema()});
            body["tools"] = json!([{"type": "function", "function": function}]);
            body["parallel_tool_calls"] = false.into();
        }
        let server = Server::start([protocols()[2].reply(false, "Hm.", &[], 90).0]).unwrap();
        let gate = Gate::new(&section("primary", "anthropic", &server.url()));
        let got = gate.post("/v1/chat/completions", &[], &body);
        let sent: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
        assert_eq!((got.status, got.header("x-formwork-ignored")), (200, None), "{}", got.text());
        assert_eq!(
            (&sent["stop_sequences"], &sent["output_config"]["effort"]),
            (&stop, &json!("low")),
            "{sent}"
        );
        if !more["tools"].is_null() {
            assert_eq!(sent["tool_choice"]["disable_parallel_tool_use"], true, "{sent}");
        }
    }
}

#[test]
fn each_of_several_answers_is_one_of_its_own_in_streams_too() {
    let server =
        Server::start(["One.", "Two."].map(|text| protocols()[3].reply(false, text, &[], 90).0)).unwrap();
    for stream in [false, true] {
        let gate = Gate::new(&section("primary", "ollama", &server.url()));
        let body = json!({"model": "primary", "messages": [{"role": "user", "content": "Say."}], "n": 2, "stream": stream});
        let got = gate.post("/v1/chat/completions", &[], &body);
        let documents = if stream { got.documents() } else { vec![got.json()] };
        let mut texts = vec![String::new(); 2];
        for choice in documents.iter().flat_map(|document| document["choices"].as_array().unwrap()) {
            let message = if stream { &choice["delta"] } else { &choice["message"] };
            texts[choice["index"].as_u64().unwrap() as usize] +=
                message["content"].as_str().unwrap_or_default();
        }
        texts.sort();
        // The last reply of the server repeats.
        let expected = if stream { ["Two.", "Two."] } else { ["One.", "Two."] };
        assert_eq!((got.status, texts), (200, expected.map(str::to_owned).to_vec()), "{}", got.text());
    }
}

#[test]
fn a_temperature_that_a_target_does_not_take_is_named_and_not_sent() {
    let messages = json!([{"role": "user", "content": "Maria, 34"}]);
    let schema = json!({"name": "person", "schema": super::support::schema()});
    let format = json!({"type": "json_schema", "json_schema": schema});
    for more in [json!({}), json!({"response_format": format})] {
        for (temperature, is_taken) in [(0.0, true), (0.3, true), (1.0, true), (1.5, false), (2.0, false)] {
            let mut body = json!({"model": "primary", "messages": messages, "temperature": temperature});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let server = Server::start([protocols()[2].reply(false, "{\"age\": 34}", &[], 90).0]).unwrap();
            let config = section("primary", "anthropic", &server.url()) + "temperature = true\n";
            let got = Gate::new(&config).post("/v1/chat/completions", &[], &body);
            let sent: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
            let (named, expected) =
                if is_taken { (None, json!(temperature)) } else { (Some("temperature"), Value::Null) };
            assert_eq!((got.status, got.header("x-formwork-ignored")), (200, named), "{}", got.text());
            assert_eq!(sent["temperature"], expected, "{sent}");
        }
    }
}

#[test]
fn a_target_that_says_when_to_come_back_is_left_to_another_until_then() {
    // Passed on as it is, judged, and translated.
    let tools =
        json!([{"type": "function", "function": {"name": "save", "parameters": super::support::schema()}}]);
    for (path, more) in [
        ("/v1/chat/completions", json!({})),
        ("/v1/chat/completions", json!({"tools": tools})),
        ("/v1/messages", json!({"max_tokens": 9})),
    ] {
        let busy = Reply::json("{}").with_status(429).with_header("retry-after", "600");
        let (busy, free) = (Server::start([busy]).unwrap(), Server::start([completion("Hello.")]).unwrap());
        let config = [section("a", "openai", &busy.url()), section("b", "openai", &free.url())].concat();
        let gate = Gate::new(&config);
        let mut body = json!({"model": "a,b", "messages": [{"role": "user", "content": "Hi."}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        for _ in 0..3 {
            let got = gate.post(path, &[], &body);
            assert_eq!(got.status, 200, "{path} {more}: {}", got.text());
        }
        assert_eq!((busy.received().len(), free.received().len()), (1, 3), "{path} {more}");
        // Without another one it is asked in any case.
        body["model"] = "a".into();
        assert_eq!(gate.post(path, &[], &body).status, 429, "{path} {more}");
    }
}

#[test]
fn the_reasoning_of_a_target_is_where_the_protocol_of_the_client_has_it() {
    let (thought, said) = ("Let me see.", "Hello.");
    for target in protocols() {
        let message = json!({"role": "assistant", "content": said});
        let reply = match target.name {
            "openai" => {
                let mut message = message;
                message["reasoning_content"] = thought.into();
                json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
            }
            "anthropic" => {
                let thinking = json!({"type": "thinking", "thinking": thought, "signature": "s"});
                json!({
                    "type": "message", "role": "assistant", "content": [thinking, {"type": "text", "text": said}],
                    "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1},
                })
            }
            "ollama" => {
                let mut message = message;
                message["thinking"] = thought.into();
                json!({"message": message, "done": true, "done_reason": "stop"})
            }
            _ => continue,
        };
        for client in protocols().into_iter().filter(|client| client.name != target.name) {
            for stream in [false, true] {
                let at = format!("{} to {}, {stream}", client.name, target.name);
                let server = Server::start([Reply::json(reply.to_string())]).unwrap();
                let got = target.gate(&server).post(client.path, &[], &client.body(stream));
                assert_eq!(got.status, 200, "{at}: {}", got.text());
                let documents = if stream { got.documents() } else { vec![got.json()] };
                let (places, in_stream): (&[&str], _) = match client.name {
                    "openai" if stream => (&["/choices/0/delta/reasoning_content"], true),
                    "openai" => (&["/choices/0/message/reasoning_content"], true),
                    "anthropic" => (&["/delta/thinking", "/content/0/thinking"], true),
                    // Its streams would have five more events for it.
                    "responses" => (&["/output/0/summary/0/text"], false),
                    _ => (&["/message/thinking"], true),
                };
                let found =
                    documents.iter().flat_map(|one| places.iter().filter_map(|at| one.pointer(at)?.as_str()));
                let found: String = found.collect();
                assert_eq!(found, if stream && !in_stream { "" } else { thought }, "{at}: {}", got.text());
                assert_eq!(seen(&client, &documents).0, said, "{at}: {}", got.text());
            }
        }
    }
}

#[test]
fn log_probabilities_of_texts_come_through_between_protocols_and_are_named_where_they_cannot() {
    let text = "Häl lo";
    let pieces = [("Häl", -0.25), (" lo", -1.5)];
    let tokens = pieces.map(
        |(token, log)| json!({"token": token, "logprob": log, "bytes": token.as_bytes(), "top_logprobs": []}),
    );
    let message = json!({"role": "assistant", "content": text});
    let chosen = pieces.map(|(token, log)| json!({"token": token, "logProbability": log}));
    let part = json!({"type": "output_text", "text": text, "annotations": [], "logprobs": tokens});
    let targets = [
        (
            "openai",
            json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop",
                "logprobs": {"content": tokens, "refusal": null}}]}),
            Some(("/logprobs", json!(true))),
        ),
        (
            "responses",
            json!({"id": "r", "object": "response", "status": "completed", "output": [
                {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}]}),
            Some(("/include/0", json!("message.output_text.logprobs"))),
        ),
        (
            "ollama",
            json!({"message": message, "logprobs": tokens, "done": true, "done_reason": "stop"}),
            Some(("/logprobs", json!(true))),
        ),
        (
            "gemini",
            json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP",
                "logprobsResult": {"chosenCandidates": chosen}}]}),
            Some(("/generationConfig/responseLogprobs", json!(true))),
        ),
        (
            "anthropic",
            json!({"type": "message", "role": "assistant", "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}}),
            None,
        ),
    ];
    let messages = json!([{"role": "user", "content": "Hi."}]);
    let clients = [
        (
            "openai",
            "/v1/chat/completions",
            json!({"messages": messages, "logprobs": true}),
            "logprobs",
            "/choices/0/logprobs/content",
        ),
        (
            "responses",
            "/v1/responses",
            json!({"input": "Hi.", "include": ["message.output_text.logprobs"]}),
            "include",
            "/output/0/content/0/logprobs",
        ),
        ("ollama", "/api/chat", json!({"messages": messages, "logprobs": true}), "logprobs", "/logprobs"),
    ];
    for (kind, reply, asked) in targets {
        for (client, path, body, named, place) in clients.iter().filter(|client| client.0 != kind) {
            for stream in [false, true] {
                let at = format!("{client} to {kind}, {stream}");
                let server = Server::start([Reply::json(reply.to_string())]).unwrap();
                let config = match kind {
                    "responses" => section("primary", "openai", &server.url()) + "api = \"responses\"\n",
                    _ => section("primary", kind, &server.url()),
                };
                let mut body = body.clone();
                (body["model"], body["stream"]) = ("primary".into(), stream.into());
                let got = Gate::new(&config).post(path, &[], &body);
                assert_eq!(got.status, 200, "{at}: {}", got.text());
                let sent: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
                match asked.as_ref().filter(|_| !stream) {
                    Some((place_of_asked, value)) => {
                        assert_eq!(sent.pointer(place_of_asked), Some(value), "{at}: {sent}");
                        assert_eq!(got.json().pointer(place), Some(&json!(tokens)), "{at}: {}", got.text());
                        assert_eq!(got.header("x-formwork-ignored"), None, "{at}");
                    }
                    None => assert_eq!(got.header("x-formwork-ignored"), Some(*named), "{at}"),
                }
            }
        }
    }
}

#[test]
fn a_refusal_and_a_filter_are_no_whole_answer() {
    let events = |documents: &[Value]| -> String {
        documents.iter().map(|document| format!("data: {document}\n\n")).collect()
    };
    let refusing = |texts: &[&str], reason: &str| {
        let mut all = vec![
            json!({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ];
        all.extend(texts.iter().map(|text| {
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
        }));
        all.push(json!({"type": "content_block_stop", "index": 0}));
        all.push(
            json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 4}}),
        );
        all.push(json!({"type": "message_stop"}));
        events(&all)
    };
    for (texts, is_shown) in [(&["par", "t"][..], true), (&[], false)] {
        let stream =
            || Reply::pieces([refusing(texts, "refusal")]).with_header("content-type", "text/event-stream");
        let ask = |path: &str, mut body: Value, stream_it: bool| {
            let server = Server::start([stream()]).unwrap();
            let gate = Gate::new(&section("primary", "anthropic", &server.url()));
            (body["model"], body["stream"]) = ("primary".into(), stream_it.into());
            gate.post(path, &[], &body)
        };
        let chat = json!({"messages": [{"role": "user", "content": "Hello"}]});
        let documents = ask("/v1/chat/completions", chat.clone(), true).documents();
        let of = |pointer: &str| -> Vec<Value> {
            documents
                .iter()
                .filter_map(|it| it.pointer(pointer))
                .filter(|it| !it.is_null())
                .cloned()
                .collect()
        };
        assert_eq!(of("/choices/0/finish_reason"), ["content_filter"], "{documents:?}");
        let text: String = of("/choices/0/delta/content").iter().filter_map(Value::as_str).collect();
        assert_eq!(text, texts.concat());

        // One part has one type, and the response says that it is not whole.
        let documents = ask("/v1/responses", json!({"input": "Hello"}), true).documents();
        let parts: Vec<_> = documents.iter().filter_map(|it| it["part"]["type"].as_str()).collect();
        assert!(parts.iter().all(|part| *part == parts[0]), "{parts:?}");
        assert_eq!(parts[0] == "output_text", is_shown, "{parts:?}");
        let last = documents.iter().find(|it| it["response"]["usage"].is_object()).unwrap();
        assert_eq!(last["type"], "response.incomplete");
        assert_eq!(last["response"]["incomplete_details"]["reason"], "content_filter");
    }
}

#[test]
fn pictures_in_the_results_of_tools_are_refused_where_they_would_be_left_out() {
    let picture = "iVBORw0KGgo=";
    let url = format!("data:image/png;base64,{picture}");
    let cases = [
        (
            ["openai", "anthropic"],
            "/v1/chat/completions",
            "messages[2].content",
            json!({"messages": [
                {"role": "user", "content": "Look"},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "seen"}, {"type": "image_url", "image_url": {"url": url}}]},
            ], "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]}),
        ),
        (
            ["responses", "anthropic"],
            "/v1/responses",
            "input[2].output",
            json!({"input": [
                {"role": "user", "content": "Look"},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": url}]},
            ], "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}]}),
        ),
        (
            ["anthropic", "openai"],
            "/v1/messages",
            "messages[2].content[0].content",
            json!({"max_tokens": 9, "messages": [
                {"role": "user", "content": "Look"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture}},
                ]}]},
            ], "tools": [{"name": "f", "input_schema": {"type": "object"}}]}),
        ),
    ];
    for (kinds, path, place, mut body) in cases {
        body["model"] = "primary".into();
        for kind in kinds {
            let target = protocols().into_iter().find(|target| target.name == kind).unwrap();
            let server = Server::start([target.reply(false, "Hi", &[], 90).0]).unwrap();
            let gate = target.gate(&server);
            for tools in [true, false] {
                let mut body = body.clone();
                if !tools {
                    body.as_object_mut().unwrap().remove("tools");
                }
                let got = gate.post(path, &[], &body);
                let sent = server.received();
                let sent = sent.last().map(|one| String::from_utf8_lossy(&one.body).into_owned());
                if kind == kinds[0] {
                    assert_eq!(got.status, 200, "{path}: {}", got.text());
                    assert!(sent.unwrap().contains(picture), "{path}");
                } else {
                    assert_eq!((got.status, sent), (400, None), "{path}: {}", got.text());
                    assert!(
                        got.text().contains(&format!("`{place}`: a picture in the result")),
                        "{}",
                        got.text()
                    );
                }
            }
        }
    }
}

#[test]
fn a_required_call_is_required_of_targets_of_other_protocols() {
    for client in protocols().into_iter().take(3) {
        for (target, choice) in [(0, json!("required")), (1, json!("required")), (2, json!({"type": "any"}))]
        {
            let target = protocols().remove(target);
            if target.name == client.name {
                continue;
            }
            let server = Server::start([target.reply(false, "", &[json!({"age": 34})], 90).0]).unwrap();
            let mut body = client.body(false);
            for (required, expected) in [(true, &choice), (false, &Value::Null)] {
                body["tool_choice"] = match (client.name, required) {
                    ("anthropic", true) => json!({"type": "any"}),
                    ("anthropic", false) => json!({"type": "auto"}),
                    (_, true) => json!("required"),
                    (_, false) => json!("auto"),
                };
                let got = target.gate(&server).post(client.path, &[], &body);
                assert_eq!(got.status, 200, "{} to {}: {}", client.name, target.name, got.text());
                let sent: Value = serde_json::from_slice(&server.received().last().unwrap().body).unwrap();
                assert_eq!(sent["tool_choice"], *expected, "{} to {}", client.name, target.name);
            }
        }
    }
}

#[test]
fn a_model_that_cannot_be_required_to_call_a_tool_is_asked_to() {
    let [client, target] = [protocols().remove(2), protocols().remove(0)];
    let mut body = client.body(false);
    body["tool_choice"] = json!({"type": "any"});
    for message in [
        "deepseek-reasoner does not support this tool_choice",
        "tool_choice 'required' is incompatible with thinking enabled",
        "<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required or object in thinking mode",
    ] {
        let error = json!({"error": {"message": message, "type": "invalid_request_error", "param": null}});
        let refusal = Reply::status(400).with_body(error.to_string());
        let call = target.reply(false, "", &[json!({"age": 34})], 90).0;
        let server = Server::start([refusal, call]).unwrap();
        let got = target.gate(&server).post(client.path, &[], &body);
        assert_eq!(got.status, 200, "{message}: {}", got.text());
        let sent: Vec<Value> =
            server.received().iter().map(|one| serde_json::from_slice(&one.body).unwrap()).collect();
        let choices: Vec<_> = sent.iter().map(|one| one.get("tool_choice").cloned()).collect();
        assert_eq!(choices, [Some(json!("required")), None], "{message}");
        assert!(sent[1].to_string().contains("Answer with a call of one of the tools."), "{message}");
    }
}

#[test]
fn targets_that_cannot_take_a_request_are_passed_over() {
    let file = json!([{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]);
    for (list, calls, status) in [
        ("down,other,up", [1, 0, 1], 200),
        ("other,up", [0, 0, 1], 200),
        ("other,down", [1, 0, 0], 502),
        ("down,other", [1, 0, 0], 503),
        ("other", [0, 0, 0], 400),
    ] {
        let replies = [Reply::status(500), Reply::status(500), completion("Hi")];
        let servers = replies.map(|reply| Server::start([reply]).unwrap());
        let kinds = [("down", "openai"), ("other", "anthropic"), ("up", "openai")];
        let sections =
            kinds.iter().zip(&servers).map(|((name, kind), server)| section(name, kind, &server.url()));
        let gate = Gate::new(&sections.collect::<String>());
        let got = gate.post("/v1/chat/completions", &[], &json!({"model": list, "messages": file}));
        assert_eq!(got.status, status, "{list}: {}", got.text());
        assert_eq!(servers.each_ref().map(|server| server.received().len()), calls, "{list}");
    }
}
