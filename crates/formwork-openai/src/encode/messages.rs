//! The messages of a call as `messages` of the request.

use async_openai::types::chat::{
    ChatCompletionMessageToolCall, ChatCompletionMessageToolCalls, ChatCompletionRequestAssistantMessage,
    ChatCompletionRequestAssistantMessageContent, ChatCompletionRequestDeveloperMessage,
    ChatCompletionRequestDeveloperMessageContent, ChatCompletionRequestMessage,
    ChatCompletionRequestMessageContentPartImage, ChatCompletionRequestMessageContentPartText,
    ChatCompletionRequestSystemMessage, ChatCompletionRequestSystemMessageContent,
    ChatCompletionRequestToolMessage, ChatCompletionRequestToolMessageContent,
    ChatCompletionRequestUserMessage, ChatCompletionRequestUserMessageContent,
    ChatCompletionRequestUserMessageContentPart as UserPart, FunctionCall, ImageUrl,
};
use formwork_core::{Fault, Message, Part, Role};

use super::bad_request;
use crate::SystemRole;

/// Converts the messages of a call. Thoughts are dropped, because servers refuse them or charge for them.
pub(super) fn messages(
    messages: &[Message],
    system: SystemRole,
) -> Result<Vec<ChatCompletionRequestMessage>, Fault> {
    let mut written = Vec::with_capacity(messages.len());
    for message in messages {
        write(message, system, &mut written)?;
    }
    Ok(written)
}

/// Returns the dialogue with late system messages (those after a message of another role) merged into user messages: into the
/// next one, or else into the last one.
pub(crate) fn without_late_system(messages: &[Message]) -> Vec<Message> {
    let mut folded: Vec<Message> = Vec::with_capacity(messages.len());
    let mut late = String::new();
    let mut has_begun = false;
    for message in messages {
        has_begun |= message.role != Role::System;
        if has_begun && message.role == Role::System {
            late.push_str(&message.text());
            late.push_str("\n\n");
            continue;
        }
        let mut message = message.clone();
        if message.role == Role::User && !late.is_empty() {
            message.parts.insert(0, Part::Text { text: std::mem::take(&mut late) });
        }
        folded.push(message);
    }
    let late = late.trim_end();
    if !late.is_empty() {
        match folded.last_mut().filter(|last| last.role == Role::User) {
            Some(last) => last.parts.push(Part::Text { text: format!("\n\n{late}") }),
            None => folded.push(Message::user(late)),
        }
    }
    folded
}

/// Appends the API's messages for one message. Each tool result becomes a separate message before the other parts.
fn write(
    message: &Message,
    system: SystemRole,
    out: &mut Vec<ChatCompletionRequestMessage>,
) -> Result<(), Fault> {
    let (mut results, mut others) = (0, 0);
    for part in &message.parts {
        match part {
            Part::ToolResult { id, text } => {
                results += 1;
                let content = ChatCompletionRequestToolMessageContent::Text(text.clone());
                let result = ChatCompletionRequestToolMessage { content, tool_call_id: id.clone() };
                out.push(ChatCompletionRequestMessage::Tool(result));
            }
            Part::Reasoning { .. } => {}
            _ => others += 1,
        }
    }
    if results > 0 && others == 0 {
        return Ok(());
    }
    out.push(match message.role {
        Role::System => instruction(text_alone(message, "a system message")?, system),
        Role::User => {
            let content = user_content(message)?;
            ChatCompletionRequestMessage::User(ChatCompletionRequestUserMessage { content, name: None })
        }
        Role::Assistant => ChatCompletionRequestMessage::Assistant(assistant(message)?),
        Role::Tool => return Err(bad_request("a tool message can contain only tool results")),
    });
    Ok(())
}

fn instruction(text: String, role: SystemRole) -> ChatCompletionRequestMessage {
    match role {
        SystemRole::System => {
            let content = ChatCompletionRequestSystemMessageContent::Text(text);
            ChatCompletionRequestMessage::System(ChatCompletionRequestSystemMessage { content, name: None })
        }
        SystemRole::Developer => {
            let content = ChatCompletionRequestDeveloperMessageContent::Text(text);
            ChatCompletionRequestMessage::Developer(ChatCompletionRequestDeveloperMessage {
                content,
                name: None,
            })
        }
    }
}

/// Returns plain text as one string, which every server accepts, and any other content as parts.
fn user_content(message: &Message) -> Result<ChatCompletionRequestUserMessageContent, Fault> {
    if !message.parts.iter().any(|part| matches!(part, Part::Image { .. })) {
        return text_alone(message, "a user message").map(ChatCompletionRequestUserMessageContent::Text);
    }
    let mut parts = Vec::with_capacity(message.parts.len());
    for part in &message.parts {
        match part {
            Part::Text { text } => parts.push(UserPart::Text(ChatCompletionRequestMessageContentPartText {
                text: text.clone(),
                prompt_cache_breakpoint: None,
            })),
            Part::Image { media_type, data } => {
                // A data URL (RFC 2397).
                let image_url = ImageUrl { url: format!("data:{media_type};base64,{data}"), detail: None };
                let image =
                    ChatCompletionRequestMessageContentPartImage { image_url, prompt_cache_breakpoint: None };
                parts.push(UserPart::ImageUrl(image));
            }
            Part::Reasoning { .. } | Part::ToolResult { .. } => {}
            other => return Err(misplaced(other, "a user message")),
        }
    }
    Ok(ChatCompletionRequestUserMessageContent::Array(parts))
}

fn assistant(message: &Message) -> Result<ChatCompletionRequestAssistantMessage, Fault> {
    let mut calls = Vec::new();
    for part in &message.parts {
        match part {
            Part::ToolCall { id, name, arguments } => {
                let function = FunctionCall { name: name.clone(), arguments: arguments.to_string() };
                let call = ChatCompletionMessageToolCall { id: id.clone(), function };
                calls.push(ChatCompletionMessageToolCalls::Function(call));
            }
            Part::Text { .. } | Part::Reasoning { .. } | Part::ToolResult { .. } => {}
            other => return Err(misplaced(other, "an assistant message")),
        }
    }
    let text = message.text();
    // A message without calls must have a content, even an empty one.
    let content = (calls.is_empty() || !text.is_empty())
        .then_some(ChatCompletionRequestAssistantMessageContent::Text(text));
    let tool_calls = (!calls.is_empty()).then_some(calls);
    Ok(ChatCompletionRequestAssistantMessage { content, tool_calls, ..Default::default() })
}

pub(crate) fn text_alone(message: &Message, place: &str) -> Result<String, Fault> {
    let other = message
        .parts
        .iter()
        .find(|part| !matches!(part, Part::Text { .. } | Part::Reasoning { .. } | Part::ToolResult { .. }));
    match other {
        Some(other) => Err(misplaced(other, place)),
        None => Ok(message.text()),
    }
}

pub(crate) fn misplaced(part: &Part, place: &str) -> Fault {
    let what = match part {
        Part::Image { .. } => "an image",
        Part::ToolCall { .. } => "a tool call",
        _ => "a part of an unknown type",
    };
    bad_request(format!("{place} cannot contain {what}"))
}
