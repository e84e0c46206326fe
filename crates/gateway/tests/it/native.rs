//! A contract and a target of the protocol of the request: the request keeps all that the contract does not decide, the response is
//! the target's own, and what a run does is done all the same: lowering, patches, coercion, rules, evidence.

use std::sync::Arc;
use std::time::Duration;

use formwork_core::Provider;
use formwork_extract::Backend;
use formwork_gateway::{Gateway, Target};
use formwork_testkit::Scripted;
use formwork_testkit::server::{Reply, Server};
use serde_json::{Value, json};

use super::extract::Folder;
use super::support::{Gate, limits, openai, section, targets};
use super::tools::{Protocol, protocols};

/// A named contract with instructions, an example and a rule.
const PERSON: &str = r#"
instructions: Extract the person.
schema: {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "maximum": 150}}, "required": ["name", "age"], "additionalProperties": false}
examples:
  - input: Ada, 36, counts.
    output: {"name": "Ada", "age": 36}
rules:
  - {rule: grounded, target: $.name}
"#;

const RIGHT: &str = r#"{"name":"Maria","age":34}"#;

fn contracts(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("person.yaml", PERSON);
    folder
}

fn gate(protocol: &Protocol, server: &Server, folder: &Folder) -> Gate {
    let builder = targets(&protocol.section(&server.url()));
    Gate::start(builder.with_limits(limits()).with_contracts(&folder.0))
}

