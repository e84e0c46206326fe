use formwork_core::{Delta, Fault, FaultKind, Finish, Original, ToolCall, Usage};
use formwork_wire::lenient::{Leaf, Object};
use formwork_wire::{Collector, Deltas, Messages, Reader, RequestInfo, ToolInput, bad_wire, lenient};
use serde_json::{Value, json};

use super::shape::{Block, Counts, Event, Message, Piece, StopDetails};
use crate::API;

/// Reads the content blocks of a message, whole or streamed. A stream ends with `message_stop`.
#[derive(Default)]
pub(crate) struct MessageReader {
    collector: Collector,
    counts: Counts,
    /// The API's explanation of a refusal.
    explanation: Option<String>,
    /// The content block of a stream that has begun and not ended.
    open: Option<Box<Open>>,
    /// The blocks so far in the form of a request, if there are tools of the caller.
    blocks: Vec<Value>,
    /// The identifiers of the calls of the caller's tools.
    call_ids: Vec<String>,
    has_event: bool,
    /// Whether `message_start` was received.
    has_begun: bool,
}

/// A content block of a stream.
struct Open {
    index: Option<u64>,
    kind: Kind,
    /// The text or the thoughts so far.
    words: String,
    /// The signature of the thoughts so far.
    signature: String,
}

enum Kind {
    Text,
    Thinking,
    Input(ToolInput),
    /// A call of another tool: its id, its name, and its input so far.
    Call(String, String, ToolInput),
    /// Encrypted thoughts.
    Redacted(String),
    Other,
}

impl MessageReader {
    pub(crate) fn new(request: RequestInfo) -> Self {
        Self { collector: Collector::new(request), ..Self::default() }
    }

    /// Reads the usage and the model of a message.
    fn begun(&mut self, usage: &Object<Box<Counts>>, model: &Leaf<'_>) {
        self.count(usage);
        self.collector.answered_by(model);
    }

    fn count(&mut self, counts: &Object<Box<Counts>>) {
        if let Some(counts) = &counts.0 {
            self.counts = self.counts.merged(**counts);
            self.collector.usage = self.counts.usage();
        }
    }

    /// Returns the fault for an error in the response.
    fn broken_off(&self, error: &Leaf<'_>) -> Fault {
        self.collector.broken(&json!({"type": "error", "error": error}))
    }

    /// Reads a block of a message that is not streamed.
    fn block(&mut self, block: Block<'_>, out: &mut Deltas) {
        match self.kind_of(&block) {
            Kind::Text => {
                let text = words(block.text);
                self.collector.text(text.clone(), out);
                self.keep(&Kind::Text, text, String::new());
            }
            Kind::Thinking => {
                let thought = words(block.thinking);
                self.collector.thought(thought.clone(), out);
                self.keep(&Kind::Thinking, thought, words(block.signature));
            }
            redacted @ Kind::Redacted(_) => self.keep(&redacted, String::new(), String::new()),
            Kind::Input(_) => {
                self.collector.is_carried = true;
                self.collector.answer(block.input.into_json(), out);
            }
            Kind::Call(id, name, _) => self.call(id, name, block.input.into_json(), out),
            Kind::Other => {}
        }
    }

    /// Reads `content_block_start`.
    fn begin(&mut self, index: Option<u64>, block: Block<'_>, out: &mut Deltas) {
        self.close(out);
        let (mut kind, mut begun) = (self.kind_of(&block), String::new());
        match &mut kind {
            Kind::Text => {
                begun = words(block.text);
                self.collector.text(begun.clone(), out);
            }
            Kind::Thinking => {
                begun = words(block.thinking);
                self.collector.thought(begun.clone(), out);
            }
            Kind::Input(input) => {
                self.collector.is_carried = true;
                *input = ToolInput::new(block.input.into_json());
            }
            Kind::Call(_, _, input) => *input = ToolInput::new(block.input.into_json()),
            Kind::Redacted(_) | Kind::Other => {}
        }
        let signature = words(block.signature);
        self.open = Some(Box::new(Open { index, kind, words: begun, signature }));
    }

