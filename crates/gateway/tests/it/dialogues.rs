//! The same dialogue gives the same call to a model in every protocol.

use std::sync::Arc;

use formwork_core::{Message, Part, Role};
use formwork_extract::Backend;
use formwork_gateway::{Gateway, Target};
use formwork_testkit::Scripted;
use serde_json::{Value, json};

use super::support::{Gate, limits, schema, ways};

/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk";

fn expected() -> Vec<Message> {
    let image = Part::Image { media_type: "image/png".to_owned(), data: PIXEL.to_owned() };
    vec![
        Message::system("Be brief."),
        Message { role: Role::User, parts: vec![Part::Text { text: "Who is this?".to_owned() }, image] },
        Message {
            role: Role::Assistant,
            parts: vec![Part::ToolCall {
                id: "c1".to_owned(),
                name: "find".to_owned(),
                arguments: json!({"q": "face"}),
            }],
        },
        Message {
            role: Role::Tool,
            parts: vec![Part::ToolResult { id: "c1".to_owned(), text: "Maria, 34".to_owned() }],
        },
        Message::user("Go on."),
    ]
}

fn dialogues() -> Vec<(&'static str, Value)> {
    let url = format!("data:image/png;base64,{PIXEL}");
    let format = json!({"type": "json_schema", "json_schema": {"name": "person", "schema": schema()}});
    vec![
        (
            "/v1/chat/completions",
            json!({"response_format": format, "temperature": 0.5, "seed": 7, "max_tokens": 50, "messages": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": [
                    {"type": "text", "text": "Who is this?"}, {"type": "image_url", "image_url": {"url": url}},
                ]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{\"q\": \"face\"}"}},
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": "Maria, 34"},
                {"role": "user", "content": "Go on."},
            ]}),
        ),
        (
            "/v1/responses",
            json!({"instructions": "Be brief.", "temperature": 0.5, "max_output_tokens": 50,
                "text": {"format": {"type": "json_schema", "name": "person", "schema": schema()}}, "input": [
                {"role": "user", "content": [
                    {"type": "input_text", "text": "Who is this?"}, {"type": "input_image", "image_url": url},
                ]},
                {"type": "reasoning", "summary": []},
                {"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{\"q\": \"face\"}"},
                {"type": "function_call_output", "call_id": "c1", "output": "Maria, 34"},
                {"type": "message", "role": "user", "content": "Go on."},
            ]}),
        ),
        (
            "/v1/messages",
            json!({"system": [{"type": "text", "text": "Be brief."}], "temperature": 0.5, "max_tokens": 50,
                "output_config": {"format": {"type": "json_schema", "schema": schema()}}, "messages": [
                {"role": "user", "content": [
                    {"type": "text", "text": "Who is this?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                ]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                    {"type": "tool_use", "id": "c1", "name": "find", "input": {"q": "face"}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "Maria, 34"}]},
                    {"type": "text", "text": "Go on."},
                ]},
            ]}),
        ),
        (
            "/api/chat",
            json!({"stream": false, "format": schema(), "options": {"temperature": 0.5, "seed": 7, "num_predict": 50},
                "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Who is this?", "images": [PIXEL]},
                {"role": "assistant", "content": "", "tool_calls": [
                    {"id": "c1", "function": {"name": "find", "arguments": {"q": "face"}}},
                ]},
                {"role": "tool", "tool_name": "find", "content": "Maria, 34"},
                {"role": "user", "content": "Go on."},
            ]}),
        ),
    ]
}

fn gate(model: &Arc<Scripted>) -> Gate {
    let backend = Backend::from(Arc::clone(model));
    Gate::start(Gateway::builder().with_target(Target::new(backend, None, "m-1")).with_limits(limits()))
}

#[test]
fn dialogues_of_every_protocol_mean_the_same() {
    for (path, mut body) in dialogues() {
        let model = Arc::new(Scripted::new([r#"{"age": 34}"#]));
        body["model"] = "scripted".into();
        let got = gate(&model).post(path, &[], &body);
        assert_eq!(got.status, 200, "{path}: {}", got.text());
        let call = &model.calls()[0];
        // The schema is described in the system message.
        assert!(call.messages[0].text().starts_with("Be brief."), "{path}");
        let expected: Vec<_> = expected().into_iter().map(Arc::new).collect();
        assert_eq!(call.messages[1..], expected[1..], "{path}");
        assert_eq!((call.sampling.temperature, call.max_tokens), (Some(0.5), Some(50)), "{path}");
        if body.to_string().contains("\"seed\"") {
            assert!(call.sampling.seed.is_some(), "{path}");
        }
    }
}

#[test]
fn addresses_of_pictures_are_never_fetched() {
    let model = Arc::new(Scripted::new([r#"{"age": 34}"#]));
    let gate = gate(&model);
    for (path, body) in dialogues().into_iter().take(3) {
        let text =
            body.to_string().replace(&format!("data:image/png;base64,{PIXEL}"), "http://127.0.0.1:1/x.png");
        let text = text.replace("\"type\":\"base64\"", "\"type\":\"url\"");
        let mut body: Value = serde_json::from_str(&text).unwrap();
        body["model"] = "scripted".into();
        let got = gate.post(path, &[], &body);
        assert_eq!(got.status, 400, "{path}: {}", got.text());
        assert!(got.text().contains("not fetched"), "{path}: {}", got.text());
    }
    assert!(model.calls().is_empty());
}

#[test]
fn a_model_in_process_answers_every_protocol() {
    for way in ways() {
        let model = Arc::new(Scripted::new([r#"{"age": 340}"#, r#"{"age": 34}"#]));
        let got = gate(&model).post(way.path, &[], &way.body("default", false));
        assert_eq!((got.status, way.text(&got.json()).as_str()), (200, r#"{"age":34}"#), "{}", way.name);
    }
}

#[test]
fn calls_of_tools_are_told_as_text_where_tools_are_a_contract() {
    let tools = [
        json!({"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}),
        json!({"type": "function", "function": {"name": "save", "parameters": schema()}}),
    ];
    let (path, mut body) = dialogues().remove(0);
    body.as_object_mut().unwrap().remove("response_format");
    body["model"] = "scripted".into();
    body["tools"] = tools.into_iter().collect();
    let model = Arc::new(Scripted::new([r#"{"tool": "save", "arguments": {"age": 34}}"#]));
    let got = gate(&model).post(path, &[], &body).json();
    assert_eq!(got["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "save", "{got}");
    let call = &model.calls()[0];
    let parts = call.messages.iter().flat_map(|message| &message.parts);
    assert!(parts.clone().all(|part| matches!(part, Part::Text { .. } | Part::Image { .. })), "{call:?}");
    let text: String = call.messages.iter().map(|message| message.text()).collect();
    assert!(
        text.contains(r#"{"tool":"find","arguments":{"q":"face"}}"#) && text.contains("Maria, 34"),
        "{text}"
    );
    assert!(call.messages.iter().all(|message| message.role != Role::Tool));
}
