//! Runs the conformance suite of all providers for Chat Completions and for the Responses API.
//! `FORMWORK_LIVE=llama-server,litellm` runs it against llama.cpp's server, and against LiteLLM's proxy in front of it.

use std::process::ExitCode;
use std::sync::Arc;

use formwork_conformance::{
    BatchOutcome, BatchProtocol, BatchScene, Live, Protocol, Reply, SentRequest, ServerAnswer, Trouble,
};
use formwork_core::{Finish, SharedProvider};
use formwork_http::HttpTransport;
use formwork_openai::{Api, MaxTokensField, OpenAi, OpenAiBatches};
use formwork_wire::batch::SharedBatchApi;
use formwork_wire::http::Request;
use formwork_wire::{Bytes, Http, SharedTransport};
use serde_json::{Value, json};

fn main() -> ExitCode {
    formwork_conformance::provider(Chat)
        .protocol(Responses)
        .batches(Files { name: "batches", api: Api::Chat, whole })
        .batches(Files { name: "responses::batches", api: Api::Responses, whole: response })
        .live(Live::new("llama-server", "cargo xtask servers up llama-server", llama_server))
        .live(Live::new("litellm", "cargo xtask servers up llama-server litellm", litellm))
        .run()
}

async fn llama_server() -> Result<SharedProvider, String> {
    served("FORMWORK_LLAMA_SERVER", "http://127.0.0.1:28411")
}

async fn litellm() -> Result<SharedProvider, String> {
    served("FORMWORK_LITELLM", "http://127.0.0.1:28440")
}

/// The server at the address in an environment variable, or at the address at which `cargo xtask servers` starts it.
fn served(variable: &str, default: &str) -> Result<SharedProvider, String> {
    let url = std::env::var(variable).unwrap_or_else(|_| default.to_owned());
    let transport = HttpTransport::new(&format!("{url}/v1")).map_err(|error| error.to_string())?;
    let wire = OpenAi::new("smollm2")
        .with_dialects(["llama-cpp", "json-object", "prompt"])
        .with_max_tokens_field(MaxTokensField::MaxTokens);
    Ok(Arc::new(Http::new(wire, Arc::new(transport))))
}

struct Chat;

impl Protocol for Chat {
    fn provider(&self, transport: SharedTransport) -> SharedProvider {
        Arc::new(Http::new(OpenAi::new("gpt-4o-mini"), transport))
    }

    fn say(&self, completion: &ServerAnswer) -> Vec<Reply> {
        vec![json_reply(&whole(completion)), streamed(completion)]
    }

    fn error(&self, status: u16, words: &str) -> Reply {
        Reply::new(status, "application/json", error(words).to_string())
    }

    fn error_within(&self, text: &str, words: &str) -> Option<Reply> {
        let begin = if text.is_empty() { String::new() } else { event(&delta(json!({"content": text}))) };
        Some(Reply::new(200, "text/event-stream", begin + &event(&error(words))))
    }

    fn trouble(&self, trouble: Trouble) -> Vec<Reply> {
        let text = trouble.text();
        if let Some(replies) = vendor_error(trouble) {
            return replies;
        }
        let body = |message: Value, reason: &str| {
            let choice = json!({"index": 0, "message": message, "finish_reason": reason});
            let body = json!({"object": "chat.completion", "model": "gpt-4o-mini", "choices": [choice]});
            Reply::new(200, "application/json", body.to_string())
        };
        let stream = |delta: Value, reason: &str| {
            let mut end = self::delta(json!({}));
            end["choices"][0]["finish_reason"] = json!(reason);
            let body = event(&self::delta(delta)) + &event(&end) + "data: [DONE]\n\n";
            Reply::new(200, "text/event-stream", body)
        };
        let empty = json!({"role": "assistant", "content": null});
        let thought = json!({"role": "assistant", "content": null, "reasoning_content": text});
        let function = json!({"name": "thing", "arguments": text});
        let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
        let called = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        let (message, reason) = match trouble {
            Trouble::SafetyBlock => (empty, "content_filter"),
            Trouble::Empty => (empty, "stop"),
            Trouble::OnlyReasoning => (thought, "length"),
            Trouble::CutToolCall => (called, "length"),
            Trouble::DoubleEncoded => (called, "tool_calls"),
            _ => return self.error_within("{\"zulu\": ", text).into_iter().collect(),
        };
        vec![body(message.clone(), reason), stream(message, reason)]
    }

    fn schema_complaints(&self) -> Vec<(u16, &'static str)> {
        vec![
            (400, "Invalid schema for response_format 'thing': In context=(), 'oneOf' is not permitted."),
            (400, "Unable to generate parser for this template. JSON schema error at #/properties/a"),
            (400, "JSON schema conversion failed: unsupported"),
            (500, "failed to parse grammar"),
        ]
    }

