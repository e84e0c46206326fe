//! Runs the conformance suite of all providers in each output mode. `FORMWORK_LIVE=anthropic` and a key in `ANTHROPIC_API_KEY`
//! run it against the vendor, which costs money.

use std::process::ExitCode;
use std::sync::Arc;

use formwork_anthropic::{API_KEY, Anthropic, AnthropicBatches, DEFAULT_KEY_ENV, DEFAULT_URL, Mode};
use formwork_conformance::{
    BatchOutcome, BatchProtocol, BatchScene, Live, Protocol, Reply, SentRequest, ServerAnswer, Trouble,
};
use formwork_core::{Finish, SharedProvider};
use formwork_http::{HttpTransport, Key};
use formwork_wire::batch::SharedBatchApi;
use formwork_wire::http::Request;
use formwork_wire::{Bytes, Http, SharedTransport};
use serde_json::{Value, json};

fn main() -> ExitCode {
    let suite = formwork_conformance::provider(Messages { mode: Mode::Schema })
        .protocol(Messages { mode: Mode::Tool })
        .batches(Messages { mode: Mode::Schema });
    suite.live(Live::new("anthropic", "set `ANTHROPIC_API_KEY`", vendor)).run()
}

async fn vendor() -> Result<SharedProvider, String> {
    let key = Key::from_env(DEFAULT_KEY_ENV).map_err(|error| error.to_string())?;
    let transport = HttpTransport::new(DEFAULT_URL).and_then(|transport| transport.with_key(API_KEY, key));
    let transport = transport.map_err(|error| error.to_string())?;
    Ok(Arc::new(Http::new(Anthropic::new("claude-haiku-4-5"), Arc::new(transport))))
}

struct Messages {
    mode: Mode,
}

/// Events in the API's framing, with the trailing white space of recorded streams.
fn events(events: &[Value]) -> String {
    let written = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}    \n\n", event["type"].as_str().unwrap_or_default()));
    written.collect()
}

fn reason(finish: &Finish) -> &str {
    match finish {
        Finish::Length => "max_tokens",
        Finish::Refused => "refusal",
        Finish::Other(reason) => reason,
        _ => "end_turn",
    }
}

fn error_of(status: u16, words: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"})
}

impl Messages {
    fn begin(&self, text: &str, reasoning: &str) -> Vec<Value> {
        let usage = json!({"input_tokens": 4, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2, "output_tokens": 1});
        let mut events = vec![
            json!({"type": "message_start", "message": {"type": "message", "role": "assistant", "model": "claude-test", "content": [], "stop_reason": null, "usage": usage}}),
            json!({"type": "ping"}),
        ];
        if !reasoning.is_empty() {
            events.extend([
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": reasoning}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "EqQB"}}),
                json!({"type": "content_block_stop", "index": 0}),
            ]);
        }
        events.push(json!({"type": "content_block_start", "index": 1, "content_block": self.block("")}));
        let characters: Vec<char> = text.chars().collect();
        // Few characters per event, as real models send; more for long texts, to limit the duration of the suite.
        for piece in characters.chunks((characters.len() / 500).max(3)) {
            let piece: String = piece.iter().collect();
            let delta = match self.mode {
                Mode::Schema => json!({"type": "text_delta", "text": piece}),
                Mode::Tool => json!({"type": "input_json_delta", "partial_json": piece}),
            };
            events.push(json!({"type": "content_block_delta", "index": 1, "delta": delta}));
        }
        events
    }

    /// A message that is not streamed.
    fn whole(&self, completion: &ServerAnswer) -> Value {
        let mut content = Vec::new();
        if !completion.reasoning.is_empty() {
            content.push(json!({"type": "thinking", "thinking": completion.reasoning, "signature": "EqQB"}));
        }
        content.push(self.block(&completion.text));
        json!({
            "type": "message",
            "role": "assistant",
            "model": "claude-test",
            "content": content,
            "stop_reason": reason(&completion.finish),
            "usage": {"input_tokens": completion.usage.input_tokens, "output_tokens": completion.usage.output_tokens},
        })
    }

    fn block(&self, text: &str) -> Value {
        match self.mode {
            Mode::Schema => json!({"type": "text", "text": text}),
            Mode::Tool if text.is_empty() => {
                json!({"type": "tool_use", "id": "toolu_1", "name": "thing", "input": {}})
            }
            Mode::Tool => json!({"type": "tool_use", "id": "toolu_1", "name": "thing", "input": text}),
        }
    }
}

