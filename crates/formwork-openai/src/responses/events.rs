use formwork_core::{Fault, FaultKind};
use formwork_wire::{Deltas, Messages, lenient, quoted};
use serde_json::{Value, json};

use super::reader::{Place, Reader, Thought};
use super::shape::Event;

/// Reads the events of a stream that ends with `response.completed`, `response.incomplete` or `response.failed`.
pub(crate) struct Events {
    reader: Reader,
}

impl Events {
    pub(crate) const fn new(reader: Reader) -> Self {
        Self { reader }
    }
}

impl Messages for Events {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        let bad = |what: &str| Fault::new(FaultKind::BadWire, format!("{what}: {}", quoted(text)));
        // Some servers send the `[DONE]` of Chat Completions after the last event or in place of it.
        if matches!(text.trim(), "" | "[DONE]") {
            return Ok(());
        }
        let mut event = Event::default();
        lenient::read_str(text, &mut event)
            .map_err(|_| bad("an event of the stream is not one of the Responses API"))?;
        let place = Place { index: event.output_index.0, id: event.item_id.as_str() };
        let delta = event.delta.as_str().unwrap_or_default();
        match event.kind.as_str() {
            Some("response.created" | "response.in_progress") => {
                self.reader.answered_by(&event.response.unwrap_or_default());
            }
            Some("response.output_item.added") => {
                self.reader.begin(place, &event.item.unwrap_or_default());
            }
            Some("response.output_item.done") => {
                self.reader.close(place, &mut event.item.unwrap_or_default(), out);
            }
            Some("response.output_text.delta") => self.reader.text_delta(place, delta, out),
            Some("response.refusal.delta") => self.reader.refusal_delta(place, delta, out),
            Some("response.reasoning_summary_text.delta") => {
                let part = Thought::Summary(event.summary_index.0);
                self.reader.reasoning_delta(place, part, delta, out);
            }
            Some("response.reasoning_text.delta") => {
                let part = Thought::Content(event.content_index.0);
                self.reader.reasoning_delta(place, part, delta, out);
            }
            Some("response.function_call_arguments.delta") => self.reader.arguments_delta(place, delta, out),
            Some(end @ ("response.completed" | "response.incomplete" | "response.failed")) => {
                let status = end.trim_start_matches("response.");
                return self.reader.finish(&mut event.response.unwrap_or_default(), status, out);
            }
            // The properties of an error are in the event itself, or in `error` as in a document.
            Some("error") if event.error.is_none() => {
                let error: Value = serde_json::from_str(text).unwrap_or_default();
                return self.reader.broken(&json!({"error": error}), out);
            }
            _ if event.error.as_str().is_some() || event.error.value().is_some_and(Value::is_object) => {
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
