//! Decoded responses.

use formwork_core::{Delta, End, Enforcement, FaultKind, Finish, Usage};
use formwork_ollama::Ollama;
use formwork_wire::Wire;
use proptest::prelude::*;
use serde_json::json;

use crate::support::{answered, decoded, enforcing, head, ok, person, pieces, says, with_schema};

const CHAT: &str = concat!(
    "{\"model\":\"m\",\"created_at\":\"2026-11-21T10:00:00Z\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"hm, Łódź\"},\"done\":false}\n",
    "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"{\\\"city\\\": \\\"Łó\"},\"done\":false}\r\n",
    "\n",
    "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"dź🌍\\\"}\"},\"done\":false}\n",
    "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done_reason\":\"stop\",\"done\":true,",
    "\"total_duration\":1,\"prompt_eval_count\":31,\"eval_count\":12}\n",
);

fn deltas() -> Vec<Delta> {
    let usage = Usage::new(31, 12);
    vec![
        Delta::Reasoning("hm, Łódź".into()),
        Delta::Text("{\"city\": \"Łó".into()),
        Delta::Text("dź🌍\"}".into()),
        Delta::End(End::new(Finish::Stop, usage).with_model(Some("m".into()))),
    ]
}

proptest! {
    #[test]
    fn how_lines_are_cut_makes_no_difference(mut cuts in prop::collection::vec(0..CHAT.len(), 0..12)) {
        cuts.push(CHAT.len());
        cuts.sort_unstable();
        let mut from = 0;
        let chunks: Vec<&[u8]> =
            cuts.into_iter().map(|to| &CHAT.as_bytes()[std::mem::replace(&mut from, to)..to]).collect();
        let decoder =
            Ollama::new("m").decoder(&enforcing(Enforcement::None), &head(200, "application/x-ndjson"));
        prop_assert_eq!(decoded(decoder, &chunks), (deltas(), None));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for wire in [Ollama::new("m"), Ollama::new("m").with_stream(false)] {
            let decoder = wire.decoder(&with_schema(person()), &head(200, "application/json"));
            let (_, fault) = decoded(decoder, &[&bytes]);
            prop_assert!(fault.is_some());
        }
    }
}

#[tokio::test]
async fn one_document_is_the_whole_answer() {
    let document = json!({"model": "m", "message": {"role": "assistant", "content": "{}", "thinking": "hm"},
        "done": true, "done_reason": "length", "prompt_eval_count": 3, "eval_count": 2});
    for text in [document.to_string(), format!("{document:#}\n")] {
        let wire = Ollama::new("m").with_stream(false);
        let completion = answered(wire, &enforcing(Enforcement::None), ok(text)).await.unwrap();
        assert_eq!((completion.text.as_str(), completion.reasoning.as_str()), ("{}", "hm"));
        assert_eq!((completion.finish, completion.model.as_deref()), (Finish::Length, Some("m")));
        assert_eq!((completion.usage.input_tokens, completion.usage.output_tokens), (3, 2));
    }
}

#[tokio::test]
async fn a_server_that_streams_unasked_is_understood() {
    let wire = Ollama::new("m").with_stream(false);
    let decoder =
        wire.decoder(&enforcing(Enforcement::None), &head(200, "application/x-ndjson; charset=utf-8"));
    assert_eq!(decoded(decoder, &[CHAT.as_bytes()]), (deltas(), None));
}

#[tokio::test]
async fn generate_says_it_in_other_words() {
    let lines = concat!(
        "{\"model\":\"m\",\"thinking\":\"hm\",\"response\":\"\",\"done\":false}\n",
        "{\"model\":\"m\",\"response\":\"{}\",\"done\":false}\n",
        "{\"model\":\"m\",\"response\":\"\",\"done\":true,\"done_reason\":\"stop\",\"context\":[1,2,3],\"eval_count\":2,\"prompt_eval_count\":9}",
    );
    let wire = Ollama::new("m").with_generate();
    let completion = answered(wire, &enforcing(Enforcement::None), ok(lines)).await.unwrap();
    assert_eq!((completion.text.as_str(), completion.reasoning.as_str()), ("{}", "hm"));
    assert_eq!(completion.usage, Usage::new(9, 2));
}

#[tokio::test]
async fn the_reasons_for_the_end_are_distinguished() {
    for (reason, finish) in
        [("stop", Finish::Stop), ("length", Finish::Length), ("novel", Finish::other("novel"))]
    {
        let completion =
            answered(Ollama::new("m"), &enforcing(Enforcement::None), says("{}", reason)).await.unwrap();
        assert_eq!(completion.finish, finish);
    }
    for reason in ["load", "unload"] {
        let fault =
            answered(Ollama::new("m"), &enforcing(Enforcement::None), says("", reason)).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::BadRequest);
        assert!(fault.message.contains("prompt is empty"), "{fault}");
    }
    let tools = json!({"message": {"content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}, "done": true});
    let completion =
        answered(Ollama::new("m"), &enforcing(Enforcement::None), ok(tools.to_string())).await.unwrap();
    assert_eq!(completion.finish, Finish::ToolCall);
}

#[tokio::test]
async fn an_old_servers_cut_answer_shows_by_its_length() {
    let last =
        json!({"message": {"content": "{\"a\": 1"}, "done": true, "prompt_eval_count": 9, "eval_count": 16});
    let mut call = enforcing(Enforcement::None);
    call.max_tokens = Some(16);
    let completion = answered(Ollama::new("m"), &call, ok(last.to_string())).await.unwrap();
    assert_eq!(completion.finish, Finish::Length);
    call.max_tokens = Some(17);
    let completion = answered(Ollama::new("m"), &call, ok(last.to_string())).await.unwrap();
    // A version that sends no reason says nothing about the end.
    assert_eq!(completion.finish, Finish::other(""));
}

#[tokio::test]
async fn counts_that_are_omitted_are_estimated() {
    let last = json!({"message": {"content": "12345678"}, "done": true, "done_reason": "stop", "eval_count": "many"});
    let completion =
        answered(Ollama::new("m"), &enforcing(Enforcement::None), ok(last.to_string())).await.unwrap();
    assert_eq!(completion.usage, Usage::new(1, 2).with_estimated(true));
    // One of the two counts is enough.
    let last = json!({"message": {"content": "12345678"}, "done": true, "prompt_eval_count": 40});
    let completion =
        answered(Ollama::new("m"), &enforcing(Enforcement::None), ok(last.to_string())).await.unwrap();
    assert_eq!(completion.usage, Usage::new(40, 2).with_estimated(true));
}

#[tokio::test]
async fn thoughts_that_ollama_does_not_count_are_estimated() {
    let last = json!({"message": {"content": "{}", "thinking": "12345678"}, "done": true, "prompt_eval_count": 40, "eval_count": 2});
    let completion = answered(Ollama::new("m"), &with_schema(person()), ok(last.to_string())).await.unwrap();
    let expected = Usage::new(40, 4).with_reasoning(2).with_estimated(true);
    assert_eq!(completion.usage, expected);
    // Without a format there is only one run, and its tokens are counted.
    let completion =
        answered(Ollama::new("m"), &enforcing(Enforcement::None), ok(last.to_string())).await.unwrap();
    assert_eq!(completion.usage, Usage::new(40, 2));
}

#[tokio::test]
async fn an_answer_without_its_end_was_cut_off() {
    let line = "{\"message\":{\"content\":\"{\\\"a\\\": 1}\"},\"done\":false}\n";
    let pieces = pieces(Ollama::new("m"), &enforcing(Enforcement::None), ok(line)).await;
    assert_eq!(pieces[0], Ok(Delta::Text("{\"a\": 1}".into())));
    assert_eq!(pieces[1].as_ref().unwrap_err().kind, FaultKind::Unreachable);
    for body in ["", "\n", "{\"mess", "[]", "5", "{}", "<html>", "{\"object\":\"chat.completion\"}"] {
        let call = enforcing(Enforcement::None);
        let fault = answered(Ollama::new("m"), &call, ok(body)).await.unwrap_err();
        let is_cut = matches!(body, "" | "\n" | "{\"mess");
        assert_eq!(fault.kind, if is_cut { FaultKind::Unreachable } else { FaultKind::BadWire }, "{body}");
        let whole = answered(Ollama::new("m").with_stream(false), &call, ok(body)).await.unwrap_err();
        let is_cut = body == "{\"mess";
        assert_eq!(whole.kind, if is_cut { FaultKind::Unreachable } else { FaultKind::BadWire }, "{body}");
    }
}

#[tokio::test]
async fn a_last_line_that_only_says_why_is_the_last() {
    let line =
        json!({"message": {"content": "{}"}, "done_reason": "stop", "prompt_eval_count": 1, "eval_count": 1});
    let completion =
        answered(Ollama::new("m"), &enforcing(Enforcement::None), ok(line.to_string())).await.unwrap();
    assert_eq!((completion.text.as_str(), completion.finish), ("{}", Finish::Stop));
}

#[tokio::test]
async fn what_comes_after_the_end_is_not_read() {
    let body = format!("{CHAT}not JSON at all\n");
    let completion = answered(Ollama::new("m"), &enforcing(Enforcement::None), ok(body)).await.unwrap();
    assert_eq!(completion.text, "{\"city\": \"Łódź🌍\"}");
}
