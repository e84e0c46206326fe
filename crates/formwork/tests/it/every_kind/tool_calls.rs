//! Several tool calls in one turn, over every protocol: read from a response, and sent back with their results.

use formwork_anthropic::{Anthropic, Thinking};
use formwork_bedrock::Bedrock;
use formwork_cohere::Cohere;
use formwork_core::{Call, Completion, Enforcement, Lowered, Message, Part, Role, Tool};
use formwork_gemini::Gemini;
use formwork_ollama::Ollama;
use formwork_openai::{Api, OpenAi};
use formwork_wire::http::Response;
use formwork_wire::{Deltas, Wire};
use serde_json::{Value, json};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

fn call(messages: Vec<Message>) -> Call {
    let mut call = Call::new(messages, Lowered::new(Enforcement::None, None));
    let parameters = json!({"type": "object"});
    call.tools.push(Tool { name: "look".into(), description: "Looks.".into(), parameters });
    call
}

fn completion(wire: &dyn Wire, media_type: &str, body: &str) -> Completion {
    let (head, ()) = Response::builder().header("content-type", media_type).body(()).unwrap().into_parts();
    let mut decoder = wire.decoder(&call(vec![Message::user("x")]), &head);
    let (mut deltas, mut completion) = (Deltas::new(), Completion::new(""));
    for piece in body.as_bytes().chunks(7) {
        decoder.push(piece, &mut deltas).unwrap();
    }
    decoder.end(&mut deltas).unwrap();
    for delta in deltas {
        completion.push(delta);
    }
    completion
}

/// Returns the request after the turn: a question, the calls of the turn, and the results `r0`, `r1`, …
fn next(wire: &dyn Wire, turn: &Completion) -> Value {
    let mut calls: Vec<Part> = turn.original.as_deref().cloned().map(Part::Original).into_iter().collect();
    let mut results = Vec::new();
    for (index, call) in turn.tool_calls.iter().enumerate() {
        let id = if call.id.is_empty() { format!("call{index:05}") } else { call.id.clone() };
        let arguments = serde_json::from_str(&call.arguments).unwrap();
        calls.push(Part::ToolCall { id: id.clone(), name: call.name.clone(), arguments });
        results.push(Part::ToolResult { id, text: format!("r{index}") });
    }
    let messages = vec![
        Message::user("x"),
        Message { role: Role::Assistant, parts: calls },
        Message { role: Role::Tool, parts: results },
    ];
    let body: Value = serde_json::from_slice(wire.encode(&call(messages)).unwrap().body()).unwrap();
    let sent = ["messages", "contents", "input"].into_iter().find_map(|name| body.get(name).cloned());
    sent.unwrap()
}

fn event_stream(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// Checks that every form of a response has the two calls, and that they go back as `expected`, after the question.
fn check(wire: &dyn Wire, forms: &[(&str, String)], ids: [&str; 2], expected: Value) {
    for (media_type, body) in forms {
        let turn = completion(wire, media_type, body);
        let read: Vec<(&str, &str, Value)> = turn
            .tool_calls
            .iter()
            .map(|call| {
                let arguments = serde_json::from_str(&call.arguments).unwrap();
                (call.id.as_str(), call.name.as_str(), arguments)
            })
            .collect();
        let called = [(ids[0], "look", json!({"at": 0})), (ids[1], "look", json!({"at": 1}))];
        assert_eq!(read, called, "{} {media_type}", wire.name());
        let sent = next(wire, &turn);
        assert_eq!(Value::from(&sent.as_array().unwrap()[1..]), expected, "{} {media_type}", wire.name());
        // A ledger that was stored has the same turn.
        let stored = serde_json::to_string(&turn).unwrap();
        assert_eq!(next(wire, &serde_json::from_str(&stored).unwrap()), sent);
    }
}

#[test]
fn chat_completions_has_a_message_for_each_result() {
    let function = |at: u8| json!({"name": "look", "arguments": format!("{{\"at\":{at}}}")});
    let call = |at: u8| json!({"id": format!("c{at}"), "type": "function", "function": function(at)});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call(0), call(1)]});
    let whole = json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).to_string();
    let delta = |at: u8| {
        let call = json!({"index": at, "id": format!("c{at}"), "type": "function", "function": function(at)});
        json!({"choices": [{"delta": {"tool_calls": [call]}}]})
    };
    let end = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]});
    let stream = event_stream(&[delta(0), delta(1), end]) + "data: [DONE]\n\n";
    let result =
        |at: u8| json!({"role": "tool", "content": format!("r{at}"), "tool_call_id": format!("c{at}")});
    let sent = json!([{"role": "assistant", "tool_calls": [call(0), call(1)]}, result(0), result(1)]);
    let forms = [(JSON, whole), (EVENTS, stream)];
    let mut sent = sent;
    for call in sent[0]["tool_calls"].as_array_mut().unwrap() {
        *call = json!({"type": "function", "id": call["id"], "function": call["function"]});
    }
    check(&OpenAi::new("m"), &forms, ["c0", "c1"], sent);
}

