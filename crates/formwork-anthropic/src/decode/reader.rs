use formwork_core::{Delta, Fault, Finish, Original, ToolCall};
use formwork_wire::Deltas;
use formwork_wire::lenient::Leaf;
use serde_json::{Value, json};

use super::shape::{Block, Counts, Piece, StopDetails};
use crate::API;
use crate::fault::{RequestInfo, within};

/// Reads the content blocks of a message, whole or streamed, and collects usage, model and stop reason for the final delta.
pub(super) struct Reader {
    request: RequestInfo,
    counts: Counts,
    model: Option<String>,
    finish: Option<Finish>,
    /// The API's explanation of a refusal.
    explanation: Option<String>,
    /// The content block of a stream that has begun and not ended.
    open: Option<Box<Open>>,
    /// Whether the tool whose input is the document was called.
    is_carried: bool,
    /// Text beside the forced tool. It becomes the answer if the tool is never called.
    aside: String,
    /// The blocks so far in the form of a request, if there are tools of the caller.
    blocks: Vec<Value>,
    /// The identifiers of the calls of the caller's tools.
    call_ids: Vec<String>,
    /// The number of bytes of text and thoughts so far.
    answered: usize,
    has_text: bool,
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
    Input(Input),
    /// A call of another tool: its id, its name, and its input so far.
    Call(String, String, Input),
    /// Encrypted thoughts.
    Redacted(String),
    Other,
}

/// The streamed input of the tool whose input is the document.
#[derive(Default)]
struct Input {
    /// The input in `content_block_start`. Anthropic sends an empty one; compatible servers may send all of it here.
    initial: String,
    /// The text held back so far: white space, or the beginning of a JSON string.
    held: String,
    /// Whether text was passed on already.
    is_passed: bool,
}

impl Reader {
    pub(super) fn new(request: RequestInfo) -> Self {
        Self {
            request,
            counts: Counts::default(),
            model: None,
            finish: None,
            explanation: None,
            open: None,
            is_carried: false,
            aside: String::new(),
            blocks: Vec::new(),
            call_ids: Vec::new(),
            answered: 0,
            has_text: false,
        }
    }

    pub(super) const fn has_stopped(&self) -> bool {
        self.finish.is_some()
    }

    pub(super) fn answered_by(&mut self, model: Leaf<'_>) {
        self.model = model.into_text().or(self.model.take());
    }

    pub(super) fn count(&mut self, counts: Counts) {
        self.counts = self.counts.merged(counts);
    }

    pub(super) fn broken_off(&self, error: &Leaf<'_>) -> Fault {
        within(&self.request, &json!({"type": "error", "error": error}))
    }

    /// Reads a block of a message that is not streamed.
    pub(super) fn block(&mut self, block: Block<'_>, out: &mut Deltas) {
        match self.kind_of(&block) {
            Kind::Text => {
                let text = words(block.text);
                self.text(&text, out);
                self.keep(&Kind::Text, text, String::new());
            }
            Kind::Thinking => {
                let thought = words(block.thinking);
                self.thought(&thought, out);
                self.keep(&Kind::Thinking, thought, words(block.signature));
            }
            redacted @ Kind::Redacted(_) => self.keep(&redacted, String::new(), String::new()),
            Kind::Input(_) => {
                self.is_carried = true;
                self.answer(&block.input.into_json(), out);
            }
            Kind::Call(id, name, _) => self.call(id, name, block.input.into_json(), out),
            Kind::Other => {}
        }
    }

    /// Reads `content_block_start`.
    pub(super) fn begin(&mut self, index: Option<u64>, block: Block<'_>, out: &mut Deltas) {
        self.close(out);
        let (mut kind, mut begun) = (self.kind_of(&block), String::new());
        match &mut kind {
            Kind::Text => {
                begun = words(block.text);
                self.text(&begun, out);
            }
            Kind::Thinking => {
                begun = words(block.thinking);
                self.thought(&begun, out);
            }
            Kind::Input(input) => {
                self.is_carried = true;
                input.initial = block.input.into_json();
            }
            Kind::Call(_, _, input) => input.initial = block.input.into_json(),
            Kind::Redacted(_) | Kind::Other => {}
        }
        let signature = words(block.signature);
        self.open = Some(Box::new(Open { index, kind, words: begun, signature }));
    }

    /// Reads `content_block_delta`.
    pub(super) fn more(&mut self, index: Option<u64>, piece: &Piece<'_>, out: &mut Deltas) {
        let Some(mut open) = self.open.take_if(|open| open.index == index) else { return };
        match (&mut open.kind, piece.kind.as_str()) {
            (Kind::Text, Some("text_delta")) => {
                let text = piece.text.as_str().unwrap_or_default();
                self.text(text, out);
                if self.request.has_tools {
                    open.words.push_str(text);
                }
            }
            (Kind::Thinking, Some("thinking_delta")) => {
                let thought = piece.thinking.as_str().unwrap_or_default();
                self.thought(thought, out);
                if self.request.has_tools {
                    open.words.push_str(thought);
                }
            }
            (Kind::Thinking, Some("signature_delta")) => {
                open.signature.push_str(piece.signature.as_str().unwrap_or_default());
            }
            (Kind::Input(input), Some("input_json_delta")) => {
                let ready = input.push(piece.partial_json.as_str().unwrap_or_default());
                self.answer(&ready, out);
            }
            (Kind::Call(_, _, input), Some("input_json_delta")) => {
                input.held.push_str(piece.partial_json.as_str().unwrap_or_default());
            }
            _ => {}
        }
        self.open = Some(open);
    }

