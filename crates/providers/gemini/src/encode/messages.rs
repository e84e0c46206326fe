//! The messages of a call as `systemInstruction` and `contents` of the request.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use formwork_core::{Fault, Message, Part, Role};
use formwork_wire::{bad_request, misplaced};
use serde::Serialize;
use serde_json::{Value, json};

use super::SIGNATURE;
use crate::API;

/// The signature that the vendor documents for function calls of another model or of a caller: the API accepts it in the place of
/// a signature of its own.
const FOREIGN: &str = "skip_thought_signature_validator";

/// The tool calls of a dialogue.
struct Called<'a> {
    /// The name of the function by the identifier of the call. The API identifies a function result by this name.
    names: HashMap<&'a str, &'a str>,
    /// The identifiers that the API itself gave. It requires them back with the results.
    own_ids: HashSet<&'a str>,
    /// Whether the model refuses function calls without a signature.
    requires_signatures: bool,
}

impl<'a> Called<'a> {
    fn new(messages: &'a [Arc<Message>], requires_signatures: bool) -> Self {
        let (mut names, mut own_ids) = (HashMap::new(), HashSet::new());
        for part in messages.iter().flat_map(|message| &message.parts) {
            match part {
                Part::ToolCall { id, name, .. } => _ = names.insert(id.as_str(), name.as_str()),
                Part::Original(original) if original.api == API => {
                    own_ids.extend(original.call_ids.iter().map(String::as_str));
                }
                _ => {}
            }
        }
        own_ids.remove("");
        Self { names, own_ids, requires_signatures }
    }
}

/// The dialogue in the API's form.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Dialogue<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    contents: Vec<Content<'a>>,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: Vec<Written<'a>>,
}

#[derive(Serialize)]
struct Content<'a> {
    role: &'static str,
    parts: Vec<Written<'a>>,
}

/// A part of a content.
#[derive(Serialize)]
#[serde(untagged)]
enum Written<'a> {
    Text {
        text: &'a str,
    },
    Other(Value),
    /// A part as the API sent it.
    Original(&'a Value),
}

/// Returns the properties `systemInstruction` and `contents`.
///
/// System messages at the beginning become the instruction. A later system message becomes text of a user turn, because the
/// API has a single instruction. Adjacent messages of one role become one content. Thoughts are dropped, except in a turn that the
/// API itself sent.
pub(super) fn dialogue(messages: &[Arc<Message>], requires_signatures: bool) -> Result<Dialogue<'_>, Fault> {
    let begun = messages.iter().position(|message| message.role != Role::System).unwrap_or(messages.len());
    let (mut system, mut rest) = messages.split_at(begun);
    if rest.is_empty() {
        // The API requires at least one content.
        (system, rest) = (rest, system);
    }
    let mut instruction = Vec::new();
    let called = Called::new(messages, requires_signatures);
    for message in system {
        instruction.extend(parts(message, &called)?);
    }
    let mut contents: Vec<Content<'_>> = Vec::new();
    for message in rest {
        let role = if message.role == Role::Assistant { "model" } else { "user" };
        let parts = parts(message, &called)?;
        match contents.last_mut() {
            Some(last) if last.role == role => last.parts.extend(parts),
            _ if parts.is_empty() => {}
            _ => contents.push(Content { role, parts }),
        }
    }
    if contents.is_empty() {
        return Err(bad_request("the call has no messages"));
    }
    let system_instruction = (!instruction.is_empty()).then_some(Instruction { parts: instruction });
    Ok(Dialogue { system_instruction, contents })
}

/// Returns the parts of a message. Empty texts are dropped because the API refuses them.
fn parts<'a>(message: &'a Message, called: &Called<'_>) -> Result<Vec<Written<'a>>, Fault> {
    let original = message.parts.iter().find_map(|part| match part {
        Part::Original(original) => original.blocks_of(API),
        _ => None,
    });
    if let Some(original) = original.filter(|_| message.role == Role::Assistant) {
        return Ok(original.iter().map(Written::Original).collect());
    }
    let mut is_signed = !called.requires_signatures;
    let mut written = Vec::with_capacity(message.parts.len());
    for part in &message.parts {
        written.push(match part {
            Part::Text { text } if text.is_empty() => continue,
            Part::Reasoning { .. } | Part::Original(_) => continue,
            Part::Text { text } => Written::Text { text },
            Part::Image { media_type, data } if message.role == Role::User => {
                Written::Other(json!({"inlineData": {"mimeType": media_type, "data": data}}))
            }
            Part::ToolCall { name, arguments, .. } if message.role == Role::Assistant => {
                let mut call = json!({"functionCall": {"name": name, "args": arguments}});
                // Only the first of several calls has a signature.
                if !std::mem::replace(&mut is_signed, true) {
                    call[SIGNATURE] = json!(FOREIGN);
                }
                Written::Other(call)
            }
            Part::ToolResult { id, text } if message.role != Role::System => {
                let name = called.names.get(id.as_str()).copied().unwrap_or(id);
                let result = serde_json::from_str(text).ok().filter(Value::is_object);
                let result = result.unwrap_or_else(|| json!({"result": text}));
                let mut response = json!({"name": name, "response": result});
                if called.own_ids.contains(id.as_str()) {
                    response["id"] = json!(id);
                }
                Written::Other(json!({"functionResponse": response}))
            }
            other => return Err(misplaced(other, message.role)),
        });
    }
    Ok(written)
}
