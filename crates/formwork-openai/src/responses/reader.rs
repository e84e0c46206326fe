use formwork_core::{Delta, Fault, FaultKind, Finish, ToolCall, Usage};
use formwork_wire::{Deltas, error_in};
use serde_json::{Value, json};

use super::shape::{Item, Response};
use crate::fault::{RequestInfo, fault_within, rescue};

/// Reads the output items of a response, whole or streamed, and collects usage, model and status for the final delta.
pub(crate) struct Reader {
    request: RequestInfo,
    /// The items of a stream so far.
    items: Vec<Open>,
    /// Whether the tool whose arguments are the document was called.
    is_carried: bool,
    /// Whether another tool was called.
    calls_tool: bool,
    /// The calls of other tools that are whole.
    calls: Vec<ToolCall>,
    refused: bool,
    /// Text that is not the answer: comments of the model before its final answer, and text beside the forced tool call. It
    /// becomes the answer if there is no other.
    aside: String,
    /// The item and the part of the last piece of reasoning.
    thought: Option<(usize, Thought)>,
    model: Option<String>,
    /// The number of bytes of text and reasoning so far.
    answered: usize,
    has_text: bool,
}

/// An item of a stream.
struct Open {
    index: Option<u64>,
    id: Option<String>,
    kind: Kind,
    /// Whether any content of the item was received as a delta.
    has_delta: bool,
}

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
pub(super) enum Thought {
    Summary(Option<u64>),
    Content(Option<u64>),
}

/// The reference to an item of a stream: its index, its identifier, or both.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: Option<&'a str>,
}

impl Reader {
    pub(crate) const fn new(request: RequestInfo) -> Self {
        Self {
            request,
            items: Vec::new(),
            is_carried: false,
            calls_tool: false,
            calls: Vec::new(),
            refused: false,
            aside: String::new(),
            thought: None,
            model: None,
            answered: 0,
            has_text: false,
        }
    }

    /// Reads the beginning of an item in a stream.
    pub(super) fn begin(&mut self, place: Place<'_>, item: &Item<'_>) {
        let id = place.id.or_else(|| item.id.as_str());
        let kind = self.kind_of(item);
        self.items.push(Open { index: place.index, id: id.map(str::to_owned), kind, has_delta: false });
    }

    /// Reads the end of an item in a stream. If no delta of the item was received, its content is read from this event.
    pub(super) fn close(&mut self, place: Place<'_>, item: &mut Item<'_>, out: &mut Deltas) {
        let place = Place { id: place.id.or_else(|| item.id.as_str()), ..place };
        let open = match self.find(place) {
            Some(open) => open,
            None => {
                self.begin(place, item);
                self.items.len() - 1
            }
        };
        if self.request.tool.is_none() && item.kind.as_str() == Some("function_call") {
            // The end of an item has all of its arguments.
            let [id, name] = [&item.call_id, &item.name].map(|leaf| leaf.as_str().unwrap_or_default());
            self.calls.push(ToolCall::new(id, name, item.arguments.clone().into_json()));
        }
        let Some(Open { kind, has_delta: false, .. }) = self.items.get(open) else { return };
        self.whole(open, *kind, item, out);
    }

    /// Reads a piece of text.
    pub(super) fn text_delta(&mut self, place: Place<'_>, text: &str, out: &mut Deltas) {
        let kind = if self.request.tool.is_some() { Kind::Aside } else { Kind::Answer };
        match self.touch(place, kind) {
            (_, Kind::Aside) => self.aside.push_str(text),
            _ => self.text(text.to_owned(), out),
        }
    }

    /// Reads a piece of a refusal.
    pub(super) fn refusal_delta(&mut self, place: Place<'_>, text: &str, out: &mut Deltas) {
        self.touch(place, Kind::Answer);
        self.refusal(text.to_owned(), out);
    }

    /// Reads a piece of reasoning in the part `part` of its item.
    pub(super) fn reasoning_delta(&mut self, place: Place<'_>, part: Thought, text: &str, out: &mut Deltas) {
        let (open, _) = self.touch(place, Kind::Other);
        self.reasoning(open, part, text, out);
    }

    /// Reads a piece of the arguments of a tool call.
    pub(super) fn arguments_delta(&mut self, place: Place<'_>, text: &str, out: &mut Deltas) {
        if let (_, Kind::Carrier) = self.touch(place, Kind::Other) {
            self.text(text.to_owned(), out);
        }
    }

