//! The fate of every member of a request: it is used, refused in the words of the protocol, or named in the response.

use axum::body::Bytes;
use formwork_core::Part;
use memchr::memmem;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::events::{EndMark, Events};
use super::turn::Turn;
use super::{ANTHROPIC, OLLAMA, OLLAMA_GENERATE, OPENAI, Protocol, RESPONSES};
use super::{anthropic, ollama, openai, responses};
use crate::ask::Ask;
use crate::contracts::Known;
use crate::document::Document;
use crate::problem::Problem;

/// The fate of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The request means something else with it.
    Used,
    /// The request is refused with an error about it.
    Refused,
    /// The response names it.
    Named,
    /// It says what holds anyway.
    Neutral,
}

use Fate::{Named, Neutral, Refused, Used};

/// A protocol, its members, a request without optional ones, and for each member a value and its fate.
type Table = (&'static Protocol, &'static [&'static str], Value, Vec<(&'static str, Value, Fate)>);

fn schema() -> Value {
    json!({"type": "object", "properties": {"age": {"type": "integer"}}})
}

fn tables() -> Vec<Table> {
    let function = json!({"name": "person", "parameters": schema()});
    let tools = json!([{"type": "function", "function": function}]);
    let messages = json!([{"role": "user", "content": "Hi."}]);
    vec![
        (
            &OPENAI,
            openai::FIELDS,
            json!({"model": "m", "messages": messages}),
            vec![
                ("audio", json!({"voice": "a"}), Refused),
                ("frequency_penalty", json!(0.5), Used),
                ("frequency_penalty", json!(0), Neutral),
                ("function_call", json!("auto"), Refused),
                ("functions", json!([function]), Refused),
                ("logit_bias", json!({"1": 2}), Named),
                ("logprobs", json!(true), Used),
                ("logprobs", json!(false), Neutral),
                ("max_completion_tokens", json!(5), Used),
                ("max_tokens", json!(5), Used),
                ("messages", json!([]), Refused),
                ("metadata", json!({"a": "b"}), Used),
                ("modalities", json!(["text"]), Neutral),
                ("modalities", json!(["text", "audio"]), Named),
                ("model", json!("other"), Used),
                ("n", json!(2), Used),
                ("n", json!(0), Refused),
                ("parallel_tool_calls", json!(true), Neutral),
                ("prediction", json!({"type": "content", "content": "x"}), Named),
                ("presence_penalty", json!(0.5), Used),
                ("prompt_cache_key", json!("k"), Named),
                ("prompt_cache_retention", json!("24h"), Named),
                ("reasoning_effort", json!("low"), Used),
                ("response_format", json!({"type": "json_object"}), Used),
                ("safety_identifier", json!("u"), Used),
                ("seed", json!(7), Used),
                ("service_tier", json!("flex"), Used),
                ("stop", json!(["x"]), Used),
                ("stop", json!([]), Neutral),
                ("store", json!(true), Named),
                ("stream", json!(true), Used),
                ("stream_options", json!({"include_usage": true}), Used),
                ("temperature", json!(0.5), Used),
                ("temperature", json!(3), Refused),
                ("tool_choice", json!("required"), Refused),
                ("tools", tools.clone(), Used),
                ("top_logprobs", json!(3), Named),
                ("top_p", json!(0.5), Used),
                ("user", json!("u"), Used),
                ("verbosity", json!("low"), Used),
                ("web_search_options", json!({"a": 1}), Refused),
            ],
        ),
        (
            &RESPONSES,
            responses::FIELDS,
            json!({"model": "m", "input": "Hi."}),
            vec![
                ("background", json!(true), Refused),
                ("background", json!(false), Neutral),
                ("context_management", json!([{"type": "compaction"}]), Named),
                ("conversation", json!("c"), Refused),
                ("include", json!(["reasoning.encrypted_content"]), Named),
                ("include", json!(["message.output_text.logprobs"]), Used),
                ("input", json!(5), Refused),
                ("instructions", json!("Be brief."), Used),
                ("max_output_tokens", json!(5), Used),
                ("max_tool_calls", json!(5), Named),
                ("metadata", json!({"a": "b"}), Used),
                ("model", json!("other"), Used),
                ("parallel_tool_calls", json!(false), Used),
                ("previous_response_id", json!("r"), Refused),
                ("prompt", json!({"id": "p"}), Refused),
                ("prompt_cache_key", json!("k"), Named),
                ("prompt_cache_retention", json!("24h"), Named),
                ("reasoning", json!({"effort": "low"}), Used),
                ("safety_identifier", json!("u"), Used),
                ("service_tier", json!("auto"), Neutral),
                ("service_tier", json!("priority"), Used),
                ("store", json!(true), Named),
                ("stream", json!(true), Used),
                ("stream_options", json!({"include_obfuscation": true}), Named),
                ("temperature", json!(0.5), Used),
                ("text", json!({"format": {"type": "json_object"}}), Used),
                ("tool_choice", json!("required"), Refused),
                (
                    "tools",
                    json!([{"type": "function", "name": "person", "parameters": schema(), "strict": true}]),
                    Used,
                ),
                ("top_logprobs", json!(3), Named),
                ("top_p", json!(0.5), Used),
                ("truncation", json!("disabled"), Neutral),
                ("truncation", json!("auto"), Named),
                ("user", json!("u"), Used),
            ],
        ),
        (
            &ANTHROPIC,
            anthropic::FIELDS,
            json!({"model": "m", "messages": messages, "max_tokens": 9}),
            vec![
                ("betas", json!(["b"]), Named),
                ("cache_control", json!({"type": "ephemeral"}), Named),
                ("container", json!("c"), Named),
                ("context_management", json!({"edits": [1]}), Named),
                ("inference_geo", json!("us"), Named),
                ("max_tokens", json!(5), Used),
                ("mcp_servers", json!([{"url": "u"}]), Refused),
                ("messages", json!([]), Refused),
                ("metadata", json!({"user_id": "u"}), Used),
                ("model", json!("other"), Used),
                ("output_config", json!({"format": {"type": "json_schema", "schema": schema()}}), Used),
                ("output_format", json!({"type": "json_schema", "schema": schema()}), Used),
                ("service_tier", json!("standard_only"), Used),
                ("stop_sequences", json!(["x"]), Used),
                ("stream", json!(true), Used),
                ("system", json!("Be brief."), Used),
                ("temperature", json!(0.5), Used),
                ("thinking", json!({"type": "disabled"}), Named),
                ("thinking", json!({"type": "enabled", "budget_tokens": 2000}), Used),
                ("tool_choice", json!({"type": "any"}), Refused),
                ("tools", json!([{"name": "person", "input_schema": schema()}]), Used),
                ("top_k", json!(4), Used),
                ("top_p", json!(0.5), Used),
            ],
        ),
        (
            &OLLAMA,
            ollama::CHAT,
            json!({"model": "m", "messages": messages}),
            vec![
                ("format", json!("json"), Used),
                ("keep_alive", json!("5m"), Named),
                ("logprobs", json!(true), Named),
                ("messages", json!([]), Refused),
                ("model", json!("other"), Used),
                ("options", json!({"seed": 3}), Used),
                ("stream", json!(false), Used),
                ("think", json!(true), Named),
                ("think", json!(false), Named),
                ("tools", tools, Used),
                ("top_logprobs", json!(3), Named),
                ("truncate", json!(true), Named),
                ("shift", json!(true), Named),
            ],
        ),
        (
            &OLLAMA_GENERATE,
            ollama::GENERATE,
            json!({"model": "m", "prompt": "Hi."}),
            vec![
                ("context", json!([1]), Refused),
                ("format", schema(), Used),
                ("images", json!(["iVBORw0KGgo"]), Used),
                ("keep_alive", json!(0), Named),
                ("logprobs", json!(true), Named),
                ("model", json!("other"), Used),
                ("options", json!({"num_predict": 3}), Used),
                ("prompt", json!("Ho."), Used),
                ("raw", json!(true), Refused),
                ("raw", json!(false), Neutral),
                ("stream", json!(false), Used),
                ("suffix", json!("x"), Refused),
                ("system", json!("Be brief."), Used),
                ("template", json!("{{ .Prompt }}"), Refused),
                ("think", json!("high"), Used),
                ("top_logprobs", json!(0), Neutral),
                ("top_logprobs", json!(3), Named),
                ("truncate", json!(true), Named),
                ("shift", json!(true), Named),
            ],
        ),
    ]
}

