use formwork_core::{Fault, FaultKind, Finish, ToolCall, Usage};
use formwork_wire::{
    Collector, Deltas, Messages, Reader, RequestInfo, TokenShape, bad_wire, error_in, lenient,
};
use serde_json::{Value, json};

use super::shape::{Counts, Event, Item, Part, Response};
use crate::fault::broken;

/// Reads the output items of a response, whole or streamed. A stream ends with `response.completed`, `response.incomplete` or
/// `response.failed`.
pub(crate) struct ResponsesReader {
    collector: Collector,
    /// The items of a stream so far.
    items: Vec<Open>,
    /// Whether another tool than that of the document was called.
    calls_tool: bool,
    /// The calls of other tools that are whole.
    calls: Vec<ToolCall>,
    /// The item and the part of the last piece of reasoning.
    thought: Option<(usize, Thought)>,
}

/// An item of a stream.
struct Open {
    index: Option<u64>,
    id: Option<String>,
    kind: Kind,
    /// The parts whose content was read already, by their indexes; [`WHOLE`] for all of them.
    read: Vec<u64>,
}

/// The index in place of that of a part, if an item was read as a whole.
const WHOLE: u64 = u64::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Answer,
    /// Text that is not the answer.
    Aside,
    /// The call of the tool whose arguments are the document.
    Carrier,
    /// Reasoning, calls of other tools, and item types that the API may add.
    Other,
}

/// A part of the reasoning in an item, with its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thought {
    Summary(Option<u64>),
    Content(Option<u64>),
}

/// The reference to an item of a stream: its index, its identifier, or both, and the index of a part.
#[derive(Debug, Clone, Copy, Default)]
struct Place<'a> {
    index: Option<u64>,
    id: Option<&'a str>,
    part: u64,
}

impl Open {
    /// Returns whether this part was read.
    fn has(&self, part: u64) -> bool {
        self.read.iter().any(|read| *read == part || *read == WHOLE)
    }
}

impl ResponsesReader {
    pub(crate) const fn new(request: RequestInfo) -> Self {
        let collector = Collector::new(request);
        Self { collector, items: Vec::new(), calls_tool: false, calls: Vec::new(), thought: None }
    }

    /// Reads the beginning of an item in a stream.
    fn begin(&mut self, place: Place<'_>, item: &Item<'_>) {
        let id = place.id.or_else(|| item.id.as_str());
        let kind = self.kind_of(item);
        self.items.push(Open { index: place.index, id: id.map(str::to_owned), kind, read: Vec::new() });
    }

    /// Reads the end of an item in a stream. If no part of the item was read, its content is read from this event.
    fn close(&mut self, place: Place<'_>, item: &mut Item<'_>, out: &mut Deltas) {
        let place = Place { id: place.id.or_else(|| item.id.as_str()), ..place };
        let open = match self.find(place) {
            Some(open) => open,
            None => {
                self.begin(place, item);
                self.items.len() - 1
            }
        };
        if self.carrier().is_none() && item.kind.as_str() == Some("function_call") {
            // The end of an item has all of its arguments.
            let [id, name] = [&item.call_id, &item.name].map(|leaf| leaf.as_str().unwrap_or_default());
            self.calls.push(ToolCall::new(id, name, item.arguments.clone().into_json()));
        }
        let Some(Open { kind, read, .. }) = self.items.get_mut(open).filter(|open| open.read.is_empty())
        else {
            return;
        };
        read.push(WHOLE);
        let kind = *kind;
        self.whole(open, kind, item, out);
    }

    /// Returns whether no event before the last one had content of the kind of this item. Servers may send text, reasoning or calls
    /// in the last event alone, and identify the items there in another way than before.
    fn is_missing(&self, item: &Item<'_>) -> bool {
        let is_read = |kinds: &[Kind]| {
            self.items.iter().any(|open| kinds.contains(&open.kind) && !open.read.is_empty())
        };
        match item.kind.as_str() {
            Some("message") => !is_read(&[Kind::Answer, Kind::Aside]),
            Some("function_call") if self.carrier().is_some() => !is_read(&[Kind::Carrier]),
            Some("function_call") => self.calls.is_empty(),
            Some("reasoning") => self.thought.is_none(),
            Some("custom_tool_call") => !self.calls_tool,
            _ => false,
        }
    }

    /// Returns whether the event at the end of a part has content that no delta brought.
    fn is_unread(&self, place: Place<'_>) -> bool {
        match self.find(place) {
            Some(open) => self.items.get(open).is_some_and(|open| !open.has(place.part)),
            None => self.items.iter().all(|open| open.read.is_empty()),
        }
    }

    /// Reads a piece of text.
    fn text_delta(&mut self, place: Place<'_>, text: &str, out: &mut Deltas) {
        let kind = if self.carrier().is_some() { Kind::Aside } else { Kind::Answer };
        match self.touch(place, kind) {
            (_, Kind::Aside) => self.collector.aside(text),
            _ => self.collector.answer(text.to_owned(), out),
        }
    }

    /// Reads a piece of a refusal.
    fn refusal_delta(&mut self, place: Place<'_>, text: &str, out: &mut Deltas) {
        self.touch(place, Kind::Answer);
        self.collector.refusal(text.to_owned(), out);
    }