    fn read_request(&self, request: &Request<Bytes>) -> SentRequest {
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let format = &body["response_format"];
        let messages = body["messages"].as_array().into_iter().flatten();
        let text = |content: &Value| match content {
            Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            content => content.as_str().unwrap_or_default().to_owned(),
        };
        SentRequest {
            schema: found(&format["json_schema"]["schema"]),
            tool: found(&body["tools"][0]["function"]["parameters"]),
            json_object: format["type"] == "json_object",
            temperature: body["temperature"].as_f64(),
            top_p: body["top_p"].as_f64(),
            seed: body["seed"].as_u64(),
            frequency_penalty: body["frequency_penalty"].as_f64(),
            max_tokens: body["max_completion_tokens"].as_u64(),
            messages: messages
                .map(|message| {
                    (message["role"].as_str().unwrap_or_default().to_owned(), text(&message["content"]))
                })
                .collect(),
        }
    }
}

struct Responses;

impl Protocol for Responses {
    fn name(&self) -> &'static str {
        "responses"
    }

    fn provider(&self, transport: SharedTransport) -> SharedProvider {
        Arc::new(Http::new(OpenAi::new("gpt-4o-mini").with_api(Api::Responses), transport))
    }

    fn say(&self, completion: &ServerAnswer) -> Vec<Reply> {
        let body = response(completion);
        let streamed = response_events(completion, &body);
        vec![
            Reply::new(200, "application/json", body.to_string()),
            Reply::new(200, "text/event-stream", streamed),
        ]
    }

    fn error(&self, status: u16, words: &str) -> Reply {
        Chat.error(status, words)
    }

    fn error_within(&self, text: &str, words: &str) -> Option<Reply> {
        let mut body = event(&json!({"type": "response.created", "response": {"status": "in_progress"}}));
        if !text.is_empty() {
            body += &event(&json!({"type": "response.output_text.delta", "output_index": 0, "delta": text}));
        }
        body += &event(&json!({"type": "error", "code": "server_error", "message": words, "param": null}));
        Some(Reply::new(200, "text/event-stream", body))
    }

    fn trouble(&self, trouble: Trouble) -> Vec<Reply> {
        let text = trouble.text();
        if let Some(replies) = vendor_error(trouble) {
            return replies;
        }
        let call = json!({"type": "function_call", "id": "fc_1", "call_id": "c_1", "name": "thing", "arguments": text});
        let thought =
            json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": text}]});
        let (output, reason) = match trouble {
            Trouble::SafetyBlock => (vec![], Some("content_filter")),
            Trouble::Empty => (vec![], None),
            Trouble::OnlyReasoning => (vec![thought], Some("max_output_tokens")),
            Trouble::CutToolCall => (vec![call], Some("max_output_tokens")),
            Trouble::DoubleEncoded => (vec![call], None),
            _ => return self.error_within("{\"zulu\": ", text).into_iter().collect(),
        };
        let status = if reason.is_some() { "incomplete" } else { "completed" };
        let mut body =
            json!({"object": "response", "status": status, "model": "gpt-4o-mini", "output": output});
        body["incomplete_details"] = reason.map_or(Value::Null, |reason| json!({"reason": reason}));
        let mut stream = event(&json!({"type": "response.created", "response": {"status": "in_progress"}}));
        for item in &output {
            let begun = json!({"type": item["type"], "id": item["id"], "name": item["name"]});
            stream +=
                &event(&json!({"type": "response.output_item.added", "output_index": 0, "item": begun}));
            let kind = if item["type"] == "reasoning" {
                "reasoning_summary_text"
            } else {
                "function_call_arguments"
            };
            stream +=
                &event(&json!({"type": format!("response.{kind}.delta"), "output_index": 0, "delta": text}));
            stream += &event(&json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
        }
        stream += &event(&json!({"type": format!("response.{status}"), "response": body}));
        vec![
            Reply::new(200, "application/json", body.to_string()),
            Reply::new(200, "text/event-stream", stream),
        ]
    }

    fn schema_complaints(&self) -> Vec<(u16, &'static str)> {
        vec![
            (400, "Invalid schema for response_format 'thing': In context=(), 'oneOf' is not permitted."),
            (400, "Unsupported parameter: 'text.format' is not supported with this model."),
        ]
    }

    fn read_request(&self, request: &Request<Bytes>) -> SentRequest {
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let format = &body["text"]["format"];
        let text = |item: &Value| {
            let parts = item["content"].as_array().into_iter().flatten();
            parts.filter_map(|part| part["text"].as_str()).collect()
        };
        let instructions = body["instructions"].as_str().map(|text| ("system".to_owned(), text.to_owned()));
        let items = body["input"].as_array().into_iter().flatten();
        let items = items.map(|item| (item["role"].as_str().unwrap_or_default().to_owned(), text(item)));
        SentRequest {
            schema: found(&format["schema"]),
            tool: found(&body["tools"][0]["parameters"]),
            json_object: format["type"] == "json_object",
            temperature: body["temperature"].as_f64(),
            top_p: body["top_p"].as_f64(),
            seed: body["seed"].as_u64(),
            frequency_penalty: body["frequency_penalty"].as_f64(),
            max_tokens: body["max_output_tokens"].as_u64(),
            messages: instructions.into_iter().chain(items).collect(),
        }
    }
}

