//! The responses of the servers: a document, and the events of a stream, as the vendors send them.

use serde_json::{Value, json};

use crate::bench::oracle::{SYSTEM, VALID, schema};

/// A completion of a model.
pub(in crate::bench) struct Completion<'a> {
    /// The text, in the pieces of a stream.
    pub(in crate::bench) pieces: Vec<&'a str>,
    /// Whether the text reached the token limit.
    pub(in crate::bench) is_cut: bool,
    /// The tokens of the prompt and of the text.
    pub(in crate::bench) tokens: [u32; 2],
}

/// The bodies of both responses.
pub(in crate::bench) struct Canned {
    pub(in crate::bench) document: String,
    pub(in crate::bench) events: Vec<String>,
}

/// The number of pieces of a streamed completion. With its beginning and its end, a stream of Chat Completions has 240 events.
const PIECES: usize = 236;

impl Completion<'static> {
    /// Returns the valid document of the oracle in pieces of two or three characters.
    pub(super) fn valid() -> Self {
        let at = |piece: usize| piece * VALID.len() / PIECES;
        let pieces = (0..PIECES).map(|piece| &VALID[at(piece)..at(piece + 1)]).collect();
        Self { pieces, is_cut: false, tokens: [612, 238] }
    }
}

/// Returns a server-sent event.
fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// Returns a server-sent event, with its `type` as the name.
fn named_event(data: &Value) -> String {
    format!("event: {}\n{}", data["type"].as_str().unwrap_or_default(), event(data))
}

/// Returns the responses of Chat Completions. The first event of the stream has no text, and the last three end the stream.
pub(super) fn chat(completion: &Completion<'_>) -> Canned {
    let Completion { pieces, is_cut, tokens: [input, output] } = completion;
    let finish = if *is_cut { "length" } else { "stop" };
    let usage = json!({
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    });
    let document = json!({
        "id": CHAT_ID, "object": "chat.completion", "created": 1_763_700_000, "model": "gpt-4.1-mini-2025-04-14",
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": pieces.concat(), "refusal": null, "annotations": []},
            "logprobs": null,
            "finish_reason": finish,
        }],
        "usage": usage,
        "service_tier": "default",
        "system_fingerprint": "fp_6f2eabb9a5",
    });
    let mut events = vec![chat_event(&json!({"role": "assistant", "content": "", "refusal": null}), None)];
    events.extend(pieces.iter().map(|text| chat_piece(text)));
    events.push(chat_event(&json!({}), Some(finish)));
    let last = json!({"id": CHAT_ID, "object": "chat.completion.chunk", "choices": [], "usage": usage});
    events.extend([event(&last), "data: [DONE]\n\n".to_owned()]);
    Canned { document: document.to_string(), events }
}

const CHAT_ID: &str = "chatcmpl-BYtq3fGvdP2MsXkGz9cH0ePzj5uKd";

/// Returns the event of Chat Completions with a piece of text.
pub(super) fn chat_piece(text: &str) -> String {
    chat_event(&json!({"content": text}), None)
}

fn chat_event(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
    event(&json!({
        "id": CHAT_ID, "object": "chat.completion.chunk", "created": 1_763_700_000, "model": "gpt-4.1-mini-2025-04-14",
        "service_tier": "default", "system_fingerprint": "fp_6f2eabb9a5", "choices": [choice], "usage": null,
    }))
}

/// Returns the responses of the Messages API.
pub(super) fn anthropic(completion: &Completion<'_>) -> Canned {
    let Completion { pieces, is_cut, tokens: [input, output] } = completion;
    let reason = if *is_cut { "max_tokens" } else { "end_turn" };
    let message = |content: Value, stop_reason: Option<&str>| {
        json!({
            "model": "claude-sonnet-4-6", "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant",
            "content": content, "stop_reason": stop_reason, "stop_sequence": null,
            "usage": {
                "input_tokens": input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
                "output_tokens": output, "service_tier": "standard",
            },
        })
    };
    let mut events = vec![
        json!({"type": "message_start", "message": message(json!([]), None)}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
    ];
    events.extend(pieces.iter().map(
        |text| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
    ));
    events.extend([
        json!({"type": "content_block_stop", "index": 0}),
        json!({
            "type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"input_tokens": input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": output},
        }),
        json!({"type": "message_stop"}),
    ]);
    Canned {
        document: message(json!([{"type": "text", "text": pieces.concat()}]), Some(reason)).to_string(),
        events: events.iter().map(named_event).collect(),
    }
}

/// Returns the responses of `generateContent`.
pub(super) fn gemini(completion: &Completion<'_>) -> Canned {
    let Completion { pieces, is_cut, tokens: [input, output] } = completion;
    let finish = if *is_cut { "MAX_TOKENS" } else { "STOP" };
    let response = |text: &str, is_last: bool| {
        let mut candidate = json!({"content": {"parts": [{"text": text}], "role": "model"}});
        if is_last {
            candidate["finishReason"] = json!(finish);
        }
        candidate["index"] = json!(0);
        json!({
            "candidates": [candidate],
            "usageMetadata": {
                "promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": input}],
            },
            "modelVersion": "gemini-2.5-flash", "responseId": "hPEfaZ3hLqmQ7M8P6u2WkQs",
        })
    };
    let events = pieces.iter().enumerate().map(|(nth, text)| response(text, nth + 1 == pieces.len()));
    Canned {
        document: format!("{:#}", response(&pieces.concat(), true)),
        events: events.map(|response| event(&response)).collect(),
    }
}