    /// Reads a piece of reasoning in the part `part` of its item.
    fn reasoning_delta(&mut self, place: Place<'_>, part: Thought, text: &str, out: &mut Deltas) {
        let (open, _) = self.touch(place, Kind::Other);
        self.reasoning(open, part, text, out);
    }

    /// Reads a piece of the arguments of a tool call.
    fn arguments_delta(&mut self, place: Place<'_>, text: &str, out: &mut Deltas) {
        match self.touch(place, Kind::Other) {
            (_, Kind::Carrier) => self.collector.answer(text.to_owned(), out),
            _ => self.collector.hold(text.len()),
        }
    }

    /// Reads a response that has ended with `status`, and emits the final delta. Items already received by stream events are not
    /// read again.
    fn finish(&mut self, response: &mut Response<'_>, status: &str, out: &mut Deltas) -> Result<(), Fault> {
        self.collector.answered_by(&response.model);
        self.collector.usage = response.usage.0.as_ref().and_then(Counts::usage);
        if !response.error.is_none() {
            return broken(&mut self.collector, &json!({"error": response.error}), out);
        }
        let stopped = match status {
            "incomplete" => Some(match response.why_incomplete() {
                "content_filter" => Finish::Filtered,
                "max_output_tokens" | "" => Finish::Length,
                other => Finish::other(other),
            }),
            "failed" | "cancelled" => {
                let message = format!("the server ended the response early with `status` `{status}`");
                return Err(Fault::new(FaultKind::Overloaded, message));
            }
            "queued" | "in_progress" => {
                let message = format!(
                    "the response is not complete: `status` is `{status}`; background responses are not supported"
                );
                return Err(Fault::new(FaultKind::Unsupported, message));
            }
            "completed" => None,
            other => Some(Finish::other(other)),
        };
        let items = response.output.0.iter_mut().flatten().map(|item| item.0.get_or_insert_default());
        let missing: Vec<_> = items.zip(0..).filter(|(item, _)| self.is_missing(item)).collect();
        for (item, index) in missing {
            self.close(Place { index: Some(index), ..Place::default() }, item, out);
        }
        let is_call = self.calls_tool && !self.collector.is_carried;
        let ended = if is_call { Finish::ToolCall } else { Finish::Stop };
        self.collector.stopped(stopped.unwrap_or(ended));
        self.calls.drain(..).for_each(|call| self.collector.call(call, out));
        self.collector.end(out);
        Ok(())
    }

