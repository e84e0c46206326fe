//! A format of the answer and a target of the same protocol: the request keeps all of its members, also together with tools, and each
//! answer without a call satisfies the format.

use std::time::Duration;

use formwork_ledger::{Ledger, RunQuery, Settings};
use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::support::{Gate, completion, limits, openai, schema, section, targets, ways};
use super::tools::{Protocol, protocols};

/// A request of a protocol with a format, and with the tools that it has.
fn with_format(protocol: &Protocol, stream: bool) -> Value {
    let mut body = protocol.body(stream);
    let format = json!({"type": "json_schema", "name": "person", "schema": schema()});
    match protocol.name {
        "openai" => {
            body["response_format"] =
                json!({"type": "json_schema", "json_schema": {"name": "person", "schema": schema()}});
        }
        "responses" => body["text"] = json!({"format": format, "verbosity": "low"}),
        "anthropic" => {
            body["output_config"] =
                json!({"format": {"type": "json_schema", "schema": schema()}, "effort": "low"})
        }
        _ => body["format"] = schema(),
    }
    body
}

/// The same without tools, and with a member that a run would lose.
fn lossy(protocol: &Protocol) -> Value {
    let mut body = with_format(protocol, false);
    body.as_object_mut().unwrap().remove("tools");
    match protocol.name {
        "openai" | "responses" => body["store"] = true.into(),
        "anthropic" => body["thinking"] = json!({"type": "adaptive"}),
        _ => {}
    }
    body
}

fn received(server: &Server) -> Vec<Value> {
    server.received().iter().map(|received| serde_json::from_slice(&received.body).unwrap()).collect()
}

