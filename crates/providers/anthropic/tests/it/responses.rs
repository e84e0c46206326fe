//! Decoded messages, whole and streamed.

use formwork_anthropic::{Anthropic, Mode};
use formwork_core::{Call, Enforcement, FaultKind, Finish, Usage};
use serde_json::{Value, json};

use crate::support::{TOOL, call, completion, document, read, stream, streamed};

fn wire() -> Anthropic {
    Anthropic::new("claude-test")
}

/// A codec and a call whose document is the input of a tool.
fn tool() -> (Anthropic, Call) {
    (wire().with_mode(Mode::Tool), call(Enforcement::Schema))
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn thought(thought: &str) -> Value {
    json!({"type": "thinking", "thinking": thought, "signature": "EqQB"})
}

fn input(input: Value) -> Value {
    json!({"type": "tool_use", "id": "t", "name": TOOL, "input": input})
}

#[test]
fn the_answer_is_the_same_in_one_piece_and_as_a_stream() {
    let (tool_wire, schema) = tool();
    let other = json!({"type": "tool_use", "id": "t", "name": "look", "input": {"at": 1}});
    let cases: Vec<(&Anthropic, Value, &str, &str, &str, Finish)> = vec![
        (
            &tool_wire,
            json!([input(json!({"b": 1, "a": 2}))]),
            "tool_use",
            r#"{"b":1,"a":2}"#,
            "",
            Finish::Stop,
        ),
        (&tool_wire, json!([text("Sure."), input(json!({}))]), "tool_use", "{}", "", Finish::Stop),
        (
            &tool_wire,
            json!([input(json!("{\"a\": \"\\\"\"}"))]),
            "tool_use",
            "{\"a\": \"\\\"\"}",
            "",
            Finish::Stop,
        ),
        (&tool_wire, json!([text("{\"a\""), text(": 1}")]), "end_turn", "{\"a\": 1}", "", Finish::Stop),
        (
            &tool_wire,
            json!([input(json!({"a": 1})), input(json!({"a": 2}))]),
            "tool_use",
            r#"{"a":1}"#,
            "",
            Finish::Stop,
        ),
        (&tool_wire, json!([other]), "tool_use", "", "", Finish::ToolCall),
        (&tool_wire, json!([text("I won't.")]), "refusal", "I won't.", "", Finish::Refused),
    ];
    let wire = wire();
    let plain: Vec<(&Anthropic, Value, &str, &str, &str, Finish)> = vec![
        (&wire, json!([text("{\"a\": "), text("1}")]), "end_turn", "{\"a\": 1}", "", Finish::Stop),
        (&wire, json!([thought("Hm."), text("{}")]), "end_turn", "{}", "Hm.", Finish::Stop),
        (
            &wire,
            json!([{"type": "redacted_thinking", "data": "x"}, text("{}")]),
            "end_turn",
            "{}",
            "",
            Finish::Stop,
        ),
        (&wire, json!([text("{}")]), "stop_sequence", "{}", "", Finish::other("stop_sequence")),
        (&wire, json!([text("{}")]), "pause_turn", "{}", "", Finish::other("pause_turn")),
        (&wire, json!([text("{\"a")]), "max_tokens", "{\"a", "", Finish::Length),
        (&wire, json!([text("{\"a")]), "model_context_window_exceeded", "{\"a", "", Finish::Length),
        (&wire, json!([thought("Hm, hm.")]), "max_tokens", "", "Hm, hm.", Finish::Length),
        (&wire, json!([]), "end_turn", "", "", Finish::Stop),
        (&wire, json!([]), "refusal", "", "", Finish::Refused),
        (&wire, json!([text("Half of")]), "refusal", "Half of", "", Finish::Refused),
        (&wire, json!([other]), "tool_use", "", "", Finish::ToolCall),
        (&wire, json!([text("{}")]), "a_reason_to_come", "{}", "", Finish::other("a_reason_to_come")),
        (
            &wire,
            json!([{"type": "a_block_to_come", "text": {"a": [1]}}, text("{}")]),
            "end_turn",
            "{}",
            "",
            Finish::Stop,
        ),
    ];
    for (wire, content, stop_reason, answer, reasoning, finish) in cases.into_iter().chain(plain) {
        for body in [document(&content, stop_reason), streamed(&content, stop_reason)] {
            let read = completion(wire, &schema, &body);
            assert_eq!((read.text.as_str(), read.reasoning.as_str()), (answer, reasoning), "{body}");
            assert_eq!(
                (read.finish, read.model.as_deref()),
                (finish.clone(), Some("claude-test-1")),
                "{body}"
            );
            assert_eq!(
                (read.usage.input_tokens, read.usage.output_tokens, read.usage.estimated),
                (11, 7, false)
            );
        }
    }
}

#[test]
fn a_refusal_says_why_and_is_no_other_text() {
    let (wire, call) = (wire(), call(Enforcement::Schema));
    let details = json!({"category": "cyber", "explanation": "It asks for malware."});
    let whole = json!({"type": "message", "content": [], "stop_reason": "refusal", "stop_details": details});
    let parts = stream(&[
        json!({"type": "message_start", "message": {}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}}),
        json!({"type": "message_stop"}),
    ]);
    for body in [whole.to_string(), parts] {
        let read = completion(&wire, &call, &body);
        assert_eq!((read.text.as_str(), read.finish), ("It asks for malware.", Finish::Refused));
        assert!(read.usage.estimated);
    }
}

