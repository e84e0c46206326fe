//! Reads the content of a message in all the forms that servers send.

use formwork_wire::lenient::Leaf;
use serde_json::Value;

use super::shape::Message;

/// Returns the text of a `content`. Thoughts and refusals in it are appended to `thoughts` and `refusal`.
pub(super) fn content_of(content: Leaf<'_>, thoughts: &mut String, refusal: &mut String) -> String {
    match content {
        Leaf::Other(value) => text_of(*value, thoughts, refusal),
        leaf => leaf.into_json(),
    }
}

/// Returns the text of a `content` that has the form of a string, an array of parts, or a document that the server has parsed already. Thoughts and
/// refusals among the parts are appended to `thoughts` and `refusal`.
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
    pub(super) id: Option<&'a str>,
    /// The name of the tool. Only the first piece of a call has it.
    pub(super) name: Option<&'a str>,
    pub(super) arguments: String,
}

/// Returns the tool calls in a message, including the older `function_call`.
pub(super) fn calls<'a>(message: &'a Message<'_>) -> impl Iterator<Item = CallPiece<'a>> {
    let calls = message.tool_calls.value().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let calls = calls.iter().enumerate().map(|(place, call)| {
        let index = call.get("index").and_then(Value::as_u64).unwrap_or(place as u64);
        (index, call.get("id"), call.get("function").unwrap_or(call))
    });
    let older = message.function_call.value().filter(|call| call.is_object()).map(|call| (0, None, call));
    calls.chain(older).map(|(index, id, function)| CallPiece {
        index,
        id: id.and_then(Value::as_str),
        name: function.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()),
        arguments: match function.get("arguments") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            // Some servers send parsed arguments in place of a string.
            Some(arguments) => arguments.to_string(),
        },
    })
}
