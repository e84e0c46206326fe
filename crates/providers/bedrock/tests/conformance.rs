//! Runs the conformance suite of all providers.

use std::process::ExitCode;
use std::sync::Arc;

use formwork_bedrock::{Bedrock, Mode};
use formwork_conformance::{Protocol, Reply, SentRequest, ServerAnswer, Trouble};
use formwork_core::{Finish, SharedProvider};
use formwork_testkit::aws_message;
use formwork_wire::http::Request;
use formwork_wire::{Bytes, Http, SharedTransport};
use serde_json::{Value, json};

fn main() -> ExitCode {
    formwork_conformance::provider(Converse { mode: Mode::Schema })
        .protocol(Converse { mode: Mode::Tool })
        .run()
}

/// The name of an event that is an exception.
const EXCEPTION: &str = "modelStreamErrorException";

/// Returns the events of an answer whose text arrives in two pieces, up to the end of its content.
fn begun(thoughts: Option<&str>, tool: Option<&str>, text: &str) -> Vec<(&'static str, Value)> {
    let mut events = vec![("messageStart", json!({"role": "assistant"}))];
    let index = usize::from(thoughts.is_some());
    if let Some(thoughts) = thoughts {
        let delta = json!({"reasoningContent": {"text": thoughts}});
        events.push(("contentBlockDelta", json!({"contentBlockIndex": 0, "delta": delta})));
        events.push(("contentBlockStop", json!({"contentBlockIndex": 0})));
    }
    if let Some(name) = tool {
        let start = json!({"toolUse": {"toolUseId": "t", "name": name}});
        events.push(("contentBlockStart", json!({"contentBlockIndex": index, "start": start})));
    }
    let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
    for piece in [first, second] {
        let delta = match tool {
            Some(_) => json!({"toolUse": {"input": piece}}),
            None => json!({"text": piece}),
        };
        events.push(("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta})));
    }
    events.push(("contentBlockStop", json!({"contentBlockIndex": index})));
    events
}

/// Returns a stream of events in the frames of AWS.
fn streamed(events: &[(&str, Value)]) -> Reply {
    let body: Vec<u8> = events.iter().flat_map(|(name, payload)| frame(name, &payload.to_string())).collect();
    Reply::new(200, "application/vnd.amazon.eventstream", body)
}

fn frame(name: &str, payload: &str) -> Vec<u8> {
    let kind = if name == EXCEPTION { ":exception-type" } else { ":event-type" };
    aws_message(&[(kind, name), (":content-type", "application/json"), (":message-type", "event")], payload)
}

struct Converse {
    mode: Mode,
}

impl Protocol for Converse {
    fn name(&self) -> &'static str {
        match self.mode {
            Mode::Schema => "schema",
            Mode::Tool => "tool",
        }
    }

    fn provider(&self, transport: SharedTransport) -> SharedProvider {
        Arc::new(Http::new(Bedrock::new("amazon.test-v1:0").with_mode(self.mode), transport))
    }

    fn say(&self, completion: &ServerAnswer) -> Vec<Reply> {
        let name = if self.mode == Mode::Tool { Some("thing") } else { None };
        let mut content = Vec::new();
        if !completion.reasoning.is_empty() {
            content.push(json!({"reasoningContent": {"reasoningText": {"text": completion.reasoning}}}));
        }
        content.push(match self.mode {
            Mode::Schema => json!({"text": completion.text}),
            Mode::Tool => json!({"toolUse": {"toolUseId": "t", "name": "thing", "input": completion.text}}),
        });
        let reason = match &completion.finish {
            Finish::Length => "max_tokens",
            Finish::Refused => "refusal",
            Finish::Filtered => "content_filtered",
            Finish::Other(reason) => reason,
            _ if self.mode == Mode::Tool => "tool_use",
            _ => "end_turn",
        };
        let whole = json!({
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": reason,
            "usage": {"inputTokens": completion.usage.input_tokens, "outputTokens": completion.usage.output_tokens},
        });
        let usage = whole["usage"].clone();
        let thoughts = Some(completion.reasoning.as_str()).filter(|thoughts| !thoughts.is_empty());
        let mut events = begun(thoughts, name, &completion.text);
        events.push(("messageStop", json!({"stopReason": reason})));
        events.push(("metadata", json!({"usage": usage, "metrics": {"latencyMs": 9}})));
        vec![Reply::new(200, "application/json", whole.to_string()), streamed(&events)]
    }

    fn error(&self, status: u16, words: &str) -> Reply {
        Reply::new(status, "application/json", json!({"message": words}).to_string())
    }

    fn error_within(&self, text: &str, words: &str) -> Option<Reply> {
        let name = if self.mode == Mode::Tool { Some("thing") } else { None };
        let mut events = begun(None, name, text);
        events.push((EXCEPTION, json!({"message": words})));
        Some(streamed(&events))
    }

    fn trouble(&self, trouble: Trouble) -> Vec<Reply> {
        let text = trouble.text();
        let answer = |content: Value, reason: &str| {
            let whole = json!({"output": {"message": {"role": "assistant", "content": content}},
                "stopReason": reason, "usage": {"inputTokens": 11, "outputTokens": 7}});
            vec![Reply::new(200, "application/json", whole.to_string())]
        };
        let call = |input: Value| json!([{"toolUse": {"toolUseId": "t", "name": "thing", "input": input}}]);
        match trouble {
            Trouble::WrongKey => vec![self.error(403, text), self.error(401, text)],
            Trouble::NoCredit => vec![self.error(402, text)],
            Trouble::UnknownModel => {
                let identifier = format!("The provided model identifier is invalid. {text}");
                vec![self.error(404, text), self.error(400, &identifier)]
            }
            Trouble::Overloaded => vec![self.error(503, text), self.error(529, text)],
            Trouble::SafetyBlock => {
                let mut all = answer(json!([]), "content_filtered");
                all.extend(answer(json!([{"text": "blocked"}]), "guardrail_intervened"));
                all
            }
            Trouble::Empty => answer(json!([]), "end_turn"),
            Trouble::OnlyReasoning => {
                answer(json!([{"reasoningContent": {"reasoningText": {"text": text}}}]), "max_tokens")
            }
            Trouble::CutToolCall => answer(call(json!({"zulu": "a"})), "max_tokens"),
            Trouble::DoubleEncoded => {
                answer(call(serde_json::from_str(text).unwrap_or_default()), "tool_use")
            }
            _ => self.error_within("{\"zulu\": ", text).into_iter().collect(),
        }
    }

    fn schema_complaints(&self) -> Vec<(u16, &'static str)> {
        vec![
            (
                400,
                "The model returned the following errors: output_config.format.schema: For 'integer' type, properties maximum, minimum are not supported",
            ),
            (
                400,
                "This model doesn't support the outputConfig.textFormat field. Remove outputConfig.textFormat and try again.",
            ),
        ]
    }

    fn read_request(&self, request: &Request<Bytes>) -> SentRequest {
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let format = &body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"];
        let format = format.as_str().and_then(|text| serde_json::from_str(text).ok());
        let tool = &body["toolConfig"]["tools"][0]["toolSpec"];
        let input = || Some(tool["inputSchema"]["json"].clone()).filter(|schema| !schema.is_null());
        let is_strict = tool["strict"] == true;
        let system = json!({"role": "system", "content": body["system"]});
        let turns = body["messages"].as_array().into_iter().flatten();
        let messages = std::iter::once(&system).chain(turns).flat_map(|turn| {
            let role = turn["role"].as_str().unwrap_or_default();
            let blocks = turn["content"].as_array().into_iter().flatten();
            blocks.map(move |block| (role.to_owned(), block["text"].as_str().unwrap_or_default().to_owned()))
        });
        SentRequest {
            schema: format.or_else(|| input().filter(|_| is_strict)),
            tool: input().filter(|_| !is_strict),
            json_object: false,
            temperature: body["inferenceConfig"]["temperature"].as_f64(),
            top_p: body["inferenceConfig"]["topP"].as_f64(),
            seed: None,
            frequency_penalty: body["frequency_penalty"].as_f64(),
            max_tokens: body["inferenceConfig"]["maxTokens"].as_u64(),
            messages: messages.collect(),
        }
    }
}