    /// Reads `content_block_delta`.
    fn more(&mut self, index: Option<u64>, piece: Piece<'_>, out: &mut Deltas) {
        let Some(open) = self.open.as_mut().filter(|open| open.index == index) else { return };
        match (&mut open.kind, piece.kind.as_str()) {
            (Kind::Text, Some("text_delta")) => {
                let text = words(piece.text);
                if self.collector.request.has_tools {
                    open.words.push_str(&text);
                }
                self.collector.text(text, out);
            }
            (Kind::Thinking, Some("thinking_delta")) => {
                let thought = words(piece.thinking);
                if self.collector.request.has_tools {
                    open.words.push_str(&thought);
                }
                self.collector.thought(thought, out);
            }
            (Kind::Thinking, Some("signature_delta")) => {
                open.signature.push_str(piece.signature.as_str().unwrap_or_default());
            }
            (Kind::Input(input), Some("input_json_delta")) => {
                let ready = input.push(piece.partial_json.as_str().unwrap_or_default());
                self.collector.answer(ready, out);
            }
            (Kind::Call(_, _, input), Some("input_json_delta")) => {
                let piece = piece.partial_json.as_str().unwrap_or_default();
                input.hold(piece);
                self.collector.hold(piece.len());
            }
            _ => {}
        }
    }

    /// Reads `content_block_stop`.
    fn close(&mut self, out: &mut Deltas) {
        let Some(open) = self.open.take() else { return };
        let Open { kind, words, signature, .. } = *open;
        match kind {
            Kind::Input(input) => self.collector.answer(input.rest(), out),
            Kind::Call(id, name, input) => self.call(id, name, input.rest(), out),
            kind => self.keep(&kind, words, signature),
        }
    }

    /// Reads the reason why the message ended.
    fn stop(&mut self, reason: Leaf<'_>, details: Object<Box<StopDetails<'_>>>) {
        let explanation = details.0.and_then(|details| details.explanation.into_text());
        self.explanation = explanation.or(self.explanation.take());
        let Some(reason) = reason.as_str() else { return };
        self.collector.stopped(match reason {
            "end_turn" => Finish::Stop,
            "max_tokens" | "model_context_window_exceeded" => Finish::Length,
            "refusal" => Finish::Refused,
            "tool_use" => Finish::ToolCall,
            // For example `stop_sequence`, and `pause_turn` of server-side tools, neither of which is requested.
            other => Finish::other(other),
        });
    }

    /// Emits the final delta.
    fn finish(&mut self, out: &mut Deltas) {
        self.close(out);
        if self.collector.finish() == Some(&Finish::Refused) && !self.collector.has_text() {
            self.collector.aside(&self.explanation.take().unwrap_or_default());
        }
        let is_signed = |block: &Value| block["type"] == "thinking" || block["type"] == "redacted_thinking";
        if !self.call_ids.is_empty() && self.blocks.iter().any(is_signed) {
            let (blocks, ids) = (std::mem::take(&mut self.blocks), std::mem::take(&mut self.call_ids));
            out.push_back(Delta::Original(Box::new(Original::new(API, Value::Array(blocks), ids))));
        }
        self.collector.end(out);
    }

    fn kind_of(&self, block: &Block<'_>) -> Kind {
        let carrier = self.collector.request.carrier.as_deref();
        match block.kind.as_str().unwrap_or_default() {
            "text" => Kind::Text,
            "thinking" => Kind::Thinking,
            "redacted_thinking" => Kind::Redacted(words(block.data.clone())),
            // Only the first call is the document; the request disables parallel tool calls.
            "tool_use"
                if !self.collector.is_carried && carrier.is_some() && carrier == block.name.as_str() =>
            {
                Kind::Input(ToolInput::default())
            }
            "tool_use" if carrier.is_none() => {
                Kind::Call(words(block.id.clone()), words(block.name.clone()), ToolInput::default())
            }
            _ => Kind::Other,
        }
    }

