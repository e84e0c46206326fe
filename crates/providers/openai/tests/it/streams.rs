//! Decoded streams.

use formwork_core::{Delta, End, Enforcement, FaultKind, Finish, Usage};
use formwork_openai::{Api, OpenAi};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{STREAM, answered, call, decode, decode_by, decode_chunks, delta, ends, stream};

fn usage() -> Value {
    json!({"choices": [], "usage": {"prompt_tokens": 31, "completion_tokens": 9}})
}

#[test]
fn an_answer() {
    let body = stream(&[
        json!({"choices": [], "prompt_filter_results": []}),
        delta(json!({"role": "assistant", "content": "", "refusal": null})),
        delta(json!({"content": "{\"a\""})),
        delta(json!({"content": ": 1}"})),
        ends("stop"),
        usage(),
    ]);
    let (deltas, end) = decode_chunks(&call(Enforcement::Schema), STREAM, [body.as_bytes()]);
    end.unwrap();
    let usage = Usage::new(31, 9);
    let model = Some("gpt-test-2026".to_owned());
    let expected = [
        Delta::Text("{\"a\"".to_owned()),
        Delta::Text(": 1}".to_owned()),
        Delta::Usage(usage),
        Delta::End(End::new(Finish::Stop, usage).with_model(model)),
    ];
    assert_eq!(deltas, expected);
}

#[test]
fn thoughts_come_apart() {
    for member in ["reasoning_content", "reasoning"] {
        let body = stream(&[delta(json!({member: "hm"})), delta(json!({"content": "{}"})), ends("stop")]);
        let answer = decode(&call(Enforcement::Schema), STREAM, &body).unwrap();
        assert_eq!((answer.text.as_str(), answer.reasoning.as_str()), ("{}", "hm"));
    }
    // Servers that send both properties repeat the text.
    let body = stream(&[delta(json!({"reasoning": "hm", "reasoning_content": "hm"})), ends("stop")]);
    assert_eq!(decode(&call(Enforcement::Schema), STREAM, &body).unwrap().reasoning, "hm");
}

#[test]
fn a_refusal_streams() {
    let body =
        stream(&[delta(json!({"refusal": "I can't "})), delta(json!({"refusal": "help."})), ends("stop")]);
    let answer = decode(&call(Enforcement::Schema), STREAM, &body).unwrap();
    assert_eq!((answer.text.as_str(), answer.finish), ("I can't help.", Finish::Refused));
}

#[test]
fn arguments_stream() {
    let piece = |call: Value| delta(json!({"tool_calls": [call]}));
    let body = stream(&[
        delta(json!({"content": "I call it now."})),
        piece(json!({"index": 0, "id": "1", "function": {"name": "Person", "arguments": ""}})),
        piece(json!({"index": 0, "function": {"arguments": "{\"age\""}})),
        piece(json!({"index": 1, "id": "2", "function": {"name": "Person", "arguments": "{\"age\": 99}"}})),
        piece(json!({"index": 0, "function": {"arguments": ": 34}"}})),
        ends("tool_calls"),
    ]);
    let answer = decode(&call(Enforcement::Tool), STREAM, &body).unwrap();
    assert_eq!((answer.text.as_str(), answer.finish), ("{\"age\": 34}", Finish::Stop));
}