#[test]
fn responses_has_an_item_for_each_result() {
    let item = |at: u8| json!({"type": "function_call", "call_id": format!("c{at}"), "name": "look", "arguments": format!("{{\"at\":{at}}}")});
    let whole =
        json!({"object": "response", "status": "completed", "output": [item(0), item(1)]}).to_string();
    let output = |at: u8| json!({"type": "function_call_output", "call_id": format!("c{at}"), "output": format!("r{at}")});
    let sent = json!([item(0), item(1), output(0), output(1)]);
    check(&OpenAi::new("m").with_api(Api::Responses), &[(JSON, whole)], ["c0", "c1"], sent);
}

#[test]
fn the_messages_api_has_all_results_in_one_turn() {
    let block =
        |at: u8| json!({"type": "tool_use", "id": format!("c{at}"), "name": "look", "input": {"at": at}});
    let result =
        |at: u8| json!({"type": "tool_result", "tool_use_id": format!("c{at}"), "content": format!("r{at}")});
    let results = json!({"role": "user", "content": [result(0), result(1)]});
    let message = |content: &Value| {
        json!({"type": "message", "content": content, "stop_reason": "tool_use",
            "usage": {"input_tokens": 1, "output_tokens": 1}})
        .to_string()
    };
    let plain = json!([block(0), block(1)]);
    let sent = json!([{"role": "assistant", "content": plain}, results]);
    check(&Anthropic::new("m"), &[(JSON, message(&plain))], ["c0", "c1"], sent.clone());

    // Signed thoughts go back as they are before the calls, with the text between them.
    let signed = json!([
        {"type": "thinking", "thinking": "Two places.", "signature": "c2lnbmVk"},
        {"type": "redacted_thinking", "data": "ZW5j"},
        {"type": "text", "text": "I look."},
        block(0),
        block(1),
    ]);
    let mut events = vec![json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}})];
    for (index, block) in signed.as_array().unwrap().iter().enumerate() {
        let (start, deltas) = match block["type"].as_str().unwrap() {
            "thinking" => (
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                vec![
                    json!({"type": "thinking_delta", "thinking": "Two "}),
                    json!({"type": "thinking_delta", "thinking": "places."}),
                    json!({"type": "signature_delta", "signature": "c2lnbmVk"}),
                ],
            ),
            "text" => {
                (json!({"type": "text", "text": ""}), vec![json!({"type": "text_delta", "text": "I look."})])
            }
            "tool_use" => (
                json!({"type": "tool_use", "id": block["id"], "name": "look", "input": {}}),
                vec![json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})],
            ),
            _ => (block.clone(), Vec::new()),
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.extend(
            deltas
                .into_iter()
                .map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}),
    );
    events.push(json!({"type": "message_stop"}));
    let forms = [(JSON, message(&signed)), (EVENTS, event_stream(&events))];
    let kept = json!([{"role": "assistant", "content": signed}, results]);
    for wire in [Anthropic::new("m"), Anthropic::new("m").with_thinking(Thinking::Adaptive)] {
        check(&wire, &forms, ["c0", "c1"], kept.clone());
    }
    // A request without thinking has no thoughts.
    let wire = Anthropic::new("m").with_thinking(Thinking::Off);
    check(&wire, &forms, ["c0", "c1"], sent);
}

#[test]
fn gemini_has_signatures_back_in_the_parts_that_had_them() {
    let part = |at: u8| json!({"functionCall": {"name": "look", "args": {"at": at}}});
    let document = |parts: &Value, finish: Option<&str>| {
        json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1}})
    };
    let result =
        |at: u8| json!({"functionResponse": {"name": "look", "response": {"result": format!("r{at}")}}});
    let results = json!({"role": "user", "parts": [result(0), result(1)]});
    let plain = json!([part(0), part(1)]);
    let forms = [(JSON, document(&plain, Some("STOP")).to_string())];
    let sent = json!([{"role": "model", "parts": plain}, results]);
    check(&Gemini::new("gemini-2.5-flash"), &forms, ["", ""], sent);

    // Only the first of several calls has a signature, and a text may have one of its own.
    let (mut first, second) = (part(0), part(1));
    first["thoughtSignature"] = json!("c2lnbmVk");
    let text = json!({"text": "I look.", "thoughtSignature": "dGV4dA=="});
    let thought = json!({"text": "Two places.", "thought": true});
    let signed = json!([thought, text, first, second]);
    let stream = event_stream(&[
        document(&json!([{"text": "Two ", "thought": true}]), None),
        document(&json!([{"text": "places.", "thought": true}]), None),
        document(&json!([text]), None),
        document(&json!([first, second]), None),
        document(&json!([]), Some("STOP")),
    ]);
    let forms = [(JSON, document(&signed, Some("STOP")).to_string()), (EVENTS, stream)];
    let sent = json!([{"role": "model", "parts": signed}, results]);
    check(&Gemini::new("gemini-3-pro-preview"), &forms, ["", ""], sent);

    // Identifiers of the API go back with the results.
    let with_id = |mut part: Value, at: u8| {
        let member = if part.get("functionCall").is_some() { "functionCall" } else { "functionResponse" };
        part[member]["id"] = json!(format!("f{at}"));
        part
    };
    let signed = json!([with_id(first, 0), with_id(second, 1)]);
    let forms = [(JSON, document(&signed, Some("STOP")).to_string())];
    let results = json!({"role": "user", "parts": [with_id(result(0), 0), with_id(result(1), 1)]});
    let sent = json!([{"role": "model", "parts": signed}, results]);
    check(&Gemini::new("gemini-3-pro-preview"), &forms, ["f0", "f1"], sent);
}