/// The Batch API, with the requests of one of the two APIs.
struct Files {
    name: &'static str,
    api: Api,
    /// The body of a response.
    whole: fn(&ServerAnswer) -> Value,
}

impl Files {
    fn line(&self, (id, outcome): &(String, BatchOutcome)) -> Value {
        let (status, body) = match outcome {
            BatchOutcome::Answer(answer) => (200, (self.whole)(answer)),
            BatchOutcome::Error(status, words) => (*status, error(words)),
            BatchOutcome::Unprocessed => {
                let error =
                    json!({"code": "batch_expired", "message": "This request could not be executed."});
                return json!({"id": "batch_req_1", "custom_id": id, "response": null, "error": error});
            }
        };
        let response = json!({"status_code": status, "request_id": "req_1", "body": body});
        json!({"id": "batch_req_1", "custom_id": id, "response": response, "error": null})
    }
}

impl BatchProtocol for Files {
    fn name(&self) -> &'static str {
        self.name
    }

    fn api(&self, transport: SharedTransport) -> SharedBatchApi {
        Arc::new(OpenAiBatches::new(OpenAi::new("gpt-4o-mini").with_api(self.api), transport))
    }

    fn replies(&self, scene: &BatchScene) -> Vec<Reply> {
        let batch = |status: &str, finished: u64, requests: u64| {
            let counts = json!({"total": requests, "completed": finished, "failed": 0});
            json!({"id": "batch_1", "status": status, "request_counts": counts, "output_file_id": "o", "error_file_id": "e"})
        };
        let bodies = match scene {
            BatchScene::Accepted { id } => vec![json!({"id": "file_1"}), json!({"id": id})],
            BatchScene::Listed { id, key, requests } => {
                let mut listed = batch("completed", *requests, *requests);
                (listed["id"], listed["metadata"]) = (json!(id), json!({"formwork": key}));
                vec![json!({"data": [listed], "has_more": false})]
            }
            BatchScene::Open { finished, requests } => vec![batch("in_progress", *finished, *requests)],
            BatchScene::Ended { requests } => vec![batch("completed", *requests, *requests)],
            BatchScene::Cancelled { .. } => vec![batch("cancelling", 0, 3)],
            BatchScene::Results(results) => {
                let is_good = |outcome: &BatchOutcome| matches!(outcome, BatchOutcome::Answer(_));
                let (good, bad): (Vec<_>, Vec<_>) = results.iter().partition(|(_, outcome)| is_good(outcome));
                let files = [good, bad].map(|lines| {
                    let lines = lines.into_iter().map(|line| format!("{}\n", self.line(line)));
                    Reply::new(200, "application/octet-stream", lines.collect::<String>())
                });
                let expired = json_reply(&batch("expired", 3, 4));
                return [expired].into_iter().chain(files).collect();
            }
        };
        bodies.iter().map(json_reply).collect()
    }

    fn error(&self, status: u16, words: &str) -> Reply {
        Chat.error(status, words)
    }
}

fn json_reply(body: &Value) -> Reply {
    Reply::new(200, "application/json", body.to_string())
}

/// A response that is not streamed.
fn response(completion: &ServerAnswer) -> Value {
    let reason = match &completion.finish {
        Finish::Length => Some("max_output_tokens"),
        Finish::Filtered => Some("content_filter"),
        Finish::Other(reason) => Some(&**reason),
        _ => None,
    };
    let part = match completion.finish {
        Finish::Refused => json!({"type": "refusal", "refusal": completion.text}),
        _ => json!({"type": "output_text", "text": completion.text, "annotations": []}),
    };
    let mut output = vec![json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [part]})];
    if !completion.reasoning.is_empty() {
        let summary = json!([{"type": "summary_text", "text": completion.reasoning}]);
        output.insert(0, json!({"type": "reasoning", "id": "rs_1", "summary": summary}));
    }
    if completion.finish == Finish::ToolCall {
        let call = json!({"type": "function_call", "id": "fc_1", "name": "look", "arguments": "{}"});
        output.push(call);
    }
    let (input_tokens, output_tokens) = (completion.usage.input_tokens, completion.usage.output_tokens);
    json!({
        "id": "resp_1",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": if reason.is_some() { "incomplete" } else { "completed" },
        "error": null,
        "incomplete_details": reason.map(|reason| json!({"reason": reason})),
        "model": "gpt-4o-mini-2024-07-18",
        "output": output,
        "usage": {
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
        },
    })
}