    /// Reads `content_block_stop`.
    pub(super) fn close(&mut self, out: &mut Deltas) {
        let Some(open) = self.open.take() else { return };
        let Open { kind, words, signature, .. } = *open;
        match kind {
            Kind::Input(input) => self.answer(&input.rest(), out),
            Kind::Call(id, name, input) => self.call(id, name, input.rest(), out),
            kind => self.keep(&kind, words, signature),
        }
    }

    /// Reads the reason why the message ended.
    pub(super) fn stop(&mut self, reason: Leaf<'_>, details: StopDetails<'_>) {
        self.explanation = details.explanation.into_text().or(self.explanation.take());
        let Some(reason) = reason.as_str() else { return };
        self.finish = Some(match reason {
            "max_tokens" | "model_context_window_exceeded" => Finish::Length,
            "refusal" => Finish::Refused,
            "tool_use" => Finish::ToolCall,
            // `end_turn`, `stop_sequence`, and `pause_turn` of server-side tools, which are never requested.
            _ => Finish::Stop,
        });
    }

    /// Emits the final delta.
    pub(super) fn end(&mut self, out: &mut Deltas) {
        self.close(out);
        if !self.is_carried {
            let aside = std::mem::take(&mut self.aside);
            self.answer(&aside, out);
        }
        let finish = match self.finish.unwrap_or(Finish::Stop) {
            // The forced call is the completion, not a call for the caller to run.
            Finish::ToolCall if self.is_carried => Finish::Stop,
            finish => finish,
        };
        if finish == Finish::Refused && !self.has_text {
            let explanation = self.explanation.take().unwrap_or_default();
            self.answer(&explanation, out);
        }
        let is_signed = |block: &Value| block["type"] == "thinking" || block["type"] == "redacted_thinking";
        if !self.call_ids.is_empty() && self.blocks.iter().any(is_signed) {
            let (blocks, ids) = (std::mem::take(&mut self.blocks), std::mem::take(&mut self.call_ids));
            out.push_back(Delta::Original(Box::new(Original::new(API, Value::Array(blocks), ids))));
        }
        let usage = self.counts.usage().unwrap_or_else(|| self.request.estimate(self.answered));
        let model = self.model.take();
        out.push_back(Delta::End { finish, usage, closed_at: None, restrained: false, model });
    }

    fn kind_of(&self, block: &Block<'_>) -> Kind {
        match block.kind.as_str().unwrap_or_default() {
            "text" => Kind::Text,
            "thinking" => Kind::Thinking,
            "redacted_thinking" => Kind::Redacted(words(block.data.clone())),
            // Only the first call is the document; the request disables parallel tool calls.
            "tool_use"
                if !self.is_carried
                    && self.request.carrier.is_some()
                    && self.request.carrier.as_deref() == block.name.as_str() =>
            {
                Kind::Input(Input::default())
            }
            "tool_use" if self.request.carrier.is_none() => {
                Kind::Call(words(block.id.clone()), words(block.name.clone()), Input::default())
            }
            _ => Kind::Other,
        }
    }

    fn text(&mut self, text: &str, out: &mut Deltas) {
        if self.request.carrier.is_some() {
            self.aside.push_str(text);
        } else {
            self.answer(text, out);
        }
    }

    fn answer(&mut self, text: &str, out: &mut Deltas) {
        if !text.is_empty() {
            self.answered += text.len();
            self.has_text = true;
            out.push_back(Delta::Text(text.to_owned()));
        }
    }

    fn call(&mut self, id: String, name: String, arguments: String, out: &mut Deltas) {
        self.answered += arguments.len();
        if self.request.has_tools {
            let input: Value = serde_json::from_str(&arguments).unwrap_or_else(|_| json!({}));
            self.blocks.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
            self.call_ids.push(id.clone());
        }
        out.push_back(Delta::ToolCall(ToolCall::new(id, name, arguments)));
    }

    /// Keeps a block for the next request, which requires signed thoughts unchanged before the calls that they led to. The API
    /// refuses empty texts and thoughts without a signature.
    fn keep(&mut self, kind: &Kind, words: String, signature: String) {
        if !self.request.has_tools {
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

    fn thought(&mut self, text: &str, out: &mut Deltas) {
        if !text.is_empty() {
            self.answered += text.len();
            out.push_back(Delta::Reasoning(text.to_owned()));
        }
    }
}

impl Input {
    /// Adds a piece of the input and returns the text that can be passed on. A JSON string is held back until it is complete,
    /// because some models write the document as text inside a string.
    fn push(&mut self, piece: &str) -> String {
        if self.is_passed {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        if self.held.trim_start().is_empty() || self.held.trim_start().starts_with('"') {
            return String::new();
        }
        self.is_passed = true;
        std::mem::take(&mut self.held)
    }

    /// Returns the text held back, at the end of the block.
    fn rest(self) -> String {
        match serde_json::from_str(&self.held) {
            _ if self.is_passed => String::new(),
            Ok(Value::String(text)) => text,
            _ if self.held.trim().is_empty() => self.initial,
            _ => self.held,
        }
    }
}

/// Returns the text of a string, or an empty text for any other value.
fn words(value: Leaf<'_>) -> String {
    value.into_text().unwrap_or_default()
}
