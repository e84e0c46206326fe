//! Answers of every protocol that end before the last bracket: none is accepted, whatever the finish reason, and each whole answer is.

use std::sync::Arc;

use formwork::core::{
    Capabilities, Completion, Context, Enforcement, Event, Inline, Input, Plan, Policy, Run, Step, Target,
    Time,
};
use formwork_anthropic::Anthropic;
use formwork_bedrock::Bedrock;
use formwork_cohere::Cohere;
use formwork_dialect::Dialects;
use formwork_gemini::Gemini;
use formwork_ollama::Ollama;
use formwork_openai::{Api, OpenAi};
use formwork_testkit::aws_message;
use formwork_wire::http::Response;
use formwork_wire::{Deltas, Wire};
use serde_json::{Value, json};

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";
const EVENTS: &str = "text/event-stream";
const FRAMES: &str = "application/vnd.amazon.eventstream";

const OBJECT: &str = r#"{"name": "Maria }]", "items": [{"id": 1}, {"id": 2, "note": "a\"b"}], "age": 34}"#;
const LIST: &str = r#"[{"a": [1, "]"]}, {"b": {}}, 3.5]"#;

/// Writes the body of a response from the text and the finish reason.
type Write = fn(&str, Option<&str>) -> Vec<u8>;

/// A form of the responses of a protocol, with finish reasons of models, of servers, unknown ones, and none.
struct Form {
    wire: Box<dyn Wire>,
    media_type: &'static str,
    reasons: &'static [Option<&'static str>],
    write: Write,
}

fn forms() -> Vec<Form> {
    let form = |wire: Box<dyn Wire>, media_type, reasons, write| Form { wire, media_type, reasons, write };
    let chat = &[Some("stop"), Some("length"), Some("eos"), Some("max_output_tokens"), None];
    let responses = &[Some("completed"), Some("incomplete")];
    let anthropic =
        &[Some("end_turn"), Some("max_tokens"), Some("pause_turn"), Some("stop_sequence"), Some("new")];
    let gemini =
        &[Some("STOP"), Some("MAX_TOKENS"), Some("OTHER"), Some("FINISH_REASON_UNSPECIFIED"), Some("NEW")];
    let ollama = &[Some("stop"), Some("length"), Some("unload"), Some("new"), None];
    let bedrock = &[Some("end_turn"), Some("max_tokens"), Some("stop_sequence"), Some("new")];
    let cohere = &[Some("COMPLETE"), Some("MAX_TOKENS"), Some("STOP_SEQUENCE"), Some("NEW")];
    vec![
        form(Box::new(OpenAi::new("m")), JSON, chat, |text, reason| {
            json!({"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": reason}]})
                .to_string()
                .into()
        }),
        form(Box::new(OpenAi::new("m")), EVENTS, chat, |text, reason| {
            let delta = |text: &str| json!({"choices": [{"delta": {"content": text}}]});
            let end = json!({"choices": [{"delta": {}, "finish_reason": reason}]});
            (events(text, delta, &[end]) + "data: [DONE]\n\n").into()
        }),
        form(Box::new(OpenAi::new("m").with_api(Api::Responses)), JSON, responses, |text, status| {
            response(text, status).to_string().into()
        }),
        form(Box::new(OpenAi::new("m").with_api(Api::Responses)), EVENTS, responses, |text, status| {
            let delta = |text: &str| json!({"type": "response.output_text.delta", "delta": text});
            let kind = format!("response.{}", status.unwrap_or_default());
            events(text, delta, &[json!({"type": kind, "response": response(text, status)})]).into()
        }),
        form(Box::new(Anthropic::new("m")), JSON, anthropic, |text, reason| {
            json!({"type": "message", "content": [{"type": "text", "text": text}], "stop_reason": reason,
                "usage": {"input_tokens": 1, "output_tokens": 1}})
            .to_string()
            .into()
        }),
        form(Box::new(Anthropic::new("m")), EVENTS, anthropic, |text, reason| {
            let start = json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}});
            let block = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
            let delta = |text: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
            let stop = json!({"type": "content_block_stop", "index": 0});
            let end = json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}});
            let head: String = [start, block].map(|event| format!("data: {event}\n\n")).concat();
            (head + &events(text, delta, &[stop, end, json!({"type": "message_stop"})])).into()
        }),
        form(Box::new(Gemini::new("gemini-2.5-flash")), JSON, gemini, |text, reason| {
            candidate(text, reason).to_string().into()
        }),
        form(Box::new(Gemini::new("gemini-2.5-flash")), EVENTS, gemini, |text, reason| {
            events(text, |text| candidate(text, None), &[candidate("", reason)]).into()
        }),
        form(Box::new(Ollama::new("m")), JSON, ollama, |text, reason| {
            json!({"message": {"role": "assistant", "content": text}, "done": true, "done_reason": reason})
                .to_string()
                .into()
        }),
        form(Box::new(Ollama::new("m")), LINES, ollama, |text, reason| {
            let line = |text: &str| json!({"message": {"role": "assistant", "content": text}, "done": false});
            let end =
                json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason});
            pieces(text).map(line).chain([end]).map(|line| format!("{line}\n")).collect::<String>().into()
        }),
        form(Box::new(Bedrock::new("m")), JSON, bedrock, |text, reason| {
            json!({"output": {"message": {"role": "assistant", "content": [{"text": text}]}}, "stopReason": reason,
                "usage": {"inputTokens": 1, "outputTokens": 1}})
            .to_string().into()
        }),
        form(Box::new(Cohere::new("m")), JSON, cohere, |text, reason| {
            json!({"id": "1", "finish_reason": reason, "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}})
                .to_string().into()
        }),
        form(Box::new(Bedrock::new("m")), FRAMES, bedrock, |text, reason| {
            let delta =
                |text: &str| ("contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"text": text}}));
            let head = ("messageStart", json!({"role": "assistant"}));
            let end = [
                ("contentBlockStop", json!({"contentBlockIndex": 0})),
                ("messageStop", json!({"stopReason": reason})),
                ("metadata", json!({"usage": {"inputTokens": 1, "outputTokens": 1}})),
            ];
            let all = [head].into_iter().chain(pieces(text).map(delta)).chain(end);
            all.flat_map(|(name, event)| aws_message(&[(":event-type", name)], &event.to_string())).collect()
        }),
        form(Box::new(Cohere::new("m")), EVENTS, cohere, |text, reason| {
            let delta = |text: &str| json!({"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": text}}}});
            let end = json!({"type": "message-end", "delta": {"finish_reason": reason}});
            events(text, delta, &[end]).into()
        }),
    ]
}

