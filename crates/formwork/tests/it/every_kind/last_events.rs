//! Streams whose text, refusal or call is in the last event alone, beside the same streams with deltas: each is read once.

use formwork::core::{Call, Completion, Enforcement, Finish, Lowered, Message};
use formwork_anthropic::Anthropic;
use formwork_gemini::Gemini;
use formwork_ollama::Ollama;
use formwork_openai::{Api, OpenAi};
use formwork_wire::http::Response;
use formwork_wire::{Deltas, Wire};
use serde_json::{Value, json};

const TEXT: &str = r#"{"age": 34}"#;

/// Reads a stream of server-sent events, or of lines for Ollama.
fn read(wire: &dyn Wire, call: &Call, events: &[Value]) -> Completion {
    let is_ollama = wire.name() == "ollama";
    let media_type = if is_ollama { "application/x-ndjson" } else { "text/event-stream" };
    let line = |event: &Value| if is_ollama { format!("{event}\n") } else { format!("data: {event}\n\n") };
    let body: String = events.iter().map(line).collect();
    let head = Response::builder().header("content-type", media_type).body(()).unwrap().into_parts().0;
    let (mut decoder, mut deltas) = (wire.decoder(call, &head), Deltas::new());
    decoder.push(body.as_bytes(), &mut deltas).unwrap_or_else(|fault| panic!("{fault}: {body}"));
    decoder.end(&mut deltas).unwrap_or_else(|fault| panic!("{fault}: {body}"));
    let mut completion = Completion::new("");
    deltas.into_iter().for_each(|delta| _ = completion.push(delta));
    completion
}

fn call(enforcement: Enforcement) -> Call {
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}});
    let lowered = Lowered::new(enforcement, Some(schema).filter(|_| enforcement == Enforcement::Tool));
    Call::new(vec![Message::user("hi")], lowered).with_schema_name("person")
}

