//! Requests of clients in the form of a protocol, with what a call decides.

use std::sync::Arc;

use formwork_core::{Call, ClientRequest, Fault, Message};
use http::header::{HeaderName, HeaderValue};
use http::request::Request;
use serde_json::{Map, Value, json};

use crate::{Bytes, Wire, bad_request, unsupported};

/// The text of the message that stands for the dialogue of the client. No control character is in a real one.
const DIALOGUE: &str = "\u{1}dialogue\u{1}";

/// The members that a call decides, by all their names. Where a call has none, none is sent.
const DECIDED: [&str; 17] = [
    "format",
    "include_usage",
    "input",
    "instructions",
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "messages",
    "model",
    "n",
    "num_predict",
    "output_format",
    "response_format",
    "seed",
    "system",
    "temperature",
    "top_p",
];

/// The objects in which a call decides members as well.
const SHARED: [&str; 4] = ["options", "output_config", "stream_options", "text"];

/// The members that belong to tools. A call that carries its answer in a tool has its own.
const OF_TOOLS: [&str; 3] = ["parallel_tool_calls", "tool_choice", "tools"];

/// Returns the request of a call: that of its client, if it is one of the protocol of the wire, with what the call decides.
pub(crate) fn encode<W: Wire>(wire: &W, call: &Call) -> Result<Request<Bytes>, Fault> {
    let mut request = wire.encode(call)?;
    let Some(client) = &call.client else { return Ok(request) };
    let given = client.body.as_object().filter(|_| is_sent(&request, call));
    let Some(given) = given else {
        return match client.is_only {
            true => Err(unsupported("only its own protocol has all parts of the request")),
            false => Ok(request),
        };
    };
    let mut body = parsed(&request)?;
    let has_tools = body.contains_key("tools");
    let thinks = given.get("thinking").is_some_and(|it| it.is_object() && it["type"] != "disabled");
    if has_tools && thinks {
        return Err(unsupported("a model cannot be forced to call a tool while it thinks"));
    }
    added(wire, call, client)?.write(&mut body, given);
    let penalises = wire.capabilities().frequency_penalty;
    let is_taken = |name: &str| {
        let is_decided = DECIDED.contains(&name) || (penalises && name == "frequency_penalty");
        !(is_decided || has_tools && OF_TOOLS.contains(&name))
    };
    if !given.contains_key("store") {
        // The client keeps what its protocol stores by default.
        body.remove("store");
    }
    merge(&mut body, given, &is_taken);
    if body.get("stream") == Some(&Value::Bool(false)) {
        body.remove("stream_options");
    }
    let bytes = serde_json::to_vec(&body).map_err(|error| bad_request(error.to_string()))?;
    *request.body_mut() = bytes.into();
    for (name, value) in &client.headers {
        let header = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        let (name, value) =
            header.ok_or_else(|| bad_request(format!("the header `{name}` cannot be sent")))?;
        request.headers_mut().insert(name, value);
    }
    Ok(request)
}

/// Returns whether a request is that of the client of a call.
pub(crate) fn is_sent(request: &Request<Bytes>, call: &Call) -> bool {
    call.client.as_ref().is_some_and(|client| client.path == request.uri().path())
}

fn parsed(request: &Request<Bytes>) -> Result<Map<String, Value>, Fault> {
    serde_json::from_slice(request.body()).map_err(|error| bad_request(error.to_string()))
}

/// Adds the members of a client to a body, but for those that the call decides.
fn merge(body: &mut Map<String, Value>, given: &Map<String, Value>, is_taken: &impl Fn(&str) -> bool) {
    for (name, value) in given.iter().filter(|(name, _)| is_taken(name)) {
        match value {
            Value::Object(given) if SHARED.contains(&name.as_str()) => {
                let own = body.entry(name).or_insert_with(|| Value::Object(Map::new()));
                if let Some(own) = own.as_object_mut() {
                    merge(own, given, is_taken);
                }
            }
            _ => drop(body.insert(name.clone(), value.clone())),
        }
    }
    body.retain(|name, value| !(SHARED.contains(&name.as_str()) && value == &json!({})));
}

/// The parts that a call adds to the dialogue of a client, as the wire writes them.
#[derive(Default)]
struct Added {
    /// Instructions in a member of their own, which has this name.
    instructions: Option<(String, Value)>,
    /// The messages before the dialogue, and those after it.
    before: Vec<Value>,
    after: Vec<Value>,
}