    /// Reads a response that has ended with `status`, and emits the final delta. Items already received by stream events are not
    /// read again.
    pub(super) fn finish(
        &mut self,
        response: &mut Response<'_>,
        status: &str,
        out: &mut Deltas,
    ) -> Result<(), Fault> {
        self.answered_by(response);
        if !response.error.is_none() {
            return self.broken(&json!({"error": response.error}), out);
        }
        let stopped = match status {
            "incomplete" => match response.incomplete_details.reason.as_str() {
                Some("content_filter") => Some(Finish::Filtered),
                _ => Some(Finish::Length),
            },
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
            // `completed`. An unknown status counts as an ordinary end.
            _ => None,
        };
        if self.items.is_empty() {
            for (index, item) in response.output.iter_mut().flatten().enumerate() {
                self.close(Place { index: Some(index as u64), id: None }, item, out);
            }
        }
        self.end(stopped, response.usage.usage(), out);
        Ok(())
    }

    /// Reads the name of the model from a response.
    pub(super) fn answered_by(&mut self, response: &Response<'_>) {
        let model = response.model.as_str().filter(|model| !model.is_empty());
        self.model = model.map(str::to_owned).or(self.model.take());
    }

    /// Reads an error: the end of the response if a content filter stopped the model, a fault otherwise.
    pub(super) fn broken(&mut self, document: &Value, out: &mut Deltas) -> Result<(), Fault> {
        let Some(rescued) = rescue(&self.request, document) else {
            let words = error_in(document).unwrap_or_default();
            return Err(fault_within(&self.request, document, &words));
        };
        self.aside.clear();
        if !self.has_text {
            self.text(rescued.text, out);
        }
        self.end(Some(rescued.finish), None, out);
        Ok(())
    }

    fn end(&mut self, stopped: Option<Finish>, usage: Option<Usage>, out: &mut Deltas) {
        let aside = std::mem::take(&mut self.aside);
        if !self.has_text && !self.is_carried && !self.refused {
            self.text(aside, out);
        }
        let finish = match stopped {
            _ if self.refused => Finish::Refused,
            Some(stopped) => stopped,
            None if self.calls_tool && !self.is_carried => Finish::ToolCall,
            None => Finish::Stop,
        };
        out.extend(self.calls.drain(..).map(Delta::ToolCall));
        let usage = usage.unwrap_or_else(|| self.request.estimate(self.answered));
        let model = self.model.take();
        out.push_back(Delta::End { finish, usage, closed_at: None, restrained: false, model });
    }

    /// Reads an item that was not streamed.
    fn whole(&mut self, open: usize, kind: Kind, item: &mut Item<'_>, out: &mut Deltas) {
        match item.kind.as_str() {
            Some("message") => {
                for part in &mut item.content {
                    let text = part.text.take().into_text().unwrap_or_default();
                    match (part.kind.as_str(), kind) {
                        (Some("refusal"), _) => {
                            self.refusal(part.refusal.take().into_text().unwrap_or_default(), out);
                        }
                        (_, Kind::Aside) => self.aside.push_str(&text),
                        _ => self.text(text, out),
                    }
                }
            }
            Some("reasoning") => {
                let summaries =
                    item.summary.iter().zip(0..).map(|(part, at)| (part, Thought::Summary(Some(at))));
                let contents =
                    item.content.iter().zip(0..).map(|(part, at)| (part, Thought::Content(Some(at))));
                for (part, thought) in summaries.chain(contents) {
                    self.reasoning(open, thought, part.text.as_str().unwrap_or_default(), out);
                }
            }
            Some("function_call") if kind == Kind::Carrier => {
                self.text(item.arguments.take().into_json(), out);
            }
            _ => {}
        }
    }

    /// Returns the kind of an item, and records whether it is a tool call.
    fn kind_of(&mut self, item: &Item<'_>) -> Kind {
        match item.kind.as_str() {
            Some("message") if self.request.tool.is_some() || item.phase.as_str() == Some("commentary") => {
                Kind::Aside
            }
            Some("message") => Kind::Answer,
            Some("function_call") => {
                let name = item.name.as_str();
                // Only the first call is the document; the request disables parallel tool calls.
                if !self.is_carried && self.request.tool.is_some() && self.request.tool.as_deref() == name {
                    self.is_carried = true;
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
            self.items.push(Open { index: place.index, id, kind, has_delta: false });
            self.items.len() - 1
        });
        let kind = self.items.get_mut(open).map_or(kind, |open| {
            open.has_delta = true;
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

    fn text(&mut self, text: String, out: &mut Deltas) {
        if !text.is_empty() {
            self.answered += text.len();
            self.has_text = true;
            out.push_back(Delta::Text(text));
        }
    }

    fn refusal(&mut self, text: String, out: &mut Deltas) {
        self.refused |= !text.is_empty();
        self.text(text, out);
    }

    /// Emits reasoning, with an empty line between its parts.
    fn reasoning(&mut self, open: usize, part: Thought, text: &str, out: &mut Deltas) {
        if text.is_empty() {
            return;
        }
        let thought = (open, part);
        let is_next = self.thought.as_ref().is_some_and(|last| *last != thought);
        self.thought = Some(thought);
        self.answered += text.len();
        let text = if is_next { format!("\n\n{text}") } else { text.to_owned() };
        out.push_back(Delta::Reasoning(text));
    }
}