    /// Reads an item that was not streamed.
    fn whole(&mut self, open: usize, kind: Kind, item: &mut Item<'_>, out: &mut Deltas) {
        match item.kind.as_str() {
            Some("message") => {
                for part in item.content.0.iter_mut().flatten() {
                    let part = part.0.get_or_insert_default();
                    let text = part.text.take().into_text().unwrap_or_default();
                    match (part.kind.as_str(), kind) {
                        (Some("refusal"), _) => {
                            let refusal = part.refusal.take().into_text();
                            self.collector.refusal(refusal.unwrap_or_default(), out);
                        }
                        (_, Kind::Aside) => self.collector.aside(&text),
                        _ => {
                            self.collector.answer(text, out);
                            TokenShape::push(part.logprobs.0.take(), out);
                        }
                    }
                }
            }
            Some("reasoning") => {
                let summaries =
                    item.summary.iter().zip(0..).map(|(part, at)| (part, Thought::Summary(Some(at))));
                let contents =
                    item.content.iter().zip(0..).map(|(part, at)| (part, Thought::Content(Some(at))));
                for (part, thought) in summaries.chain(contents) {
                    let text = part.0.as_ref().and_then(|part: &Part<'_>| part.text.as_str());
                    self.reasoning(open, thought, text.unwrap_or_default(), out);
                }
            }
            Some("function_call") if kind == Kind::Carrier => {
                self.collector.answer(item.arguments.take().into_json(), out);
            }
            _ => {}
        }
    }

    /// Returns the kind of an item, and records whether it is a tool call.
    fn kind_of(&mut self, item: &Item<'_>) -> Kind {
        match item.kind.as_str() {
            Some("message") if self.carrier().is_some() || item.phase.as_str() == Some("commentary") => {
                Kind::Aside
            }
            Some("message") => Kind::Answer,
            Some("function_call") => {
                let name = item.name.as_str();
                // Only the first call is the document; the request disables parallel tool calls.
                if !self.collector.is_carried && self.carrier().is_some() && self.carrier() == name {
                    self.collector.is_carried = true;
                    return Kind::Carrier;
                }
                self.calls_tool = true;
                Kind::Other
            }
            Some("custom_tool_call") => {
                self.calls_tool = true;
                Kind::Other
            }
            _ => Kind::Other,
        }
    }

    /// Returns the item that a delta belongs to. An item without a beginning is added as `kind`.
    fn touch(&mut self, place: Place<'_>, kind: Kind) -> (usize, Kind) {
        let open = self.find(place).unwrap_or_else(|| {
            let id = place.id.map(str::to_owned);
            self.items.push(Open { index: place.index, id, kind, read: Vec::new() });
            self.items.len() - 1
        });
        let kind = self.items.get_mut(open).map_or(kind, |open| {
            if !open.has(place.part) {
                open.read.push(place.part);
            }
            open.kind
        });
        (open, kind)
    }

    fn find(&self, place: Place<'_>) -> Option<usize> {
        if place.index.is_none() && place.id.is_none() {
            return self.items.len().checked_sub(1);
        }
        self.items.iter().rposition(|open| match (open.index, place.index) {
            (Some(index), Some(other)) => index == other,
            _ => open.id.is_some() && open.id.as_deref() == place.id,
        })
    }

    /// Returns the name of the tool whose arguments are the document.
    fn carrier(&self) -> Option<&str> {
        self.collector.request.carrier.as_deref()
    }

    /// Emits reasoning, with an empty line between its parts.
    fn reasoning(&mut self, open: usize, part: Thought, text: &str, out: &mut Deltas) {
        if text.is_empty() {
            return;
        }
        let thought = (open, part);
        let is_next = self.thought.as_ref().is_some_and(|last| *last != thought);
        self.thought = Some(thought);
        let text = if is_next { format!("\n\n{text}") } else { text.to_owned() };
        self.collector.thought(text, out);
    }
}

impl Messages for ResponsesReader {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        let bad = |what: &str| bad_wire(what, text.as_bytes());
        // Some servers send the `[DONE]` of Chat Completions after the last event or in place of it.
        if matches!(text.trim(), "" | "[DONE]") {
            return Ok(());
        }
        let mut event: Event<'_> = lenient::from_str(text)
            .map_err(|_| bad("an event of the stream is not one of the Responses API"))?;
        let part = event.content_index.0.unwrap_or_default();
        let place = Place { index: event.output_index.0, id: event.item_id.as_str(), part };
        let delta = event.delta.as_str().unwrap_or_default();
        match event.kind.as_str() {
            Some("response.created" | "response.in_progress") => {
                self.collector.answered_by(&event.response.0.unwrap_or_default().model);
            }
            Some("response.output_item.added") => {
                self.begin(place, &event.item.0.unwrap_or_default());
            }
            Some("response.output_item.done") => {
                self.close(place, &mut event.item.0.unwrap_or_default(), out);
            }
            Some("response.output_text.delta") => {
                self.text_delta(place, delta, out);
                TokenShape::push(event.logprobs.0.take(), out);
            }
            Some("response.output_text.done") if self.is_unread(place) => {
                self.text_delta(place, event.text.as_str().unwrap_or_default(), out);
                TokenShape::push(event.logprobs.0.take(), out);
            }
            Some("response.refusal.done") if self.is_unread(place) => {
                self.refusal_delta(place, event.refusal.as_str().unwrap_or_default(), out);
            }
            Some("response.function_call_arguments.done") if self.is_unread(place) => {
                self.arguments_delta(place, event.arguments.as_str().unwrap_or_default(), out);
            }
            Some("response.refusal.delta") => self.refusal_delta(place, delta, out),
            Some("response.reasoning_summary_text.delta") => {
                let part = Thought::Summary(event.summary_index.0);
                self.reasoning_delta(place, part, delta, out);
            }
            Some("response.reasoning_text.delta") => {
                let part = Thought::Content(event.content_index.0);
                self.reasoning_delta(place, part, delta, out);
            }
            Some("response.function_call_arguments.delta") => self.arguments_delta(place, delta, out),
            Some(end @ ("response.completed" | "response.incomplete" | "response.failed")) => {
                let status = end.trim_start_matches("response.");
                return self.finish(&mut event.response.0.unwrap_or_default(), status, out);
            }
            // The properties of an error are in the event itself, or in `error` as in a document.
            Some("error") if event.error.is_none() => {
                let error: Value = serde_json::from_str(text).unwrap_or_default();
                return broken(&mut self.collector, &json!({"error": error}), out);
            }
            _ if event.error.as_str().is_some()
                || event.error.value().is_some_and(|error| error.is_object()) =>
            {
                return broken(&mut self.collector, &json!({"error": event.error}), out);
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

    fn usage(&self) -> Option<Usage> {
        self.collector.so_far()
    }
}

impl Reader for ResponsesReader {
    fn document(&mut self, body: &[u8], out: &mut Deltas) -> Result<(), Fault> {
        if body.trim_ascii().is_empty() {
            return Err(Fault::new(FaultKind::BadWire, "the server sent an empty response"));
        }
        let mut response: Response<'_> =
            lenient::from_slice(body).map_err(|_| bad_wire("the response is not JSON", body))?;
        if response.output.0.is_none() && response.object.as_str() != Some("response") {
            let whole: Value = serde_json::from_slice(body).unwrap_or_default();
            if error_in(&whole).is_some() {
                return broken(&mut self.collector, &whole, out);
            }
            let what = "the response is not one of the Responses API: it has no `output`";
            return Err(bad_wire(what, body));
        }
        let status = response.status.take();
        self.finish(&mut response, status.as_str().unwrap_or_default(), out)
    }
}