/// Returns the parts that a call adds to the dialogue of its client.
fn added<W: Wire>(wire: &W, call: &Call, client: &ClientRequest) -> Result<Added, Fault> {
    let after = call.messages.get(call.task_messages..).unwrap_or_default();
    let mut added = Added::default();
    if client.before.is_empty() && after.is_empty() {
        return Ok(added);
    }
    let dialogue = Arc::new(Message::user(DIALOGUE));
    let mut around = call.clone();
    around.messages = client.before.iter().chain([&dialogue]).chain(after).cloned().collect();
    around.task_messages = client.before.len() + 1;
    let mut body = Value::Object(parsed(&wire.encode(&around)?)?);
    // The marks of a cache are the client's.
    remove(&mut body, "cache_control");
    for (name, value) in body.as_object_mut().map(std::mem::take).unwrap_or_default() {
        match (name.as_str(), value) {
            ("system" | "instructions", value) => added.instructions = Some((name, value)),
            ("messages" | "input", Value::Array(messages)) => added.split(messages),
            _ => {}
        }
    }
    Ok(added)
}

impl Added {
    /// Takes the messages before and after the one that stands for the dialogue. A wire may have joined it with the next message.
    fn split(&mut self, messages: Vec<Value>) {
        let mut is_after = false;
        for mut message in messages {
            let is_dialogue = |part: &Value| part["text"] == DIALOGUE;
            let parts = message["content"].as_array_mut().filter(|parts| parts.iter().any(is_dialogue));
            if let Some(parts) = parts {
                is_after = true;
                parts.retain(|part| !is_dialogue(part));
                if parts.is_empty() {
                    continue;
                }
            } else if message["content"] == DIALOGUE {
                is_after = true;
                continue;
            }
            if is_after { self.after.push(message) } else { self.before.push(message) }
        }
    }

    /// Writes the dialogue of the client with these parts to a body.
    fn write(self, body: &mut Map<String, Value>, given: &Map<String, Value>) {
        let Self { instructions, before, after } = self;
        for name in ["system", "instructions"] {
            let own = instructions.as_ref().filter(|(own, _)| own == name).map(|(_, text)| text.clone());
            match joined(given.get(name).filter(|given| !given.is_null()).cloned(), own) {
                Some(text) => body.insert(name.to_owned(), text),
                None => body.remove(name),
            };
        }
        let name = if body.contains_key("input") { "input" } else { "messages" };
        let mut messages = match given.get(name) {
            Some(Value::Array(messages)) => messages.clone(),
            Some(text) if before.is_empty() && after.is_empty() => {
                body.insert(name.to_owned(), text.clone());
                return;
            }
            Some(text) => vec![json!({"role": "user", "content": text})],
            None => Vec::new(),
        };
        let is_system = |message: &Value| message["role"] == "system" || message["role"] == "developer";
        let mut leading = messages.iter().take_while(|message| is_system(message)).count();
        let (systems, examples): (Vec<_>, Vec<_>) = before.into_iter().partition(is_system);
        for mut system in systems {
            // Many servers refuse a second system message.
            match leading.checked_sub(1).and_then(|last| messages.get_mut(last)) {
                Some(last) => {
                    last["content"] = joined(Some(last["content"].take()), Some(system["content"].take()))
                        .unwrap_or_default()
                }
                None => {
                    messages.insert(0, system);
                    leading = 1;
                }
            }
        }
        messages.splice(leading..leading, examples);
        messages.extend(after);
        body.insert(name.to_owned(), messages.into());
    }
}

/// Removes a member wherever it stands.
fn remove(part: &mut Value, name: &str) {
    match part {
        Value::Object(members) => {
            members.remove(name);
            members.values_mut().for_each(|member| remove(member, name));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| remove(item, name)),
        _ => {}
    }
}

/// Returns two texts, or lists of parts, as one. Servers refuse empty ones.
fn joined(first: Option<Value>, second: Option<Value>) -> Option<Value> {
    let parts = |text: Value, kind: &Value| match text {
        Value::Array(parts) => parts,
        text => vec![json!({"type": kind, "text": text})],
    };
    let has_text =
        |text: &Value| text.as_array().is_some() || text.as_str().is_some_and(|text| !text.trim().is_empty());
    Some(match (first.filter(has_text), second.filter(has_text)) {
        (Some(Value::String(first)), Some(Value::String(second))) => format!("{first}\n\n{second}").into(),
        (Some(first), Some(second)) => {
            let kind = [&first, &second].into_iter().find_map(|list| list[0].get("type").cloned());
            let kind = kind.unwrap_or_else(|| "text".into());
            [parts(first, &kind), parts(second, &kind)].concat().into()
        }
        (first, second) => return first.or(second),
    })
}