fn ask(protocol: &Protocol, body: &Value) -> Result<Ask, Problem> {
    (protocol.ask)(Document::read(&body.to_string()).unwrap(), &Known::new(4))
}

#[test]
fn no_member_of_a_request_is_dropped_in_silence() {
    for (protocol, fields, base, rows) in tables() {
        let at = |field: &str| format!("{} {field}", protocol.name);
        let plain = ask(protocol, &base).unwrap();
        assert_eq!(plain.ignored, Vec::<String>::new(), "{}", protocol.name);
        for (field, value, fate) in &rows {
            let mut body = base.clone();
            body[*field] = value.clone();
            match (ask(protocol, &body), fate) {
                (Err(problem), Refused) => {
                    let param = problem.param.unwrap_or_default();
                    assert!(param.starts_with(field), "{}: {param}: {}", at(field), problem.message);
                }
                (Ok(ask), Named) => assert_eq!(ask.ignored, [field.to_owned()], "{}", at(field)),
                (Ok(ask), Neutral) => assert_eq!(ask, plain, "{}", at(field)),
                (Ok(ask), Used) => {
                    assert_eq!(ask.ignored, Vec::<String>::new(), "{}", at(field));
                    assert_ne!(ask, plain, "{}", at(field));
                }
                (found, fate) => panic!("{} is {fate:?}: {found:?}", at(field)),
            }
        }
        for field in fields {
            assert!(rows.iter().any(|(name, ..)| name == field), "{}: not in the table", at(field));
        }
        let unknown = rows.iter().find(|(name, ..)| !fields.contains(name));
        assert_eq!(unknown, None, "{}", protocol.name);
    }
}

