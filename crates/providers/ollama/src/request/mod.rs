//! Encodes calls as requests.

mod chat;
mod context;
mod generate;

use formwork_core::{Call, Enforcement, Fault, FaultKind, Part};
use formwork_wire::http::Request;
use formwork_wire::{Bytes, bad_request, folded, post, unsupported};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::{Api, KeepAlive, Ollama, Think, pattern};

/// The request properties that both APIs have. Names and meaning are Ollama's (`api/types.go`).
#[derive(Debug, Serialize)]
struct Body<'a, Prompt> {
    model: &'a str,
    #[serde(flatten)]
    prompt: Prompt,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<&'a Think>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_alive: Option<&'a KeepAlive>,
    options: Map<String, Value>,
    /// Whether a prompt that is too long is truncated silently. Always `false`, so that it is an error.
    truncate: bool,
    /// Whether the beginning of the dialogue, instructions included, is dropped when a completion reaches the end of the
    /// context. Always `false`, so that the completion ends there with `length` (0.17.4).
    shift: bool,
}

/// The values of `format`: `"json"`, or a schema.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Format<'a> {
    Json(&'static str),
    Schema(&'a RawValue),
}

/// Returns the request for a call.
pub(crate) fn encode(wire: &Ollama, call: &Call) -> Result<Request<Bytes>, Fault> {
    if !call.tools.is_empty() && wire.api == Api::Generate {
        return Err(unsupported("the generate API does not support tools; use the chat API"));
    }
    if !call.tools.is_empty() && call.enforcement() != Enforcement::None {
        return Err(unsupported("Ollama enforces a format or offers tools, not both"));
    }
    if call.messages.is_empty() {
        // Without messages Ollama would only load the model.
        return Err(bad_request("the call has no messages"));
    }
    let format = match call.enforcement() {
        Enforcement::None => None,
        Enforcement::JsonObject => Some(Format::Json("json")),
        Enforcement::Schema => Some(Format::Schema(schema(call)?)),
        Enforcement::Tool => {
            return Err(unsupported("Ollama does not enforce the schema of a tool's arguments"));
        }
        _ => return Err(unsupported("Ollama does not support this enforcement")),
    };
    let options = options(wire, call);
    match wire.api {
        Api::Chat => {
            let prompt = chat::prompt(&call.messages, &call.tools)?;
            post("/api/chat", &body(wire, prompt, format, options), &wire.extra.of(call))
        }
        Api::Generate => post(
            "/api/generate",
            &body(wire, generate::prompt(&call.messages)?, format, options),
            &wire.extra.of(call),
        ),
    }
}

fn body<'a, P>(
    wire: &'a Ollama,
    prompt: P,
    format: Option<Format<'a>>,
    options: Map<String, Value>,
) -> Body<'a, P> {
    Body {
        model: &wire.model,
        prompt,
        stream: wire.stream,
        format,
        think: wire.think.as_ref(),
        keep_alive: wire.keep_alive.as_ref(),
        options,
        truncate: false,
        shift: false,
    }
}

/// Returns the schema to enforce, if Ollama accepts it without crashing.
fn schema(call: &Call) -> Result<&RawValue, Fault> {
    let refused = |words: String| Err(Fault::new(FaultKind::SchemaRefused, words));
    let (Some(schema), Some(written)) = (call.schema(), call.lowered.schema_json()) else {
        return Err(bad_request("the call requires schema enforcement and has no schema"));
    };
    match schema.as_object() {
        None => return refused("Ollama accepts only schemas that are JSON objects".to_owned()),
        Some(members) if members.is_empty() => {
            return refused("Ollama enforces nothing for the empty schema".to_owned());
        }
        Some(_) => {}
    }
    if let Some(pattern) = pattern::deadly(&call.lowered) {
        return refused(format!(
            "the pattern {pattern:?} has a look-around or a named group, which can crash an Ollama server; the schema was not sent"
        ));
    }
    Ok(written)
}

/// Returns the model's options. Options of the call take precedence over those of the configuration.
fn options(wire: &Ollama, call: &Call) -> Map<String, Value> {
    let mut options = wire.options.clone();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            options.insert(name.to_owned(), value);
        }
    };
    set("temperature", call.sampling.temperature.map(Value::from));
    set("top_p", call.sampling.top_p.map(Value::from));
    // Ollama reads a signed integer and llama.cpp uses 32 bits of it; the maximum of those requests a random seed.
    set("seed", call.sampling.seed.map(|seed| folded(seed).into()));
    set("frequency_penalty", call.sampling.frequency_penalty.map(Value::from));
    set("num_predict", call.max_tokens.map(Value::from));
    set("num_ctx", wire.num_ctx.map(Value::from));
    if !options.contains_key("num_ctx") {
        let answer = options.get("num_predict").and_then(Value::as_u64);
        let known = wire.capabilities.context_tokens;
        options.insert("num_ctx".to_owned(), context::size(&call.messages, answer, known).into());
    }
    options
}

/// Returns the images among these parts in Ollama's format: plain Base64.
fn images<'a>(parts: impl Iterator<Item = &'a Part>) -> Vec<&'a str> {
    let data = parts.filter_map(|part| match part {
        Part::Image { data, .. } => Some(data.as_str()),
        _ => None,
    });
    data.collect()
}