    fn call(&mut self, id: String, name: String, arguments: String, out: &mut Deltas) {
        if self.collector.request.has_tools {
            let input: Value = serde_json::from_str(&arguments).unwrap_or_else(|_| json!({}));
            self.blocks.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
            self.call_ids.push(id.clone());
        }
        self.collector.call(ToolCall::new(id, name, arguments), out);
    }

    /// Keeps a block for the next request, which requires signed thoughts unchanged before the calls that they led to. The API
    /// refuses empty texts and thoughts without a signature.
    fn keep(&mut self, kind: &Kind, words: String, signature: String) {
        if !self.collector.request.has_tools {
            return;
        }
        match kind {
            Kind::Text if !words.trim().is_empty() => {
                self.blocks.push(json!({"type": "text", "text": words}));
            }
            Kind::Thinking if !signature.is_empty() => {
                self.blocks.push(json!({"type": "thinking", "thinking": words, "signature": signature}));
            }
            Kind::Redacted(data) => self.blocks.push(json!({"type": "redacted_thinking", "data": data})),
            _ => {}
        }
    }
}

impl Messages for MessageReader {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        let bad = |what: &str| bad_wire(what, text.as_bytes());
        if text.trim().is_empty() {
            return Ok(());
        }
        let event: Event<'_> = lenient::from_str(text)
            .map_err(|_| bad("an event of the stream is not one of the Messages API"))?;
        if !event.error.is_none() {
            return Err(self.broken_off(&event.error));
        }
        self.has_event = true;
        self.count(&event.usage);
        match event.kind.as_str() {
            Some("message_start") => {
                self.has_begun = true;
                let message = event.message.0.unwrap_or_default();
                self.begun(&message.usage, &message.model);
            }
            Some("content_block_start") => {
                self.begin(event.index.0, *event.content_block.0.unwrap_or_default(), out);
            }
            Some("content_block_delta") => {
                self.more(event.index.0, *event.delta.0.unwrap_or_default(), out);
            }
            Some("content_block_stop") => self.close(out),
            Some("message_delta") => {
                let delta = event.delta.0.unwrap_or_default();
                self.stop(delta.stop_reason, delta.stop_details);
            }
            Some("message_stop") if self.has_begun => self.finish(out),
            Some("message_stop") => return Err(bad("the stream has `message_stop` before `message_start`")),
            // `ping`, and event types that the API may add.
            Some(_) => {}
            None => return Err(bad("an event of the stream has no `type`")),
        }
        Ok(())
    }

    /// Ends a stream without `message_stop`. It is complete if a stop reason was received, and cut off otherwise.
    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault> {
        if self.collector.finish().is_some() {
            self.finish(out);
            return Ok(());
        }
        if self.has_event && !self.has_begun {
            return Err(Fault::new(FaultKind::BadWire, "the stream has no `message_start`"));
        }
        Err(Fault::cut_off("the stream ended without `message_stop`"))
    }

    fn usage(&self) -> Option<Usage> {
        self.collector.so_far()
    }
}

impl Reader for MessageReader {
    fn document(&mut self, body: &[u8], out: &mut Deltas) -> Result<(), Fault> {
        let message: Message<'_> = lenient::from_slice(body)
            .map_err(|_| bad_wire("the response is not a message of the Messages API", body))?;
        if !message.error.is_none() {
            return Err(self.broken_off(&message.error));
        }
        let Some(content) = message.content.0 else {
            return Err(bad_wire("the response has no `content`", body));
        };
        self.begun(&message.usage, &message.model);
        for block in content {
            self.block(block.0.unwrap_or_default(), out);
        }
        self.stop(message.stop_reason, message.stop_details);
        self.finish(out);
        Ok(())
    }
}

/// Returns the text of a string, or an empty text for any other value.
fn words(value: Leaf<'_>) -> String {
    value.into_text().unwrap_or_default()
}