#[test]
fn the_tokens_of_a_compaction_count_and_those_of_other_iterations_do_not() {
    let iterations = json!([
        {"type": "compaction", "input_tokens": 180, "output_tokens": 35, "cache_read_input_tokens": 7},
        {"type": "message", "input_tokens": 23, "output_tokens": 10},
        5,
    ]);
    let usage = json!({"input_tokens": 23, "output_tokens": 10, "iterations": iterations});
    let whole = json!({"content": [], "stop_reason": "end_turn", "usage": usage}).to_string();
    let parts = stream(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 23, "output_tokens": 1, "iterations": null}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
        json!({"type": "message_stop"}),
    ]);
    for body in [whole, parts] {
        let counted = Usage::new(210, 45).with_cached(7);
        assert_eq!(completion(&wire(), &call(Enforcement::None), &body).usage, counted);
    }
}

#[test]
fn the_cache_counts_as_input() {
    let call = call(Enforcement::None);
    let usage = json!({"input_tokens": 4, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "cache_creation": {"ephemeral_5m_input_tokens": 12, "ephemeral_1h_input_tokens": 8}, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 5}});
    let whole = json!({"content": [], "stop_reason": "end_turn", "usage": usage}).to_string();
    let mut beginning = usage.clone();
    beginning["output_tokens"] = json!(1);
    // Some compatible servers reset counts to zero in later events.
    for last in [
        json!({"output_tokens": 9}),
        json!({"input_tokens": 0, "cache_read_input_tokens": null, "output_tokens": 9}),
        usage,
    ] {
        let parts = stream(&[
            json!({"type": "message_start", "message": {"usage": beginning}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": last}),
            json!({"type": "message_stop"}),
        ]);
        for body in [whole.clone(), parts] {
            let counted = Usage::new(124, 9).with_cached(100).with_written(12, 8).with_reasoning(5);
            assert_eq!(completion(&wire(), &call, &body).usage, counted);
        }
    }
}

#[test]
fn a_limit_inside_a_tool_call_leaves_what_was_written() {
    let (wire, call) = tool();
    for (pieces, written) in [
        (vec![], ""),
        (vec![" "], " "),
        (vec!["{\"na", "me\": \"Ma"], "{\"name\": \"Ma"),
        (vec!["\"{\\\"na"], "\"{\\\"na"),
    ] {
        let mut events = vec![
            json!({"type": "message_start", "message": {}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "name": TOOL}}),
        ];
        events.extend(pieces.iter().map(|piece| {
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}})
        }));
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}));
        events.push(json!({"type": "message_stop"}));
        let read = completion(&wire, &call, &stream(&events));
        assert_eq!((read.text.trim(), read.finish), (written.trim(), Finish::Length), "{pieces:?}");
    }
}

#[test]
fn an_error_in_the_middle_keeps_what_came_before_and_has_its_class() {
    for (kind, words, class) in [
        ("overloaded_error", "Overloaded", FaultKind::Overloaded),
        ("api_error", "Internal server error", FaultKind::Overloaded),
        ("rate_limit_error", "Slow down", FaultKind::RateLimited),
        ("timeout_error", "Took too long", FaultKind::Timeout),
        ("authentication_error", "invalid x-api-key", FaultKind::Auth),
        ("an_error_to_come", "Something", FaultKind::Overloaded),
    ] {
        let body = stream(&[
            json!({"type": "message_start", "message": {}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "{\"a"}}),
            json!({"type": "error", "error": {"type": kind, "message": words}}),
        ]);
        let (text, ended) = read(&wire(), &call(Enforcement::Schema), &body);
        let fault = ended.unwrap_err();
        assert_eq!((text.as_str(), fault.kind), ("{\"a", class), "{fault}");
        assert!(fault.message.contains(words), "{fault}");
    }
    let whole = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let (_, ended) = read(&wire(), &call(Enforcement::None), &whole.to_string());
    assert_eq!(ended.unwrap_err().kind, FaultKind::Overloaded);
}

#[test]
fn a_stream_without_its_last_event_is_whole_if_the_reason_came() {
    let whole = streamed(&json!([text("{}")]), "end_turn");
    let call = call(Enforcement::None);
    let cut = |mark: &str| &whole[..whole.find(mark).unwrap()];
    assert_eq!(completion(&wire(), &call, cut("event: message_stop")).text, "{}");
    let (text, ended) = read(&wire(), &call, cut("event: message_delta"));
    assert_eq!((text.as_str(), ended.unwrap_err().kind), ("{}", FaultKind::Unreachable));
}