#[test]
fn the_text_of_a_last_event_is_read_in_each_protocol_that_has_one() {
    let chat = |choice: Value| json!({"choices": [choice]});
    let gemini = |text: &str, reason: Option<&str>| json!({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": reason}]});
    let ollama = |text: &str, done: bool| json!({"message": {"content": text}, "done": done, "done_reason": done.then_some("stop")});
    let generated = |text: &str, done: bool| json!({"response": text, "done": done, "done_reason": done.then_some("stop")});
    // Messages and Converse have no event for it: their last text is in the last delta of a block, or in its beginning.
    let block =
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": TEXT}});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}});
    let cases: Vec<(Box<dyn Wire>, Vec<Value>)> = vec![
        (
            Box::new(OpenAi::new("m")),
            vec![chat(json!({"message": {"content": TEXT}, "finish_reason": "stop"}))],
        ),
        (
            Box::new(OpenAi::new("m")),
            vec![
                chat(json!({"delta": {"role": "assistant"}})),
                chat(json!({"message": {"content": TEXT}, "finish_reason": "stop"})),
            ],
        ),
        (
            Box::new(OpenAi::new("m")),
            vec![
                chat(json!({"delta": {"content": TEXT}})),
                chat(json!({"message": {"content": TEXT}, "finish_reason": "stop"})),
            ],
        ),
        (Box::new(Gemini::new("gemini-2.5-flash")), vec![gemini(TEXT, Some("STOP"))]),
        (
            Box::new(Gemini::new("gemini-2.5-flash")),
            vec![gemini(&TEXT[..4], None), gemini(&TEXT[4..], Some("STOP"))],
        ),
        (Box::new(Ollama::new("m")), vec![ollama(TEXT, true)]),
        (Box::new(Ollama::new("m")), vec![ollama(&TEXT[..4], false), ollama(&TEXT[4..], true)]),
        (Box::new(Ollama::new("m")), vec![generated(&TEXT[..4], false), generated(&TEXT[4..], true)]),
        (
            Box::new(Anthropic::new("m")),
            vec![
                json!({"type": "message_start", "message": {}}),
                block,
                end,
                json!({"type": "message_stop"}),
            ],
        ),
    ];
    for (wire, events) in cases {
        let completion = read(&*wire, &call(Enforcement::None), &events);
        assert_eq!((completion.text.as_str(), completion.finish), (TEXT, Finish::Stop), "{events:?}");
    }
}

/// The events of the Responses API that have the whole content of a part, an item or a response: with any of them the content is
/// read, and with all of them it is read once.
#[test]
fn any_of_the_last_events_of_a_response_is_enough_and_all_are_read_once() {
    let wire = OpenAi::new("m").with_api(Api::Responses);
    let message = |content: Value| json!({"type": "message", "id": "i", "content": [content]});
    let text = message(json!({"type": "output_text", "text": TEXT}));
    let refusal = message(json!({"type": "refusal", "refusal": "No."}));
    let carried =
        json!({"type": "function_call", "id": "i", "call_id": "c", "name": "person", "arguments": TEXT});
    let two = json!({"type": "message", "id": "i", "content": [
        {"type": "output_text", "text": &TEXT[..4]}, {"type": "output_text", "text": &TEXT[4..]}]});
    for (enforcement, item, parts, expected) in [
        (Enforcement::None, &text, vec![("output_text", "text", TEXT)], TEXT),
        (
            Enforcement::None,
            &two,
            vec![("output_text", "text", &TEXT[..4]), ("output_text", "text", &TEXT[4..])],
            TEXT,
        ),
        (Enforcement::None, &refusal, vec![("refusal", "refusal", "No.")], "No."),
        (Enforcement::Tool, &carried, vec![("function_call_arguments", "arguments", TEXT)], TEXT),
    ] {
        // Servers identify an item by its index, by its identifier, by both, or not at all.
        for place in [
            json!({"output_index": 0, "item_id": "i"}),
            json!({"output_index": 0}),
            json!({"item_id": "i"}),
            json!({}),
        ] {
            for mask in 1..16_u32 {
                let has = |bit: u32| mask & (1 << bit) != 0;
                let mut events = Vec::new();
                let mut add = |kind: String, more: Value| {
                    let mut event = json!({"type": kind});
                    for member in [&place, &more].into_iter().filter_map(Value::as_object).flatten() {
                        event[member.0] = member.1.clone();
                    }
                    events.push(event);
                };
                let mut begun = item.clone();
                begun["content"] = json!([]);
                begun["arguments"] = json!("");
                add("response.output_item.added".to_owned(), json!({"item": begun}));
                for (index, (kind, member, content)) in parts.iter().enumerate() {
                    let (begin, rest) = content.split_at(2);
                    for piece in [begin, rest].into_iter().filter(|_| has(0)) {
                        add(
                            format!("response.{kind}.delta"),
                            json!({"delta": piece, "content_index": index}),
                        );
                    }
                    if has(1) {
                        add(
                            format!("response.{kind}.done"),
                            json!({*member: content, "content_index": index}),
                        );
                    }
                }
                if has(2) {
                    add("response.output_item.done".to_owned(), json!({"item": item}));
                }
                let output = if has(3) { json!([item]) } else { json!([]) };
                let response = json!({"status": "completed", "output": output});
                events.push(json!({"type": "response.completed", "response": response}));
                let completion = read(&wire, &call(enforcement), &events);
                assert_eq!(completion.text, expected, "{events:#?}");
                let finish = if expected == TEXT { Finish::Stop } else { Finish::Refused };
                assert_eq!((completion.finish, completion.tool_calls.len()), (finish, 0), "{events:#?}");
            }
        }
    }
}

#[test]
fn a_call_of_the_last_event_alone_is_read_beside_the_text_before_it() {
    let wire = OpenAi::new("m").with_api(Api::Responses);
    let text = json!({"type": "message", "content": [{"type": "output_text", "text": "I look."}]});
    let call_item = json!({"type": "function_call", "call_id": "c", "name": "look", "arguments": TEXT});
    let completion = read(
        &wire,
        &call(Enforcement::None),
        &[
            json!({"type": "response.output_text.delta", "delta": "I look."}),
            json!({"type": "response.completed", "response": {"output": [text, call_item]}}),
        ],
    );
    assert_eq!((completion.text.as_str(), completion.tool_calls.len()), ("I look.", 1));
    assert_eq!((completion.tool_calls[0].arguments.as_str(), completion.finish), (TEXT, Finish::ToolCall));
}
