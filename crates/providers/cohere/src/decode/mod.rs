//! Decodes a response into deltas.

mod stream;

use formwork_core::{Fault, FaultKind, Finish, ToolCall, Usage};
use formwork_wire::lenient::{Count, Leaf, List, Object};
use formwork_wire::{CallShape, Deltas, FunctionShape, Reader, bad_wire, lenient, quoted};
use serde::Deserialize;
use serde_json::Value;

pub(crate) use stream::ChatReader;

/// A response. Leaf values have any JSON type.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Response<'a> {
    #[serde(borrow)]
    message: Object<Message<'a>>,
    finish_reason: Leaf<'a>,
    usage: Object<Counts>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    /// A text, or blocks of text and of thoughts.
    #[serde(borrow)]
    content: Leaf<'a>,
    tool_calls: List<Object<CallShape<'a>>>,
}

/// The `usage` of a response. `tokens` counts what the model read and wrote; `billed_units` leaves out a part of it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Counts {
    tokens: Object<Tokens>,
    cached_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tokens {
    input_tokens: Count,
    output_tokens: Count,
}

impl Counts {
    fn usage(&self) -> Option<Usage> {
        let tokens = self.tokens.0.as_ref()?;
        let usage = Usage::new(tokens.input_tokens.0?, tokens.output_tokens.0?);
        Some(usage.with_cached(self.cached_tokens.0.unwrap_or_default()))
    }
}

impl Reader for ChatReader {
    fn document(&mut self, body: &[u8], out: &mut Deltas) -> Result<(), Fault> {
        let response: Response<'_> = lenient::from_slice(body)
            .map_err(|_| bad_wire("the response is not JSON of the chat API", body))?;
        let Some(message) = response.message.0 else {
            return Err(bad_wire("the response has no `message`", body));
        };
        let collector = &mut self.collector;
        let mut text = message.content.as_str().unwrap_or_default().to_owned();
        let content = message.content.value();
        for block in content.as_ref().and_then(Value::as_array).into_iter().flatten() {
            text.push_str(block["text"].as_str().unwrap_or_default());
            collector.thought(block["thinking"].as_str().unwrap_or_default().to_owned(), out);
        }
        collector.text(text, out);
        for call in message.tool_calls.0.into_iter().flatten() {
            let CallShape { id, function } = call.0.unwrap_or_default();
            let FunctionShape { name, arguments } = function.0.unwrap_or_default();
            match collector.request.carrier.as_deref() {
                None => {
                    let [id, name] = [id, name].map(|leaf| leaf.into_text().unwrap_or_default());
                    collector.call(ToolCall::new(id, name, arguments.into_json()), out);
                }
                Some(carrier) if !collector.is_carried && name.as_str() == Some(carrier) => {
                    collector.is_carried = true;
                    collector.answer(inner(arguments), out);
                }
                Some(_) => {}
            }
        }
        collector.stopped(finish(response.finish_reason.as_str().unwrap_or_default(), "")?);
        collector.usage = response.usage.0.and_then(|counts| counts.usage());
        collector.end(out);
        Ok(())
    }
}

/// Returns the reason why the model stopped. `words` is the server's message about an error.
fn finish(reason: &str, words: &str) -> Result<Finish, Fault> {
    Ok(match reason {
        "COMPLETE" => Finish::Stop,
        "MAX_TOKENS" => Finish::Length,
        "ERROR_TOXIC" => Finish::Refused,
        "TOOL_CALL" => Finish::ToolCall,
        "ERROR" | "TIMEOUT" => {
            let words = if words.is_empty() { String::new() } else { format!(": {}", quoted(words)) };
            let message = format!("the server ended the response early with `finish_reason` {reason}{words}");
            return Err(Fault::new(FaultKind::Overloaded, message));
        }
        // For example `STOP_SEQUENCE`.
        other => Finish::other(other),
    })
}

/// Returns the document in a tool's arguments. Some models write it as text inside a string.
fn inner(arguments: Leaf<'_>) -> String {
    match arguments.as_str().map(serde_json::from_str) {
        Some(Ok(Value::String(text))) => text,
        _ => arguments.into_json(),
    }
}