#[test]
fn gemini_3_gets_the_documented_signature_for_calls_of_another_model() {
    let call =
        |at: u8| Part::ToolCall { id: format!("c{at}"), name: "look".into(), arguments: json!({"at": at}) };
    let turn = Message { role: Role::Assistant, parts: vec![call(0), call(1)] };
    for (model, signature) in [
        ("gemini-3-pro-preview", json!("skip_thought_signature_validator")),
        ("gemini-3.1-flash", json!("skip_thought_signature_validator")),
        ("gemini-2.5-pro", Value::Null),
        ("gemini-1.5-flash", Value::Null),
        ("models/gemma-3-27b-it", Value::Null),
    ] {
        let request = self::call(vec![Message::user("x"), turn.clone(), Message::user("y")]);
        let request = Gemini::new(model).encode(&request).unwrap();
        let body: Value = serde_json::from_slice(request.body()).unwrap();
        let parts = &body["contents"][1]["parts"];
        assert_eq!(
            [&parts[0]["thoughtSignature"], &parts[1]["thoughtSignature"]],
            [&signature, &Value::Null]
        );
    }
}

#[test]
fn converse_has_all_results_in_one_turn_and_reasoning_back() {
    let block =
        |at: u8| json!({"toolUse": {"toolUseId": format!("c{at}"), "name": "look", "input": {"at": at}}});
    let result = |at: u8| json!({"toolResult": {"toolUseId": format!("c{at}"), "content": [{"text": format!("r{at}")}]}});
    let thought =
        json!({"reasoningContent": {"reasoningText": {"text": "Two places.", "signature": "c2lnbmVk"}}});
    for content in [json!([block(0), block(1)]), json!([thought, {"text": "I look."}, block(0), block(1)])] {
        let whole = json!({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "tool_use",
            "usage": {"inputTokens": 1, "outputTokens": 1}});
        let sent = json!([
            {"role": "assistant", "content": content},
            {"role": "user", "content": [result(0), result(1)]},
        ]);
        check(&Bedrock::new("m"), &[(JSON, whole.to_string())], ["c0", "c1"], sent);
    }
}

#[test]
fn cohere_has_a_message_for_each_result() {
    let function = |at: u8| json!({"name": "look", "arguments": format!("{{\"at\":{at}}}")});
    let call = |at: u8| json!({"id": format!("c{at}"), "type": "function", "function": function(at)});
    let message = json!({"role": "assistant", "tool_calls": [call(0), call(1)]});
    let whole = json!({"id": "x", "message": message, "finish_reason": "TOOL_CALL",
        "usage": {"tokens": {"input_tokens": 1, "output_tokens": 1}}});
    let result =
        |at: u8| json!({"role": "tool", "tool_call_id": format!("c{at}"), "content": format!("r{at}")});
    let sent = json!([message, result(0), result(1)]);
    check(&Cohere::new("m"), &[(JSON, whole.to_string())], ["c0", "c1"], sent);
}

#[test]
fn ollama_has_a_message_for_each_result() {
    let call = |at: u8| json!({"function": {"name": "look", "arguments": {"at": at}}});
    let message = json!({"role": "assistant", "content": "", "tool_calls": [call(0), call(1)]});
    let whole = json!({"model": "m", "message": message, "done": true, "done_reason": "stop",
        "prompt_eval_count": 1, "eval_count": 1});
    let result = |at: u8| json!({"role": "tool", "content": format!("r{at}"), "tool_name": "look"});
    let sent = json!([message, result(0), result(1)]);
    check(&Ollama::new("m"), &[("application/x-ndjson", format!("{whole}\n"))], ["", ""], sent);
}
