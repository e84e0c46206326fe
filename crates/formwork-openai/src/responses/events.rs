use formwork_core::{Fault, FaultKind};
use formwork_wire::{Deltas, Messages, quoted};
use serde::Deserialize;
use serde_json::{Value, json};

use super::reader::{Place, Reader};

/// Reads the events of a stream that ends with `response.completed`, `response.incomplete` or `response.failed`.
pub(crate) struct Events {
    reader: Reader,
}

impl Events {
    pub(crate) const fn new(reader: Reader) -> Self {
        Self { reader }
    }
}

/// The properties of events that are read. Leaf values have any JSON type, because servers differ.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Event {
    #[serde(rename = "type")]
    kind: Value,
    output_index: Value,
    item_id: Value,
    content_index: Value,
    summary_index: Value,
    delta: Value,
    item: Value,
    response: Value,
    error: Value,
}

impl Messages for Events {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        let bad = |what: &str| Fault::new(FaultKind::BadWire, format!("{what}: {}", quoted(text)));
        // Some servers send the `[DONE]` of Chat Completions after the last event or in place of it.
        if matches!(text.trim(), "" | "[DONE]") {
            return Ok(());
        }
        let event: Event = serde_json::from_str(text)
            .map_err(|_| bad("an event of the stream is not one of the Responses API"))?;
        let place = Place { index: event.output_index.as_u64(), id: event.item_id.as_str() };
        let delta = event.delta.as_str().unwrap_or_default();
        match event.kind.as_str() {
            Some("response.created" | "response.in_progress") => self.reader.answered_by(&event.response),
            Some("response.output_item.added") => self.reader.begin(place, &event.item),
            Some("response.output_item.done") => self.reader.close(place, &event.item, out),
            Some("response.output_text.delta") => self.reader.text_delta(place, delta, out),
            Some("response.refusal.delta") => self.reader.refusal_delta(place, delta, out),
            Some("response.reasoning_summary_text.delta") => {
                let part = json!(["summary", event.summary_index]);
                self.reader.reasoning_delta(place, part, delta, out);
            }
            Some("response.reasoning_text.delta") => {
                let part = json!(["content", event.content_index]);
                self.reader.reasoning_delta(place, part, delta, out);
            }
            Some("response.function_call_arguments.delta") => self.reader.arguments_delta(place, delta, out),
            Some(end @ ("response.completed" | "response.incomplete" | "response.failed")) => {
                let status = end.trim_start_matches("response.");
                return self.reader.finish(&event.response, status, out);
            }
            // The properties of an error are in the event itself, or in `error` as in a document.
            Some("error") if event.error.is_null() => {
                let error: Value = serde_json::from_str(text).unwrap_or_default();
                return self.reader.broken(&json!({"error": error}), out);
            }
            _ if event.error.is_object() || event.error.is_string() => {
                return self.reader.broken(&json!({"error": event.error}), out);
            }
            // Events of other tools, ends of parts that were read already, and event types that the API may add.
            Some(_) => {}
            None => return Err(bad("an event of the stream has no `type`")),
        }
        Ok(())
    }

    fn end(&mut self, _: &mut Deltas) -> Result<(), Fault> {
        Err(Fault::cut_off("the stream ended without `response.completed`"))
    }
}