/// Returns the responses of `/api/chat`.
pub(super) fn ollama(completion: &Completion<'_>) -> Canned {
    let Completion { pieces, is_cut, tokens: [input, output] } = completion;
    let line = |text: &str, is_last: bool| {
        let mut line = json!({
            "model": "qwen3:8b", "created_at": "2025-11-21T04:40:00.123456789Z",
            "message": {"role": "assistant", "content": text}, "done": is_last,
        });
        if let (true, Some(line)) = (is_last, line.as_object_mut()) {
            line.insert("done_reason".to_owned(), json!(if *is_cut { "length" } else { "stop" }));
            let counts = [
                ("total_duration", 4_883_583_458_u64),
                ("load_duration", 1_334_875),
                ("prompt_eval_count", u64::from(*input)),
                ("prompt_eval_duration", 342_546_000),
                ("eval_count", u64::from(*output)),
                ("eval_duration", 4_535_599_000),
            ];
            line.extend(counts.map(|(name, count)| (name.to_owned(), json!(count))));
        }
        line
    };
    let lines = pieces.iter().map(|text| line(text, false)).chain([line("", true)]);
    Canned {
        document: line(&pieces.concat(), true).to_string(),
        events: lines.map(|line| format!("{line}\n")).collect(),
    }
}

/// Returns the responses of the Responses API.
pub(super) fn responses(completion: &Completion<'_>) -> Canned {
    let Completion { pieces, is_cut, tokens } = completion;
    let (status, text) = (if *is_cut { "incomplete" } else { "completed" }, pieces.concat());
    let item = message(status, json!([part(&text)]));
    let last = response(status, json!([item]), Some(*tokens));
    let at = json!({"item_id": MESSAGE_ID, "output_index": 0, "content_index": 0});
    let inside = |mut event: Value| {
        if let (Some(event), Some(at)) = (event.as_object_mut(), at.as_object()) {
            event.extend(at.clone());
        }
        event
    };
    let start = response("in_progress", json!([]), None);
    let mut events = vec![
        json!({"type": "response.created", "response": start}),
        json!({"type": "response.in_progress", "response": start}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": message("in_progress", json!([]))}),
        inside(json!({"type": "response.content_part.added", "part": part("")})),
    ];
    events.extend(pieces.iter().map(|text| {
        inside(json!({
            "type": "response.output_text.delta", "delta": text, "logprobs": [], "obfuscation": "Zq3wLm8rT0xKd1",
        }))
    }));
    events.extend([
        inside(json!({"type": "response.output_text.done", "text": text, "logprobs": []})),
        inside(json!({"type": "response.content_part.done", "part": part(&text)})),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": format!("response.{status}"), "response": last}),
    ]);
    let numbered = events.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        named_event(&event)
    });
    Canned { document: last.to_string(), events: numbered.collect() }
}

const MESSAGE_ID: &str = "msg_68a1c0f0e9c4819d8f6f6f1b2d3c4e5f0a1b2c3d4e5f6071";

fn message(status: &str, content: Value) -> Value {
    json!({"id": MESSAGE_ID, "type": "message", "status": status, "content": content, "role": "assistant"})
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}

/// Returns a response, which repeats the instructions and the schema of the request. Without `tokens` it is not at its end.
fn response(status: &str, output: Value, tokens: Option<[u32; 2]>) -> Value {
    let format = json!({
        "type": "json_schema", "description": null, "name": "ai_score",
        "schema": schema().unwrap_or_default(), "strict": true,
    });
    let usage = tokens.map(|[input, output]| {
        json!({
            "input_tokens": input, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": input + output,
        })
    });
    let details = (status == "incomplete").then(|| json!({"reason": "max_output_tokens"}));
    json!({
        "id": "resp_68a1c0f0b3a0819dae2b1f0c5d6e7f8091a2b3c4d5e6f708", "object": "response", "created_at": 1_763_700_000,
        "status": status, "background": false, "error": null, "incomplete_details": details, "instructions": SYSTEM,
        "max_output_tokens": null, "max_tool_calls": null, "model": "gpt-4.1-mini-2025-04-14", "output": output,
        "parallel_tool_calls": true, "previous_response_id": null, "prompt_cache_key": null,
        "reasoning": {"effort": null, "summary": null}, "safety_identifier": null, "service_tier": "default",
        "store": false, "temperature": 1.0, "text": {"format": format, "verbosity": "medium"}, "tool_choice": "auto",
        "tools": [], "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "usage": usage, "user": null,
        "metadata": {},
    })
}
