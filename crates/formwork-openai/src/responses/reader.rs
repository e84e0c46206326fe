use formwork_core::{Delta, Fault, FaultKind, Finish, ToolCall, Usage};
use formwork_wire::{Deltas, error_in};
use serde_json::{Value, json};

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
    thought: Option<(usize, Value)>,
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
    pub(super) fn begin(&mut self, place: Place<'_>, item: &Value) {
        let id = place.id.or_else(|| item.get("id").and_then(Value::as_str));
        let kind = self.kind_of(item);
        self.items.push(Open { index: place.index, id: id.map(str::to_owned), kind, has_delta: false });
    }

    /// Reads the end of an item in a stream. If no delta of the item was received, its content is read from this event.
    pub(super) fn close(&mut self, place: Place<'_>, item: &Value, out: &mut Deltas) {
        let id = place.id.or_else(|| item.get("id").and_then(Value::as_str));
        let place = Place { id, ..place };
        let open = match self.find(place) {
            Some(open) => open,
            None => {
                self.begin(place, item);
                self.items.len() - 1
            }
        };
        if self.request.tool.is_none() && item["type"] == "function_call" {
            // The end of an item has all of its arguments.
            let text = |name: &str| item[name].as_str().unwrap_or_default();
            self.calls.push(ToolCall::new(text("call_id"), text("name"), arguments(item)));
        }
        let Some(Open { kind, has_delta: false, .. }) = self.items.get(open) else { return };
        self.whole(open, *kind, item, out);
    }

    /// Reads a piece of text.
    pub(super) fn text_delta(&mut self, place: Place<'_>, text: &str, out: &mut Deltas) {
        let kind = if self.request.tool.is_some() { Kind::Aside } else { Kind::Answer };
        match self.touch(place, kind) {
            (_, Kind::Aside) => self.aside.push_str(text),
            _ => self.text(text, out),
        }
    }

    /// Reads a piece of a refusal.
    pub(super) fn refusal_delta(&mut self, place: Place<'_>, text: &str, out: &mut Deltas) {
        self.touch(place, Kind::Answer);
        self.refusal(text, out);
    }

    /// Reads a piece of reasoning in the part `part` of its item.
    pub(super) fn reasoning_delta(&mut self, place: Place<'_>, part: Value, text: &str, out: &mut Deltas) {
        let (open, _) = self.touch(place, Kind::Other);
        self.reasoning(open, part, text, out);
    }

    /// Reads a piece of the arguments of a tool call.
    pub(super) fn arguments_delta(&mut self, place: Place<'_>, text: &str, out: &mut Deltas) {
        if let (_, Kind::Carrier) = self.touch(place, Kind::Other) {
            self.text(text, out);
        }
    }

    /// Reads a response that has ended with `status`, and emits the final delta. Items already received by stream events are not
    /// read again.
    pub(super) fn finish(&mut self, response: &Value, status: &str, out: &mut Deltas) -> Result<(), Fault> {
        self.answered_by(response);
        let error = response.get("error").filter(|error| !error.is_null());
        if let Some(error) = error {
            return self.broken(&json!({"error": error}), out);
        }
        let stopped = match status {
            "incomplete" => match response.pointer("/incomplete_details/reason").and_then(Value::as_str) {
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
            for (index, item) in response["output"].as_array().into_iter().flatten().enumerate() {
                self.close(Place { index: Some(index as u64), id: None }, item, out);
            }
        }
        self.end(stopped, usage_of(&response["usage"]), out);
        Ok(())
    }

    /// Reads the name of the model from a response.
    pub(super) fn answered_by(&mut self, response: &Value) {
        let model = response.get("model").and_then(Value::as_str).filter(|model| !model.is_empty());
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
            self.text(&rescued.text, out);
        }
        self.end(Some(rescued.finish), None, out);
        Ok(())
    }

    fn end(&mut self, stopped: Option<Finish>, usage: Option<Usage>, out: &mut Deltas) {
        let aside = std::mem::take(&mut self.aside);
        if !self.has_text && !self.is_carried && !self.refused {
            self.text(&aside, out);
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
    fn whole(&mut self, open: usize, kind: Kind, item: &Value, out: &mut Deltas) {
        let words = |part: &Value, name: &str| match part.get(name) {
            Some(Value::String(text)) => text.clone(),
            _ => String::new(),
        };
        let parts = |name: &str| item.get(name).and_then(Value::as_array).into_iter().flatten();
        match item["type"].as_str() {
            Some("message") => {
                for part in parts("content") {
                    match (part["type"].as_str(), kind) {
                        (Some("refusal"), _) => self.refusal(&words(part, "refusal"), out),
                        (_, Kind::Aside) => self.aside.push_str(&words(part, "text")),
                        _ => self.text(&words(part, "text"), out),
                    }
                }
            }
            Some("reasoning") => {
                for name in ["summary", "content"] {
                    for (index, part) in parts(name).enumerate() {
                        self.reasoning(open, json!([name, index]), &words(part, "text"), out);
                    }
                }
            }
            Some("function_call") if kind == Kind::Carrier => {
                self.text(&arguments(item), out);
            }
            _ => {}
        }
    }

    /// Returns the kind of an item, and records whether it is a tool call.
    fn kind_of(&mut self, item: &Value) -> Kind {
        match item["type"].as_str() {
            Some("message") if self.request.tool.is_some() || item["phase"] == "commentary" => Kind::Aside,
            Some("message") => Kind::Answer,
            Some("function_call") => {
                let name = item["name"].as_str();
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

    fn text(&mut self, text: &str, out: &mut Deltas) {
        if !text.is_empty() {
            self.answered += text.len();
            self.has_text = true;
            out.push_back(Delta::Text(text.to_owned()));
        }
    }

    fn refusal(&mut self, text: &str, out: &mut Deltas) {
        self.refused |= !text.is_empty();
        self.text(text, out);
    }

    /// Emits reasoning, with an empty line between its parts.
    fn reasoning(&mut self, open: usize, part: Value, text: &str, out: &mut Deltas) {
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

/// Returns the arguments of a call. Some servers send parsed arguments in place of a string.
fn arguments(item: &Value) -> String {
    match &item["arguments"] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        parsed => parsed.to_string(),
    }
}

/// Returns the usage, or `None` if the counts are missing.
fn usage_of(counts: &Value) -> Option<Usage> {
    // Some servers write counts as floating-point numbers.
    let count = |place: &str| {
        let number = counts.pointer(place)?;
        let rounded = || number.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64);
        number.as_u64().or_else(rounded)
    };
    let (input, output) = (count("/input_tokens"), count("/output_tokens"));
    if input.is_none() && output.is_none() {
        return None;
    }
    let usage = Usage::new(input.unwrap_or_default(), output.unwrap_or_default());
    let cached = count("/input_tokens_details/cached_tokens").unwrap_or_default();
    let reasoning = count("/output_tokens_details/reasoning_tokens").unwrap_or_default();
    Some(usage.with_cached(cached).with_reasoning(reasoning))
}
