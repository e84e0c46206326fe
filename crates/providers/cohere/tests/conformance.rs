//! Runs the conformance suite of all providers.

use std::process::ExitCode;
use std::sync::Arc;

use formwork_cohere::Cohere;
use formwork_conformance::{Protocol, Reply, SentRequest, ServerAnswer, Trouble};
use formwork_core::{Finish, SharedProvider};
use formwork_wire::http::Request;
use formwork_wire::{Bytes, Http, SharedTransport};
use serde_json::{Value, json};

fn main() -> ExitCode {
    formwork_conformance::provider(Chat).run()
}

struct Chat;

impl Protocol for Chat {
    fn provider(&self, transport: SharedTransport) -> SharedProvider {
        Arc::new(Http::new(Cohere::new("command-test"), transport))
    }

    fn say(&self, completion: &ServerAnswer) -> Vec<Reply> {
        let mut content = Vec::new();
        if !completion.reasoning.is_empty() {
            content.push(json!({"type": "thinking", "thinking": completion.reasoning}));
        }
        content.push(json!({"type": "text", "text": completion.text}));
        let reason = match &completion.finish {
            Finish::Length => "MAX_TOKENS",
            Finish::Filtered | Finish::Refused => "ERROR_TOXIC",
            Finish::Other(reason) => reason,
            _ => "COMPLETE",
        };
        let tokens = json!({"input_tokens": completion.usage.input_tokens, "output_tokens": completion.usage.output_tokens});
        let whole = json!({
            "id": "1",
            "finish_reason": reason,
            "message": {"role": "assistant", "content": content},
            "usage": {"billed_units": {"input_tokens": 1, "output_tokens": 1}, "tokens": tokens},
        });
        vec![Reply::new(200, "application/json", whole.to_string())]
    }

    fn error(&self, status: u16, words: &str) -> Reply {
        Reply::new(status, "application/json", json!({"id": "1", "message": words}).to_string())
    }

    fn error_within(&self, _: &str, _: &str) -> Option<Reply> {
        None
    }

    fn trouble(&self, trouble: Trouble) -> Vec<Reply> {
        let text = trouble.text();
        let answer = |mut message: Value, reason: &str| {
            message["role"] = json!("assistant");
            let whole = json!({"id": "1", "finish_reason": reason, "message": message,
                "usage": {"tokens": {"input_tokens": 11, "output_tokens": 7}}});
            vec![Reply::new(200, "application/json", whole.to_string())]
        };
        let function = json!({"name": "thing", "arguments": text});
        let called = json!({"tool_calls": [{"id": "t", "type": "function", "function": function}]});
        match trouble {
            Trouble::WrongKey => vec![self.error(401, text)],
            Trouble::NoCredit => vec![self.error(402, text)],
            Trouble::UnknownModel => vec![self.error(404, text)],
            Trouble::Overloaded => vec![self.error(503, text), self.error(529, text)],
            Trouble::SafetyBlock => answer(json!({"content": []}), "ERROR_TOXIC"),
            Trouble::Empty => answer(json!({}), "COMPLETE"),
            Trouble::OnlyReasoning => {
                answer(json!({"content": [{"type": "thinking", "thinking": text}]}), "MAX_TOKENS")
            }
            Trouble::CutToolCall => answer(called, "MAX_TOKENS"),
            Trouble::DoubleEncoded => answer(called, "TOOL_CALL"),
            // The crate does not read the API's streams.
            _ => Vec::new(),
        }
    }

    fn schema_complaints(&self) -> Vec<(u16, &'static str)> {
        vec![(400, "invalid request: schema is not valid: unsupported keyword allOf")]
    }

    fn read_request(&self, request: &Request<Bytes>) -> SentRequest {
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let some = |value: &Value| (!value.is_null()).then(|| value.clone());
        let schema = some(&body["response_format"]["schema"]);
        let messages = body["messages"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        SentRequest {
            json_object: body["response_format"]["type"] == "json_object" && schema.is_none(),
            schema,
            tool: some(&body["tools"][0]["function"]["parameters"]),
            temperature: body["temperature"].as_f64(),
            top_p: body["p"].as_f64(),
            seed: body["seed"].as_u64(),
            frequency_penalty: body["frequency_penalty"].as_f64(),
            max_tokens: body["max_tokens"].as_u64(),
            messages: messages.map(|message| (text(&message["role"]), text(&message["content"]))).collect(),
        }
    }
}
