//! Encoded requests.

use std::sync::Arc;

use async_openai::types::chat::{CreateChatCompletionRequest, ResponseFormat};
use formwork_core::{Capabilities, Enforcement, FaultKind, Lowered, Message, Part, Role, Sampling, Tool};
use formwork_openai::{Api, MaxTokensField, OpenAi, SystemRole};
use formwork_wire::Wire;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{call, schema, sent, shared};

#[test]
fn a_schema_is_enforced_by_the_response_format() {
    let request = OpenAi::new("gpt-4.1").encode(&call(Enforcement::Schema)).unwrap();
    assert_eq!(
        (request.method().as_str(), request.uri().to_string().as_str()),
        ("POST", "/chat/completions")
    );
    assert_eq!(request.headers()["content-type"], "application/json");
    // The whole body is compared as text, because properties must stay in the order of the schema.
    let expected = concat!(
        r#"{"model":"gpt-4.1","messages":[{"role":"system","content":"Answer in JSON."},"#,
        r#"{"role":"user","content":"Maria, 34, moved to Lisbon."}],"#,
        r#""response_format":{"type":"json_schema","json_schema":{"name":"Person","schema":{"type":"object","#,
        r#""properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"],"#,
        r#""additionalProperties":false},"strict":true}},"stream":true,"stream_options":{"include_usage":true}}"#,
    );
    assert_eq!(String::from_utf8_lossy(request.body()), expected);
}

#[test]
fn a_json_object_is_requested_without_a_schema() {
    let body = sent(&OpenAi::new("m").with_stream(false), &call(Enforcement::JsonObject));
    assert_eq!(body["response_format"], json!({"type": "json_object"}));
    assert_eq!((&body["stream"], body.get("stream_options"), body.get("tools")), (&json!(false), None, None));
}

#[test]
fn a_tool_carries_the_answer() {
    let body = sent(&OpenAi::new("m"), &call(Enforcement::Tool));
    let function =
        json!({"name": "Person", "description": "Gives the answer.", "parameters": schema(), "strict": true});
    assert_eq!(body["tools"], json!([{"type": "function", "function": function}]));
    assert_eq!(body["tool_choice"], json!({"type": "function", "function": {"name": "Person"}}));
    assert_eq!((&body["parallel_tool_calls"], body.get("response_format")), (&json!(false), None));
}

#[test]
fn a_call_of_a_tool_is_required_where_the_caller_has_tools() {
    let parameters = json!({"type": "object"});
    let tool = Tool { name: "look".into(), description: String::new(), parameters };
    for api in [Api::Chat, Api::Responses] {
        let mut call = call(Enforcement::None).with_required_tool();
        let wire = OpenAi::new("m").with_api(api);
        assert_eq!(sent(&wire, &call).get("tool_choice"), None);
        call.tools.push(tool.clone());
        let body = sent(&wire, &call);
        assert_eq!((&body["tool_choice"], body.get("parallel_tool_calls")), (&json!("required"), None));
        call.requires_tool = false;
        assert_eq!(sent(&wire, &call).get("tool_choice"), None);
    }
}

#[test]
fn nothing_is_enforced_unless_asked() {
    let body = sent(&OpenAi::new("m"), &call(Enforcement::None));
    for member in ["response_format", "tools", "tool_choice", "parallel_tool_calls"] {
        assert_eq!(body.get(member), None);
    }
}

#[test]
fn an_enforcement_without_a_schema_is_an_error() {
    let mut call = call(Enforcement::Schema);
    let lowered = Lowered::new(Enforcement::Schema, None);
    call.lowered = Arc::new(lowered);
    assert_eq!(OpenAi::new("m").encode(&call).unwrap_err().kind, FaultKind::BadRequest);
}

#[test]
fn strictness_can_be_left_out() {
    let body = sent(&OpenAi::new("m").with_strict(false), &call(Enforcement::Schema));
    assert_eq!(body["response_format"]["json_schema"]["strict"], json!(false));
}

#[test]
fn names_are_made_safe() {
    let long = "x".repeat(80);
    for (name, safe) in [("a b/c.d", "a_b_c_d"), ("", "answer"), ("Pérson", "P_rson"), (&long, &long[..64])]
    {
        let mut call = call(Enforcement::Schema);
        call.schema_name = name.to_owned();
        assert_eq!(sent(&OpenAi::new("m"), &call)["response_format"]["json_schema"]["name"], *safe);
    }
}

