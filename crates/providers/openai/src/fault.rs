//! Errors that are no faults: they contain the model's completion.

use formwork_core::{Completion, Fault, Finish};
use formwork_wire::{Collector, Deltas, RequestInfo, error_in, is_error};
use serde_json::Value;

/// Reads an error within a response: the end of the response if it contains the model's completion, a fault otherwise.
pub(crate) fn broken(collector: &mut Collector, document: &Value, out: &mut Deltas) -> Result<(), Fault> {
    let (text, finish) = rescued(document).ok_or_else(|| collector.broken(document))?;
    collector.rescue(text, finish, out);
    Ok(())
}

/// Returns the completion that a server reports as an error.
pub(crate) fn rescue(request: &RequestInfo, document: &Value) -> Option<Completion> {
    let (text, finish) = rescued(document)?;
    let written = if finish == Finish::Filtered { 0 } else { text.len() };
    Some(Completion::new(text).with_finish(finish).with_usage(request.estimate(written)))
}

/// Returns the text of a completion that a server reports as an error, and why it ended: Groq for a text that violates the schema,
/// Azure and OpenRouter for a prompt that a content filter stopped.
fn rescued(document: &Value) -> Option<(String, Finish)> {
    let error = document.get("error")?;
    if is_error(document, "generation failed") {
        let text = match &error["failed_generation"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let is_cut = is_error(document, "generation cut off");
        return Some((text, if is_cut { Finish::Length } else { Finish::Stop }));
    }
    let is_filtered = is_error(document, "prompt filtered")
        || error.pointer("/metadata/reasons").is_some_and(Value::is_array);
    is_filtered.then(|| (error_in(document).unwrap_or_default(), Finish::Filtered))
}