#[test]
fn calls_are_told_apart_by_index_and_identifier() {
    let piece = |index: Option<u32>, id: &str, name: &str, arguments: &str| {
        let mut call = json!({"function": {"arguments": arguments}});
        for (member, value) in [("id", id), ("name", name)] {
            let into = if member == "id" { &mut call } else { &mut call["function"] };
            if !value.is_empty() {
                into[member] = json!(value);
            }
        }
        if let Some(index) = index {
            call["index"] = json!(index);
        }
        call
    };
    let (zero, one) = (Some(0), Some(1));
    let two = [("a", "f", "{\"n\": 1}"), ("b", "g", "{\"n\": 2}")];
    for (name, pieces, expected) in [
        (
            "the protocol",
            vec![
                piece(zero, "a", "f", ""),
                piece(one, "b", "g", "{\"n\""),
                piece(zero, "", "", "{\"n\": 1}"),
                piece(one, "", "", ": 2}"),
            ],
            two.to_vec(),
        ),
        (
            "one index, whole calls",
            vec![piece(zero, "a", "f", "{\"n\": 1}"), piece(zero, "b", "g", "{\"n\": 2}")],
            two.to_vec(),
        ),
        (
            "one index, in pieces",
            vec![
                piece(zero, "a", "f", ""),
                piece(zero, "", "", "{\"n\""),
                piece(zero, "", "", ": 1}"),
                piece(zero, "b", "g", ""),
                piece(zero, "", "", "{\"n\": 2}"),
            ],
            two.to_vec(),
        ),
        (
            "no index",
            vec![
                piece(None, "a", "f", "{\"n\""),
                piece(None, "", "", ": 1}"),
                piece(None, "b", "g", "{\"n\": 2}"),
            ],
            two.to_vec(),
        ),
        (
            "an identifier in every piece, mixed",
            vec![
                piece(zero, "a", "f", "{\"n\""),
                piece(zero, "b", "g", "{\"n\""),
                piece(zero, "a", "", ": 1}"),
                piece(zero, "b", "g", ": 2}"),
            ],
            two.to_vec(),
        ),
        (
            "the same tool twice",
            vec![piece(zero, "a", "f", "{}"), piece(zero, "b", "f", "{}")],
            vec![("a", "f", "{}"), ("b", "f", "{}")],
        ),
        (
            "another identifier in every piece, as of vLLM",
            vec![
                piece(zero, "a", "f", ""),
                piece(zero, "x", "", "{\"n\""),
                piece(zero, "y", "", ": 1}"),
                piece(one, "b", "g", "{\"n\": 2}"),
            ],
            two.to_vec(),
        ),
        (
            "the name in every piece",
            vec![piece(zero, "a", "f", "{\"n\""), piece(zero, "a", "f", ": 1}"), piece(zero, "", "f", "")],
            vec![("a", "f", "{\"n\": 1}")],
        ),
    ] {
        let mut chunks: Vec<Value> =
            pieces.iter().map(|piece| delta(json!({"tool_calls": [piece]}))).collect();
        chunks.push(ends("tool_calls"));
        let answer = decode(&call(Enforcement::None), STREAM, &stream(&chunks)).unwrap();
        let called = answer.tool_calls.iter();
        let called: Vec<_> = called.map(|call| (&*call.id, &*call.name, &*call.arguments)).collect();
        assert_eq!(called, expected, "{name}");
        // Of several calls of the tool with the document, the first one has it.
        let carried: Vec<Value> = pieces
            .iter()
            .cloned()
            .map(|mut piece| {
                if !piece["function"]["name"].is_null() {
                    piece["function"]["name"] = json!("Person");
                }
                delta(json!({"tool_calls": [piece]}))
            })
            .chain([ends("tool_calls")])
            .collect();
        let answer = decode(&call(Enforcement::Tool), STREAM, &stream(&carried)).unwrap();
        assert_eq!((&*answer.text, answer.tool_calls.len()), (expected[0].2, 0), "{name}");
    }
}