#[test]
fn sampling_is_sent_as_promised_and_asked() {
    let mut call = call(Enforcement::None);
    let names = ["temperature", "top_p", "seed"];
    let all = OpenAi::new("gpt-4.1");
    names.iter().for_each(|name| assert_eq!(sent(&all, &call).get(name), None));
    call.sampling = Sampling::default().with_temperature(0.3).with_top_p(0.9).with_seed(u64::MAX);
    let body = String::from_utf8(all.encode(&call).unwrap().body().to_vec()).unwrap();
    // A temperature keeps its digits (no `f32`), and a seed fits into a signed 64-bit integer.
    assert!(body.contains(r#""temperature":0.3,"top_p":0.9,"seed":9223372036854775807"#), "{body}");
    let none = OpenAi::new("m").with_capabilities(Capabilities::new(Enforcement::Schema));
    names.iter().for_each(|name| assert_eq!(sent(&none, &call).get(name), None));
    let reasons = sent(&OpenAi::new("gpt-5.6"), &call);
    assert_eq!(
        (reasons.get("temperature"), reasons.get("top_p"), reasons.get("seed").is_some()),
        (None, None, true)
    );
}

#[test]
fn tokens_are_limited_by_the_member_that_the_server_knows() {
    let mut call = call(Enforcement::None);
    call.max_tokens = Some(500);
    let body = sent(&OpenAi::new("m"), &call);
    assert_eq!((&body["max_completion_tokens"], body.get("max_tokens")), (&json!(500), None));
    let older = OpenAi::new("m").with_max_tokens_field(MaxTokensField::MaxTokens);
    let body = sent(&older, &call);
    assert_eq!((&body["max_tokens"], body.get("max_completion_tokens")), (&json!(500), None));
    let small = older.clone().with_capabilities(older.capabilities().clone().with_output_tokens(100));
    assert_eq!(sent(&small, &call)["max_tokens"], 100);
}

#[test]
fn more_members_win() {
    let extra = json!({"provider": {"require_parameters": true}, "stream_options": {"include_usage": false}});
    let Value::Object(extra) = extra else { unreachable!() };
    let request = OpenAi::new("m").with_extra(extra).encode(&call(Enforcement::Schema)).unwrap();
    let text = String::from_utf8(request.body().to_vec()).unwrap();
    let body: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(body["provider"], json!({"require_parameters": true}));
    assert_eq!(body["stream_options"], json!({"include_usage": false}));
    assert_eq!(text.matches("stream_options").count(), 1);
    let order = ["\"name\":{", "\"age\":{"].map(|key| text.find(key).unwrap());
    assert!(order[0] < order[1]);
}

#[test]
fn azure_gets_its_version() {
    let wire = OpenAi::new("m").with_api_version("2024-10-21");
    let uri = wire.encode(&call(Enforcement::None)).unwrap().uri().to_string();
    assert_eq!(uri, "/chat/completions?api-version=2024-10-21");
}

#[test]
fn every_kind_of_part_has_its_place() {
    let mut call = call(Enforcement::None);
    let text = |text: &str| Part::Text { text: text.to_owned() };
    let image = Part::Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() };
    let tool_call =
        Part::ToolCall { id: "c1".to_owned(), name: "look".to_owned(), arguments: json!({"at": "Lisbon"}) };
    let result = Part::ToolResult { id: "c1".to_owned(), text: "sunny".to_owned() };
    let thought = Part::Reasoning { text: "hm".to_owned() };
    call.messages = shared([
        Message::system("s"),
        Message { role: Role::User, parts: vec![text("what"), image] },
        Message { role: Role::Assistant, parts: vec![thought.clone(), tool_call] },
        Message { role: Role::Tool, parts: vec![result.clone()] },
        Message { role: Role::User, parts: vec![result, text("a"), text("b")] },
        Message { role: Role::Assistant, parts: vec![thought] },
    ]);
    call.tools = vec![Tool { name: "look".into(), description: String::new(), parameters: json!({}) }];
    let body = sent(&OpenAi::new("m").with_system_role(SystemRole::Developer), &call);
    let tool = json!({"role": "tool", "content": "sunny", "tool_call_id": "c1"});
    let expected = json!([
        {"role": "developer", "content": "s"},
        {"role": "user", "content": [
            {"type": "text", "text": "what"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ]},
        {"role": "assistant", "tool_calls": [
            {"type": "function", "id": "c1", "function": {"name": "look", "arguments": r#"{"at":"Lisbon"}"#}},
        ]},
        tool,
        tool,
        {"role": "user", "content": "ab"},
        {"role": "assistant", "content": ""},
    ]);
    assert_eq!(body["messages"], expected);
    assert_eq!(body["tools"], json!([{"type": "function", "function": {"name": "look", "parameters": {}}}]));
    assert_eq!(body.get("tool_choice"), None);
}

#[test]
fn what_cannot_be_said_is_an_error() {
    let image = Part::Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() };
    for role in [Role::System, Role::Assistant, Role::Tool] {
        let mut call = call(Enforcement::None);
        call.messages = shared([Message { role, parts: vec![image.clone()] }]);
        assert_eq!(OpenAi::new("m").encode(&call).unwrap_err().kind, FaultKind::BadRequest, "{role:?}");
    }
}

#[test]
fn late_system_messages_are_folded_where_there_are_none() {
    let mut call = call(Enforcement::None);
    call.messages = shared([
        Message::system("s"),
        Message::user("a"),
        Message::system("late"),
        Message::assistant("b"),
        Message::user("c"),
        Message::system("again"),
    ]);
    let promised = sent(&OpenAi::new("m"), &call);
    assert_eq!(promised["messages"].as_array().unwrap().len(), 6);
    let without = OpenAi::new("m").with_capabilities(Capabilities::default());
    let expected = json!([
        {"role": "system", "content": "s"},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "late\n\nc\n\nagain"},
    ]);
    assert_eq!(sent(&without, &call)["messages"], expected);
    call.messages = shared([Message::user("a"), Message::assistant("b"), Message::system("late")]);
    assert_eq!(sent(&without, &call)["messages"][2], json!({"role": "user", "content": "late"}));
}

/// A request of the chat client of the older SDKs: one JSON object, the contract first, corrections as system messages.
#[test]
fn a_chat_client_can_be_built_on_it() {
    let mut call = call(Enforcement::JsonObject);
    call.messages = shared([
        Message::system("contract"),
        Message::user("q"),
        Message::system("Return only a corrected JSON object."),
    ]);
    let body = sent(&OpenAi::new("gpt-4o-mini"), &call);
    let roles: Vec<_> = body["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "system"]);
    assert_eq!(body["messages"][0]["content"], "contract");
    assert_eq!(body.get("temperature"), None);
}

proptest! {
    /// The request contains the schema of the call byte for byte, for every schema name and all other settings.
    #[test]
    fn the_schema_goes_out_as_it_is(
        names in prop::collection::vec("[a-zA-Z_ é\"\\\\]{1,8}", 1..8),
        name in ".{0,70}",
        temperature in prop::option::of(0.0..2.0_f64),
        has_extra in any::<bool>(),
    ) {
        let properties: serde_json::Map<_, _> =
            names.iter().map(|name| (name.clone(), json!({"type": "string"}))).collect();
        let schema = json!({"type": "object", "properties": properties});
        let mut call = call(Enforcement::Schema);
        call.schema_name = name;
        call.sampling.temperature = temperature;
        let (enforcement, text) = (Enforcement::Schema, schema.to_string());
        call.lowered = Arc::new(Lowered::new(enforcement, schema));
        let mut wire = OpenAi::new("gpt-4.1");
        if has_extra {
            wire = wire.with_extra([("x".to_owned(), json!(1))].into_iter().collect::<serde_json::Map<_, _>>());
        }
        let request = wire.encode(&call).unwrap();
        let body = std::str::from_utf8(request.body()).unwrap();
        prop_assert!(body.contains(&text), "{text} in {body}");
        let read: CreateChatCompletionRequest = serde_json::from_str(body).unwrap();
        let Some(ResponseFormat::JsonSchema { json_schema }) = read.response_format else { panic!() };
        let safe = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        prop_assert!((1..=64).contains(&json_schema.name.len()) && json_schema.name.chars().all(safe));
    }
}

#[test]
fn additional_members_are_merged_deeply_and_keep_the_schema() {
    let extra = |value: Value| value.as_object().unwrap().clone();
    let responses = OpenAi::new("m").with_api(formwork_openai::Api::Responses);
    let wire = responses.with_extra(extra(json!({"text": {"verbosity": "low"}})));
    let body: Value =
        serde_json::from_slice(wire.encode(&call(Enforcement::Schema)).unwrap().body()).unwrap();
    assert_eq!(body["text"]["verbosity"], "low");
    assert_eq!(body["text"]["format"]["type"], "json_schema", "{body}");
    // A preset's member is kept as well.
    let config = formwork_openai::OpenAiConfig {
        preset: Some("openrouter".to_owned()),
        extra: extra(json!({"provider": {"order": ["a"]}})),
        ..formwork_openai::OpenAiConfig::new("m")
    };
    let wire = config.resolve().unwrap().wire;
    let body: Value =
        serde_json::from_slice(wire.encode(&call(Enforcement::Schema)).unwrap().body()).unwrap();
    assert_eq!(body["provider"], json!({"require_parameters": true, "order": ["a"]}));
}