fn response(text: &str, status: Option<&str>) -> Value {
    let mut response = json!({"object": "response", "status": status,
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]});
    if status == Some("incomplete") {
        response["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    response
}

fn candidate(text: &str, reason: Option<&str>) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": reason}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1}})
}

/// Returns the pieces of a text that a server sends: of ASCII, so that each byte is a character.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    (0..text.len()).step_by(5).map(|at| &text[at..text.len().min(at + 5)])
}

fn events(text: &str, delta: impl Fn(&str) -> Value, end: &[Value]) -> String {
    pieces(text).map(delta).chain(end.iter().cloned()).map(|event| format!("data: {event}\n\n")).collect()
}

/// Returns whether a run accepts the answer of a response.
fn is_accepted(plan: &Plan, form: &Form, body: &[u8]) -> bool {
    let mut run = Run::new(plan, Input::from("x"));
    let Step::Call { id, call, .. } = run.step(plan, Time(0)).unwrap() else { panic!() };
    let head = Response::builder().header("content-type", form.media_type).body(()).unwrap().into_parts().0;
    let mut decoder = form.wire.decoder(&call, &head);
    let (mut deltas, mut completion) = (Deltas::new(), Completion::new(""));
    let read = decoder.push(body, &mut deltas).is_ok() && decoder.end(&mut deltas).is_ok();
    if !read {
        return false;
    }
    for delta in deltas {
        completion.push(delta);
    }
    run.on(plan, Time(1), Event::answered(id, completion)).unwrap();
    run.finish().is_ok()
}

#[test]
fn an_answer_without_its_last_bracket_is_accepted_in_no_protocol_and_a_whole_one_in_each() {
    let schema = Inline::new("any", json!({"type": ["object", "array"]}));
    let contract = formwork_schema::contract_for(Arc::new(schema)).unwrap();
    assert!(contract.judge(&json!({}), &Context::EMPTY).is_accepted());
    let prompt = Dialects::builtin().get("prompt").unwrap();
    let target = Target::new("primary", Capabilities::new(Enforcement::None)).with_mode(prompt);
    let plan = Plan::new(contract, vec![target]).with_policy(Policy::new(1)).build().unwrap();
    let (mut whole, mut cut) = (0, 0);
    for form in forms() {
        for reason in form.reasons {
            for text in [OBJECT, LIST] {
                let place = format!("{} {} {reason:?}", form.wire.name(), form.media_type);
                assert!(is_accepted(&plan, &form, &(form.write)(text, *reason)), "{place}: {text}");
                whole += 1;
                for at in 1..text.len() {
                    let text = &text[..at];
                    assert!(!is_accepted(&plan, &form, &(form.write)(text, *reason)), "{place}: {text}");
                    cut += 1;
                }
            }
        }
    }
    println!("{whole} whole answers accepted, {cut} unfinished ones refused");
}
