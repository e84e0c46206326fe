//! Messages for `/api/chat`.

use std::borrow::Cow;
use std::sync::Arc;

use formwork_core::{Fault, Message, Part, Role, Tool};
use formwork_wire::unsupported;
use serde::Serialize;
use serde_json::{Value, json};

use super::images;

/// The prompt of `/api/chat`.
#[derive(Debug, Serialize)]
pub(super) struct Chat<'a> {
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
}

#[derive(Debug, Serialize)]
struct Turn<'a> {
    role: Role,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Value>,
    /// The name of the tool, by which Ollama matches results; it has no identifiers.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
}

/// Converts the messages and the tools of a call. Reasoning is dropped.
pub(super) fn prompt<'a>(messages: &'a [Arc<Message>], tools: &[Tool]) -> Result<Chat<'a>, Fault> {
    let mut turns = Vec::with_capacity(messages.len());
    for message in messages {
        let results = message.parts.iter().filter_map(|part| match part {
            Part::ToolResult { id, text } => Some((id, text)),
            _ => None,
        });
        turns.extend(results.map(|(id, text)| Turn {
            role: Role::Tool,
            content: Cow::Borrowed(text),
            images: Vec::new(),
            tool_calls: Vec::new(),
            tool_name: tool_name(messages, id),
        }));
        let mut tool_calls = Vec::new();
        let mut says = false;
        for part in &message.parts {
            match part {
                Part::Text { .. } | Part::Image { .. } => says = true,
                Part::ToolCall { name, arguments, .. } => {
                    tool_calls.push(json!({"function": {"name": name, "arguments": arguments}}));
                }
                Part::ToolResult { .. } | Part::Reasoning { .. } | Part::Original(_) => {}
                other => {
                    return Err(unsupported(format!(
                        "Ollama does not support this part of a message: {other:?}"
                    )));
                }
            }
        }
        if says || !tool_calls.is_empty() {
            turns.push(Turn {
                role: message.role,
                content: message.joined(),
                images: images(message.parts.iter()),
                tool_calls,
                tool_name: None,
            });
        }
    }
    let tools = tools.iter().map(|Tool { name, description, parameters }| {
        let function = json!({"name": name, "description": description, "parameters": parameters});
        json!({"type": "function", "function": function})
    });
    Ok(Chat { messages: turns, tools: tools.collect() })
}

/// Returns the name of the tool that was called with this identifier.
fn tool_name<'m>(messages: &'m [Arc<Message>], called: &str) -> Option<&'m str> {
    messages.iter().flat_map(|message| &message.parts).find_map(|part| match part {
        Part::ToolCall { id, name, .. } if id == called => Some(name.as_str()),
        _ => None,
    })
}
