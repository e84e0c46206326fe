//! The messages of a call as `systemInstruction` and `contents` of the request.

use std::collections::HashMap;
use std::sync::Arc;

use formwork_core::{Fault, Message, Part, Role};
use serde_json::{Map, Value, json};

use super::bad_request;

/// Returns the properties `systemInstruction` and `contents`.
///
/// System messages at the beginning become the instruction. A later system message becomes text of a user turn, because the
/// API has a single instruction. Adjacent messages of one role become one content. Thoughts are dropped.
pub(super) fn dialogue(messages: &[Arc<Message>]) -> Result<Map<String, Value>, Fault> {
    let begun = messages.iter().position(|message| message.role != Role::System).unwrap_or(messages.len());
    let (mut system, mut rest) = messages.split_at(begun);
    if rest.is_empty() {
        // The API requires at least one content.
        (system, rest) = (rest, system);
    }
    let mut instruction = Vec::new();
    for message in system {
        instruction.extend(parts(message, &HashMap::new())?);
    }
    // The API identifies a function result by the function's name, and our results have the identifier of the call.
    let names: HashMap<&str, &str> = messages
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            Part::ToolCall { id, name, .. } => Some((id.as_str(), name.as_str())),
            _ => None,
        })
        .collect();
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in rest {
        let role = if message.role == Role::Assistant { "model" } else { "user" };
        let parts = parts(message, &names)?;
        match contents.last_mut() {
            Some((last, all)) if *last == role => all.extend(parts),
            _ if parts.is_empty() => {}
            _ => contents.push((role, parts)),
        }
    }
    if contents.is_empty() {
        return Err(bad_request("the call has no messages"));
    }
    let contents = contents.into_iter().map(|(role, parts)| json!({"role": role, "parts": parts}));
    let mut members = Map::new();
    if !instruction.is_empty() {
        members.insert("systemInstruction".to_owned(), json!({"parts": instruction}));
    }
    members.insert("contents".to_owned(), contents.collect());
    Ok(members)
}

/// Returns the parts of a message. Empty texts are dropped because the API refuses them.
fn parts(message: &Message, names: &HashMap<&str, &str>) -> Result<Vec<Value>, Fault> {
    let mut written = Vec::with_capacity(message.parts.len());
    for part in &message.parts {
        written.push(match part {
            Part::Text { text } if text.is_empty() => continue,
            Part::Reasoning { .. } => continue,
            Part::Text { text } => json!({"text": text}),
            Part::Image { media_type, data } if message.role == Role::User => {
                json!({"inlineData": {"mimeType": media_type, "data": data}})
            }
            Part::ToolCall { name, arguments, .. } if message.role == Role::Assistant => {
                json!({"functionCall": {"name": name, "args": arguments}})
            }
            Part::ToolResult { id, text } if message.role != Role::System => {
                let name = names.get(id.as_str()).copied().unwrap_or(id);
                let result = serde_json::from_str(text).ok().filter(Value::is_object);
                let result = result.unwrap_or_else(|| json!({"result": text}));
                json!({"functionResponse": {"name": name, "response": result}})
            }
            other => return Err(misplaced(other, message.role)),
        });
    }
    Ok(written)
}

fn misplaced(part: &Part, role: Role) -> Fault {
    let what = match part {
        Part::Image { .. } => "an image",
        Part::ToolCall { .. } => "a tool call",
        Part::ToolResult { .. } => "a tool result",
        _ => "a part of an unknown type",
    };
    let place = match role {
        Role::System => "a system message",
        Role::User => "a user message",
        Role::Assistant => "an assistant message",
        Role::Tool => "a tool message",
    };
    bad_request(format!("{place} cannot contain {what}"))
}
