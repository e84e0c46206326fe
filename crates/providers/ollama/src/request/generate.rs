//! The prompt for `/api/generate`.

use std::borrow::Cow;
use std::sync::Arc;

use formwork_core::{Fault, Message, Part, Role};
use formwork_wire::unsupported;
use serde::Serialize;

use super::images;

/// The prompt of `/api/generate`.
#[derive(Debug, Serialize)]
pub(super) struct Prompt<'a> {
    prompt: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
}

/// Converts the messages of a call to one prompt. Reasoning is dropped.
pub(super) fn prompt(messages: &[Arc<Message>]) -> Result<Prompt<'_>, Fault> {
    let has_tools = |message: &Arc<Message>| {
        message.role == Role::Tool
            || message.parts.iter().any(|part| {
                !matches!(
                    part,
                    Part::Text { .. } | Part::Image { .. } | Part::Reasoning { .. } | Part::Original(_)
                )
            })
    };
    if messages.iter().any(has_tools) {
        return Err(unsupported(
            "the generate API does not support tool calls and their results: use the chat API",
        ));
    }
    let leading = messages.iter().take_while(|message| message.role == Role::System).count();
    let (system, dialogue) = messages.split_at(leading);
    let system: Vec<_> = system.iter().map(|message| message.joined()).collect();
    Ok(Prompt {
        prompt: written_out(dialogue),
        system: (!system.is_empty()).then(|| system.join("\n\n")),
        images: images(messages.iter().flat_map(|message| &message.parts)),
    })
}

/// Returns a single user message unchanged, and a longer dialogue with the name of the role before each turn. It ends with the
/// name of the model's role.
fn written_out(dialogue: &[Arc<Message>]) -> Cow<'_, str> {
    match dialogue {
        [] => return Cow::Borrowed(""),
        [only] if only.role == Role::User => return only.joined(),
        _ => {}
    }
    let speaker = |role| match role {
        Role::System => "System",
        Role::Assistant => "Assistant",
        Role::User | Role::Tool => "User",
    };
    let mut turns: Vec<String> =
        dialogue.iter().map(|message| format!("{}: {}", speaker(message.role), message.joined())).collect();
    if dialogue.last().is_some_and(|last| last.role != Role::Assistant) {
        turns.push("Assistant:".to_owned());
    }
    Cow::Owned(turns.join("\n\n"))
}