#[test]
fn members_of_members_are_named_with_their_place() {
    let text =
        json!([{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "x"}}]}]);
    let cases: [(&Protocol, Value, &[&str]); 6] = [
        (
            &OLLAMA,
            json!({"model": "m", "messages": [{"role": "user", "content": "a"}], "options": {"num_ctx": 64, "top_k": 3}}),
            &["options.num_ctx"],
        ),
        (
            &RESPONSES,
            json!({"model": "m", "input": "a", "text": {"verbosity": "long"}, "reasoning": {"summary": "auto"}}),
            &["reasoning.summary", "text.verbosity"],
        ),
        (
            &RESPONSES,
            json!({"model": "m", "input": [
                {"type": "reasoning", "id": "r", "summary": []},
                {"type": "message", "id": "i", "status": "completed", "role": "assistant", "content": [
                    {"type": "output_text", "text": "a", "annotations": [], "logprobs": []},
                ]},
            ]}),
            &["input[] (reasoning)"],
        ),
        (
            &ANTHROPIC,
            json!({"model": "m", "max_tokens": 9, "messages": text, "output_config": {"effort": "low"}}),
            &["messages[].content[].cache_control"],
        ),
        (
            &ANTHROPIC,
            json!({"model": "m", "max_tokens": 9, "messages": [{"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "a"},
            ]}]}),
            &["messages[].content[] (thinking)"],
        ),
        (
            &OPENAI,
            json!({"model": "m", "messages": [{"role": "user", "content": "a", "name": "Ann"}]}),
            &["messages[].name"],
        ),
    ];
    for (protocol, body, expected) in cases {
        assert_eq!(ask(protocol, &body).unwrap().ignored, expected, "{body}");
    }
}

/// Returns a request with these items of a dialogue.
fn dialogue(protocol: &Protocol, items: &Value) -> Value {
    let at = if protocol.name == RESPONSES.name { "input" } else { "messages" };
    let mut body = json!({"model": "m", at: items});
    if protocol.name == ANTHROPIC.name {
        body["max_tokens"] = 9.into();
    }
    body
}

