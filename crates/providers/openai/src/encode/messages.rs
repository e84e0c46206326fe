//! The messages of a call as `messages` of the request.

use std::borrow::Cow;
use std::sync::Arc;

use formwork_core::{Call, Fault, Message, Part, Role};
use formwork_wire::{bad_request, misplaced};
use serde::Serialize;

use crate::{OpenAi, SystemRole};

/// A message of a request. The types of `async-openai` own their texts, so that each call would copy the dialogue.
#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum ChatMessage<'a> {
    System {
        content: Cow<'a, str>,
    },
    Developer {
        content: Cow<'a, str>,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
    },
    Tool {
        content: &'a str,
        tool_call_id: &'a str,
    },
}

/// The content of a user's message.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
pub(super) struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ToolCall<'a> {
    Function { id: &'a str, function: FunctionCall<'a> },
}

#[derive(Serialize)]
pub(super) struct FunctionCall<'a> {
    name: &'a str,
    arguments: String,
}

/// Converts the messages of a call. Thoughts are dropped, because servers refuse them or charge for them.
pub(super) fn messages(messages: &[Arc<Message>], system: SystemRole) -> Result<Vec<ChatMessage<'_>>, Fault> {
    let mut written = Vec::with_capacity(messages.len());
    for message in messages {
        write(message, system, &mut written)?;
    }
    Ok(written)
}

/// Returns the messages of a call. Late system messages are merged into user messages if the model does not support them.
pub(crate) fn dialogue<'a>(wire: &OpenAi, call: &'a Call) -> Cow<'a, [Arc<Message>]> {
    if wire.capabilities.late_system {
        Cow::Borrowed(&call.messages)
    } else {
        Cow::Owned(without_late_system(&call.messages))
    }
}

/// Returns the dialogue with late system messages (those after a message of another role) merged into user messages: into the
/// next one, or else into the last one.
fn without_late_system(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut folded: Vec<Arc<Message>> = Vec::with_capacity(messages.len());
    let mut late = String::new();
    let mut has_begun = false;
    for message in messages {
        has_begun |= message.role != Role::System;
        if has_begun && message.role == Role::System {
            late.push_str(&message.joined());
            late.push_str("\n\n");
            continue;
        }
        let mut message = Arc::clone(message);
        if message.role == Role::User && !late.is_empty() {
            let text = std::mem::take(&mut late);
            Arc::make_mut(&mut message).parts.insert(0, Part::Text { text });
        }
        folded.push(message);
    }
    let late = late.trim_end();
    if !late.is_empty() {
        match folded.last_mut().filter(|last| last.role == Role::User) {
            Some(last) => Arc::make_mut(last).parts.push(Part::Text { text: format!("\n\n{late}") }),
            None => folded.push(Arc::new(Message::user(late))),
        }
    }
    folded
}

/// Appends the API's messages for one message. Each tool result becomes a separate message before the other parts.
fn write<'a>(message: &'a Message, system: SystemRole, out: &mut Vec<ChatMessage<'a>>) -> Result<(), Fault> {
    let (mut results, mut others) = (0, 0);
    for part in &message.parts {
        match part {
            Part::ToolResult { id, text } => {
                results += 1;
                out.push(ChatMessage::Tool { content: text, tool_call_id: id });
            }
            Part::Reasoning { .. } | Part::Original(_) => {}
            _ => others += 1,
        }
    }
    if results > 0 && others == 0 {
        return Ok(());
    }
    out.push(match (message.role, system) {
        (Role::System, SystemRole::System) => ChatMessage::System { content: text_alone(message)? },
        (Role::System, SystemRole::Developer) => ChatMessage::Developer { content: text_alone(message)? },
        (Role::User, _) => ChatMessage::User { content: user_content(message)? },
        (Role::Assistant, _) => assistant(message)?,
        (Role::Tool, _) => return Err(bad_request("a tool message can contain only tool results")),
    });
    Ok(())
}

fn user_content(message: &Message) -> Result<Content<'_>, Fault> {
    if !message.parts.iter().any(|part| matches!(part, Part::Image { .. })) {
        return text_alone(message).map(Content::Text);
    }
    let mut parts = Vec::with_capacity(message.parts.len());
    for part in &message.parts {
        match part {
            Part::Text { text } => parts.push(ContentPart::Text { text }),
            Part::Image { media_type, data } => {
                let image_url = ImageUrl { url: format!("data:{media_type};base64,{data}") };
                parts.push(ContentPart::ImageUrl { image_url });
            }
            Part::Reasoning { .. } | Part::Original(_) | Part::ToolResult { .. } => {}
            other => return Err(misplaced(other, message.role)),
        }
    }
    Ok(Content::Parts(parts))
}

fn assistant(message: &Message) -> Result<ChatMessage<'_>, Fault> {
    let mut tool_calls = Vec::new();
    for part in &message.parts {
        match part {
            Part::ToolCall { id, name, arguments } => {
                let function = FunctionCall { name, arguments: arguments.to_string() };
                tool_calls.push(ToolCall::Function { id, function });
            }
            Part::Text { .. } | Part::Reasoning { .. } | Part::Original(_) | Part::ToolResult { .. } => {}
            other => return Err(misplaced(other, message.role)),
        }
    }
    let text = message.joined();
    // A message without calls must have a content, even an empty one.
    let content = (tool_calls.is_empty() || !text.is_empty()).then_some(text);
    Ok(ChatMessage::Assistant { content, tool_calls })
}

/// Returns the text of a message that may have no other content.
pub(crate) fn text_alone(message: &Message) -> Result<Cow<'_, str>, Fault> {
    let other = message.parts.iter().find(|part| {
        !matches!(
            part,
            Part::Text { .. } | Part::Reasoning { .. } | Part::Original(_) | Part::ToolResult { .. }
        )
    });
    match other {
        Some(other) => Err(misplaced(other, message.role)),
        None => Ok(message.joined()),
    }
}
