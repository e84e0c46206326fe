//! Responses of the Messages API.

use formwork_core::Usage;
use serde_json::{Value, json};

use crate::problem::Problem;
use crate::protocol::base::to_json;
use crate::reply::{Called, Choice, Content, Finish, Meta, Reply};

/// Returns the body of a response.
pub(super) fn whole(reply: &Reply, meta: &Meta) -> Vec<u8> {
    let mut message = head(meta);
    if let Some(choice) = reply.choices.first() {
        message["content"] = blocks(choice, meta).into();
        message["stop_reason"] = stop_reason(choice.finish).into();
    }
    message["usage"] = usage(reply, meta);
    to_json(&message)
}

pub(in crate::protocol) fn error(problem: &Problem) -> Value {
    let mut error = json!({"type": problem.kind.anthropic(), "message": problem.told()});
    if let Some(violations) = problem.violations() {
        error["violations"] = violations;
    }
    json!({"type": "error", "error": error})
}

pub(in crate::protocol) fn head(meta: &Meta) -> Value {
    json!({
        "id": meta.id("msg_"), "type": "message", "role": "assistant", "model": meta.model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 0, "output_tokens": 0},
    })
}

/// Returns the blocks of an answer: its reasoning, its text, and its calls.
fn blocks(Choice { thinking, content, .. }: &Choice, meta: &Meta) -> Vec<Value> {
    let thinking = (!thinking.is_empty()).then(|| thinking_block(thinking));
    // Only a text may be empty.
    let has_text = matches!(content, Content::Text(_)) || !content.text().is_empty();
    let text = has_text.then(|| json!({"type": "text", "text": content.text()}));
    let call = |(nth, called): (usize, &Called)| {
        let input = serde_json::from_str::<Value>(&called.arguments).unwrap_or_else(|_| json!({}));
        json!({"type": "tool_use", "id": meta.call_id("toolu_", 0, nth), "name": called.name, "input": input})
    };
    thinking.into_iter().chain(text).chain(content.calls().iter().enumerate().map(call)).collect()
}

/// Returns a block of reasoning. No other vendor signs it.
pub(in crate::protocol) fn thinking_block(text: &str) -> Value {
    json!({"type": "thinking", "thinking": text, "signature": ""})
}

pub(in crate::protocol) const fn stop_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::Refused | Finish::Filtered => "refusal",
        Finish::Call => "tool_use",
    }
}

pub(in crate::protocol) fn usage(reply: &Reply, meta: &Meta) -> Value {
    // Anthropic counts tokens that were read from its cache or written to it separately.
    let Usage { input_tokens, cached_tokens, written_tokens, written_hour_tokens, .. } = reply.usage;
    let mut usage = json!({
        "input_tokens": input_tokens.saturating_sub(cached_tokens.saturating_add(written_tokens)),
        "cache_creation_input_tokens": written_tokens,
        "cache_read_input_tokens": cached_tokens,
        "output_tokens": reply.usage.output_tokens,
        "formwork": reply.extension(meta),
    });
    if written_tokens > 0 {
        usage["cache_creation"] = json!({
            "ephemeral_5m_input_tokens": written_tokens.saturating_sub(written_hour_tokens),
            "ephemeral_1h_input_tokens": written_hour_tokens,
        });
    }
    usage
}
