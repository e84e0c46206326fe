//! Decoded documents.

use formwork_core::{Enforcement, FaultKind, Finish, Usage};
use formwork_openai::OpenAi;
use formwork_wire::{Bytes, Deltas, Wire};
use serde_json::{Value, json};

use crate::support::{JSON, STREAM, answered, call, decode, decode_chunks, head};

fn document(message: Value, finish: Value) -> String {
    let usage = json!({"prompt_tokens": 31, "completion_tokens": 9, "total_tokens": 40});
    let choice = json!({"index": 0, "message": message, "finish_reason": finish});
    json!({"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-test-2026", "choices": [choice], "usage": usage})
        .to_string()
}

fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": text, "refusal": null})
}

#[test]
fn an_answer() {
    let body = document(says(r#"{"a": 1}"#), json!("stop"));
    let answer = decode(&call(Enforcement::Schema), JSON, &body).unwrap();
    assert_eq!((answer.text.as_str(), answer.finish), (r#"{"a": 1}"#, Finish::Stop));
    assert_eq!(answer.usage, Usage::new(31, 9));
    assert_eq!(answer.model.as_deref(), Some("gpt-test-2026"));
}

#[test]
fn reasons_to_finish() {
    for (reason, finish) in [
        (json!("stop"), Finish::Stop),
        (json!("length"), Finish::Length),
        (json!("MAX_TOKENS"), Finish::Length),
        (json!("content_filter"), Finish::Filtered),
        (json!("tool_calls"), Finish::ToolCall),
        (json!("eos"), Finish::Stop),
        (json!("eos_token"), Finish::Stop),
        (json!(""), Finish::other("")),
        (json!(null), Finish::other("")),
        (json!("max_output_tokens"), Finish::Length),
        (json!("unheard_of"), Finish::other("unheard_of")),
    ] {
        let answer = decode(&call(Enforcement::None), JSON, &document(says("{}"), reason.clone())).unwrap();
        assert_eq!(answer.finish, finish, "{reason}");
    }
    for reason in ["error", "abort", "insufficient_system_resource"] {
        let fault = decode(&call(Enforcement::None), JSON, &document(says("{"), json!(reason))).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Overloaded, "{reason}");
    }
}

#[test]
fn cut_off_while_reasoning() {
    let message = json!({"role": "assistant", "content": null, "reasoning_content": "Let me see"});
    let answer = decode(&call(Enforcement::Schema), JSON, &document(message, json!("length"))).unwrap();
    let found = (answer.text.as_str(), answer.reasoning.as_str(), answer.finish);
    assert_eq!(found, ("", "Let me see", Finish::Length));
}

#[test]
fn a_refusal_is_no_answer_and_its_words_are_kept() {
    let message = json!({"role": "assistant", "content": null, "refusal": "I can't help with that."});
    let answer = decode(&call(Enforcement::Schema), JSON, &document(message, json!("stop"))).unwrap();
    assert_eq!((answer.text.as_str(), answer.finish), ("I can't help with that.", Finish::Refused));
    let parts = json!({"content": [{"type": "refusal", "refusal": "No."}]});
    let answer = decode(&call(Enforcement::Schema), JSON, &document(parts, json!("stop"))).unwrap();
    assert_eq!((answer.text.as_str(), answer.finish), ("No.", Finish::Refused));
    let empty = json!({"content": "{}", "refusal": ""});
    let answer = decode(&call(Enforcement::Schema), JSON, &document(empty, json!("stop"))).unwrap();
    assert_eq!(answer.finish, Finish::Stop);
}

#[test]
fn contents_of_other_shapes() {
    let parts = json!({"content": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "{\"a\""},
        {"type": "output_text", "text": ": 1}"},
    ], "reasoning": null});
    let answer = decode(&call(Enforcement::Schema), JSON, &document(parts, json!("stop"))).unwrap();
    assert_eq!((answer.text.as_str(), answer.reasoning.as_str()), (r#"{"a": 1}"#, "hm"));
    let parsed = json!({"content": {"a": 1}, "reasoning": "hm"});
    let answer = decode(&call(Enforcement::Schema), JSON, &document(parsed, json!("stop"))).unwrap();
    assert_eq!((answer.text.as_str(), answer.reasoning.as_str()), (r#"{"a":1}"#, "hm"));
}

#[test]
fn a_bare_document_is_enough() {
    let body =
        r#" {"choices": [{"message": {"content": "{}"}}], "service_tier": "on_demand", "error": null}"#;
    let answer = decode(&call(Enforcement::None), "text/plain", body).unwrap();
    assert_eq!((answer.text.as_str(), answer.finish, answer.model), ("{}", Finish::other(""), None));
    // The usage is estimated, because a missing one must not count as zero.
    assert!(answer.usage.estimated && answer.usage.input_tokens > 5 && answer.usage.output_tokens == 1);
}

#[test]
fn a_document_that_is_called_a_stream() {
    let answer = decode(&call(Enforcement::None), STREAM, &document(says("{}"), json!("stop"))).unwrap();
    assert_eq!(answer.text, "{}");
}

#[test]
fn usages() {
    let base = json!({"prompt_tokens": 10, "completion_tokens": 50});
    let with = |members: Value| {
        let mut usage = base.clone();
        usage.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let body = json!({"choices": [{"message": {"content": "{}"}}], "usage": usage}).to_string();
        let usage = decode(&call(Enforcement::None), JSON, &body).unwrap().usage;
        (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens)
    };
    let reasoning = json!({"reasoning_tokens": 40});
    let cached = json!({"cached_tokens": 8});
    let openai =
        json!({"total_tokens": 60, "completion_tokens_details": reasoning, "prompt_tokens_details": cached});
    assert_eq!(with(openai), (10, 50, 8, 40));
    // xAI does not include reasoning in the completion tokens.
    assert_eq!(with(json!({"total_tokens": 100, "completion_tokens_details": reasoning})), (10, 90, 0, 40));
    assert_eq!(
        with(json!({"prompt_cache_hit_tokens": 6, "completion_tokens_details": null})),
        (10, 50, 6, 0)
    );
    assert_eq!(with(json!({"prompt_tokens": 10.0})), (10, 50, 0, 0));
}

#[test]
fn the_arguments_of_the_tool_are_the_answer() {
    let tool = |name: &str, arguments: Value| {
        json!({"content": null, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}},
        ]})
    };
    let ask = call(Enforcement::Tool);
    for (arguments, reason) in [
        (json!("{\"age\": 34}"), "tool_calls"),
        (json!("{\"age\": 34}"), "stop"),
        (json!({"age": 34}), "stop"),
    ] {
        let answer = decode(&ask, JSON, &document(tool("Person", arguments), json!(reason))).unwrap();
        assert_eq!((answer.text.replace(' ', "").as_str(), answer.finish), (r#"{"age":34}"#, Finish::Stop));
    }
    let other = decode(&ask, JSON, &document(tool("look", json!("{}")), json!("tool_calls"))).unwrap();
    assert_eq!((other.text.as_str(), other.finish), ("", Finish::ToolCall));
    // A server that ignores `tool_choice` lets the model answer in text.
    let text = decode(&ask, JSON, &document(says("{\"age\": 34}"), json!("stop"))).unwrap();
    assert_eq!((text.text.as_str(), text.finish), ("{\"age\": 34}", Finish::Stop));
    let both = json!({"content": "I'll call it.", "function_call": {"name": "Person", "arguments": "{}"}});
    assert_eq!(decode(&ask, JSON, &document(both, json!("stop"))).unwrap().text, "{}");
    // Calls of the caller's tools are not the document.
    let expected =
        decode(&call(Enforcement::None), JSON, &document(tool("look", json!("{}")), json!("tool_calls")));
    assert_eq!(expected.unwrap().finish, Finish::ToolCall);
}

#[test]
fn what_is_not_the_protocol() {
    for body in ["", "  \n", "upstream connect error", "[]", "{}", r#"{"choices": []}"#, r#"{"choices": 5}"#]
    {
        let fault = decode(&call(Enforcement::None), JSON, body).unwrap_err();
        assert_eq!(fault.kind, FaultKind::BadWire, "{body}: {fault}");
    }
    // A connection that was closed within a document.
    let fault = decode(&call(Enforcement::None), JSON, "{\"choices\": [{").unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unreachable, "{fault}");
}

#[tokio::test]
async fn an_error_within_a_success() {
    for (error, kind) in [
        (json!({"message": "Rate limit", "code": 429}), FaultKind::RateLimited),
        (json!({"message": "slow down", "type": "rate_limit_exceeded"}), FaultKind::RateLimited),
        (json!({"message": "x", "code": "insufficient_quota"}), FaultKind::NoCredit),
        (json!({"message": "bad key", "code": "401"}), FaultKind::Auth),
        (json!({"message": "too long", "code": "context_length_exceeded"}), FaultKind::BadRequest),
        (json!({"message": "Provider returned error", "code": 502}), FaultKind::Overloaded),
        (json!("something"), FaultKind::Overloaded),
    ] {
        let body = json!({"error": error}).to_string();
        let fault = answered(&call(Enforcement::None), 200, "application/json", body).await.unwrap_err();
        assert_eq!((fault.kind, fault.status), (kind, Some(200)), "{error}");
        assert_eq!(fault.request_id.as_deref(), Some("req-1"));
    }
    let body =
        json!({"choices": [{"error": {"message": "overloaded", "code": 503}, "finish_reason": "error"}]});
    let fault =
        answered(&call(Enforcement::None), 200, "application/json", body.to_string()).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Overloaded);
}

#[tokio::test]
async fn a_megabyte() {
    let text = format!("{{\"a\": \"{}\"}}", "ü".repeat(500_000));
    let body = document(says(&text), json!("stop"));
    let answer = answered(&call(Enforcement::Schema), 200, "application/json", body).await.unwrap();
    assert_eq!(answer.text.len(), text.len());
}

#[test]
fn members_of_another_kind_are_passed_over() {
    for (place, odd) in [
        ("/model", json!(["m"])),
        ("/error", json!(null)),
        ("/usage", json!("none")),
        ("/usage", json!([{"prompt_tokens": 1}])),
        ("/x_groq", json!(7.5)),
        ("/usage/prompt_tokens_details", json!(true)),
        ("/usage/total_tokens", json!("many")),
        ("/choices/0/delta", json!([])),
        ("/choices/0/index", json!("0")),
        ("/choices/0/error", json!(false)),
        ("/choices/0/finish_reason", json!({"type": "stop"})),
        ("/choices/0/logprobs", json!({"content": [{"token": "{", "bytes": [123]}]})),
        ("/choices/0/message/refusal", json!(0)),
        ("/choices/0/message/tool_calls", json!({})),
    ] {
        let mut body: Value = serde_json::from_str(&document(says("{}"), json!("stop"))).unwrap();
        let (parent, name) = place.rsplit_once('/').unwrap();
        body.pointer_mut(parent).unwrap()[name] = odd;
        let finish = if name == "finish_reason" { Finish::other("") } else { Finish::Stop };
        let answer = decode(&call(Enforcement::None), JSON, &body.to_string()).unwrap();
        assert_eq!((answer.text.as_str(), answer.finish), ("{}", finish), "{place}");
    }
    for choices in [json!({}), json!("c"), json!(null), json!([]), json!(1), json!([{"index": 1}])] {
        let body = json!({"choices": choices}).to_string();
        let fault = decode(&call(Enforcement::None), JSON, &body).unwrap_err();
        assert!(fault.message.contains("no `choices`"), "{fault}");
    }
}

#[test]
fn of_members_that_are_there_twice_the_last_one_counts() {
    let body = r#"{"choices": [], "choices": [{"message": {"content": "1", "content": "2"}}], "usage": {"prompt_tokens": 1},
        "usage": {"prompt_tokens": 3.0, "completion_tokens": 4, "prompt_\u0074okens": 5}}"#;
    let answer = decode(&call(Enforcement::None), JSON, body).unwrap();
    assert_eq!((answer.text.as_str(), answer.usage.input_tokens, answer.usage.output_tokens), ("2", 5, 4));
}

#[test]
fn a_body_is_the_same_however_it_comes() {
    let body = document(says("{}"), json!("stop"));
    let whole = decode_chunks(&call(Enforcement::None), JSON, [body.as_bytes()]).0;
    for at in 0..=body.len() {
        let (first, second) = body.as_bytes().split_at(at);
        assert_eq!(decode_chunks(&call(Enforcement::None), JSON, [first, second]).0, whole, "{at}");
        let mut decoder = OpenAi::new("gpt-test").decoder(&call(Enforcement::None), &head(200, JSON));
        let mut out = Deltas::new();
        for chunk in [first, second, b" "] {
            decoder.push_bytes(Bytes::copy_from_slice(chunk), &mut out).unwrap();
        }
        decoder.end(&mut out).unwrap();
        assert_eq!(Vec::from(out), whole, "{at}");
    }
}