impl BatchProtocol for Messages {
    fn api(&self, transport: SharedTransport) -> SharedBatchApi {
        Arc::new(AnthropicBatches::new(Anthropic::new("claude-test").with_mode(self.mode), transport))
    }

    fn replies(&self, scene: &BatchScene) -> Vec<Reply> {
        let batch = |id: &str, status: &str, finished: u64, requests: u64| {
            let counts = json!({
                "processing": requests - finished, "succeeded": finished, "errored": 0, "canceled": 0, "expired": 0,
            });
            json!({
                "id": id, "type": "message_batch", "created_at": "2026-11-28T09:00:00Z", "processing_status": status,
                "request_counts": counts,
            })
        };
        let line = |(id, outcome): &(String, BatchOutcome)| {
            let result = match outcome {
                BatchOutcome::Answer(answer) => json!({"type": "succeeded", "message": self.whole(answer)}),
                BatchOutcome::Error(status, words) => {
                    json!({"type": "errored", "error": error_of(*status, words)})
                }
                BatchOutcome::Unprocessed => json!({"type": "expired"}),
            };
            format!("{}\n", json!({"custom_id": id, "result": result}))
        };
        let document = |body: &Value| Reply::new(200, "application/json", body.to_string());
        let lines = |results: &[(String, BatchOutcome)]| {
            Reply::new(200, "application/x-jsonl", results.iter().map(line).collect::<String>())
        };
        match scene {
            BatchScene::Accepted { id } => vec![document(&batch(id, "in_progress", 0, 3))],
            BatchScene::Listed { id, key, requests } => {
                let listed = json!({"data": [batch(id, "ended", *requests, *requests)], "has_more": false});
                let results = (0..*requests).map(|nth| (format!("{key}-{nth}"), BatchOutcome::Unprocessed));
                vec![document(&listed), lines(&results.collect::<Vec<_>>())]
            }
            BatchScene::Open { finished, requests } => {
                vec![document(&batch("b", "in_progress", *finished, *requests))]
            }
            BatchScene::Ended { requests } => vec![document(&batch("b", "ended", *requests, *requests))],
            BatchScene::Results(results) => vec![lines(results)],
            BatchScene::Cancelled { id } => vec![document(&batch(id, "canceling", 0, 3))],
        }
    }

    fn error(&self, status: u16, words: &str) -> Reply {
        Reply::new(status, "application/json", error_of(status, words).to_string())
    }
}

