//! The messages of a call as `system` and `messages` of the request.

use std::borrow::Cow;
use std::sync::Arc;

use formwork_core::{Fault, Message, Part, Role};
use formwork_wire::{bad_request, safe_id, unsupported};
use serde::Serialize;
use serde_json::Value;

use crate::API;

/// The dialogue in the API's form: system instructions are separate, and turns of `user` and `assistant` alternate.
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
        id: Cow<'a, str>,
        name: &'a str,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: &'a str,
    },
    /// A block as the API sent it, but for the identifier of a call.
    #[serde(untagged)]
    Original(Cow<'a, Value>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum CacheControl {
    /// Cached for five minutes, or for an hour.
    Ephemeral {
        #[serde(skip_serializing_if = "Option::is_none")]
        ttl: Option<&'static str>,
    },
}

/// Converts the messages of a call.
///
/// System messages at the beginning become the instructions. A later system message becomes text of the next user turn, or
/// of the last one, because only some models accept a system message between turns. Adjacent messages of one role become one
/// turn. Blank texts are dropped because the API refuses them, and thoughts because it refuses them without a signature. `thinks` keeps
/// signed thoughts before the tool calls that they led to.
///
/// The instructions are marked for the cache if there is a `mark`, and the last text of the first `marked` messages: what does not
/// change between calls stands first.
pub(super) fn dialogue(
    messages: &[Arc<Message>],
    mark: Option<CacheControl>,
    marked: usize,
    thinks: bool,
) -> Result<Dialogue<'_>, Fault> {
    let is_system = |message: &&Arc<Message>| message.role == Role::System;
    let leading = messages.iter().take_while(is_system).count();
    let (instructions, rest) = messages.split_at(leading);
    let mut system: Vec<Block<'_>> =
        instructions.iter().filter_map(|message| text(message.joined())).collect();
    let mut turns = Vec::with_capacity(rest.len());
    let mut late = Vec::new();
    for (index, message) in rest.iter().enumerate() {
        if message.role == Role::System {
            late.extend(text(message.joined()));
            continue;
        }
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let mut content = blocks(message, thinks)?;
        if role == "user" && !content.is_empty() {
            // The API requires tool results to be the first blocks of a turn.
            let results =
                content.iter().take_while(|block| matches!(block, Block::ToolResult { .. })).count();
            content.splice(results..results, late.drain(..));
        }
        if leading + index + 1 == marked
            && let Some(Block::Text { cache_control, .. }) = content.last_mut()
        {
            *cache_control = mark;
        }
        push(&mut turns, role, content);
    }
    push(&mut turns, "user", late);
    if turns.is_empty() {
        // The API requires at least one user turn.
        push(&mut turns, "user", std::mem::take(&mut system));
    }
    if turns.is_empty() {
        return Err(bad_request("the call has no messages"));
    }
    if let Some(Block::Text { cache_control, .. }) = system.last_mut() {
        *cache_control = mark;
    }
    Ok(Dialogue { system, turns })
}

/// Appends blocks to the last turn if it has the same role, or adds a new turn.
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

fn blocks(message: &Message, thinks: bool) -> Result<Vec<Block<'_>>, Fault> {
    let original = message.parts.iter().find_map(|part| match part {
        Part::Original(original) => original.blocks_of(API),
        _ => None,
    });
    if let Some(original) = original.filter(|_| thinks && message.role == Role::Assistant) {
        return Ok(original.iter().map(original_block).collect());
    }
    let mut results = Vec::new();
    let mut blocks = Vec::with_capacity(message.parts.len());
    for part in &message.parts {
        match part {
            Part::Text { text: words } => blocks.extend(text(Cow::Borrowed(words))),
            Part::Image { media_type, data } if message.role != Role::Assistant => {
                blocks.push(Block::Image { source: Source::Base64 { media_type, data } });
            }
            Part::ToolCall { id, name, arguments } if message.role == Role::Assistant => {
                blocks.push(Block::ToolUse { id: safe_id(id), name, input: arguments });
            }
            Part::ToolResult { id, text } => {
                results.push(Block::ToolResult { tool_use_id: safe_id(id), content: text });
            }
            Part::Reasoning { .. } | Part::Original(_) => {}
            Part::Image { .. } => return Err(bad_request("an assistant message cannot contain an image")),
            Part::ToolCall { .. } => {
                return Err(bad_request("only an assistant message can contain a tool call"));
            }
            other => return Err(unsupported(format!("the Messages API has no such part: {other:?}"))),
        }
    }
    results.append(&mut blocks);
    Ok(results)
}

/// Returns a block of a turn. The identifier of a call is that of its result also where a compatible server gave one that Anthropic
/// does not accept.
fn original_block(block: &Value) -> Block<'_> {
    Block::Original(match block["id"].as_str().map(safe_id) {
        Some(Cow::Owned(id)) => {
            let mut block = block.clone();
            block["id"] = id.into();
            Cow::Owned(block)
        }
        _ => Cow::Borrowed(block),
    })
}
