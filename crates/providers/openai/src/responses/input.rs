//! The messages of a call as `instructions` and `input` of the request.

use std::borrow::Cow;
use std::sync::Arc;

use formwork_core::{Enforcement, Fault, Message, Part, Role};
use formwork_wire::{bad_request, misplaced};
use serde::Serialize;

use crate::SystemRole;
use crate::encode::text_alone;

/// An item of `input`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    Message { role: &'static str, content: Vec<Content<'a>> },
    FunctionCall { call_id: &'a str, name: &'a str, arguments: String },
    FunctionCallOutput { call_id: &'a str, output: &'a str },
}

/// A part of a message.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Content<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: String },
    OutputText { text: Cow<'a, str> },
}

/// The instructions and the input of a request.
pub(super) struct Input<'a> {
    pub(super) instructions: Option<Cow<'a, str>>,
    pub(super) items: Vec<Item<'a>>,
}

/// Converts the messages of a call: the first system message to `instructions`, all others to items. Reasoning is dropped,
/// because the API accepts only reasoning that it has encrypted itself.
pub(super) fn input(
    messages: &[Arc<Message>],
    system: SystemRole,
    enforcement: Enforcement,
) -> Result<Input<'_>, Fault> {
    let (instructions, rest) = match messages {
        // The API refuses an input without items. For `json_object` it requires the word "json" in the items, and
        // instructions do not count.
        [first, rest @ ..]
            if first.role == Role::System && !rest.is_empty() && enforcement != Enforcement::JsonObject =>
        {
            (Some(text_alone(first)?), rest)
        }
        all => (None, all),
    };
    let mut items = Vec::with_capacity(rest.len());
    for message in rest {
        write(message, system, &mut items)?;
    }
    Ok(Input { instructions, items })
}

/// Appends the items for one message: tool results, then a message with the other parts, then tool calls.
fn write<'a>(message: &'a Message, system: SystemRole, items: &mut Vec<Item<'a>>) -> Result<(), Fault> {
    let role = match (message.role, system) {
        (Role::System, SystemRole::System) => "system",
        (Role::System, SystemRole::Developer) => "developer",
        (Role::Assistant, _) => "assistant",
        (Role::User | Role::Tool, _) => "user",
    };
    let (mut content, mut calls, mut has_result) = (Vec::new(), Vec::new(), false);
    for part in &message.parts {
        match part {
            Part::Reasoning { .. } | Part::Original(_) => {}
            Part::ToolResult { id, text } => {
                has_result = true;
                items.push(Item::FunctionCallOutput { call_id: id, output: text });
            }
            Part::Text { text } if message.role == Role::Assistant => {
                content.push(Content::OutputText { text: Cow::Borrowed(text) });
            }
            Part::Text { text } if message.role != Role::Tool => {
                content.push(Content::InputText { text: Cow::Borrowed(text) });
            }
            Part::Text { .. } => {
                return Err(bad_request("a tool message can contain only tool results"));
            }
            Part::Image { media_type, data } if message.role == Role::User => {
                let image_url = format!("data:{media_type};base64,{data}");
                content.push(Content::InputImage { image_url });
            }
            Part::ToolCall { id, name, arguments } if message.role == Role::Assistant => {
                calls.push(Item::FunctionCall { call_id: id, name, arguments: arguments.to_string() });
            }
            other => return Err(misplaced(other, message.role)),
        }
    }
    // An empty message is kept, so that the turns of the dialogue alternate as before.
    if content.is_empty() && calls.is_empty() && !has_result {
        let text = Cow::Borrowed("");
        content.push(match message.role {
            Role::Assistant => Content::OutputText { text },
            _ => Content::InputText { text },
        });
    }
    if !content.is_empty() {
        items.push(Item::Message { role, content });
    }
    items.append(&mut calls);
    Ok(())
}