#[test]
fn the_end_needs_a_reason() {
    let open = format!("data: {}\n\n", delta(json!({"content": "{}"})));
    let cut = decode(&call(Enforcement::None), STREAM, &open).unwrap_err();
    assert_eq!(cut.kind, FaultKind::Unreachable);
    assert!(cut.message.contains("cut off"), "{cut}");
    // A finish reason without `[DONE]` is enough, and so is `[DONE]` without a finish reason.
    let reason = format!("{open}data: {}\n\n", ends("length"));
    assert_eq!(decode(&call(Enforcement::None), STREAM, &reason).unwrap().finish, Finish::Length);
    let unterminated = reason.trim_end();
    assert_eq!(decode(&call(Enforcement::None), STREAM, unterminated).unwrap().finish, Finish::Length);
    let done = format!("{open}data: {}\n\ndata: [DONE]", ends(""));
    assert_eq!(decode(&call(Enforcement::None), STREAM, &done).unwrap().finish, Finish::other(""));
    // Of two reasons the worse one counts, in either order.
    for [first, second] in [["length", "stop"], ["stop", "length"]] {
        let twice = format!("{open}data: {}\n\ndata: {}\n\ndata: [DONE]", ends(first), ends(second));
        assert_eq!(decode(&call(Enforcement::None), STREAM, &twice).unwrap().finish, Finish::Length);
    }
    // An empty `finish_reason` in every chunk counts as none.
    let empty = format!("{open}data: {}\n\n", ends(""));
    assert_eq!(decode(&call(Enforcement::None), STREAM, &empty).unwrap_err().kind, FaultKind::Unreachable);
    for (nothing, kind) in [
        ("", FaultKind::Unreachable),
        (": hello\n\n", FaultKind::Unreachable),
        ("data: {\"cho", FaultKind::Unreachable),
        ("data: {}\n\n", FaultKind::BadWire),
        ("data: [DONE]\n\n", FaultKind::BadWire),
    ] {
        let fault = decode(&call(Enforcement::None), STREAM, nothing).unwrap_err();
        assert_eq!(fault.kind, kind, "{nothing:?}");
    }
}

#[test]
fn a_stream_that_is_called_something_else() {
    let body = stream(&[delta(json!({"content": "{}"})), ends("stop")]);
    for media_type in ["application/json", "text/plain"] {
        assert_eq!(decode(&call(Enforcement::None), media_type, &body).unwrap().text, "{}");
        let commented = format!(": keep alive\n\ndata:\n\n{body}");
        assert_eq!(decode(&call(Enforcement::None), media_type, &commented).unwrap().text, "{}");
    }
}

#[test]
fn other_choices_and_repetitions_are_passed_over() {
    let body = stream(&[
        delta(json!({"content": "{}"})),
        json!({"choices": [{"index": 1, "delta": {"content": "no"}}]}),
        // Perplexity repeats the whole text in `message`.
        json!({"choices": [{"index": 0, "delta": {}, "message": {"content": "{}"}, "finish_reason": "stop"}]}),
        json!({"choices": [{"index": 0, "message": {"content": "{}"}, "finish_reason": "stop"}]}),
    ]);
    assert_eq!(decode(&call(Enforcement::None), STREAM, &body).unwrap().text, "{}");
}

#[test]
fn usage_in_other_places() {
    let counted = json!({"prompt_tokens": 3, "completion_tokens": 4});
    for last in [
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": counted}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "x_groq": {"usage": counted}}),
    ] {
        let body = stream(&[delta(json!({"content": "{}"})), last, json!({"choices": [], "usage": null})]);
        let usage = decode(&call(Enforcement::None), STREAM, &body).unwrap().usage;
        assert_eq!((usage.input_tokens, usage.output_tokens), (3, 4));
    }
}

#[tokio::test]
async fn an_error_within_a_stream() {
    let error =
        json!({"error": {"message": "The server had an error", "type": "server_error", "code": null}});
    let body = stream(&[delta(json!({"content": "{\"a\""})), error]);
    let (deltas, end) = decode_chunks(&call(Enforcement::None), STREAM, [body.as_bytes()]);
    // The text received before the error is kept, because it is paid for.
    assert_eq!(deltas, [Delta::Text("{\"a\"".to_owned())]);
    assert_eq!(end.unwrap_err().kind, FaultKind::Overloaded);
    let fault = answered(&call(Enforcement::None), 200, "text/event-stream", body).await.unwrap_err();
    assert_eq!((fault.kind, fault.status), (FaultKind::Overloaded, Some(200)));
    assert!(fault.message.contains("The server had an error"), "{fault}");
}

#[test]
fn what_does_not_fit_the_schema_is_still_an_answer() {
    let error = json!({"error": {"message": "Failed to validate JSON", "type": "invalid_request_error",
        "code": "json_validate_failed", "failed_generation": "{\"a\": 1"}});
    for before in ["", "{\"a\""] {
        let body = stream(&[delta(json!({"content": before})), error.clone()]);
        let answer = decode(&call(Enforcement::Schema), STREAM, &body).unwrap();
        assert_eq!((answer.finish, answer.text.is_empty()), (Finish::Stop, false));
    }
}