/// The stream of the same response.
fn response_events(completion: &ServerAnswer, response: &Value) -> String {
    let mut body = event(&json!({"type": "response.created", "response": {"status": "in_progress"}}));
    for (index, item) in response["output"].as_array().into_iter().flatten().enumerate() {
        let begun = json!({"type": item["type"], "id": item["id"], "name": item["name"]});
        body += &event(&json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
        let (kind, text) = match item["type"].as_str() {
            Some("reasoning") => ("response.reasoning_summary_text.delta", completion.reasoning.as_str()),
            Some("message") if completion.finish == Finish::Refused => {
                ("response.refusal.delta", &*completion.text)
            }
            Some("message") => ("response.output_text.delta", &*completion.text),
            _ => ("response.function_call_arguments.delta", "{}"),
        };
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks((characters.len() / 500).max(3)) {
            let piece: String = piece.iter().collect();
            body += &event(&json!({"type": kind, "output_index": index, "delta": piece}));
        }
        body += &event(&json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    let end = format!("response.{}", response["status"].as_str().unwrap_or_default());
    body + &event(&json!({"type": end, "response": response}))
}

fn found(value: &Value) -> Option<Value> {
    (!value.is_null()).then(|| value.clone())
}

fn error(words: &str) -> Value {
    json!({"error": {"message": words, "type": "server_error", "param": null, "code": null}})
}

/// The errors of OpenAI, OpenRouter (402) and llama.cpp's server; `None` for other troubles.
fn vendor_error(trouble: Trouble) -> Option<Vec<Reply>> {
    let error = |status: u16, code: &str| {
        let error =
            json!({"message": trouble.text(), "type": "invalid_request_error", "param": null, "code": code});
        Reply::new(status, "application/json", json!({"error": error}).to_string())
    };
    Some(match trouble {
        Trouble::WrongKey => vec![error(401, "invalid_api_key")],
        Trouble::NoCredit => vec![error(429, "insufficient_quota"), error(402, "402")],
        Trouble::UnknownModel => vec![error(404, "model_not_found"), error(400, "model_not_found")],
        Trouble::Overloaded => vec![error(503, "unavailable_error"), error(529, "overloaded")],
        _ => return None,
    })
}

fn reason(finish: &Finish) -> &str {
    match finish {
        Finish::Length => "length",
        Finish::Filtered => "content_filter",
        Finish::ToolCall => "tool_calls",
        Finish::Other(reason) => reason,
        _ => "stop",
    }
}

fn usage(completion: &ServerAnswer) -> Value {
    let (input, output) = (completion.usage.input_tokens, completion.usage.output_tokens);
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}

/// The model's text with the name of its property: a refusal has a property of its own.
fn content(completion: &ServerAnswer) -> (&'static str, &str) {
    (if completion.finish == Finish::Refused { "refusal" } else { "content" }, &completion.text)
}

fn whole(completion: &ServerAnswer) -> Value {
    let (name, text) = content(completion);
    let mut message = json!({"role": "assistant", "content": null, name: text});
    if !completion.reasoning.is_empty() {
        message["reasoning_content"] = json!(completion.reasoning);
    }
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [{"index": 0, "message": message, "finish_reason": reason(&completion.finish)}],
        "usage": usage(completion),
    })
}

fn streamed(completion: &ServerAnswer) -> Reply {
    let (name, text) = content(completion);
    let mut body = event(&delta(json!({"role": "assistant", "content": ""})));
    if !completion.reasoning.is_empty() {
        body += &event(&delta(json!({"reasoning_content": completion.reasoning})));
    }
    let characters: Vec<char> = text.chars().collect();
    // Few characters per event, as real models send; more for long texts, to limit the duration of the suite.
    for piece in characters.chunks((characters.len() / 500).max(3)) {
        body += &event(&delta(json!({name: piece.iter().collect::<String>()})));
    }
    let mut end = delta(json!({}));
    end["choices"][0]["finish_reason"] = json!(reason(&completion.finish));
    body += &event(&end);
    body += &event(&json!({"object": "chat.completion.chunk", "choices": [], "usage": usage(completion)}));
    body += "data: [DONE]\n\n";
    Reply::new(200, "text/event-stream", body)
}

fn delta(delta: Value) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "gpt-4o-mini", "choices": [choice]})
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}
