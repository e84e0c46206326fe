//! Responses of Chat Completions, and the errors of both protocols of OpenAI.

use formwork_core::Usage;
use serde::Serialize;
use serde_json::{Value, json};

use crate::problem::Problem;
use crate::protocol::base::to_json;
use crate::reply::{self, Called, Content, Finish, Meta, Reply};

/// Returns the body of a response.
pub(super) fn whole(reply: &Reply, meta: &Meta) -> Vec<u8> {
    let choices = reply.choices.iter().enumerate().map(|(nth, choice)| {
        let (content, refusal, calls) = match &choice.content {
            Content::Text(text) => (Some(text.as_str()), None, None),
            Content::Refusal(reason) => (None, Some(reason.as_str()), None),
            Content::Calls { text, calls } => {
                let calls = calls.iter().enumerate().map(|(at, one)| call(one, meta, (nth, at)));
                (Some(text.as_str()).filter(|text| !text.is_empty()), None, Some(calls.collect()))
            }
        };
        let thinking = Some(choice.thinking.as_str()).filter(|thinking| !thinking.is_empty());
        let message =
            Answered { role: "assistant", reasoning_content: thinking, content, refusal, tool_calls: calls };
        Chosen {
            index: nth,
            message,
            logprobs: choice.tokens().map(|content| json!({"content": content, "refusal": null})),
            finish_reason: finish(choice.finish),
        }
    });
    to_json(&Completion {
        id: meta.id("chatcmpl-"),
        object: "chat.completion",
        created: meta.created,
        model: &meta.model,
        choices: choices.collect(),
        usage: usage(reply, meta),
        system_fingerprint: (),
    })
}

/// Returns the error of both protocols of OpenAI.
pub(in crate::protocol) fn error(problem: &Problem) -> Value {
    let mut error = json!({
        "message": problem.told(), "type": problem.kind.openai(), "param": problem.param, "code": problem.code(),
    });
    if let Some(violations) = problem.violations() {
        error["violations"] = violations;
    }
    json!({"error": error})
}

fn call(called: &Called, meta: &Meta, (answer, nth): (usize, usize)) -> Value {
    json!({
        "id": meta.call_id("call_", answer, nth), "type": "function",
        "function": {"name": called.name, "arguments": called.arguments},
    })
}

pub(in crate::protocol) const fn finish(finish: Finish) -> &'static str {
    match finish {
        // The message reports the refusal; the official parsers check the finish reason first.
        Finish::Stop | Finish::Refused => "stop",
        Finish::Length => "length",
        Finish::Filtered => "content_filter",
        Finish::Call => "tool_calls",
    }
}

/// A response. Its parts are types, because a tree of values takes several times as long to build and to write.
#[derive(Serialize)]
struct Completion<'r> {
    id: String,
    object: &'static str,
    created: u64,
    model: &'r str,
    choices: Vec<Chosen<'r>>,
    usage: Used<'r>,
    system_fingerprint: (),
}

#[derive(Serialize)]
struct Chosen<'r> {
    index: usize,
    message: Answered<'r>,
    logprobs: Option<Value>,
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Answered<'r> {
    role: &'static str,
    /// OpenAI's API does not show reasoning; DeepSeek, vLLM and other servers have this name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'r str>,
    content: Option<&'r str>,
    refusal: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Vec<Value>>,
}

#[derive(Serialize)]
pub(in crate::protocol) struct Used<'r> {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: Cached,
    completion_tokens_details: Reasoned,
    formwork: reply::Extension<'r>,
}

#[derive(Serialize)]
struct Cached {
    cached_tokens: u64,
    /// OpenRouter's and LiteLLM's count; OpenAI has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_tokens: Option<u64>,
}

#[derive(Serialize)]
struct Reasoned {
    reasoning_tokens: u64,
}

pub(in crate::protocol) fn usage<'r>(reply: &'r Reply, meta: &'r Meta) -> Used<'r> {
    let Usage { input_tokens, output_tokens, cached_tokens, written_tokens, reasoning_tokens, .. } =
        reply.usage;
    let cache_write_tokens = Some(written_tokens).filter(|written| *written > 0);
    Used {
        prompt_tokens: input_tokens,
        completion_tokens: output_tokens,
        total_tokens: input_tokens.saturating_add(output_tokens),
        prompt_tokens_details: Cached { cached_tokens, cache_write_tokens },
        completion_tokens_details: Reasoned { reasoning_tokens },
        formwork: reply.extension(meta),
    }
}
