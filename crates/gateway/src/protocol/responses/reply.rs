//! Responses of the Responses API.

use serde_json::{Value, json};

use crate::protocol::base::to_json;
use crate::reply::{Called, Choice, Content, Meta, Reply};

pub(super) use crate::protocol::openai::error;

/// Returns the body of a response.
pub(super) fn whole(reply: &Reply, meta: &Meta) -> Vec<u8> {
    to_json(&document(reply, meta))
}

pub(in crate::protocol) fn head(meta: &Meta, status: &str) -> Value {
    json!({
        "id": meta.id("resp_"), "object": "response", "created_at": meta.created, "status": status,
        "model": meta.model, "output": [], "error": null, "incomplete_details": null, "instructions": null,
        "metadata": {}, "parallel_tool_calls": true, "temperature": null, "tool_choice": "auto", "tools": [],
        "top_p": null, "usage": null,
    })
}

pub(in crate::protocol) fn document(reply: &Reply, meta: &Meta) -> Value {
    let choice = reply.choices.first();
    let reason = choice.and_then(|choice| choice.finish.incomplete());
    let status = if reason.is_some() { "incomplete" } else { "completed" };
    let mut whole = head(meta, status);
    if reason.is_some() {
        whole["incomplete_details"] = json!({"reason": reason});
    }
    whole["output"] = choice.map(|choice| items(choice, meta, status)).unwrap_or_default().into();
    let usage = reply.usage;
    whole["usage"] = json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
        "formwork": reply.extension(meta),
    });
    if usage.written_tokens > 0 {
        whole["usage"]["input_tokens_details"]["cache_write_tokens"] = usage.written_tokens.into();
    }
    whole
}

/// Returns the items of an answer: its reasoning, its text, and its calls.
fn items(choice: &Choice, meta: &Meta, status: &str) -> Vec<Value> {
    let Choice { thinking, content, .. } = choice;
    let summary = json!([{"type": "summary_text", "text": thinking}]);
    let thinking = (!thinking.is_empty())
        .then(|| json!({"type": "reasoning", "id": meta.id("rs_"), "summary": summary}));
    let has_text = !matches!(content, Content::Calls { text, .. } if text.is_empty());
    let mut message = has_text.then(|| message_item(content, meta, status));
    if let (Some(message), Some(tokens)) = (&mut message, choice.tokens()) {
        message["content"][0]["logprobs"] = tokens.into();
    }
    let calls = content.calls().iter().enumerate().map(|(nth, called)| call_item(called, meta, nth, status));
    thinking.into_iter().chain(message).chain(calls).collect()
}

pub(in crate::protocol) fn message_item(content: &Content, meta: &Meta, status: &str) -> Value {
    json!({
        "type": "message", "id": meta.id("msg_"), "role": "assistant", "status": status, "content": [part(content)],
    })
}

pub(in crate::protocol) fn call_item(called: &Called, meta: &Meta, nth: usize, status: &str) -> Value {
    json!({
        "type": "function_call", "id": meta.call_id("fc_", 0, nth), "call_id": meta.call_id("call_", 0, nth),
        "name": called.name, "arguments": called.arguments, "status": status,
    })
}

pub(in crate::protocol) fn part(content: &Content) -> Value {
    match content {
        Content::Refusal(reason) => json!({"type": "refusal", "refusal": reason}),
        content => json!({"type": "output_text", "text": content.text(), "annotations": [], "logprobs": []}),
    }
}