impl Protocol for Messages {
    fn name(&self) -> &'static str {
        match self.mode {
            Mode::Schema => "schema",
            Mode::Tool => "tool",
        }
    }

    fn provider(&self, transport: SharedTransport) -> SharedProvider {
        let wire = Anthropic::new("claude-test").with_mode(self.mode);
        Arc::new(Http::new(wire, transport))
    }

    fn say(&self, completion: &ServerAnswer) -> Vec<Reply> {
        let mut streamed = self.begin(&completion.text, &completion.reasoning);
        streamed.extend([
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "message_delta", "delta": {"stop_reason": reason(&completion.finish)}, "usage": {"output_tokens": completion.usage.output_tokens}}),
            json!({"type": "message_stop"}),
        ]);
        vec![
            Reply::new(200, "application/json", self.whole(completion).to_string()),
            Reply::new(200, "text/event-stream; charset=utf-8", events(&streamed)),
        ]
    }

    fn error(&self, status: u16, words: &str) -> Reply {
        BatchProtocol::error(self, status, words)
    }

    fn error_within(&self, text: &str, words: &str) -> Option<Reply> {
        let mut begun = self.begin(text, "");
        begun.push(json!({"type": "error", "error": {"type": "overloaded_error", "message": words}}));
        Some(Reply::new(200, "text/event-stream; charset=utf-8", events(&begun)))
    }

    fn trouble(&self, trouble: Trouble) -> Vec<Reply> {
        let text = trouble.text();
        let error = |status: u16, kind: &str| {
            let document =
                json!({"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_1"});
            Reply::new(status, "application/json", document.to_string())
        };
        let answer = |block: Option<(Value, Value)>, reason: &str| {
            let (block, delta) = block.unzip();
            let content: Vec<_> = block.iter().cloned().collect();
            let usage = json!({"input_tokens": 11, "output_tokens": 7});
            let whole = json!({"type": "message", "role": "assistant", "model": "claude-test",
                "content": content, "stop_reason": reason, "usage": usage});
            let mut streamed =
                vec![json!({"type": "message_start", "message": {"type": "message", "role": "assistant",
                "model": "claude-test", "content": [], "usage": usage}})];
            if let (Some(mut block), Some(delta)) = (block, delta) {
                if block["type"] == "tool_use" {
                    block["input"] = json!({});
                } else {
                    block["thinking"] = json!("");
                }
                streamed.push(json!({"type": "content_block_start", "index": 0, "content_block": block}));
                streamed.push(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
                streamed.push(json!({"type": "content_block_stop", "index": 0}));
            }
            streamed.push(json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}));
            streamed.push(json!({"type": "message_stop"}));
            vec![
                Reply::new(200, "application/json", whole.to_string()),
                Reply::new(200, "text/event-stream; charset=utf-8", events(&streamed)),
            ]
        };
        let call = |input: Value| {
            let block = json!({"type": "tool_use", "id": "toolu_1", "name": "thing", "input": input});
            (block, json!({"type": "input_json_delta", "partial_json": text}))
        };
        match trouble {
            Trouble::WrongKey => vec![error(401, "authentication_error")],
            Trouble::NoCredit => {
                let words = "Your credit balance is too low to access the Anthropic API.";
                let document = json!({"type": "error", "error": {"type": "invalid_request_error", "message": format!("{words} {text}")}});
                vec![Reply::new(400, "application/json", document.to_string()), error(402, "billing_error")]
            }
            Trouble::UnknownModel => vec![error(404, "not_found_error")],
            Trouble::Overloaded => vec![error(529, "overloaded_error"), error(503, "overloaded_error")],
            Trouble::SafetyBlock => answer(None, "refusal"),
            Trouble::Empty => answer(None, "end_turn"),
            Trouble::OnlyReasoning => {
                let block = json!({"type": "thinking", "thinking": text, "signature": "EqQB"});
                answer(Some((block, json!({"type": "thinking_delta", "thinking": text}))), "max_tokens")
            }
            Trouble::CutToolCall => answer(Some(call(json!({"zulu": "a"}))), "max_tokens"),
            Trouble::DoubleEncoded => {
                let string: Value = serde_json::from_str(text).unwrap_or_default();
                answer(Some(call(string)), "tool_use")
            }
            _ => self.error_within("{\"zulu\": ", text).into_iter().collect(),
        }
    }

    fn schema_complaints(&self) -> Vec<(u16, &'static str)> {
        vec![
            (
                400,
                "Schemas contains too many parameters with union types (17 parameters with type arrays or anyOf), which would cause exponential compilation cost. Reduce the number of nullable or union-typed parameters (limit: 16 parameters with unions).",
            ),
            (
                400,
                "The compiled grammar is too large, which would cause performance issues. Simplify your tool schemas or reduce the number of strict tools.",
            ),
            (
                400,
                "output_config.format.schema: For 'integer' type, properties maximum, minimum are not supported",
            ),
        ]
    }

    fn read_request(&self, request: &Request<Bytes>) -> SentRequest {
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let some = |value: &Value| (!value.is_null()).then(|| value.clone());
        let tool = &body["tools"][0];
        let is_strict = tool["strict"] == true;
        let turns = body["messages"].as_array().into_iter().flatten();
        let system = json!({"role": "system", "content": body["system"]});
        let messages = std::iter::once(&system).chain(turns).flat_map(|turn| {
            let role = turn["role"].as_str().unwrap_or_default();
            let blocks = turn["content"].as_array().into_iter().flatten();
            blocks.map(move |block| (role.to_owned(), block["text"].as_str().unwrap_or_default().to_owned()))
        });
        SentRequest {
            // A strict tool means constrained decoding.
            schema: some(&body["output_config"]["format"]["schema"])
                .or_else(|| some(&tool["input_schema"]).filter(|_| is_strict)),
            tool: some(&tool["input_schema"]).filter(|_| !is_strict),
            json_object: false,
            temperature: body["temperature"].as_f64(),
            top_p: body["top_p"].as_f64(),
            seed: body["seed"].as_u64(),
            frequency_penalty: body["frequency_penalty"].as_f64(),
            max_tokens: body["max_tokens"].as_u64(),
            messages: messages.collect(),
        }
    }
}
