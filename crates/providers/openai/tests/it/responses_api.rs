//! The Responses API: requests, documents and streams.

use formwork_core::{
    Call, Completion, Enforcement, Fault, FaultKind, Finish, Message, Part, Role, Sampling, Time, Tool, Usage,
};
use formwork_openai::{Api, OpenAi, OpenAiConfig, SystemRole};
use formwork_wire::Wire;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{JSON, STREAM, call, decode_by, head, schema, sent, shared};

fn wire() -> OpenAi {
    OpenAi::new("gpt-test").with_api(Api::Responses)
}

fn text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

fn message(parts: &[Value]) -> Value {
    json!({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": parts})
}

fn commentary(words: &str) -> Value {
    json!({"type": "message", "role": "assistant", "phase": "commentary", "content": [text(words)]})
}

fn reasoning(summary: &[&str]) -> Value {
    let parts: Vec<Value> =
        summary.iter().map(|text| json!({"type": "summary_text", "text": text})).collect();
    json!({"type": "reasoning", "id": "r", "summary": parts, "encrypted_content": null})
}

fn function(name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": "f", "call_id": "c", "name": name, "arguments": arguments})
}

/// A response. `reason` is why it is incomplete.
fn response(output: &[Value], reason: Option<&str>) -> Value {
    json!({
        "id": "resp_1",
        "object": "response",
        "status": if reason.is_some() { "incomplete" } else { "completed" },
        "error": null,
        "incomplete_details": reason.map(|reason| json!({"reason": reason})),
        "model": "gpt-test-2026",
        "output": output,
        "usage": {
            "input_tokens": 31,
            "input_tokens_details": {"cached_tokens": 8},
            "output_tokens": 9,
            "output_tokens_details": {"reasoning_tokens": 4},
            "total_tokens": 40,
        },
    })
}

fn events(events: &[Value]) -> String {
    let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(event).collect()
}

/// The delta events of an item, with two characters each.
fn deltas(index: usize, item: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    let mut push = |kind: &str, member: &str, part: usize, text: &Value| {
        let characters: Vec<char> = text.as_str().unwrap_or_default().chars().collect();
        for piece in characters.chunks(2) {
            let piece: String = piece.iter().collect();
            let kind = format!("response.{kind}.delta");
            all.push(
                json!({"type": kind, "output_index": index, "item_id": "x", member: part, "delta": piece}),
            );
        }
    };
    for (part, content) in item["content"].as_array().into_iter().flatten().enumerate() {
        match content["type"].as_str().unwrap() {
            "refusal" => push("refusal", "content_index", part, &content["refusal"]),
            "reasoning_text" => push("reasoning_text", "content_index", part, &content["text"]),
            _ => push("output_text", "content_index", part, &content["text"]),
        }
    }
    for (part, summary) in item["summary"].as_array().into_iter().flatten().enumerate() {
        push("reasoning_summary_text", "summary_index", part, &summary["text"]);
    }
    push("function_call_arguments", "sequence_number", 0, &item["arguments"]);
    all
}

/// The stream of a response.
fn streamed(response: &Value) -> String {
    let mut all = vec![
        json!({"type": "response.created", "response": {"model": response["model"], "status": "in_progress"}}),
    ];
    for (index, item) in response["output"].as_array().unwrap().iter().enumerate() {
        let mut begun = item.clone();
        for (member, empty) in [("content", json!([])), ("summary", json!([])), ("arguments", json!(""))] {
            if item.get(member).is_some() {
                begun[member] = empty;
            }
        }
        all.push(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
        all.extend(deltas(index, item));
        all.push(json!({"type": "response.an_event_to_come", "delta": {"a": [1]}}));
        all.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    let kind = format!("response.{}", response["status"].as_str().unwrap());
    all.push(json!({"type": kind, "response": response}));
    events(&all)
}

/// The text received before the end of a body, and the result. It must not depend on how the body is cut into chunks.
fn read(call: &Call, media_type: &str, body: &str) -> (String, Result<Completion, Fault>) {
    let mut all = [body.len().max(1), 1, 3, 64].into_iter().map(|size| {
        let (deltas, end) = decode_by(&wire(), call, media_type, body.as_bytes().chunks(size));
        let mut completion = Completion::new("");
        for delta in deltas {
            completion.push(delta);
        }
        (completion.text.clone(), end.map(|()| completion))
    });
    let first = all.next().unwrap();
    all.for_each(|other| assert_eq!(other, first, "{body}"));
    first
}

fn completion(call: &Call, media_type: &str, body: &str) -> Completion {
    read(call, media_type, body).1.unwrap()
}

fn fault(call: &Call, media_type: &str, body: &str) -> Fault {
    read(call, media_type, body).1.unwrap_err()
}

#[test]
fn a_schema_is_enforced_by_the_text_format() {
    let wire = OpenAi::new("gpt-4.1").with_api(Api::Responses);
    let request = wire.encode(&call(Enforcement::Schema)).unwrap();
    assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/responses"));
    assert_eq!(request.headers()["content-type"], "application/json");
    // The whole body is compared as text, because properties must stay in the order of the schema.
    let expected = concat!(
        r#"{"model":"gpt-4.1","instructions":"Answer in JSON.","input":[{"type":"message","role":"user","#,
        r#""content":[{"type":"input_text","text":"Maria, 34, moved to Lisbon."}]}],"#,
        r#""text":{"format":{"type":"json_schema","name":"Person","schema":{"type":"object","#,
        r#""properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"],"#,
        r#""additionalProperties":false},"strict":true}},"stream":true,"store":false}"#,
    );
    assert_eq!(String::from_utf8_lossy(request.body()), expected);
}

#[test]
fn each_mode_has_its_members() {
    let tool = json!([{"type": "function", "name": "Person", "description": "Gives the answer.",
        "parameters": schema(), "strict": true}]);
    for (enforcement, format, tools, choice, parallel) in [
        (Enforcement::None, json!(null), json!(null), json!(null), json!(null)),
        (Enforcement::JsonObject, json!({"type": "json_object"}), json!(null), json!(null), json!(null)),
        (
            Enforcement::Schema,
            json!({"type": "json_schema", "name": "Person", "schema": schema(), "strict": true}),
            json!(null),
            json!(null),
            json!(null),
        ),
        (Enforcement::Tool, json!(null), tool, json!({"type": "function", "name": "Person"}), json!(false)),
    ] {
        let body = sent(&wire().with_stream(false), &call(enforcement));
        assert_eq!(body["text"]["format"], format, "{enforcement:?}");
        assert_eq!((&body["tools"], &body["tool_choice"]), (&tools, &choice), "{enforcement:?}");
        assert_eq!(body["parallel_tool_calls"], parallel, "{enforcement:?}");
        assert_eq!((&body["stream"], &body["store"]), (&json!(false), &json!(false)));
        // The API requires the word "json" in `input`; instructions do not count.
        let roles: Vec<&Value> = body["input"].as_array().unwrap().iter().map(|item| &item["role"]).collect();
        if enforcement == Enforcement::JsonObject {
            assert_eq!((json!(roles), body.get("instructions")), (json!(["system", "user"]), None));
        } else {
            assert_eq!((json!(roles), &body["instructions"]), (json!(["user"]), &json!("Answer in JSON.")));
        }
    }
}

#[test]
fn sampling_and_limits_are_sent_as_promised() {
    let mut call = call(Enforcement::None);
    call.sampling = Sampling::default().with_temperature(0.3).with_top_p(0.9).with_seed(7);
    call.max_tokens = Some(500);
    let body = sent(&wire(), &call);
    assert_eq!((&body["temperature"], &body["top_p"]), (&json!(0.3), &json!(0.9)));
    assert_eq!(body["max_output_tokens"], 500);
    for member in ["seed", "max_tokens", "max_completion_tokens", "stream_options", "response_format"] {
        assert_eq!(body.get(member), None);
    }
    assert!(!wire().capabilities().seed && OpenAi::new("gpt-test").capabilities().seed);
    let reasons = sent(&OpenAi::new("gpt-5.6").with_api(Api::Responses), &call);
    assert_eq!((reasons.get("temperature"), reasons.get("top_p")), (None, None));
    let extra = json!({"reasoning": {"effort": "low"}, "store": true});
    let Value::Object(extra) = extra else { panic!("{extra} is no object") };
    let body = sent(&wire().with_extra(extra).with_api_version("preview"), &call);
    assert_eq!((&body["reasoning"], &body["store"]), (&json!({"effort": "low"}), &json!(true)));
}

#[test]
fn every_kind_of_part_has_its_place() {
    let mut call = call(Enforcement::None);
    let words = |text: &str| Part::Text { text: text.to_owned() };
    let image = Part::Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() };
    let tool_call =
        Part::ToolCall { id: "c1".to_owned(), name: "look".to_owned(), arguments: json!({"at": "Lisbon"}) };
    let result = Part::ToolResult { id: "c1".to_owned(), text: "sunny".to_owned() };
    let thought = Part::Reasoning { text: "hm".to_owned() };
    call.messages = shared([
        Message::system("s"),
        Message { role: Role::User, parts: vec![words("what"), image.clone()] },
        Message { role: Role::Assistant, parts: vec![thought.clone(), words("I look."), tool_call] },
        Message { role: Role::Tool, parts: vec![result.clone()] },
        Message { role: Role::User, parts: vec![result, words("a")] },
        Message { role: Role::Assistant, parts: vec![thought] },
        Message::system("late"),
    ]);
    call.tools = vec![Tool { name: "look".into(), description: String::new(), parameters: json!({}) }];
    let body = sent(&wire().with_system_role(SystemRole::Developer), &call);
    let output = json!({"type": "function_call_output", "call_id": "c1", "output": "sunny"});
    let message = |role: &str, content: Value| json!({"type": "message", "role": role, "content": content});
    let expected = json!([
        message("user", json!([
            {"type": "input_text", "text": "what"},
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        ])),
        message("assistant", json!([{"type": "output_text", "text": "I look."}])),
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": r#"{"at":"Lisbon"}"#},
        output,
        output,
        message("user", json!([{"type": "input_text", "text": "a"}])),
        message("assistant", json!([{"type": "output_text", "text": ""}])),
        message("developer", json!([{"type": "input_text", "text": "late"}])),
    ]);
    assert_eq!((&body["instructions"], &body["input"]), (&json!("s"), &expected));
    // For this API a tool without `strict` is strict.
    let tools = json!([{"type": "function", "name": "look", "parameters": {}, "strict": false}]);
    assert_eq!((&body["tools"], body.get("tool_choice")), (&tools, None));
    for role in [Role::System, Role::Assistant, Role::Tool] {
        call.messages = shared([Message { role, parts: vec![image.clone()] }]);
        assert_eq!(wire().encode(&call).unwrap_err().kind, FaultKind::BadRequest, "{role:?}");
    }
    // The API refuses an input without items.
    call.messages = shared([Message::system("alone")]);
    let body = sent(&wire(), &call);
    assert_eq!((&body["input"][0]["role"], body.get("instructions")), (&json!("system"), None));
}

#[test]
fn the_answer_is_the_same_in_one_piece_and_as_a_stream() {
    let (plain, tool) = (call(Enforcement::Schema), call(Enforcement::Tool));
    let refusal = json!({"type": "refusal", "refusal": "I can't help."});
    let own =
        json!({"type": "reasoning", "content": [{"type": "reasoning_text", "text": "Hm."}], "summary": []});
    let search = json!({"type": "web_search_call", "status": "completed", "action": {"type": "search"}});
    let limit = Some("max_output_tokens");
    type Case<'a> = (&'a Call, Vec<Value>, Option<&'a str>, &'a str, &'a str, Finish);
    let cases: Vec<Case<'_>> = vec![
        (&plain, vec![message(&[text("{\"a\""), text(": 1}")])], None, "{\"a\": 1}", "", Finish::Stop),
        (
            &plain,
            vec![reasoning(&["Hm.", "So."]), message(&[text("{}")])],
            None,
            "{}",
            "Hm.\n\nSo.",
            Finish::Stop,
        ),
        (&plain, vec![own, search, message(&[text("{}")])], None, "{}", "Hm.", Finish::Stop),
        // The model's comments before the final answer are not JSON.
        (&plain, vec![commentary("I look."), message(&[text("{}")])], None, "{}", "", Finish::Stop),
        (&plain, vec![commentary("I look."), function("look", "{}")], None, "I look.", "", Finish::ToolCall),
        (&plain, vec![message(std::slice::from_ref(&refusal))], None, "I can't help.", "", Finish::Refused),
        (&plain, vec![message(&[text("{\"ä")])], limit, "{\"ä", "", Finish::Length),
        (&plain, vec![message(&[text("{\"a")])], Some("content_filter"), "{\"a", "", Finish::Filtered),
        (
            &plain,
            vec![message(&[text("{\"a")])],
            Some("a_reason_to_come"),
            "{\"a",
            "",
            Finish::other("a_reason_to_come"),
        ),
        (&plain, vec![reasoning(&["Hm."])], limit, "", "Hm.", Finish::Length),
        (&plain, vec![reasoning(&["Hm."])], None, "", "Hm.", Finish::Stop),
        (&plain, vec![], None, "", "", Finish::Stop),
        (&plain, vec![message(&[])], None, "", "", Finish::Stop),
        (&plain, vec![function("look", "{}")], None, "", "", Finish::ToolCall),
        (&plain, vec![json!({"type": "custom_tool_call", "name": "x"})], None, "", "", Finish::ToolCall),
        (&tool, vec![function("Person", "{\"age\": 34}")], None, "{\"age\": 34}", "", Finish::Stop),
        (
            &tool,
            vec![reasoning(&["Hm."]), function("Person", "{\"ag")],
            limit,
            "{\"ag",
            "Hm.",
            Finish::Length,
        ),
        (
            &tool,
            vec![function("Person", "{}"), function("Person", "{\"b\": 1}")],
            None,
            "{}",
            "",
            Finish::Stop,
        ),
        (&tool, vec![message(&[text("Sure.")]), function("Person", "{}")], None, "{}", "", Finish::Stop),
        (&tool, vec![message(&[text("{}")])], None, "{}", "", Finish::Stop),
        (&tool, vec![function("look", "{}")], None, "", "", Finish::ToolCall),
        (&tool, vec![message(&[refusal])], None, "I can't help.", "", Finish::Refused),
    ];
    let usage = Usage::new(31, 9).with_cached(8).with_reasoning(4);
    for (call, output, reason, answer, thoughts, finish) in cases {
        let response = response(&output, reason);
        // Some servers send no deltas, or only the last event.
        let done: Vec<Value> = output
            .iter()
            .map(|item| json!({"type": "response.output_item.done", "item": item, "item_id": item.to_string()}))
            .collect();
        let last = json!({"type": format!("response.{}", response["status"].as_str().unwrap()), "response": response});
        let without_deltas = events(&[&done[..], std::slice::from_ref(&last)].concat());
        for (media_type, body) in [
            (JSON, response.to_string()),
            (STREAM, response.to_string()),
            (STREAM, streamed(&response)),
            (STREAM, without_deltas),
            (STREAM, events(&[last])),
        ] {
            let read = completion(call, media_type, &body);
            assert_eq!((read.text.as_str(), read.reasoning.as_str()), (answer, thoughts), "{body}");
            assert_eq!((read.finish, read.usage), (finish.clone(), usage), "{body}");
            assert_eq!(read.model.as_deref(), Some("gpt-test-2026"), "{body}");
        }
    }
}

#[test]
fn deltas_without_items_are_read() {
    let delta = |kind: &str, words: &str| json!({"type": format!("response.{kind}.delta"), "delta": words});
    let body = events(&[
        delta("reasoning_text", "H"),
        delta("reasoning_text", "m"),
        delta("output_text", "{"),
        delta("output_text", "}"),
        json!({"type": "response.completed"}),
    ]);
    let read = completion(&call(Enforcement::Schema), STREAM, &body);
    assert_eq!((read.text.as_str(), read.reasoning.as_str(), read.usage.estimated), ("{}", "Hm", true));
}

#[test]
fn failures_keep_the_beginning_and_have_their_class() {
    let begun = streamed(&response(&[message(&[text("{\"a")])], None));
    let begun = &begun[..begun.find("event: response.completed").unwrap()];
    let call = call(Enforcement::Schema);
    for (code, kind) in [
        ("server_error", FaultKind::Overloaded),
        ("rate_limit_exceeded", FaultKind::RateLimited),
        ("insufficient_quota", FaultKind::NoCredit),
        ("invalid_prompt", FaultKind::BadRequest),
        ("context_length_exceeded", FaultKind::BadRequest),
        ("a_code_to_come", FaultKind::Overloaded),
    ] {
        let error = json!({"code": code, "message": "It broke."});
        let failed = json!({"object": "response", "status": "failed", "error": error, "output": []});
        for end in [
            json!({"type": "response.failed", "response": failed}),
            json!({"type": "error", "code": code, "message": "It broke.", "param": null}),
            json!({"type": "error", "error": error}),
        ] {
            let (beginning, end) = read(&call, STREAM, &format!("{begun}{}", events(&[end])));
            let fault = end.unwrap_err();
            assert_eq!((beginning.as_str(), fault.kind), ("{\"a", kind), "{fault}");
            assert!(fault.message.contains("It broke."), "{fault}");
        }
        assert_eq!(fault(&call, JSON, &failed.to_string()).kind, kind);
        assert_eq!(fault(&call, JSON, &json!({"error": error}).to_string()).kind, kind);
    }
    let filtered = json!({"type": "error", "code": "content_filter", "message": "Filtered."});
    assert_eq!(completion(&call, STREAM, &events(&[filtered])).finish, Finish::Filtered);
    for (status, kind) in [
        ("failed", FaultKind::Overloaded),
        ("cancelled", FaultKind::Overloaded),
        ("queued", FaultKind::Unsupported),
        ("in_progress", FaultKind::Unsupported),
    ] {
        let body = json!({"object": "response", "status": status, "output": []}).to_string();
        let fault = fault(&call, JSON, &body);
        assert!(fault.kind == kind && fault.message.contains(status), "{fault}");
    }
    for end in ["", "data: [DONE]\n\n"] {
        assert_eq!(fault(&call, STREAM, &format!("{begun}{end}")).kind, FaultKind::Unreachable);
    }
}

#[test]
fn other_documents_and_events_are_refused() {
    let call = call(Enforcement::None);
    let chat = json!({"choices": [{"message": {"content": "{}"}}]}).to_string();
    for body in ["", " \n", "upstream connect error", "[]", "{}", "5", &chat, r#"{"output": 5}"#] {
        let fault = fault(&call, JSON, body);
        assert_eq!(fault.kind, FaultKind::BadWire, "{body}: {fault}");
    }
    for data in ["5", "{", "{}", &chat] {
        let fault = fault(&call, STREAM, &format!("data: {data}\n\ndata: {data}\n\n"));
        assert_eq!(fault.kind, FaultKind::BadWire, "{data}: {fault}");
    }
}

#[test]
fn members_of_another_kind_are_passed_over() {
    for (place, odd) in [
        ("/model", json!(["m"])),
        ("/usage", json!("none")),
        ("/usage/input_tokens_details", json!(true)),
        ("/status", json!("complete")),
        ("/status", json!(7)),
        ("/incomplete_details", json!([])),
        ("/output/0/id", json!(7)),
        ("/output/0/phase", json!({})),
        ("/output/0/content/0/annotations", json!("none")),
    ] {
        let mut body = response(&[message(&[text("{}")])], None);
        let (parent, name) = place.rsplit_once('/').unwrap();
        body.pointer_mut(parent).unwrap()[name] = odd.clone();
        let read = completion(&call(Enforcement::None), JSON, &body.to_string());
        // An unknown status is no reason to believe that the model ended by itself.
        let finish =
            if name == "status" { Finish::other(odd.as_str().unwrap_or_default()) } else { Finish::Stop };
        assert_eq!((read.text.as_str(), read.finish), ("{}", finish), "{place}");
    }
}

#[test]
fn errors_are_those_of_chat_completions() {
    let fault_kind = |enforcement, status, error: Value| {
        let body = json!({"error": error}).to_string();
        wire().fault(&call(enforcement), &head(status, JSON), body.as_bytes(), Time(0))
    };
    for error in [
        json!({"message": "Invalid schema for response_format 'x': no", "param": "text.format.schema"}),
        json!({"message": "no", "param": "text.format"}),
        json!({"message": "Unsupported parameter: 'text.format' is not supported with this model."}),
    ] {
        assert_eq!(
            fault_kind(Enforcement::Schema, 400, error.clone()).kind,
            FaultKind::SchemaRefused,
            "{error}"
        );
        assert_eq!(fault_kind(Enforcement::None, 400, error.clone()).kind, FaultKind::BadRequest, "{error}");
    }
    let missing = fault_kind(Enforcement::None, 404, json!({"message": "Not Found"}));
    assert!(missing.kind == FaultKind::Unsupported && missing.message.contains("Responses"), "{missing}");
    assert_eq!(fault_kind(Enforcement::None, 429, json!({"message": "slow"})).kind, FaultKind::RateLimited);
}

#[test]
fn a_configuration_chooses_the_api() {
    for (api, path) in [
        ("", "/chat/completions"),
        ("api = \"chat\"", "/chat/completions"),
        ("api = \"responses\"", "/responses"),
    ] {
        let text = format!("model = \"m\"\n{api}\n[capabilities]\nseed = true");
        let config: OpenAiConfig = toml::from_str(&text).unwrap();
        let resolved = config.resolve().unwrap();
        assert_eq!(resolved.wire.encode(&call(Enforcement::None)).unwrap().uri().path(), path);
        assert_eq!(resolved.wire.capabilities().seed, path != "/responses");
        let written = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<OpenAiConfig>(&written).unwrap(), config);
    }
    assert!(toml::from_str::<OpenAiConfig>("model = \"m\"\napi = \"assistants\"").is_err());
}

proptest! {
    /// The completion does not depend on how its parts are split over items and chunks.
    #[test]
    fn chunks_make_no_difference(
        texts in prop::collection::vec(prop::collection::vec(".{0,12}", 0..4), 0..4),
        thoughts in prop::collection::vec(".{1,12}", 0..4),
        size in 1_usize..200,
        is_cut in any::<bool>(),
    ) {
        let thoughts: Vec<&str> = thoughts.iter().map(String::as_str).collect();
        let mut output = vec![reasoning(&thoughts)];
        output.extend(texts.iter().map(|parts| message(&parts.iter().map(|part| text(part)).collect::<Vec<_>>())));
        let response = response(&output, is_cut.then_some("max_output_tokens"));
        let call = call(Enforcement::Schema);
        for (media_type, body) in [(JSON, response.to_string()), (STREAM, streamed(&response))] {
            let (deltas, end) = decode_by(&wire(), &call, media_type, body.as_bytes().chunks(size));
            prop_assert_eq!(end, Ok(()));
            let mut read = Completion::new("");
            deltas.into_iter().for_each(|delta| { read.push(delta); });
            prop_assert_eq!(read.text, texts.concat().concat());
            prop_assert_eq!(read.reasoning, thoughts.join("\n\n"));
            prop_assert_eq!(read.finish, if is_cut { Finish::Length } else { Finish::Stop });
        }
    }

    /// The decoder does not panic on arbitrary bytes.
    #[test]
    fn anything_may_come(body in prop::collection::vec(any::<u8>(), 0..200), is_event in any::<bool>()) {
        let body = if is_event { [b"data: ", &body[..], b"\n\n"].concat() } else { body };
        let (_, end) = decode_by(&wire(), &call(Enforcement::Tool), STREAM, [&body[..]]);
        prop_assert!(end.is_err());
    }
}