#[test]
fn a_turn_of_the_model_is_one_message_with_all_its_calls() {
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "7"});
    let said = |role: &str| json!({"type": "message", "role": role, "content": "a"});
    let reasoning = json!({"type": "reasoning", "id": "r", "summary": []});
    for (items, expected) in [
        (json!([said("user"), call("1"), call("2"), output("1"), output("2")]), vec![1, 2, 1, 1]),
        (
            json!([said("user"), said("assistant"), call("1"), output("1"), call("2"), output("2")]),
            vec![1, 2, 1, 1, 1],
        ),
        (
            json!([said("user"), call("1"), reasoning, call("2"), said("assistant"), output("1")]),
            vec![1, 3, 1],
        ),
        (json!([said("user"), said("user"), said("assistant"), said("assistant")]), vec![1, 1, 1, 1]),
    ] {
        let ask = ask(&RESPONSES, &dialogue(&RESPONSES, &items)).unwrap();
        let parts: Vec<_> = ask.messages.iter().map(|message| message.parts.len()).collect();
        assert_eq!(parts, expected, "{items}");
    }
}

/// Ollama's results have the name of their tool, and no identifier.
#[test]
fn the_results_of_tools_of_one_name_belong_to_its_calls_in_order() {
    let call = |name: &str| json!({"function": {"name": name, "arguments": {}}});
    let result = |name: Option<&str>| json!({"role": "tool", "content": "7", "tool_name": name});
    let turn = |names: &[&str]| {
        let calls: Vec<_> = names.iter().map(|name| call(name)).collect();
        json!({"role": "assistant", "content": "", "tool_calls": calls})
    };
    let user = json!({"role": "user", "content": "a"});
    for (items, expected) in [
        (
            vec![user.clone(), turn(&["f", "f"]), result(Some("f")), result(Some("f"))],
            vec!["call_1_0", "call_1_1"],
        ),
        (
            vec![user.clone(), turn(&["f", "g"]), result(Some("g")), result(Some("f"))],
            vec!["call_1_1", "call_1_0"],
        ),
        (vec![user.clone(), turn(&["f", "g"]), result(None), result(None)], vec!["call_1_0", "call_1_1"]),
        (
            vec![user, turn(&["f"]), result(Some("f")), turn(&["f"]), result(Some("f"))],
            vec!["call_1_0", "call_3_0"],
        ),
    ] {
        let items = Value::from(items);
        let ask = ask(&OLLAMA, &dialogue(&OLLAMA, &items)).unwrap();
        let parts = ask.messages.iter().flat_map(|message| &message.parts);
        let ids: Vec<_> = parts
            .filter_map(|part| match part {
                Part::ToolResult { id, .. } => Some(id.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(ids, expected, "{items}");
    }
}

#[test]
fn a_request_has_a_bounded_number_of_members_and_a_dialogue() {
    let mut body = dialogue(&OPENAI, &json!([{"role": "user", "content": "a"}]));
    (0..1_000).for_each(|nth| body[format!("a{nth}")] = 0.into());
    let text = body.to_string();
    let problem = Document::read(&text).unwrap().check_case(OPENAI.fields).unwrap_err();
    assert!(problem.message.contains("at most 1000 members"), "{}", problem.message);
    let empty = ask(&RESPONSES, &dialogue(&RESPONSES, &json!([]))).unwrap_err();
    assert_eq!(empty.param.as_deref(), Some("input"));
}

#[test]
fn the_arguments_of_a_call_in_a_dialogue_are_an_object() {
    for (written, expected) in [
        ("", json!({})),
        (" \n", json!({})),
        ("null", json!({})),
        ("{\"x\": 1}", json!({"x": 1})),
        ("[1]", json!({"text": "[1]"})),
        ("x = 1", json!({"text": "x = 1"})),
    ] {
        let function = json!({"name": "f", "arguments": written});
        let chat = json!([{"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", "function": function}]}]);
        let items = json!([{"type": "function_call", "call_id": "1", "name": "f", "arguments": written}]);
        for (protocol, items) in [(&OPENAI, chat), (&RESPONSES, items)] {
            let ask = ask(protocol, &dialogue(protocol, &items)).unwrap();
            let Some(Part::ToolCall { arguments, .. }) = ask.messages[0].parts.last() else {
                panic!("{items}")
            };
            assert_eq!(*arguments, expected, "{}: {written:?}", protocol.name);
        }
    }
}

#[test]
fn texts_in_sequence_stand_apart_but_those_of_the_model() {
    let texts = |kind: &str| json!([{"type": kind, "text": "A"}, {"type": kind, "text": "B"}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "1", "content": texts("text")}]);
    let tool = json!({"role": "tool", "tool_call_id": "1", "content": texts("text")});
    let output = json!({"type": "function_call_output", "call_id": "1", "output": texts("input_text")});
    for (protocol, item, expected) in [
        (&OPENAI, json!({"role": "user", "content": texts("text")}), "A\n\nB"),
        (&OPENAI, json!({"role": "system", "content": texts("text")}), "A\n\nB"),
        (&OPENAI, json!({"role": "assistant", "content": texts("text")}), "AB"),
        (&OPENAI, tool, "A\n\nB"),
        (&RESPONSES, json!({"role": "user", "content": texts("input_text")}), "A\n\nB"),
        (&RESPONSES, json!({"role": "assistant", "content": texts("output_text")}), "AB"),
        (&RESPONSES, output, "A\n\nB"),
        (&ANTHROPIC, json!({"role": "user", "content": texts("text")}), "A\n\nB"),
        (&ANTHROPIC, json!({"role": "assistant", "content": texts("text")}), "AB"),
        (&ANTHROPIC, json!({"role": "user", "content": result}), "A\n\nB"),
        (
            &OPENAI,
            json!({"role": "user", "content": [{"type": "text", "text": "A\n"}, {"type": "text", "text": "B"}]}),
            "A\nB",
        ),
    ] {
        let ask = ask(protocol, &dialogue(protocol, &json!([item]))).unwrap();
        let text = match ask.messages[0].parts.as_slice() {
            [Part::ToolResult { text, .. }] => text.clone(),
            _ => ask.messages[0].text(),
        };
        assert_eq!(text, expected, "{}: {item}", protocol.name);
    }
    let mut body = dialogue(&ANTHROPIC, &json!([{"role": "user", "content": "a"}]));
    body["system"] = texts("text");
    assert_eq!(ask(&ANTHROPIC, &body).unwrap().messages[0].text(), "A\n\nB");
}

