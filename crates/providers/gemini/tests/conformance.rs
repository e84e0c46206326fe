//! Runs the conformance suite of all providers; `FORMWORK_LIVE=gemini-litellm` runs it against LiteLLM's proxy.

use std::process::ExitCode;
use std::sync::Arc;

use formwork_conformance::{Live, Protocol, Reply, SentRequest, ServerAnswer, Trouble};
use formwork_core::{Finish, SharedProvider};
use formwork_gemini::Gemini;
use formwork_http::HttpTransport;
use formwork_wire::http::Request;
use formwork_wire::{Bytes, Http, SharedTransport, Wire as _};
use serde_json::{Value, json};

fn main() -> ExitCode {
    formwork_conformance::provider(Generate)
        .live(Live::new("gemini-litellm", "cargo xtask servers up llama-server litellm", litellm))
        .run()
}

async fn litellm() -> Result<SharedProvider, String> {
    let url = std::env::var("FORMWORK_LITELLM").unwrap_or_else(|_| "http://127.0.0.1:28440".to_owned());
    let transport = HttpTransport::new(&url).map_err(|error| error.to_string())?;
    // The proxy (1.106.2) forwards schemas but neither JSON mode nor the seed, and reports no usage for streams.
    let wire = Gemini::new("smollm2").with_dialects(["gemini", "prompt"]).with_stream(false);
    let mut promised = wire.capabilities().clone();
    promised.seed = false;
    Ok(Arc::new(Http::new(wire.with_capabilities(promised), Arc::new(transport))))
}

struct Generate;

impl Protocol for Generate {
    fn provider(&self, transport: SharedTransport) -> SharedProvider {
        Arc::new(Http::new(Gemini::new("gemini-2.5-flash"), transport))
    }

    fn say(&self, completion: &ServerAnswer) -> Vec<Reply> {
        // The API does not mark a refusal that the model writes as text.
        if completion.finish == Finish::Refused {
            return Vec::new();
        }
        let mut parts = Vec::new();
        if !completion.reasoning.is_empty() {
            parts.push(json!({"text": completion.reasoning, "thought": true}));
        }
        parts.push(json!({"text": completion.text}));
        let whole = end(completion, parts);
        let mut events = Vec::new();
        if !completion.reasoning.is_empty() {
            events.push(piece(&json!({"text": completion.reasoning, "thought": true})));
        }
        let characters: Vec<char> = completion.text.chars().collect();
        // Few characters per event, as real models send; more for long texts, to limit the duration of the suite.
        for letters in characters.chunks((characters.len() / 500).max(3)) {
            events.push(piece(&json!({"text": letters.iter().collect::<String>()})));
        }
        events.push(end(completion, vec![json!({"text": ""})]));
        let stream: String = events.iter().map(event).collect();
        vec![
            Reply::new(200, "application/json; charset=UTF-8", whole.to_string()),
            Reply::new(200, "text/event-stream", stream),
        ]
    }

    fn error(&self, status: u16, words: &str) -> Reply {
        Reply::new(status, "application/json; charset=UTF-8", error(status, words).to_string())
    }

    fn error_within(&self, text: &str, words: &str) -> Option<Reply> {
        let begin = if text.is_empty() { String::new() } else { event(&piece(&json!({"text": text}))) };
        Some(Reply::new(200, "text/event-stream", begin + &event(&error(503, words))))
    }

