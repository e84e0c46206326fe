//! The dialogue.

use std::borrow::Cow;
use std::sync::Arc;

use formwork_core::{Fault, Message, Part, Role};
use serde::Serialize;
use serde_json::Value;

use super::{bad_request, unsupported};

/// The dialogue as the API takes it: instructions apart, and turns of two roles that alternate.
pub(super) struct Dialogue<'a> {
    pub(super) system: Vec<Block<'a>>,
    pub(super) turns: Vec<Turn<'a>>,
}

#[derive(Serialize)]
pub(super) struct Turn<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source<'a>,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum CacheControl {
    /// Kept for five minutes.
    Ephemeral,
}

/// Returns the dialogue of these messages.
///
/// System messages at the beginning are the instructions. A later one stands before what the user says next, or after what
/// the user said last: only some models take it in between, and not at every place. Neighbouring messages of one role become
/// one turn. Texts of white space alone and thoughts are left out, because the API refuses the former, and the latter
/// without their signatures.
pub(super) fn dialogue(messages: &[Arc<Message>], cache: bool) -> Result<Dialogue<'_>, Fault> {
    let is_system = |message: &&Arc<Message>| message.role == Role::System;
    let leading = messages.iter().take_while(is_system).count();
    let (instructions, rest) = messages.split_at(leading);
    let mut system: Vec<Block<'_>> =
        instructions.iter().filter_map(|message| text(Cow::Owned(message.text()))).collect();
    let mut turns = Vec::with_capacity(rest.len());
    let mut late = Vec::new();
    for message in rest {
        if message.role == Role::System {
            late.extend(text(Cow::Owned(message.text())));
            continue;
        }
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let mut content = blocks(message)?;
        if role == "user" && !content.is_empty() {
            // Results of tools have to be the first blocks of a turn.
            let results =
                content.iter().take_while(|block| matches!(block, Block::ToolResult { .. })).count();
            content.splice(results..results, late.drain(..));
        }
        push(&mut turns, role, content);
    }
    push(&mut turns, "user", late);
    if turns.is_empty() {
        // The API demands a turn of the user.
        push(&mut turns, "user", std::mem::take(&mut system));
    }
    if turns.is_empty() {
        return Err(bad_request("there is no message to answer"));
    }
    if let Some(Block::Text { cache_control, .. }) = system.last_mut().filter(|_| cache) {
        *cache_control = Some(CacheControl::Ephemeral);
    }
    Ok(Dialogue { system, turns })
}

/// Adds blocks to the last turn if it is of the same role, as a new turn otherwise.
fn push<'a>(turns: &mut Vec<Turn<'a>>, role: &'static str, content: Vec<Block<'a>>) {
    match turns.last_mut() {
        _ if content.is_empty() => {}
        Some(last) if last.role == role => last.content.extend(content),
        _ => turns.push(Turn { role, content }),
    }
}

fn text(text: Cow<'_, str>) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(Block::Text { text, cache_control: None })
}

fn blocks(message: &Message) -> Result<Vec<Block<'_>>, Fault> {
    let mut results = Vec::new();
    let mut blocks = Vec::with_capacity(message.parts.len());
    for part in &message.parts {
        match part {
            Part::Text { text: words } => blocks.extend(text(Cow::Borrowed(words))),
            Part::Image { media_type, data } if message.role != Role::Assistant => {
                blocks.push(Block::Image { source: Source::Base64 { media_type, data } });
            }
            Part::ToolCall { id, name, arguments } if message.role == Role::Assistant => {
                blocks.push(Block::ToolUse { id, name, input: arguments });
            }
            Part::ToolResult { id, text } => {
                results.push(Block::ToolResult { tool_use_id: id, content: text });
            }
            Part::Reasoning { .. } => {}
            Part::Image { .. } => return Err(bad_request("an image cannot stand in an assistant message")),
            Part::ToolCall { .. } => {
                return Err(bad_request("a call of a tool stands in assistant messages alone"));
            }
            other => return Err(unsupported(format!("the Messages API has no such part: {other:?}"))),
        }
    }
    results.append(&mut blocks);
    Ok(results)
}