#[test]
fn a_tool_without_parameters_may_have_an_empty_schema() {
    let tool = |parameters: &Value| {
        let function = json!({"name": "f", "parameters": parameters});
        let mut body = dialogue(&OPENAI, &json!([{"role": "user", "content": "a"}]));
        body["tools"] = json!([{"type": "function", "function": function}]);
        ask(&OPENAI, &body).unwrap().want
    };
    assert_eq!(tool(&json!({})), tool(&json!({"type": "object", "properties": {}})));
}

/// Some servers have all calls at one position, or name none.
#[test]
fn calls_at_one_position_are_several_if_their_identifiers_differ() {
    let piece = |index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: &str| {
        let mut call = json!({"function": {"arguments": arguments}});
        index.into_iter().for_each(|index| call["index"] = index.into());
        id.into_iter().for_each(|id| call["id"] = id.into());
        name.into_iter().for_each(|name| call["function"]["name"] = name.into());
        json!({"choices": [{"delta": {"tool_calls": [call]}}]})
    };
    for (pieces, expected) in [
        (
            vec![
                piece(Some(0), Some("a"), Some("f"), "{"),
                piece(Some(0), None, None, "}"),
                piece(Some(0), Some("b"), Some("g"), "{}"),
            ],
            "f({})\ng({})",
        ),
        (
            vec![
                piece(None, Some("a"), Some("f"), "{}"),
                piece(None, Some("b"), Some("g"), "{"),
                piece(None, Some(""), None, "}"),
            ],
            "f({})\ng({})",
        ),
        // Older versions of vLLM have another identifier in every piece, and some servers repeat the name.
        (vec![piece(Some(0), Some("a"), Some("f"), "{"), piece(Some(0), Some("x"), None, "}")], "f({})"),
        (vec![piece(Some(0), Some("a"), Some("f"), "{"), piece(Some(0), Some("a"), Some("f"), "}")], "f({})"),
        // The same identifier in every piece is one call.
        (vec![piece(Some(0), Some("a"), Some("f"), "{"), piece(Some(0), Some("a"), None, "}")], "f({})"),
        (
            vec![
                piece(Some(0), None, Some("f"), "{"),
                piece(Some(0), Some("a"), None, "}"),
                piece(Some(1), Some("b"), Some("g"), "{}"),
            ],
            "f({})\ng({})",
        ),
    ] {
        let mut turn = Turn::default();
        pieces.iter().for_each(|piece| (OPENAI.read_event)(&mut turn, piece));
        assert_eq!(turn.written().as_deref(), Some(expected), "{pieces:?}");
    }
}