/// A request without a contract of its own, with members that no run knows, a late system message and thoughts.
fn request(protocol: &Protocol, stream: bool) -> Value {
    let mut body = protocol.body(stream);
    body.as_object_mut().unwrap().remove("tools");
    let text = json!({"role": "user", "content": "Maria, 34"});
    match protocol.name {
        "openai" => {
            body["messages"] = json!([{"role": "system", "content": "Be exact."}, text]);
            body["logprobs"] = true.into();
            body["store"] = true.into();
            body["metadata"] = json!({"team": "a"});
        }
        "responses" => {
            body["instructions"] = "Be exact.".into();
            body["reasoning"] = json!({"effort": "low", "summary": "auto"});
            body["text"] = json!({"verbosity": "low"});
            body["store"] = true.into();
        }
        "anthropic" => {
            body["system"] =
                json!([{"type": "text", "text": "Be exact.", "cache_control": {"type": "ephemeral"}}]);
            body["messages"] = json!([{"role": "user", "content": [
                {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
                {"type": "text", "text": "Maria, 34"},
            ]}]);
            body["output_config"] = json!({"effort": "low"});
            body["max_tokens"] = 4_000.into();
            body["thinking"] = json!({"type": "enabled", "budget_tokens": 2_000});
        }
        _ => {
            body["messages"] = json!([{"role": "system", "content": "Be exact."}, text]);
            body["keep_alive"] = "5m".into();
            body["options"] = json!({"mirostat": 2, "num_ctx": 64});
        }
    }
    body
}

fn sent(server: &Server) -> Vec<Value> {
    server.received().iter().map(|received| serde_json::from_slice(&received.body).unwrap()).collect()
}

/// The members that a contract may change.
fn is_of_contract(name: &str) -> bool {
    let dialogue = ["messages", "input", "system", "instructions"].contains(&name);
    dialogue || ["response_format", "format", "text", "output_config", "model"].contains(&name)
}

/// All members of the client that the contract does not decide, members of members included.
fn assert_kept(given: &Value, sent: &Value, at: &str) {
    for (name, value) in given.as_object().unwrap() {
        match value {
            _ if !is_of_contract(name) && !["options", "stream_options"].contains(&name.as_str()) => {
                assert_eq!(sent[name], *value, "{at}: {name}")
            }
            Value::Object(members) if !["messages", "input"].contains(&name.as_str()) => {
                let other = members
                    .iter()
                    .filter(|(member, _)| !["format", "json_schema"].contains(&member.as_str()));
                other.for_each(|(member, value)| assert_eq!(sent[name][member], *value, "{at}: {member}"));
            }
            _ => {}
        }
    }
    // Every message of the client is there, in order and unchanged, but for the system message.
    let list = if given["input"].is_null() { "messages" } else { "input" };
    let Some(messages) = given[list].as_array() else { return };
    let all = sent[list].as_array().unwrap();
    let own: Vec<_> = messages.iter().filter(|message| message["role"] != "system").collect();
    let kept: Vec<_> = all.iter().filter(|message| own.contains(message)).collect();
    assert_eq!(kept, own, "{at}: {sent}");
    let leading = all.iter().take_while(|message| message["role"] == "system").count();
    assert!(all.iter().skip(leading).all(|message| message["role"] != "system"), "{at}: {sent}");
    assert!(leading <= 1, "{at}: {sent}");
}

#[test]
fn a_named_contract_keeps_the_request_and_the_response_of_its_protocol() {
    let folder = contracts("native");
    for protocol in protocols() {
        for stream in [false, true] {
            let at = format!("{}, stream {stream}", protocol.name);
            let body = request(&protocol, stream);
            // Too high, invented, then right: the corrections are messages behind those of the client.
            let wrong = protocol.reply(stream, r#"{"name":"Maria","age":340}"#, &[], 9).0;
            let foreign = protocol.reply(stream, r#"{"name":"Petra","age":34}"#, &[], 9).0;
            let (right, bytes) = protocol.reply(stream, RIGHT, &[], 9);
            let server = Server::start([foreign, wrong, right]).unwrap();
            let contract = [("x-formwork-contract", "person"), ("anthropic-beta", "files-api")];
            let got = gate(&protocol, &server, &folder).post(protocol.path, &contract, &body);
            assert_eq!((got.status, got.header("x-formwork-ignored")), (200, None), "{at}: {}", got.text());
            let sent = sent(&server);
            for (nth, sent) in sent.iter().enumerate() {
                assert_kept(&body, sent, &format!("{at}, call {nth}"));
                let text = sent.to_string();
                // The instructions of the client, of the contract, and its example.
                let has =
                    ["Be exact.", "Extract the person.", "Ada, 36, counts."].map(|part| text.contains(part));
                assert_eq!(has, [true; 3], "{at}, call {nth}: {text}");
                assert_eq!(text.contains("cache_control"), protocol.name == "anthropic", "{at}: {text}");
            }
            let beta = server.received()[0].header("anthropic-beta").map(str::to_owned);
            assert_eq!(beta.as_deref(), Some("files-api"), "{at}");
            assert!(sent.len() >= 2, "{at}: {}", got.text());
            // The response is that of the last whole answer; its identifier and all else are the target's.
            let text = got.text();
            assert!(
                text.contains("Maria") && !text.contains("Petra") && !text.contains("340"),
                "{at}: {text}"
            );
            if sent.len() == 3 && stream {
                assert_eq!(text, String::from_utf8(bytes).unwrap(), "{at}");
            }
            if !stream && protocol.name != "ollama" {
                assert_eq!(got.json()["id"], "x", "{at}: {text}");
            }
        }
    }
}

/// A response that needs no correction comes back byte for byte.
#[test]
fn a_valid_response_passes_byte_for_byte() {
    let folder = contracts("bytes");
    for protocol in protocols() {
        for stream in [false, true] {
            for size in [3, 4_096] {
                let (reply, bytes) = protocol.reply(stream, RIGHT, &[], size);
                let server = Server::start([reply]).unwrap();
                let got = gate(&protocol, &server, &folder).post(
                    protocol.path,
                    &[("x-formwork-contract", "person")],
                    &request(&protocol, stream),
                );
                let at = format!("{}, stream {stream}", protocol.name);
                assert_eq!((got.status, got.text()), (200, String::from_utf8(bytes).unwrap()), "{at}");
            }
        }
    }
}

/// A patch corrects one value, and the rest of the response stays the target's: its thoughts, log probabilities and identifiers.
#[test]
fn a_patch_changes_the_text_of_the_targets_response_alone() {
    let message = json!({"role": "assistant", "content": r#"{"name":"Maria","age":"about 34"}"#});
    let first = json!({
        "id": "chatcmpl-9", "object": "chat.completion", "model": "m-1-2026", "service_tier": "flex",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": {"content": [{"token": "{", "logprob": -0.1, "bytes": [123], "top_logprobs": []}]}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    });
    let patch = json!({"choices": [{"message": {"content": r#"{"age":34}"#}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 7, "completion_tokens": 2}});
    let server = Server::start([Reply::json(first.to_string()), Reply::json(patch.to_string())]).unwrap();
    let folder = contracts("patch");
    let protocol = &protocols()[0];
    let got = gate(protocol, &server, &folder).post(
        protocol.path,
        &[("x-formwork-contract", "person"), ("x-formwork-evidence", "on")],
        &request(protocol, false),
    );
    let (body, calls) = (got.json(), server.received().len());
    assert_eq!((got.status, calls, got.header("x-formwork-calls")), (200, 2, Some("2")), "{}", got.text());
    assert_eq!(body["choices"][0]["message"]["content"], RIGHT);
    for part in ["id", "service_tier", "model"] {
        assert_eq!(body[part], first[part], "{part}");
    }
    // The probabilities were those of another text.
    assert!(body["choices"][0]["logprobs"].is_null());
    // The tokens are those of both calls.
    assert_eq!(
        (&body["usage"]["prompt_tokens"], &body["usage"]["completion_tokens"]),
        (&json!(17), &json!(7))
    );
    let evidence = &body["usage"]["formwork"]["evidence"];
    assert_eq!(evidence[0]["status"], "exact", "{body}");
}

/// Beside tools the contract judges the final message, with its rules.
#[test]
fn a_named_contract_judges_the_final_message_beside_tools() {
    let folder = contracts("final");
    for protocol in protocols() {
        for stream in [false, true] {
            let at = format!("{}, stream {stream}", protocol.name);
            let body = protocol.body(stream);
            let (call, called) = protocol.reply(stream, "", &[json!({"age": 34})], 9);
            let foreign = protocol.reply(stream, r#"{"name":"Petra","age":34}"#, &[], 9).0;
            let (right, bytes) = protocol.reply(stream, RIGHT, &[], 9);
            let server = Server::start([call, foreign, right]).unwrap();
            let gate = gate(&protocol, &server, &folder);
            let ask = || gate.post(protocol.path, &[("x-formwork-contract", "person")], &body);
            let got = ask();
            assert_eq!((got.status, got.body == called), (200, true), "{at}: {}", got.text());
            let got = ask();
            assert_eq!((got.status, got.body == bytes), (200, true), "{at}: {}", got.text());
            for sent in sent(&server) {
                assert_kept(&body, &sent, &at);
                let text = sent.to_string();
                let has = ["Extract the person.", "Ada, 36, counts.", "additionalProperties"];
                assert!(has.iter().all(|part| text.contains(part)), "{at}: {text}");
            }
        }
    }
    // The same where the request is translated.
    let protocol = &protocols()[2];
    let server = Server::start([
        protocols()[0].reply(false, r#"{"name":"Petra","age":34}"#, &[], 9).0,
        protocols()[0].reply(false, RIGHT, &[], 9).0,
    ])
    .unwrap();
    let builder = targets(&openai(&server.url())).with_limits(limits()).with_contracts(&folder.0);
    let got =
        Gate::start(builder).post(protocol.path, &[("x-formwork-contract", "person")], &protocol.body(false));
    assert_eq!((got.status, server.received().len()), (200, 2), "{}", got.text());
    assert!(got.text().contains("Maria"), "{}", got.text());
    assert!(sent(&server)[0].to_string().contains("Ada, 36, counts."));
}

/// The next target may have another protocol: it gets what can be said there, and the response names the rest.
#[test]
fn a_target_of_another_protocol_loses_what_is_named() {
    let folder = contracts("next");
    let other = protocols().remove(2);
    let (down, server) = (
        Server::start([Reply::json("{}").with_status(503)]).unwrap(),
        Server::start([other.reply(false, RIGHT, &[], 99).0]).unwrap(),
    );
    let config = format!(
        "{}{}[lists.all]\ntargets = [\"primary\", \"second\"]\n",
        openai(&down.url()),
        section("second", "anthropic", &server.url())
    );
    let gate = Gate::start(targets(&config).with_limits(limits()).with_contracts(&folder.0));
    let protocol = &protocols()[0];
    let mut body = request(protocol, false);
    body["model"] = "all".into();
    let got = gate.post(protocol.path, &[("x-formwork-contract", "person")], &body);
    assert_eq!(got.status, 200, "{}", got.text());
    let ignored = got.header("x-formwork-ignored").unwrap_or_default();
    assert!(ignored == "logprobs, metadata, store", "{ignored}");
    assert!(sent(&server)[0]["store"].is_null());
    assert_eq!(got.json()["choices"][0]["message"]["content"], RIGHT);

    // A document cannot be said there at all: the target is left out.
    body["messages"][1]["content"] =
        json!([{"type": "text", "text": "Maria, 34"}, {"type": "file", "file": {"file_id": "f"}}]);
    let got = gate.post(protocol.path, &[("x-formwork-contract", "person")], &body);
    assert!(got.status >= 500, "{}", got.text());
    assert_eq!(server.received().len(), 1);
}

/// A request of Chat Completions with a format, and with members that no run knows.
fn with_format(more: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name", "age"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "json_schema": {"name": "person", "schema": schema}});
    let mut body = json!({"model": "primary", "messages": [{"role": "user", "content": "Maria, 34"}], "response_format": format});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn text_of(protocol: &Protocol, stream: bool, text: &str) -> Reply {
    protocol.reply(stream, text, &[], 99).0
}

/// Beside a member that the service does not know, and beside one that it names.
#[test]
fn the_sampling_of_the_client_stays_beside_any_member() {
    let protocol = &protocols()[0];
    for other in [
        json!({"top_k": 20}),
        json!({"store": true}),
        json!({"chat_template_kwargs": {"format": "x", "n": 2}}),
    ] {
        let server = Server::start([text_of(protocol, false, RIGHT)]).unwrap();
        let mut body =
            with_format(&json!({"temperature": 0.25, "seed": 7, "top_p": 0.9, "frequency_penalty": 0.5}));
        body.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
        let got = protocol.gate(&server).post(protocol.path, &[], &body);
        assert_eq!((got.status, got.header("x-formwork-ignored")), (200, None), "{}", got.text());
        assert_kept(&body, &sent(&server)[0], &other.to_string());
    }
}

/// In a mode without a schema the client's own is not sent either, in all protocols that have it in a shared member.
#[test]
fn a_schema_that_the_target_refuses_is_not_sent_again() {
    let refusal =
        json!({"error": {"message": "Invalid schema for response_format", "type": "invalid_request_error"}});
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name", "age"], "additionalProperties": false});
    for (nth, format) in [
        (1, json!({"text": {"format": {"type": "json_schema", "name": "person", "schema": schema}}})),
        (2, json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}})),
    ] {
        let protocol = &protocols()[nth];
        let server = Server::start([
            Reply::json(refusal.to_string()).with_status(400),
            text_of(protocol, false, RIGHT),
        ])
        .unwrap();
        let mut body = request(protocol, false);
        for name in ["text", "output_config", "thinking"] {
            body.as_object_mut().unwrap().remove(name);
        }
        body.as_object_mut().unwrap().extend(format.as_object().unwrap().clone());
        let got = protocol.gate(&server).post(protocol.path, &[], &body);
        let sent = sent(&server);
        assert!(sent.len() > 1, "{}", got.text());
        let has_schema = |sent: &Value| {
            sent["text"]["format"]["schema"].is_object()
                || sent["output_config"]["format"]["schema"].is_object()
        };
        assert_eq!((has_schema(&sent[0]), has_schema(&sent[1])), (true, false), "{}", sent[1]);
        assert_kept(
            &body
                .as_object()
                .unwrap()
                .iter()
                .filter(|(name, _)| !is_of_contract(name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            &sent[1],
            protocol.name,
        );
    }
}

/// The answer that was rejected before is no answer, whatever became of its correction.
#[test]
fn a_patch_that_is_refused_or_cut_is_no_answer() {
    let folder = contracts("refused");
    let protocol = &protocols()[0];
    for stream in [false, true] {
        for (message, reason) in [
            (json!({"role": "assistant", "content": null, "refusal": "No."}), "stop"),
            (json!({"role": "assistant", "content": "{\"age\": "}), "length"),
        ] {
            let choice = json!({"index": 0, "message": message, "delta": message, "finish_reason": reason});
            let body = json!({"id": "y", "choices": [choice]}).to_string();
            let last = match stream {
                true => Reply::pieces([format!("data: {body}\n\ndata: [DONE]\n\n")])
                    .with_header("content-type", "text/event-stream"),
                false => Reply::json(body),
            };
            let first = text_of(protocol, stream, r#"{"name":"Maria","age":"about 34"}"#);
            let server = Server::start([first, last]).unwrap();
            let got = gate(protocol, &server, &folder).post(
                protocol.path,
                &[("x-formwork-contract", "person")],
                &request(protocol, stream),
            );
            assert!(
                !got.text().contains("about 34") || got.status == 422,
                "{stream}, {reason}: {}",
                got.text()
            );
        }
    }
}

#[test]
fn the_evidence_of_a_stream_is_not_lost() {
    let protocol = &protocols()[0];
    let server = Server::start([text_of(protocol, true, RIGHT)]).unwrap();
    let body =
        with_format(&json!({"store": true, "stream": true, "stream_options": {"include_usage": true}}));
    let got = protocol.gate(&server).post(protocol.path, &[("x-formwork-evidence", "on")], &body);
    assert!(got.text().contains("\"evidence\":[{") && got.text().contains("Maria"), "{}", got.text());
}

/// Tools of a vendor that have no schema are called beside a format, and beside a named contract.
#[test]
fn a_call_of_a_tool_without_a_schema_passes_beside_a_contract() {
    let folder = contracts("hosted");
    let protocol = &protocols()[2];
    let call = json!({"id": "x", "type": "message", "content": [{"type": "tool_use", "id": "c", "name": "bash", "input": {"command": "ls"}}], "stop_reason": "tool_use"});
    let server = Server::start([
        Reply::json(call.to_string()),
        text_of(protocol, false, r#"{"name":"Petra","age":34}"#),
        text_of(protocol, false, RIGHT),
    ])
    .unwrap();
    let mut body = request(protocol, false);
    body["tools"] = json!([{"type": "bash_20250124", "name": "bash"}]);
    let gate = gate(protocol, &server, &folder);
    let ask = || gate.post(protocol.path, &[("x-formwork-contract", "person")], &body);
    let got = ask();
    assert_eq!((got.status, got.json()), (200, call), "{}", got.text());
    let got = ask();
    assert_eq!((got.status, got.json()["content"][0]["text"].as_str()), (200, Some(RIGHT)), "{}", got.text());
    assert_eq!(sent(&server).len(), 3);
    assert!(sent(&server).iter().all(|sent| sent["tools"] == body["tools"]));
}

/// The usual end of an agent's loop: the value stands in the result of the tool.
#[test]
fn rules_of_the_final_message_are_about_the_results_of_tools_too() {
    let folder = contracts("results");
    let protocol = &protocols()[0];
    let server = Server::start([text_of(protocol, false, RIGHT)]).unwrap();
    let mut body = protocol.body(false);
    body["messages"] = json!([
        {"role": "user", "content": "Who is it?"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "Maria, 34"},
    ]);
    let contract = [("x-formwork-contract", "person")];
    let got = gate(protocol, &server, &folder).post(protocol.path, &contract, &body);
    assert_eq!((got.status, server.received().len()), (200, 1), "{}", got.text());
}

/// Rules that no call would check are said, and not forgotten.
#[test]
fn rules_beside_tools_need_a_target_with_tools() {
    let folder = contracts("toolless");
    let model: Arc<dyn Provider> = Arc::new(Scripted::new([RIGHT]));
    let target = Target::new(Backend::from(model), None, "m-1");
    let builder = Gateway::builder().with_target(target).with_limits(limits()).with_contracts(&folder.0);
    let protocol = &protocols()[2];
    let mut body = protocol.body(false);
    body["model"] = "default".into();
    let got = Gate::start(builder).post(protocol.path, &[("x-formwork-contract", "person")], &body);
    assert_eq!(got.status, 400, "{}", got.text());
    assert!(got.text().contains("has rules"), "{}", got.text());
}

/// Official clients repeat a request by the status of its response.
#[test]
fn a_stream_without_an_answer_is_an_error_response_unless_it_began() {
    let folder = contracts("first");
    for protocol in protocols() {
        for pause in [0, 1_000] {
            let text = text_of(&protocol, true, "I cannot say.");
            let server = Server::start([text.with_pause(Duration::from_millis(pause))]).unwrap();
            let config = protocol.section(&server.url());
            let mut limits = super::support::limits();
            if pause > 0 {
                limits.keep_alive = Duration::from_millis(1);
            }
            let gate = Gate::start(targets(&config).with_contracts(&folder.0).with_limits(limits));
            for body in [request(&protocol, true), protocol.body(true)] {
                let got = gate.post(protocol.path, &[("x-formwork-contract", "person")], &body);
                let at = format!("{} {pause}: {}", protocol.name, got.text());
                assert_eq!(got.status, if pause > 0 { 200 } else { 422 }, "{at}");
                assert!(got.text().contains("error"), "{at}");
                let began = got.documents().iter().any(|event| event["type"] == "response.created");
                assert_eq!(began, pause > 0 && protocol.name == "responses", "{at}");
            }
        }
    }
}

/// Servers refuse empty texts.
#[test]
fn empty_instructions_are_left_out() {
    let folder = contracts("blank");
    let protocol = &protocols()[2];
    let server = Server::start([text_of(protocol, false, RIGHT)]).unwrap();
    let mut body = request(protocol, false);
    body["system"] = "".into();
    let contract = [("x-formwork-contract", "person")];
    let got = gate(protocol, &server, &folder).post(protocol.path, &contract, &body);
    let system = sent(&server)[0]["system"].to_string();
    assert_eq!(got.status, 200, "{}", got.text());
    assert!(system.contains("Extract the person.") && !system.contains("\"text\":\"\""), "{system}");
}

/// An answer that the token limit cut and that was completed is whole, in the words of its protocol.
#[test]
fn an_answer_that_was_completed_is_whole() {
    let folder = contracts("whole");
    let cut = r#"{"name":"Maria","ag"#;
    for (protocol, body, finish, ended) in [
        (
            0,
            json!({"id": "x", "choices": [{"index": 0, "message": {"content": cut}, "finish_reason": "length"}]}),
            "/choices/0/finish_reason",
            "stop",
        ),
        (
            1,
            json!({"id": "x", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [{"type": "message", "status": "incomplete", "content": [{"type": "output_text", "text": cut}]}]}),
            "/status",
            "completed",
        ),
        (
            2,
            json!({"id": "x", "type": "message", "content": [{"type": "thinking", "thinking": "Hm", "signature": "s"}, {"type": "text", "text": cut}], "stop_reason": "max_tokens", "usage": {"input_tokens": 53, "cache_creation_input_tokens": 11, "output_tokens": 9}}),
            "/stop_reason",
            "end_turn",
        ),
        (
            3,
            json!({"message": {"content": cut}, "done": true, "done_reason": "length"}),
            "/done_reason",
            "stop",
        ),
    ] {
        let protocol = &protocols()[protocol];
        let server = Server::start([
            Reply::json(body.to_string()),
            text_of(protocol, false, r#"{"age":34}"#),
            text_of(protocol, false, RIGHT),
        ])
        .unwrap();
        let got = gate(protocol, &server, &folder).post(
            protocol.path,
            &[("x-formwork-contract", "person")],
            &request(protocol, false),
        );
        let response = got.json();
        assert_eq!(
            (got.status, response.pointer(finish)),
            (200, Some(&json!(ended))),
            "{}: {response}",
            protocol.name
        );
        assert!(response["incomplete_details"].is_null(), "{response}");
        assert!(response.to_string().contains("34"), "{response}");
    }
}

/// The counts of a call are the target's, with its own members.
#[test]
fn the_usage_of_one_call_is_the_targets() {
    let folder = contracts("usage");
    let protocol = &protocols()[2];
    let usage = json!({"input_tokens": 53, "cache_creation_input_tokens": 11, "cache_read_input_tokens": 3, "output_tokens": 9});
    let text = "Here: {\"name\":\"Maria\",\"age\":34}";
    let body = json!({"id": "x", "type": "message", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": usage});
    let server = Server::start([Reply::json(body.to_string())]).unwrap();
    let got = gate(protocol, &server, &folder).post(
        protocol.path,
        &[("x-formwork-contract", "person")],
        &request(protocol, false),
    );
    let mut returned = got.json()["usage"].take();
    assert!(returned.as_object_mut().unwrap().remove("formwork").is_some(), "{}", got.text());
    assert_eq!(returned, usage);
}

/// The members of the usage that count all calls agree with each other.
#[test]
fn the_cost_that_a_target_tells_is_that_of_all_calls() {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "cost": 0.25});
    let tool =
        json!({"type": "function", "function": {"name": "save", "parameters": super::support::schema()}});
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "a", "schema": super::support::schema()}});
    let answer = |text: &str, calls: &Value| {
        let message = json!({"role": "assistant", "content": text, "tool_calls": calls});
        let choices = json!([{"index": 0, "message": message, "finish_reason": "stop"}]);
        Reply::json(json!({"id": "x", "choices": choices, "usage": usage}).to_string())
    };
    let call = |age: Value| json!([{"id": "1", "type": "function", "function": {"name": "save", "arguments": json!({"age": age}).to_string()}}]);
    for (more, replies) in [
        (json!({"tools": [tool]}), [answer("", &call(json!("old"))), answer("", &call(json!(34)))]),
        (
            json!({"response_format": format, "store": true}),
            [answer("{\"age\":\"old\"}", &Value::Null), answer("{\"age\":34}", &Value::Null)],
        ),
    ] {
        let server = Server::start(replies).unwrap();
        let gate = Gate::new(&section("primary", "openai", &server.url()));
        let mut body = json!({"model": "primary", "messages": [{"role": "user", "content": "Maria, 34"}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let got = gate.post("/v1/chat/completions", &[], &body);
        let usage = &got.json()["usage"];
        assert_eq!((&usage["prompt_tokens"], &usage["cost"]), (&json!(20), &json!(0.5)), "{}", got.text());
    }
}

/// A stream beside tools accepts what a whole response accepts, and pays for no further call.
#[test]
fn a_stream_beside_tools_accepts_what_a_whole_response_accepts() {
    let folder = contracts("alike");
    for protocol in protocols() {
        for text in [r#"{"name":"Maria","age":"34"}"#, "Here: {\"name\":\"Maria\",\"age\":34}"] {
            let server = Server::start([text_of(&protocol, true, text)]).unwrap();
            let gate = gate(&protocol, &server, &folder);
            let got = gate.post(protocol.path, &[("x-formwork-contract", "person")], &protocol.body(true));
            let at = format!("{}, {text}: {}", protocol.name, got.text());
            assert_eq!(server.received().len(), 1, "{at}");
            assert!(!got.text().contains(r#""error":{"#) && got.text().contains("Maria"), "{at}");
            assert!(!got.text().contains("Here") && !got.text().contains(r#"\"34\""#), "{at}");
        }
    }
}

/// A text that is JSON stays as the model wrote it, also with white space around it and with a name that is there twice.
#[test]
fn a_text_beside_tools_that_is_json_passes_byte_for_byte() {
    let folder = contracts("twice");
    for protocol in protocols() {
        for text in [" {\"name\": \"Maria\",\n\"age\":34}\n", r#"{"name":"M","name":"Maria","age":34}"#] {
            let (reply, bytes) = protocol.reply(false, text, &[], 4_096);
            let server = Server::start([reply]).unwrap();
            let gate = gate(&protocol, &server, &folder);
            let got = gate.post(protocol.path, &[("x-formwork-contract", "person")], &protocol.body(false));
            assert_eq!(got.text(), String::from_utf8(bytes).unwrap(), "{}, {text}", protocol.name);
        }
    }
}

/// A turn of hosted tools that pauses is no final answer: the client sends it back.
#[test]
fn a_turn_that_pauses_passes() {
    let folder = contracts("pause");
    let protocol = &protocols()[2];
    let body = json!({"id": "x", "type": "message", "content": [{"type": "text", "text": "searching"}], "stop_reason": "pause_turn"});
    let server = Server::start([Reply::json(body.to_string())]).unwrap();
    let mut ask = request(protocol, false);
    ask["tools"] = json!([{"type": "web_search_20250305", "name": "web_search"}]);
    let got =
        gate(protocol, &server, &folder).post(protocol.path, &[("x-formwork-contract", "person")], &ask);
    assert_eq!((got.status, got.json(), server.received().len()), (200, body, 1), "{}", got.text());
}

/// The tokens of a named contract are those of the target.
#[test]
fn the_log_probabilities_beside_a_named_contract_are_the_targets() {
    let folder = contracts("tokens");
    let protocol = &protocols()[0];
    let logprobs = json!({"content": [{"token": RIGHT, "logprob": -0.1, "bytes": null, "top_logprobs": []}]});
    let body = json!({"id": "x", "choices": [{"index": 0, "message": {"content": RIGHT}, "logprobs": logprobs, "finish_reason": "stop"}]});
    let server = Server::start([Reply::json(body.to_string())]).unwrap();
    let ask =
        json!({"model": "primary", "messages": [{"role": "user", "content": "Maria, 34"}], "logprobs": true});
    let got =
        gate(protocol, &server, &folder).post(protocol.path, &[("x-formwork-contract", "person")], &ask);
    assert_eq!((got.status, got.json()), (200, body), "{}", got.text());
    assert!(sent(&server)[0].get("top_logprobs").is_none_or(|most| *most == json!(0)));
}

/// A stream that breaks off is no answer, although its text could be closed.
#[test]
fn a_stream_beside_tools_that_breaks_off_is_no_answer() {
    let protocol = &protocols()[0];
    let piece = json!({"choices": [{"index": 0, "delta": {"content": "{\"name\":\"Maria\",\"age\":34"}}]});
    for end in ["", "data: {\"error\": {\"message\": \"full\"}}\n\n"] {
        let cut = Reply::pieces([format!("data: {piece}\n\n{end}")])
            .with_header("content-type", "text/event-stream");
        let server = Server::start([cut]).unwrap();
        let mut body = with_format(&json!({"stream": true}));
        body["tools"] = protocol.body(true)["tools"].clone();
        let got = protocol.gate(&server).post(protocol.path, &[], &body);
        let is_answer =
            got.documents().iter().any(|document| document["choices"][0]["finish_reason"] == "stop");
        assert!(!is_answer && got.text().contains("\"error\":{"), "{end}: {}", got.text());
    }
}

/// The examples of a contract are no text that an answer may be taken from, and neither are the thoughts of the model.
#[test]
fn neither_examples_nor_thoughts_ground_an_answer() {
    let folder = contracts("grounds");
    let protocol = &protocols()[1];
    let invented = r#"{"name":"Ada","age":36}"#;
    let server = Server::start([text_of(protocol, false, invented)]).unwrap();
    let mut body = protocol.body(false);
    body["unheard_of"] = true.into();
    body["input"] = json!([
        {"role": "user", "content": "Who is it?"},
        {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "Perhaps Ada, 36"}]},
    ]);
    let contract = [("x-formwork-contract", "person")];
    let got = gate(protocol, &server, &folder).post(protocol.path, &contract, &body);
    assert_eq!(got.status, 422, "{}", got.text());
    assert!(got.text().contains("$.name"), "{}", got.text());
}

/// A member of another protocol is one that only the target knows.
#[test]
fn a_member_of_another_protocol_passes_to_the_target() {
    for (nth, more) in [
        (1, json!({"seed": 7, "frequency_penalty": 0.5})),
        (2, json!({"seed": 7})),
        (3, json!({"temperature": 0, "system": "Be exact."})),
    ] {
        let protocol = &protocols()[nth];
        let server = Server::start([text_of(protocol, false, RIGHT)]).unwrap();
        let mut body = protocol.body(false);
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let got = protocol.gate(&server).post(protocol.path, &[], &body);
        assert_eq!(got.status, 200, "{}: {}", protocol.name, got.text());
        assert_kept(&more, &sent(&server)[0], protocol.name);
    }
}

/// Counts of any form are those of the target, and the run is ours.
#[test]
fn odd_counts_of_a_target_stay_as_they_are() {
    let folder = contracts("odd");
    let protocol = &protocols()[3];
    let body = json!({"message": {"content": "Here: {\"name\":\"Maria\",\"age\":34}"}, "done": true, "done_reason": "stop", "eval_count": {}, "formwork": {"run": "inner"}});
    let server = Server::start([Reply::json(body.to_string())]).unwrap();
    let got = gate(protocol, &server, &folder).post(
        protocol.path,
        &[("x-formwork-contract", "person")],
        &request(protocol, false),
    );
    let response = got.json();
    assert_eq!((got.status, &response["eval_count"]), (200, &json!({})), "{response}");
    assert_eq!(response["formwork"]["run"].as_str(), got.header("x-formwork-run"), "{response}");
}

/// The rules are not forgotten when the next target has no tools.
#[test]
fn rules_beside_tools_are_not_lost_with_a_target() {
    let folder = contracts("failover");
    let down = Server::start([Reply::json("{}").with_status(503)]).unwrap();
    let model: Arc<dyn Provider> =
        Arc::new(Scripted::new([r#"{"tool": null, "answer": {"name": "Petra", "age": 34}}"#]));
    let builder = targets(&openai(&down.url())).with_target(Target::new(Backend::from(model), None, "m-1"));
    let builder = builder.with_limits(limits()).with_contracts(&folder.0);
    let protocol = &protocols()[0];
    let mut body = protocol.body(false);
    body["model"] = "default".into();
    let got = Gate::start(builder).post(protocol.path, &[("x-formwork-contract", "person")], &body);
    assert_eq!(got.status, 400, "{}", got.text());
    assert!(got.text().contains("has rules"), "{}", got.text());
}

/// A model cannot be forced to call a tool while it thinks, so that a target whose answers are calls of a tool gets the schema as text.
#[test]
fn thoughts_are_not_lost_to_a_tool_that_carries_the_answer() {
    let folder = contracts("carrier");
    let protocol = &protocols()[2];
    let server = Server::start([text_of(protocol, false, RIGHT)]).unwrap();
    let section =
        protocol.section(&server.url()).replace("stream = false", "stream = false\nmode = \"tool\"");
    let gate = Gate::start(targets(&section).with_limits(limits()).with_contracts(&folder.0));
    let body = request(protocol, false);
    let got = gate.post(protocol.path, &[("x-formwork-contract", "person")], &body);
    let sent = sent(&server);
    assert_eq!((got.status, sent.len()), (200, 1), "{}", got.text());
    assert_eq!(sent[0]["thinking"], body["thinking"]);
    assert!(
        sent[0].get("tools").is_none() && sent[0].to_string().contains("additionalProperties"),
        "{}",
        sent[0]
    );
}

/// A response that is too long to be kept is not the client's: it gets our own with the value.
#[test]
fn a_response_that_is_too_long_to_be_kept_is_written_anew() {
    let folder = contracts("long");
    let protocol = &protocols()[0];
    for (length, is_kept) in [(1 << 20, true), (17 << 20, false)] {
        let (_, bytes) = protocol.reply(false, RIGHT, &[], 4_096);
        let mut body: Value = serde_json::from_slice(&bytes).unwrap();
        body["padding"] = "x".repeat(length).into();
        let server = Server::start([Reply::json(body.to_string())]).unwrap();
        let contract = [("x-formwork-contract", "person")];
        let got = gate(protocol, &server, &folder).post(protocol.path, &contract, &request(protocol, false));
        let answer = got.json();
        let at = format!("{length}: {}", &got.text()[..got.text().len().min(300)]);
        assert_eq!((got.status, &answer["choices"][0]["message"]["content"]), (200, &json!(RIGHT)), "{at}");
        assert_eq!(answer.get("padding").is_some(), is_kept, "{at}");
    }
}

/// The events of a stream with reasoning before the text, and what has to be left of it.
fn with_reasoning(protocol: &Protocol, text: &str, usage: bool) -> (Reply, &'static str) {
    let (before, rest): (Vec<Value>, _) = match protocol.name {
        "openai" => {
            let tokens =
                json!({"content": [{"token": "x", "logprob": -0.5, "bytes": null, "top_logprobs": []}]});
            let chunk = json!({"choices": [{"index": 0, "delta": {"content": ""}, "logprobs": tokens}]});
            (
                vec![json!({"choices": [{"index": 0, "delta": {"reasoning_content": "I wonder."}}]}), chunk],
                "I wonder.",
            )
        }
        "responses" => (
            vec![
                json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "I wonder."}),
            ],
            "response.reasoning_summary_text.delta",
        ),
        "anthropic" => (
            vec![
                json!({"type": "content_block_delta", "index": 9, "delta": {"type": "thinking_delta", "thinking": "I wonder."}}),
                json!({"type": "content_block_delta", "index": 9, "delta": {"type": "signature_delta", "signature": "s-1"}}),
            ],
            "\"signature\":\"s-1\"",
        ),
        _ => (
            vec![json!({"message": {"content": "", "thinking": "I wonder."}, "done": false})],
            "\"thinking\":\"I wonder.\"",
        ),
    };
    let is_lines = protocol.name == "ollama";
    let line = |one: &Value| if is_lines { format!("{one}\n") } else { format!("data: {one}\n\n") };
    let mut body: String = before.iter().map(line).collect();
    body += &String::from_utf8(protocol.reply(true, text, &[], 9).1).unwrap();
    let body = match usage {
        true => body
            .replace("data: [DONE]", "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\ndata: [DONE]")
            .replace(r#""response":{"status":"completed""#, r#""response":{"usage":{"input_tokens":7,"output_tokens":3},"status":"completed""#)
            .replace(r#""type":"message_delta""#, r#""type":"message_delta","usage":{"output_tokens":3}"#)
            .replace(r#""message":{}"#, r#""message":{"usage":{"input_tokens":7,"output_tokens":1}}"#)
            .replace("\"done\": true", "\"done\": true, \"prompt_eval_count\": 7, \"eval_count\": 3"),
        false => body,
    };
    let media = if is_lines { "application/x-ndjson" } else { "text/event-stream" };
    (Reply::pieces([body]).with_header("content-type", media), rest)
}

/// A corrected value takes the place of the text in the stream of the target, whose reasoning stays.
#[test]
fn a_corrected_stream_keeps_the_reasoning() {
    let folder = contracts("reasoning");
    for protocol in protocols() {
        for (has_tools, texts) in [
            (false, vec![r#"{"name":"Maria","age":"34"}"#]),
            (true, vec![r#"{"name":"Maria","age":"34"}"#]),
            (false, vec!["No.", r#"Here: {"name":"Maria","age":34}"#]),
            (true, vec!["No.", r#"Here: {"name":"Maria","age":34}"#]),
        ] {
            let calls = texts.len() as u64;
            let replies: Vec<_> = texts.iter().map(|text| with_reasoning(&protocol, text, true).0).collect();
            let server = Server::start(replies).unwrap();
            let mut body = if has_tools { protocol.body(true) } else { request(&protocol, true) };
            if protocol.name == "openai" {
                body["stream_options"] = json!({"include_usage": true});
            }
            let got = gate(&protocol, &server, &folder).post(
                protocol.path,
                &[("x-formwork-contract", "person")],
                &body,
            );
            let at = format!("{}, tools {has_tools}, {calls}: {}", protocol.name, got.text());
            assert_eq!((got.status, server.received().len() as u64), (200, calls), "{at}");
            let rest = with_reasoning(&protocol, "", false).1;
            assert!(got.text().contains(rest), "{at}");
            assert!(!got.text().contains("Here") && !got.text().contains(r#"\"34\""#), "{at}");
            // Once, and whole.
            let text = json!(RIGHT).to_string();
            assert_eq!(got.text().matches(&text).count(), 1, "{at}");
            // Beside a schema, Ollama does not count its reasoning, and our count of several calls does.
            let uncounted = if protocol.name == "ollama" && !has_tools && calls > 1 { 3 * calls } else { 0 };
            for (names, count) in [
                (["prompt_tokens", "input_tokens", "prompt_eval_count"], 7 * calls),
                (["completion_tokens", "output_tokens", "eval_count"], 3 * calls + uncounted),
            ] {
                let text = got.text().replace("\": ", "\":");
                let has = names.iter().any(|name| text.contains(&format!("\"{name}\":{count}")));
                assert!(has, "{names:?}: {at}");
            }
        }
    }
}

/// An addition to the usage leaves the tokens of the text as they are.
#[test]
fn a_stream_with_evidence_keeps_its_log_probabilities() {
    let protocol = &protocols()[0];
    let (reply, reasoning) = with_reasoning(protocol, RIGHT, true);
    let server = Server::start([reply]).unwrap();
    let more =
        json!({"store": true, "stream": true, "stream_options": {"include_usage": true}, "logprobs": true});
    let got =
        protocol.gate(&server).post(protocol.path, &[("x-formwork-evidence", "on")], &with_format(&more));
    let text = got.text();
    assert!(text.contains("\"evidence\":[{") && text.contains(reasoning), "{text}");
    assert!(text.contains("\"logprob\":-0.5"), "{text}");
}

/// A target that gets the request as it is gets all of it for each of several answers.
#[test]
fn what_the_target_gets_is_not_named_as_ignored_beside_several_answers() {
    let folder = contracts("several");
    let protocol = &protocols()[0];
    for stream in [false, true] {
        for (headers, n) in [
            (&[][..], 1),
            (&[], 2),
            (&[("x-formwork-contract", "person")], 1),
            (&[("x-formwork-contract", "person")], 2),
            (&[("x-formwork-evidence", "on")], 2),
        ] {
            let mut body = with_format(&json!({"store": true, "n": n, "stream": stream}));
            if headers.iter().any(|(name, _)| *name == "x-formwork-contract") {
                body.as_object_mut().unwrap().remove("response_format");
            }
            let choices: Vec<_> = (0..n)
                .map(|index| json!({"index": index, "message": {"content": RIGHT}, "finish_reason": "stop"}))
                .collect();
            let server = Server::start([Reply::json(json!({"choices": choices}).to_string())]).unwrap();
            let got = gate(protocol, &server, &folder).post(protocol.path, headers, &body);
            let at = format!("{headers:?}, {n}, {stream}: {}", got.text());
            assert_eq!((got.status, got.header("x-formwork-ignored")), (200, None), "{at}");
            assert!(!got.text().contains("\"ignored\""), "{at}");
            assert!(sent(&server).iter().all(|sent| sent["store"] == true), "{at}");
        }
    }
}

/// Only headers that were sent and that stand in the way are named.
#[test]
fn a_refusal_names_the_headers_that_were_sent() {
    let protocol = &protocols()[2];
    let server = Server::start([text_of(protocol, false, RIGHT)]).unwrap();
    let mut body = protocol.body(false);
    body["unheard_of"] = true.into();
    let gate = protocol.gate(&server);
    let (eager, absent, coerce) =
        (("x-formwork-stream", "eager"), ("x-formwork-absent", "all"), ("x-formwork-coerce", "fix"));
    for headers in [&[eager][..], &[absent], &[coerce], &[absent, coerce], &[eager, absent]] {
        let got = gate.post(protocol.path, headers, &body);
        let text = got.text();
        assert_eq!(got.status, 400, "{text}");
        for (name, _) in [eager, absent, coerce] {
            let is_sent = headers.iter().any(|(sent, _)| *sent == name);
            assert_eq!(text.contains(name), is_sent, "{headers:?}: {text}");
        }
    }
    assert_eq!(gate.post(protocol.path, &[], &body).status, 200);
}

/// A patch in a dialogue follows the answer that it is about, and not an earlier turn.
#[test]
fn a_patch_in_a_dialogue_follows_the_answer() {
    let protocol = &protocols()[0];
    for has_turns in [false, true] {
        let wrong = r#"{"name":"Maria","age":"about 34"}"#;
        let server =
            Server::start([text_of(protocol, false, wrong), text_of(protocol, false, r#"{"age":34}"#)])
                .unwrap();
        let mut body = with_format(&json!({"store": true}));
        if has_turns {
            body["messages"] = json!([
                {"role": "user", "content": "Who is it?"}, {"role": "assistant", "content": "Maria."},
                {"role": "user", "content": "Maria, 34"},
            ]);
        }
        let got = protocol.gate(&server).post(protocol.path, &[], &body);
        assert_eq!((got.status, server.received().len()), (200, 2), "{}", got.text());
        let messages = sent(&server)[1]["messages"].as_array().unwrap().clone();
        let [.., before, patch] = &messages[..] else { panic!("{messages:?}") };
        assert!(patch["content"].as_str().unwrap().contains("age"), "{messages:?}");
        assert_eq!(before["role"] == "assistant", has_turns, "{messages:?}");
        assert_eq!(before["content"].to_string().contains("about 34"), has_turns, "{messages:?}");
    }
}

/// Forms that the service cannot read are for targets of the protocol, and for no others.
#[test]
fn forms_of_one_protocol_reach_its_targets_beside_tools() {
    let picture = |source: Value| json!([{"role": "user", "content": [{"type": "image", "source": source}, {"type": "text", "text": "Maria, 34"}]}]);
    let named = json!([{"type": "function", "name": "save"}]);
    let custom = json!({"id": "c", "type": "custom", "custom": {"name": "code", "input": "1"}});
    for (nth, member, value) in [
        (2, "messages", picture(json!({"type": "url", "url": "https://example.org/a.png"}))),
        (2, "messages", picture(json!({"type": "file", "file_id": "file-1"}))),
        (
            0,
            "messages",
            json!([
                {"role": "user", "content": "Maria, 34"},
                {"role": "assistant", "content": null, "tool_calls": [custom]},
                {"role": "tool", "tool_call_id": "c", "content": "1"},
            ]),
        ),
        (0, "tool_choice", json!({"type": "custom", "custom": {"name": "code"}})),
        (
            0,
            "tool_choice",
            json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "save"}}]}}),
        ),
        (1, "input", json!([{"role": "user", "content": [{"type": "input_image", "file_id": "file-1"}]}])),
        (1, "tool_choice", json!({"type": "allowed_tools", "mode": "auto", "tools": named})),
        (1, "previous_response_id", json!("resp_1")),
        (1, "conversation", json!({"id": "conv_1"})),
        (1, "prompt", json!({"id": "pmpt_1"})),
    ] {
        let protocol = &protocols()[nth];
        let mut body = protocol.body(false);
        body[member] = value;
        let (reply, bytes) = protocol.reply(false, "", &[json!({"age": 34})], 99);
        let server = Server::start([reply]).unwrap();
        let got = protocol.gate(&server).post(protocol.path, &[], &body);
        let at = format!("{}: {}: {}", protocol.name, body[member], got.text());
        assert_eq!((got.status, got.body == bytes), (200, true), "{at}");
        assert_eq!(sent(&server)[0][member], body[member], "{at}");
        let other = &protocols()[if nth == 2 { 0 } else { 2 }];
        let server = Server::start([other.reply(false, "", &[json!({"age": 34})], 99).0]).unwrap();
        let got = other.gate(&server).post(protocol.path, &[], &body);
        assert_eq!((got.status, server.received().len()), (400, 0), "{at}: {}", got.text());
        assert!(got.text().contains(member), "{at}: {}", got.text());
    }
}

/// Its texts are unknown, and rules and evidence are about them.
#[test]
fn a_dialogue_that_the_vendor_keeps_is_refused_for_documents() {
    let folder = contracts("kept");
    let protocol = &protocols()[1];
    let schema = super::support::schema();
    let format = json!({"format": {"type": "json_schema", "name": "a", "schema": schema}});
    for (more, headers) in [
        (json!({"text": format}), vec![]),
        (json!({"text": format, "tools": protocol.body(false)["tools"]}), vec![]),
        (json!({"text": format, "top_k": 5}), vec![]),
        (json!({}), vec![("x-formwork-contract", "person")]),
        (json!({"tools": protocol.body(false)["tools"]}), vec![("x-formwork-contract", "person")]),
    ] {
        let mut body = json!({"model": "primary", "input": "Maria, 34", "previous_response_id": "resp_1"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let server = Server::start([protocol.reply(false, "", &[json!({"age": 34})], 99).0]).unwrap();
        let got = gate(protocol, &server, &folder).post(protocol.path, &headers, &body);
        assert_eq!((got.status, server.received().len()), (400, 0), "{body}: {}", got.text());
        assert!(got.text().contains("previous_response_id"), "{}", got.text());
    }
}

/// The choice from some of the tools requires a call, and the arguments of every tool are judged.
#[test]
fn a_call_of_allowed_tools_is_required_and_judged() {
    let function = |name: &str| json!({"type": "function", "function": {"name": name}});
    let allowed = json!({"mode": "required", "tools": [function("find"), function("save")]});
    for (nth, choice) in [
        (0, json!({"type": "allowed_tools", "allowed_tools": allowed})),
        (
            1,
            json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "save"}]}),
        ),
    ] {
        let protocol = &protocols()[nth];
        let mut body = protocol.body(false);
        body["tool_choice"] = choice;
        let none = text_of(protocol, false, "No.");
        let wrong = protocol.reply(false, "", &[json!({"age": 340})], 99).0;
        let (right, bytes) = protocol.reply(false, "", &[json!({"age": 34})], 99);
        let server = Server::start([none, wrong, right]).unwrap();
        let got = protocol.gate(&server).post(protocol.path, &[], &body);
        assert_eq!((got.status, server.received().len()), (200, 3), "{}: {}", protocol.name, got.text());
        assert_eq!(got.body, bytes, "{}", protocol.name);
        assert!(sent(&server).iter().all(|sent| sent["tool_choice"] == body["tool_choice"]));
    }
}
