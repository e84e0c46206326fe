//! Decoded responses, whole and streamed.

use formwork_core::{Completion, Delta, Enforcement, FaultKind, Finish, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{answers, decoded, enforcing};

fn any_call() -> formwork_core::Call {
    enforcing(Enforcement::None, None)
}

fn document(parts: &Value, reason: &str) -> Value {
    json!({
        "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": reason, "index": 0}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4},
    })
}

#[test]
fn reasons_to_finish_are_classes() {
    for (reason, finish) in [
        ("STOP", Finish::Stop),
        ("MAX_TOKENS", Finish::Length),
        ("SAFETY", Finish::Filtered),
        ("RECITATION", Finish::Filtered),
        ("LANGUAGE", Finish::Filtered),
        ("BLOCKLIST", Finish::Filtered),
        ("PROHIBITED_CONTENT", Finish::Filtered),
        ("SPII", Finish::Filtered),
        ("MODEL_ARMOR", Finish::Filtered),
        ("UNEXPECTED_TOOL_CALL", Finish::other("UNEXPECTED_TOOL_CALL")),
        ("OTHER", Finish::other("OTHER")),
        ("SOMETHING_NEW", Finish::other("SOMETHING_NEW")),
    ] {
        for completion in answers(&any_call(), &document(&json!([{"text": "{}"}]), reason)) {
            assert_eq!((completion.finish, completion.text.as_str()), (finish.clone(), "{}"), "{reason}");
        }
        // The content of a filtered answer may be missing.
        let mut bare = document(&json!([]), reason);
        bare["candidates"][0].as_object_mut().unwrap().remove("content");
        for completion in answers(&any_call(), &bare) {
            assert_eq!((completion.finish, completion.text.as_str()), (finish.clone(), ""), "{reason}");
        }
    }
}

#[test]
fn malformed_output_is_a_fault_whatever_text_came_before_it() {
    for reason in ["MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS"] {
        for parts in [json!([]), json!([{"text": "{}"}])] {
            let document = document(&parts, reason).to_string();
            let event = format!("data: {document}\n\n");
            for (media_type, body) in [("application/json", &document), ("text/event-stream", &event)] {
                let (deltas, fault) = decoded(&any_call(), media_type, &[body.as_bytes()]);
                let fault = fault.unwrap_or_else(|| panic!("{media_type} {document}"));
                assert_eq!(fault.kind, FaultKind::Overloaded, "{fault}");
                assert!(fault.message.contains(reason), "{fault}");
                assert!(!deltas.iter().any(|delta| matches!(delta, Delta::End(_))), "{deltas:?}");
            }
        }
    }
}

#[test]
fn a_prompt_that_is_blocked_is_filtered() {
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 9}});
    for completion in answers(&any_call(), &blocked) {
        assert_eq!((completion.finish, completion.usage.input_tokens), (Finish::Filtered, 9));
    }
}

#[test]
fn thoughts_are_no_text_and_their_tokens_count() {
    let mut thinking = document(
        &json!([{"text": "hm {", "thought": true}, {"text": "{\"a\": ", "thoughtSignature": "AA=="}, {"text": "1}"}]),
        "STOP",
    );
    thinking["usageMetadata"] = json!({"promptTokenCount": 9, "toolUsePromptTokenCount": 1, "candidatesTokenCount": 4, "thoughtsTokenCount": 30, "cachedContentTokenCount": 5});
    thinking["modelVersion"] = json!("gemini-2.5-flash-001");
    let usage = Usage::new(10, 34).with_cached(5).with_reasoning(30);
    let expected = Completion::new("{\"a\": 1}")
        .with_usage(usage)
        .with_reasoning("hm {")
        .with_model(Some("gemini-2.5-flash-001".into()));
    for completion in answers(&any_call(), &thinking) {
        assert_eq!(completion, expected);
    }
}

#[test]
fn thoughts_may_leave_nothing_of_the_limit() {
    let mut eaten = document(&json!([]), "MAX_TOKENS");
    eaten["candidates"][0]["content"] = json!({"role": "model"});
    eaten["usageMetadata"] = json!({"promptTokenCount": 9, "thoughtsTokenCount": 97});
    for completion in answers(&any_call(), &eaten) {
        assert_eq!((completion.finish, completion.text.as_str()), (Finish::Length, ""));
        assert_eq!((completion.usage.output_tokens, completion.usage.reasoning_tokens), (97, 97));
    }
}

#[test]
fn the_arguments_of_the_function_are_the_answer() {
    let tool = enforcing(Enforcement::Tool, Some(json!({"type": "object"})));
    let called = json!([{"text": "I call it."}, {"functionCall": {"name": "person", "args": {"z": 1, "a": 2}}, "thoughtSignature": "AA=="}]);
    for completion in answers(&tool, &document(&called, "STOP")) {
        assert_eq!((completion.text.as_str(), completion.finish), ("{\"z\":1,\"a\":2}", Finish::Stop));
    }
    for completion in answers(&tool, &document(&json!([{"text": "{\"z\": 1}"}]), "STOP")) {
        assert_eq!((completion.text.as_str(), completion.finish), ("{\"z\": 1}", Finish::Stop));
    }
    // The call did not force a function.
    for completion in answers(&any_call(), &document(&called, "STOP")) {
        assert_eq!((completion.text.as_str(), completion.finish), ("I call it.", Finish::ToolCall));
    }
}

#[test]
fn what_is_not_counted_is_estimated() {
    for usage in [Value::Null, json!({}), json!({"promptTokenCount": 0, "candidatesTokenCount": 0})] {
        let mut uncounted = document(&json!([{"text": "12345678"}]), "STOP");
        uncounted["usageMetadata"] = usage;
        for completion in answers(&any_call(), &uncounted) {
            assert_eq!((completion.usage.output_tokens, completion.usage.estimated), (2, true));
        }
    }
}

#[test]
fn an_error_in_a_stream_is_the_fault_that_it_would_be_before() {
    let text = "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"{\"}]}}]}\r\n\r\n";
    for (error, kind) in [
        (
            json!({"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}),
            FaultKind::Overloaded,
        ),
        (json!({"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}), FaultKind::RateLimited),
        (json!({"message": "something"}), FaultKind::Overloaded),
    ] {
        let body = format!("{text}data: {}\r\n\r\n", json!({"error": error}));
        let (deltas, fault) = decoded(&any_call(), "text/event-stream", &[body.as_bytes()]);
        assert_eq!(deltas, [Delta::Text("{".into())]);
        let fault = fault.unwrap();
        assert_eq!((fault.kind, fault.status), (kind, None), "{fault}");
        // A stream without `alt=sse` is an array.
        let array = json!([document(&json!([{"text": "{"}]), ""), {"error": error}]).to_string();
        let (_, fault) = decoded(&any_call(), "application/json", &[array.as_bytes()]);
        assert_eq!(fault.unwrap().kind, kind);
    }
}

#[test]
fn a_stream_without_a_reason_to_finish_was_cut_off() {
    let text = "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"{\"}]}}]}\n\n";
    let (_, fault) = decoded(&any_call(), "text/event-stream", &[text.as_bytes()]);
    assert_eq!(fault.unwrap().kind, FaultKind::Unreachable);
    let (_, fault) = decoded(&any_call(), "text/event-stream", &[b"data: {}\n\n"]);
    assert_eq!(fault.unwrap().kind, FaultKind::BadWire);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for media_type in ["application/json", "text/event-stream"] {
            let (_, fault) = decoded(&any_call(), media_type, &[&bytes]);
            prop_assert!(fault.is_some());
        }
    }
}