#[test]
fn a_schema_that_cannot_be_read_is_refused_with_its_place() {
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let messages = r#""messages": [{"role": "user", "content": "a"}]"#;
    for schema in [format!(r#"{{"not": {deep}}}"#), r#"{"title": "\ud800"}"#.to_owned()] {
        let tool = format!(r#"{{"type": "function", "function": {{"name": "f", "parameters": {schema}}}}}"#);
        let format = format!(r#"{{"type": "json_schema", "json_schema": {{"schema": {schema}}}}}"#);
        for (member, place) in [
            (format!(r#""tools": [{tool}]"#), "tools[0].function.parameters"),
            (format!(r#""response_format": {format}"#), "response_format.json_schema.schema"),
        ] {
            let text = format!(r#"{{"model": "m", {messages}, {member}}}"#);
            let problem = (OPENAI.ask)(Document::read(&text).unwrap(), &Known::new(4)).unwrap_err();
            assert_eq!(problem.param.as_deref(), Some(place), "{text}: {}", problem.message);
        }
    }
}

#[test]
fn of_a_member_that_is_there_twice_the_last_one_counts() {
    let text = r#"{"model": "m", "temperature": 0.1, "messages": [{"role": "user", "content": "a"}], "temperature": 0.7}"#;
    let ask = (OPENAI.ask)(Document::read(text).unwrap(), &Known::new(4)).unwrap();
    assert_eq!((ask.sampling.temperature, ask.ignored.len()), (Some(0.7), 0));
}

#[test]
fn the_end_and_an_error_are_found_in_any_chunking() {
    let delta = r#"data: {"choices": [{"delta": {"content": "event: error\ndata: {\"error\": [DONE"}}]}"#;
    let ended = r#"data: {"delta": "\ndata: [DONE]\nevent: message_stop, {\"done\":true,\"done\": true \"type\": \"response.completed,response.completed,message_stop,[DONE]"}"#;
    let line = r#"{"message": {"content": "\n{\"error\""}, "done": false}"#;
    let full = format!("data: {{\"error\":{{\"message\":\"{}\"}}}}", "x".repeat(30_000));
    let none = "data: {\"error\":null,\"choices\":[]}\n\n".repeat(2_000);
    let failed = r#"data: {"type":"response.failed","response":{"status":"failed","error":null}}"#;
    let long = format!(r#"data: {{"type": "response.completed", "response": "{}"}}"#, "x".repeat(500));
    for (protocol, text, is_seen, has_error) in [
        (&OPENAI, format!("{delta}\n\ndata: [DONE]\n\n"), true, false),
        (&OPENAI, format!("{delta}\n\n{delta}\n\n"), false, false),
        (&OPENAI, format!("{ended}\n\n"), false, false),
        (&ANTHROPIC, format!("{ended}\n\n"), false, false),
        (&RESPONSES, format!("{ended}\n\n"), false, false),
        (&OLLAMA, format!("{}\n", ended.trim_start_matches("data: ")), false, false),
        (&OPENAI, format!("{delta}\n\ndata: {{\"error\": {{}}}}\n\n"), false, true),
        (&ANTHROPIC, "event: ping\ndata: {}\n\nevent: error\ndata: {}\n\n".to_owned(), false, true),
        (&ANTHROPIC, "event: message_stop\ndata: {\"type\": \"message_stop\"}\n\n".to_owned(), true, false),
        (&OLLAMA, format!("{line}\n{{\"done\":true}}\n"), true, false),
        (&OLLAMA, format!("{line}\n{{\"model\": \"m\", \"done\": true}}\n"), true, false),
        (&OPENAI, format!("{delta}\r\rdata: [DONE]\r\r"), true, false),
        (&OLLAMA, format!("{line}\n{{\"error\":\"full\"}}\n"), false, true),
        (&OPENAI, "data: {\"error\":null,\"choices\":[]}\n\ndata: [DONE]\n\n".to_owned(), true, false),
        (&OPENAI, "data: {\"error\":null}\n\ndata: {\"error\":{}}\n\n".to_owned(), false, true),
        (&OPENAI, format!("{none}data: {{\"error\":\"full\"}}\n\n"), false, true),
        (&OPENAI, format!("{none}data: [DONE]\n\n"), true, false),
        (&OPENAI, format!("{delta}\n\n{full}\n\n"), false, true),
        (&OPENAI, format!("{delta}\n\ndata:{{\"error\":{{}}}}\r\n\r\ndata: [DONE]\n\n"), true, true),
        (&OPENAI, "data: {\"error\": overloaded}\n\n".to_owned(), false, true),
        (&OPENAI, "data: {\"error\":\"\",\"choices\":[]}\n\n".to_owned(), false, false),
        (&RESPONSES, format!("{delta}\n\n{long}\n\n"), true, false),
        (&RESPONSES, format!("event: response.failed\n{failed}\n\n"), true, true),
        (&RESPONSES, format!("{failed}\n\n"), true, true),
        (&RESPONSES, "data: {\"type\":\"error\",\"code\":\"x\"}\n\n".to_owned(), false, true),
    ] {
        for size in [1, 2, 3, 7, 16, 64, 65, 4_096] {
            let mut mark = EndMark::new(protocol.end);
            text.as_bytes().chunks(size).for_each(|piece| mark.see(piece));
            assert_eq!((mark.is_seen(), mark.error().is_some()), (is_seen, has_error), "{size}: {text}");
            // Without the end of its last line and event.
            let mut mark = EndMark::new(protocol.end);
            text.trim_end().as_bytes().chunks(size).for_each(|piece| mark.see(piece));
            let is_open = mark.error().is_none();
            // An event that was cut is no error, nor is one that is no JSON.
            let has_error = has_error && !(is_open && text.contains("overloaded"));
            assert_eq!(mark.ends_with_error(), has_error && is_open, "{size}: {text}");
            assert_eq!(mark.error().is_some(), has_error, "{size}: {text}");
            let mut mark = EndMark::new(protocol.end);
            let cut = text.trim_end().strip_suffix('}').unwrap_or_default();
            cut.as_bytes().chunks(size).for_each(|piece| mark.see(piece));
            assert!(!mark.ends_with_error() && mark.error().is_none(), "{size}: {text}");
        }
    }
}

proptest! {
    #[test]
    fn whole_lines_or_events_pass_in_any_chunking_and_the_rest_is_what_has_no_end(
        text in r"(data: \{\}|: note|x|\r\n|\n\n|\r\r|\n|\r){0,12}",
        size in 1..9_usize,
        is_lines: bool,
        has_events: bool,
    ) {
        let has_lines = is_lines || !has_events;
        let ends: &[&[u8]] = if has_lines { &[b"\n"] } else { &[b"\n\n", b"\r\n\r\n", b"\r\r"] };
        let (mut events, mut passed) = (Events::default(), Vec::new());
        for piece in text.as_bytes().chunks(size) {
            passed.extend(events.whole(Bytes::copy_from_slice(piece), is_lines, has_events));
            prop_assert!(passed.is_empty() || ends.iter().any(|end| passed.ends_with(end)), "{passed:?}");
        }
        let rest = events.rest();
        // No end is held back, and nothing is lost.
        prop_assert!(ends.iter().all(|end| memmem::find(&rest, end).is_none()), "{rest:?}");
        prop_assert_eq!([passed, rest].concat(), text.as_bytes());
    }
}
