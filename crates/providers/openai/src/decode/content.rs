//! Reads the content of a message in all the forms that servers send.

use formwork_wire::FunctionShape;
use formwork_wire::lenient::Leaf;
use serde_json::Value;

use super::shape::{Call, Message};

/// Returns the text of a `content`. Thoughts and refusals in it are appended to `thoughts` and `refusal`.
pub(super) fn content_of(content: Leaf<'_>, thoughts: &mut String, refusal: &mut String) -> String {
    match content {
        Leaf::Other(json) if json.starts_with('[') => {
            text_of(serde_json::from_str(&json).unwrap_or_default(), thoughts, refusal)
        }
        // A document that the server has parsed already is among them.
        leaf => leaf.into_json(),
    }
}

/// Returns the text of a `content` that has the form of a string or an array of parts. Thoughts and refusals among the parts are
/// appended to `thoughts` and `refusal`.
fn text_of(content: Value, thoughts: &mut String, refusal: &mut String) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text,
        Value::Array(parts) => {
            let mut text = String::new();
            for part in &parts {
                let words = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default();
                match part.get("type").and_then(Value::as_str) {
                    // Mistral sends thoughts as an array of parts.
                    Some("thinking" | "reasoning") => thoughts.push_str(&thought(part)),
                    Some("refusal") => refusal.push_str(words("refusal")),
                    _ => text.push_str(part.as_str().unwrap_or_else(|| words("text"))),
                }
            }
            text
        }
        document => document.to_string(),
    }
}

fn thought(part: &Value) -> String {
    let inner = ["thinking", "reasoning", "text"].iter().find_map(|name| part.get(name));
    text_of(inner.cloned().unwrap_or_default(), &mut String::new(), &mut String::new())
}

/// Takes the thoughts out of a message. Only one of the two properties is read, because servers that send both repeat the text.
pub(super) fn reasoning(message: &mut Message<'_>) -> String {
    let members = [message.reasoning_content.take(), message.reasoning.take()];
    members.into_iter().find_map(Leaf::into_text).unwrap_or_default()
}

/// A piece of a tool call.
pub(super) struct CallPiece<'a> {
    pub(super) index: u64,
    /// The identifier of the call. Only the first piece of a call has it.
    pub(super) id: Leaf<'a>,
    /// The name of the tool. Only the first piece of a call has it.
    pub(super) name: Option<String>,
    /// The arguments. Some servers send parsed arguments in place of a string.
    pub(super) arguments: String,
}

/// Takes the tool calls out of a message, including the older `function_call`.
pub(super) fn calls<'a>(message: &mut Message<'a>) -> impl Iterator<Item = CallPiece<'a>> {
    let calls = message.tool_calls.0.take().unwrap_or_default().into_iter().zip(0..);
    let calls = calls.map(|(call, position)| {
        let Call { index, id, function, name, arguments } = call.0.unwrap_or_default();
        let function = function.0.unwrap_or(FunctionShape { name, arguments });
        (index.0.unwrap_or(position), id, function)
    });
    let older = message.function_call.0.take().map(|function| (0, Leaf::None, *function));
    calls.chain(older).map(|(index, id, function)| CallPiece {
        index,
        id,
        name: function.name.into_text(),
        arguments: function.arguments.into_json(),
    })
}