    fn trouble(&self, trouble: Trouble) -> Vec<Reply> {
        let text = trouble.text();
        let error = |code: u16, status: &str, details: Value| {
            let document =
                json!({"error": {"code": code, "message": text, "status": status, "details": details}});
            Reply::new(code, "application/json; charset=UTF-8", document.to_string())
        };
        let forms = |document: Value| {
            vec![
                Reply::new(200, "application/json; charset=UTF-8", document.to_string()),
                Reply::new(200, "text/event-stream", event(&document)),
            ]
        };
        let answer = |parts: Value, reason: &str| {
            let mut candidate = json!({"finishReason": reason, "index": 0});
            if !parts.is_null() {
                candidate["content"] = json!({"parts": parts, "role": "model"});
            }
            forms(
                json!({"candidates": [candidate], "usageMetadata": {"promptTokenCount": 11}, "modelVersion": "gemini-2.5-flash"}),
            )
        };
        let call = |arguments: Value| json!([{"functionCall": {"name": "thing", "args": arguments}}]);
        match trouble {
            Trouble::WrongKey => {
                let reason = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]);
                vec![error(400, "INVALID_ARGUMENT", reason), error(403, "PERMISSION_DENIED", json!([]))]
            }
            Trouble::NoCredit => vec![error(402, "PAYMENT_REQUIRED", json!([]))],
            Trouble::UnknownModel => vec![error(404, "NOT_FOUND", json!([]))],
            Trouble::Overloaded => vec![error(503, "UNAVAILABLE", json!([]))],
            Trouble::SafetyBlock => {
                let prompt = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 11}});
                let mut all = forms(prompt);
                all.extend(
                    ["SAFETY", "RECITATION", "SPII"].iter().flat_map(|reason| answer(Value::Null, reason)),
                );
                all
            }
            Trouble::Empty => {
                let mut all = answer(Value::Null, "STOP");
                all.extend(answer(json!([{"text": ""}]), "STOP"));
                all
            }
            Trouble::OnlyReasoning => answer(json!([{"text": text, "thought": true}]), "MAX_TOKENS"),
            Trouble::CutToolCall => answer(call(json!({"zulu": "a"})), "MAX_TOKENS"),
            Trouble::DoubleEncoded => answer(call(serde_json::from_str(text).unwrap_or_default()), "STOP"),
            _ => self.error_within("{\"zulu\": ", text).into_iter().collect(),
        }
    }

    fn schema_complaints(&self) -> Vec<(u16, &'static str)> {
        vec![
            (
                400,
                "The specified schema produces a constraint that has too many states for serving.  Typical causes of this error are schemas with lots of text",
            ),
            (
                400,
                "Invalid JSON payload received. Unknown name \"exclusiveMinimum\" at 'generation_config.response_schema': Cannot find field.",
            ),
            (
                400,
                "* GenerateContentRequest.generation_config.response_schema.properties[\"a\"].properties: should be non-empty for OBJECT type",
            ),
            (400, "A schema in GenerationConfig in the request exceeds the maximum allowed nesting depth."),
            (400, "Request contains an invalid argument."),
        ]
    }

    fn read_request(&self, request: &Request<Bytes>) -> SentRequest {
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let generation = &body["generationConfig"];
        let text = |content: &Value| {
            let parts = content["parts"].as_array().into_iter().flatten();
            parts.filter_map(|part| part["text"].as_str()).collect::<String>()
        };
        let role = |content: &Value| content["role"].as_str().unwrap_or("system").to_owned();
        let contents = body["contents"].as_array().into_iter().flatten();
        let messages = body.get("systemInstruction").into_iter().chain(contents);
        let found = |value: &Value| (!value.is_null()).then(|| value.clone());
        let schema = found(&generation["responseJsonSchema"]);
        SentRequest {
            json_object: schema.is_none() && generation["responseMimeType"] == "application/json",
            schema,
            tool: found(&body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]),
            temperature: generation["temperature"].as_f64(),
            top_p: generation["topP"].as_f64(),
            seed: generation["seed"].as_u64(),
            frequency_penalty: generation["frequency_penalty"].as_f64(),
            max_tokens: generation["maxOutputTokens"].as_u64(),
            messages: messages.map(|content| (role(content), text(content))).collect(),
        }
    }
}

fn error(status: u16, words: &str) -> Value {
    json!({"error": {"code": status, "message": words, "status": "UNKNOWN"}})
}

fn event(document: &Value) -> String {
    format!("data: {document}\r\n\r\n")
}

fn piece(part: &Value) -> Value {
    json!({
        "candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}],
        "usageMetadata": {"promptTokenCount": 11},
        "modelVersion": "gemini-2.5-flash",
    })
}

fn end(completion: &ServerAnswer, parts: Vec<Value>) -> Value {
    let reason = match &completion.finish {
        Finish::Length => "MAX_TOKENS",
        Finish::Filtered => "SAFETY",
        Finish::Other(reason) => reason,
        _ => "STOP",
    };
    let (input, output) = (completion.usage.input_tokens, completion.usage.output_tokens);
    json!({
        "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": reason, "index": 0}],
        "usageMetadata": {"promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": input + output},
        "modelVersion": "gemini-2.5-flash",
        "responseId": "r-1",
    })
}