#[test]
fn with_tools_a_call_passes_with_valid_arguments_and_a_text_that_satisfies_the_format() {
    for protocol in protocols() {
        for stream in [false, true] {
            for (text, calls) in
                [(r#"{"age": 34}"#, vec![]), ("", vec![json!({"age": 34}), json!({"age": 35})])]
            {
                let wrong_text = protocol.reply(stream, r#"{"age": 340}"#, &[], 9).0;
                let wrong_call = protocol.reply(stream, "", &[json!({"age": 340})], 9).0;
                let (right, bytes) = protocol.reply(stream, text, &calls, 9);
                let server = Server::start([wrong_text, wrong_call, right]).unwrap();
                let body = with_format(&protocol, stream);
                let got = protocol.gate(&server).post(protocol.path, &[], &body);
                let at = format!("{}, stream {stream}, {text}: {}", protocol.name, got.text());
                assert_eq!((got.status, got.body == bytes), (200, true), "{at}");
                let sent = received(&server);
                assert_eq!(sent.len(), 3, "{at}");
                // Nothing of the request is lost, and the corrections are messages behind its own.
                for (nth, sent) in sent.into_iter().enumerate() {
                    let messages = if protocol.name == "responses" { "input" } else { "messages" };
                    let added = sent[messages].as_array().map_or(0, |all| all.len() - 1);
                    assert_eq!(added, nth, "{at}");
                    let text = sent[messages].to_string();
                    assert_eq!(text.contains("340"), nth > 0, "{at}: {text}");
                    let mut expected = body.clone();
                    expected["model"] = "m-1".into();
                    expected[messages] = sent[messages].clone();
                    assert_eq!(sent, expected, "{at}");
                }
            }
        }
    }
}

#[test]
fn a_format_keeps_what_a_run_would_lose_and_a_value_in_a_fence_is_taken_out() {
    for protocol in protocols() {
        let body = lossy(&protocol);
        let (reply, bytes) = protocol.reply(false, r#"{"age": 34}"#, &[], 9);
        let server = Server::start([reply]).unwrap();
        let got = protocol.gate(&server).post(protocol.path, &[], &body);
        assert_eq!((got.status, got.body == bytes), (200, true), "{}: {}", protocol.name, got.text());
        assert_eq!(got.header("x-formwork-ignored"), None, "{}", protocol.name);
        // The schema is that of the target's dialect.
        let mut expected = body.clone();
        expected["model"] = "m-1".into();
        for strict in ["/response_format/json_schema", "/text/format"] {
            expected.pointer_mut(strict).into_iter().for_each(|format| format["strict"] = true.into());
        }
        let mut sent = received(&server);
        if protocol.name == "anthropic" {
            let schema = &sent[0]["output_config"]["format"]["schema"];
            assert!(schema.to_string().contains("at most 150"), "{schema}");
            expected["output_config"]["format"]["schema"] = schema.clone();
        }
        if protocol.name == "ollama" {
            // A run shows the schema to the model as well, and limits the answer.
            expected["messages"].as_array_mut().unwrap().insert(0, sent[0]["messages"][0].clone());
            expected["options"]["num_predict"] = 8_192.into();
            sent[0]
                .as_object_mut()
                .unwrap()
                .retain(|name, _| !["truncate", "shift"].contains(&name.as_str()));
        }
        assert_eq!(sent, [expected], "{}", protocol.name);

        let fenced = protocol.reply(false, "Here it is:\n```json\n{\"age\": 34}\n```", &[], 9).0;
        let server = Server::start([fenced]).unwrap();
        let got = protocol.gate(&server).post(protocol.path, &[], &body);
        let found = got.text().contains(r#""{\"age\":34}""#);
        assert_eq!((got.status, found, got.text().contains("```")), (200, true, false), "{}", got.text());

        // An answer that stays wrong is the error of the protocol.
        let wrong = protocol.reply(false, r#"{"age": 340}"#, &[], 9).0;
        let server = Server::start([wrong]).unwrap();
        let got = protocol.gate(&server).post(protocol.path, &[], &body);
        assert_eq!(got.status, 422, "{}: {}", protocol.name, got.text());
        assert!(got.text().contains("$.age"), "{}", got.text());
    }
}

#[test]
fn a_schema_that_the_target_refuses_is_lowered_for_it() {
    let refusal =
        r#"{"error": {"message": "Invalid schema for response_format", "type": "invalid_request_error"}}"#;
    let server =
        Server::start([Reply::json(refusal).with_status(400), completion(r#"{"age": 34}"#)]).unwrap();
    let protocol = &protocols()[0];
    let body = lossy(protocol);
    let got = protocol.gate(&server).post(protocol.path, &[], &body);
    assert_eq!((got.status, got.header("x-formwork-ignored")), (200, None), "{}", got.text());
    let sent = received(&server).remove(1);
    assert_eq!((&sent["stop"], &sent["store"]), (&json!(["x"]), &json!(true)));
}

/// Members that are settings are no reason to lose what a run does; others pass to the target, and the answer is converted all the same.
#[test]
fn a_value_that_does_not_fit_is_converted_beside_any_member() {
    for (member, value, is_run) in [
        ("user", json!("u"), true),
        ("top_p", json!(0.5), true),
        ("stop", json!(["x"]), true),
        ("metadata", json!({"a": "b"}), true),
        ("reasoning_effort", json!("low"), true),
        ("service_tier", json!("flex"), true),
        ("store", json!(true), false),
        ("logprobs", json!(true), false),
        ("top_k", json!(5), false),
        ("chat_template_kwargs", json!({"enable_thinking": false}), false),
    ] {
        let server = Server::start([completion(r#"{"age": "34"}"#)]).unwrap();
        let ledger = Ledger::in_memory(Settings::default()).unwrap();
        let builder = targets(&openai(&server.url())).with_limits(limits()).with_ledger(ledger.clone());
        let gate = Gate::start(builder.with_cache(Duration::from_secs(60)));
        let way = &ways()[0];
        let mut body = way.body("primary", false);
        body[member] = value.clone();
        let got = gate.post(way.path, &[], &body);
        assert_eq!(
            (got.status, way.text(&got.json()).as_str()),
            (200, r#"{"age":34}"#),
            "{member}: {}",
            got.text()
        );
        let warnings = got.header("x-formwork-warnings").unwrap();
        assert!(warnings.starts_with("coerced at $.age"), "{member}: {warnings}");
        assert_eq!(got.header("x-formwork-ignored"), None, "{member}");
        assert_eq!(got.header("x-formwork-cache"), is_run.then_some("miss"), "{member}");
        let name = if member == "user" { "safety_identifier" } else { member };
        assert_eq!(received(&server)[0][name], value, "{member}");
        ledger.flush_blocking().unwrap();
        let run = ledger.runs(&RunQuery::default()).unwrap().runs.remove(0);
        assert_eq!(
            (run.contract.as_deref(), run.warnings.is_empty()),
            (Some("person"), false),
            "{member}: {run:?}"
        );
        assert!(run.digest.is_some(), "{member}");

        for (header, value) in [("x-formwork-evidence", "on"), ("x-formwork-coerce", "fix")] {
            let got = gate.post(way.path, &[(header, value)], &body);
            assert_eq!(
                (got.status, got.header("x-formwork-ignored")),
                (200, None),
                "{member}: {}",
                got.text()
            );
            let has_evidence = got.text().contains("\"evidence\":[{");
            assert_eq!(has_evidence, header == "x-formwork-evidence", "{member}: {}", got.text());
            assert_eq!(received(&server).last().unwrap()[name], body[member], "{member}");
        }
    }
}

/// A document that satisfies the schema as it is comes before an earlier one that has to be converted, and a request that permits no
/// conversion gets none, also beside tools.
#[test]
fn a_conversion_is_the_last_resort_and_never_against_the_request() {
    let gate_of = |replies: &[&str]| {
        let server = Server::start(replies.iter().map(|text| completion(text)).collect::<Vec<_>>()).unwrap();
        (Gate::new(&openai(&server.url())), server)
    };
    let way = &ways()[0];
    let mut body = way.body("primary", false);
    body["store"] = true.into();
    let (gate, _server) = gate_of(&[r#"First I had {"age": "34"}, but it is {"age": 43}"#]);
    assert_eq!(way.text(&gate.post(way.path, &[], &body).json()), r#"{"age":43}"#);

    body["tools"] =
        json!([{"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}]);
    for (coerce, calls) in [("strict", 2), ("ask", 2), ("fix", 1)] {
        let (gate, server) = gate_of(&[r#"{"age": "34"}"#, r#"{"age": 34}"#]);
        let got = gate.post(way.path, &[("x-formwork-coerce", coerce)], &body);
        assert_eq!((got.status, server.received().len()), (200, calls), "{coerce}: {}", got.text());
    }
}

/// Both calls are in the record: the one that the target refused for its schema, and the one of the run.
#[test]
fn a_schema_that_was_refused_is_a_call_of_the_record() {
    let refusal =
        r#"{"error": {"message": "Invalid schema for response_format", "type": "invalid_request_error"}}"#;
    let server =
        Server::start([Reply::json(refusal).with_status(400), completion(r#"{"age": 34}"#)]).unwrap();
    let ledger = Ledger::in_memory(Settings::default()).unwrap();
    let gate = Gate::start(targets(&openai(&server.url())).with_limits(limits()).with_ledger(ledger.clone()));
    let mut body = ways()[0].body("primary", false);
    body["store"] = true.into();
    let got = gate.post(ways()[0].path, &[], &body);
    assert_eq!((got.status, got.header("x-formwork-calls")), (200, Some("2")), "{}", got.text());
    ledger.flush_blocking().unwrap();
    let run = ledger.runs(&RunQuery::default()).unwrap().runs.remove(0);
    let calls = ledger.run(run.id).unwrap().unwrap().calls;
    let classes: Vec<_> = calls.iter().map(|call| call.class.as_ref()).collect();
    assert_eq!(classes, ["schema_refused", "accepted"]);
}

#[test]
fn an_answer_is_read_in_all_forms_that_servers_send() {
    let right = r#"{"age": 34}"#;
    let part = |kind: &str, text: &str| json!({"type": kind, "text": text});
    let message = |content: Value, reason: &str| json!({"message": {"role": "assistant", "content": content}, "finish_reason": reason});
    let cut = json!(r#"{"age": "#);
    let parts = json!([part("thinking", "Maria …"), part("text", right)]);
    let protocol = &protocols()[0];
    for choice in [
        message(json!([part("text", right)]), "stop"),
        message(parts.clone(), "stop"),
        message(json!([{"type": "refusal", "refusal": "No."}]), "stop"),
        json!({"message": {"role": "assistant", "text": right}, "finish_reason": "stop"}),
        json!({"text": right, "finish_reason": "stop"}),
        // They are not whole, and the client sees it.
        message(cut.clone(), "max_tokens"),
        message(cut.clone(), "model_length"),
        message(cut, "CONTENT_FILTER"),
    ] {
        let body = json!({"choices": [choice]}).to_string();
        let server = Server::start([Reply::json(body.clone())]).unwrap();
        let got = protocol.gate(&server).post(protocol.path, &[], &with_format(protocol, false));
        assert_eq!((got.status, got.text(), server.received().len()), (200, body.as_str().into(), 1));
    }
    // The thought stays beside a text that is converted.
    let wrong = json!([part("thinking", "Maria …"), part("text", "```\n{\"age\": 34}\n```")]);
    let body = json!({"choices": [message(wrong, "stop")]}).to_string();
    let server = Server::start([Reply::json(body)]).unwrap();
    let got = protocol.gate(&server).post(protocol.path, &[], &with_format(protocol, false)).json();
    let content = &got["choices"][0]["message"]["content"];
    assert_eq!((&content[0], &content[1]["text"]), (&part("thinking", "Maria …"), &json!(r#"{"age":34}"#)));
}

#[test]
fn with_several_answers_each_is_judged() {
    let choices = |ages: [&str; 3]| {
        let choice = |(index, age): (usize, &str)| json!({"index": index, "message": {"role": "assistant", "content": age}, "finish_reason": "stop"});
        let choices: Vec<Value> = ages.into_iter().enumerate().map(choice).collect();
        Reply::json(json!({"choices": choices}).to_string())
    };
    let right = r#"{"age": 34}"#;
    let server = Server::start([
        choices([right, right, r#"{"age": 340}"#]),
        choices([right, "```\n{\"age\": 35}\n```", right]),
    ])
    .unwrap();
    let protocol = &protocols()[0];
    let mut body = with_format(protocol, false);
    body["n"] = 3.into();
    let got = protocol.gate(&server).post(protocol.path, &[], &body);
    let texts: Vec<Value> = got.json()["choices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|choice| choice["message"]["content"].clone())
        .collect();
    assert_eq!((got.status, texts), (200, vec![json!(right), json!(r#"{"age":35}"#), json!(right)]));
    assert_eq!(server.received().len(), 2);
}

#[test]
fn what_only_the_protocol_of_the_target_has_passes_to_it_and_is_refused_for_others() {
    let document = json!({"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}});
    let picture = json!({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}});
    let file = json!({"type": "input_file", "file_url": "https://example.org/a.pdf"});
    for protocol in protocols() {
        let mut body = with_format(&protocol, false);
        let content = match protocol.name {
            "openai" => picture.clone(),
            "responses" => file.clone(),
            "anthropic" => document.clone(),
            _ => continue,
        };
        let messages = json!([{"role": "user", "content": [content]}]);
        body[if protocol.name == "responses" { "input" } else { "messages" }] = messages;
        let search = json!({"type": "web_search_20250305", "name": "web_search"});
        if protocol.name != "openai" {
            body["tools"].as_array_mut().unwrap().push(search);
        }
        let wrong = protocol.reply(false, r#"{"age": 340}"#, &[], 9).0;
        let (right, bytes) = protocol.reply(false, r#"{"age": 34}"#, &[], 9);
        let server = Server::start([wrong, right]).unwrap();
        let got = protocol.gate(&server).post(protocol.path, &[], &body);
        assert_eq!((got.status, got.body == bytes), (200, true), "{}: {}", protocol.name, got.text());
        let sent = received(&server);
        assert_eq!((sent.len(), &sent[0]["tools"]), (2, &body["tools"]), "{}", protocol.name);
        let gate = Gate::new(&section("primary", "ollama", &server.url()));
        let got = gate.post(protocol.path, &[], &body);
        assert_eq!((got.status, server.received().len()), (400, 2), "{}: {}", protocol.name, got.text());
    }
}
