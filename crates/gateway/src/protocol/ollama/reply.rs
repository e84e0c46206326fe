//! Responses of Ollama's APIs.

use serde_json::{Value, json};
use time::UtcDateTime;

use crate::problem::Problem;
use crate::protocol::base::to_json;
use crate::reply::{Called, Choice, Content, Finish, Meta, Reply};

/// Returns the body of a response.
pub(super) fn whole(is_chat: bool, reply: &Reply, meta: &Meta) -> Vec<u8> {
    let mut out = json!({"model": meta.model, "created_at": timestamp(meta.created)});
    let choice = reply.choices.first();
    let content = choice.map(|choice| &choice.content);
    match is_chat {
        true => out["message"] = content.map_or(Value::Null, message_of),
        false => out["response"] = content.map_or("", Content::text).into(),
    }
    if let Some(tokens) = choice.and_then(Choice::tokens) {
        out["logprobs"] = tokens.into();
    }
    think(is_chat, &mut out, choice.map_or("", |choice| &choice.thinking));
    end(&mut out, reply, meta);
    to_json(&out)
}

pub(in crate::protocol) fn error(problem: &Problem) -> Value {
    let mut error = json!({"error": problem.told()});
    if let Some(violations) = problem.violations() {
        error["violations"] = violations;
    }
    error
}

/// Adds the reasoning to a response or a line of one, if there is any.
pub(in crate::protocol) fn think(is_chat: bool, out: &mut Value, thinking: &str) {
    match is_chat {
        _ if thinking.is_empty() => {}
        true => out["message"]["thinking"] = thinking.into(),
        false => out["thinking"] = thinking.into(),
    }
}

pub(in crate::protocol) fn message_of(content: &Content) -> Value {
    let mut message = json!({"role": "assistant", "content": content.text()});
    if !content.calls().is_empty() {
        let call = |called: &Called| {
            let arguments = serde_json::from_str::<Value>(&called.arguments).unwrap_or_else(|_| json!({}));
            json!({"function": {"name": called.name, "arguments": arguments}})
        };
        message["tool_calls"] = content.calls().iter().map(call).collect();
    }
    message
}

pub(in crate::protocol) fn end(out: &mut Value, reply: &Reply, meta: &Meta) {
    let finish = reply.choices.first().map_or(Finish::Stop, |choice| choice.finish);
    out["done"] = true.into();
    out["done_reason"] = match finish {
        Finish::Length => "length",
        // The protocol has no finish reason for refusals; the text contains the reason.
        Finish::Refused | Finish::Filtered => "refusal",
        Finish::Stop | Finish::Call => "stop",
    }
    .into();
    out["prompt_eval_count"] = reply.usage.input_tokens.into();
    out["eval_count"] = reply.usage.output_tokens.into();
    out["formwork"] = json!(reply.extension(meta));
}

/// Returns a moment as RFC 3339 has it, in UTC.
pub(crate) fn timestamp(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let moment = UtcDateTime::from_unix_timestamp(seconds).unwrap_or(UtcDateTime::MAX);
    let (hour, minute, second) = moment.as_hms();
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", moment.date())
}

#[cfg(test)]
mod tests {
    use super::timestamp;

    #[test]
    fn moments_are_written_as_rfc_3339_has_them() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_392_061, "2026-11-23T00:01:01Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(timestamp(seconds), expected);
        }
    }
}