#[test]
fn what_is_not_the_protocol() {
    for event in ["data: {oops\n\n", "data: hello\n\n"] {
        assert_eq!(decode(&call(Enforcement::None), STREAM, event).unwrap_err().kind, FaultKind::BadWire);
    }
    let (_, end) = decode_chunks(&call(Enforcement::None), STREAM, [&b"data: {\"a\": \"\xff\"}\n\n"[..]]);
    assert_eq!(end.unwrap_err().kind, FaultKind::BadWire);
}

/// Streams with all kinds of ends.
fn streams() -> impl Strategy<Value = (Enforcement, &'static str, String)> {
    let error = json!({"error": {"message": "boom", "code": 503}});
    let tool =
        json!({"tool_calls": [{"index": 0, "function": {"name": "Person", "arguments": "{\"é\": 1}"}}]});
    let text = vec![delta(json!({"reasoning": "hm …"})), delta(json!({"content": "{\"n\": \"Zoë 🦀\"}"}))];
    let with = |last: Vec<Value>| stream(&[text.clone(), last].concat());
    prop::sample::select(vec![
        (Enforcement::Schema, STREAM, with(vec![ends("stop"), usage()])),
        (Enforcement::Schema, "application/json", with(vec![ends("stop")]).replace('\n', "\r\n")),
        (Enforcement::None, STREAM, with(vec![error])),
        (Enforcement::None, STREAM, with(vec![]).replace("data: [DONE]\n\n", "")),
        (Enforcement::Tool, STREAM, format!("\u{feff}: hi\n\n{}", stream(&[delta(tool), ends("stop")]))),
        (Enforcement::None, STREAM, json!({"choices": [{"message": {"content": "{}"}}]}).to_string()),
        (Enforcement::None, "text/plain", "data is not available".to_owned()),
    ])
}

proptest! {
    /// The result does not depend on where the body is cut into chunks.
    #[test]
    fn chunks_make_no_difference(
        (enforcement, media_type, body) in streams(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
    ) {
        let call = call(enforcement);
        let bytes = body.as_bytes();
        let whole = decode_chunks(&call, media_type, [bytes]);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|ends| &bytes[ends[0]..ends[1]]);
        prop_assert_eq!(decode_chunks(&call, media_type, pieces), whole.clone());
        prop_assert_eq!(decode_chunks(&call, media_type, bytes.chunks(1)), whole);
    }

    /// The decoder does not panic on arbitrary bytes.
    #[test]
    fn anything_may_come(body in prop::collection::vec(any::<u8>(), 0..200), is_event in any::<bool>()) {
        let body = if is_event { [b"data: ", &body[..], b"\n\n"].concat() } else { body };
        let (_, end) = decode_chunks(&call(Enforcement::Tool), STREAM, [&body[..]]);
        prop_assert!(end.is_err());
    }
}

/// A server may report tokens beside the error that ends the answer: they are paid for.
#[test]
fn tokens_beside_an_error_are_reported() {
    let counts = json!({"prompt_tokens": 50_000, "completion_tokens": 7});
    let of_responses = json!({"input_tokens": 50_000, "output_tokens": 7});
    let failed = json!({"status": "failed", "error": {"code": "server_error", "message": "no"}, "usage": of_responses});
    for (wire, last) in [
        (
            OpenAi::new("gpt-test"),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}], "usage": counts}),
        ),
        (
            OpenAi::new("gpt-test").with_api(Api::Responses),
            json!({"type": "response.failed", "response": failed}),
        ),
    ] {
        let body = format!("data: {last}\n\n");
        let (deltas, end) = decode_by(&wire, &call(Enforcement::Schema), STREAM, [body.as_bytes()]);
        assert!(end.is_err(), "{last}");
        assert_eq!(deltas, [Delta::Usage(Usage::new(50_000, 7))], "{last}");
    }
}
