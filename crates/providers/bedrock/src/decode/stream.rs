//! Reads the events of `converse-stream`.

use formwork_core::{Fault, ToolCall, Usage};
use formwork_wire::lenient::{Count, Leaf, Object};
use formwork_wire::{Collector, Deltas, Messages, RequestInfo, ToolInput, bad_wire, lenient};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Counts, finish, original};

/// An event: one of its members is there.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow)]
    message_start: Leaf<'a>,
    content_block_start: Object<BlockStart<'a>>,
    content_block_delta: Object<BlockDelta<'a>>,
    content_block_stop: Leaf<'a>,
    message_stop: Object<MessageStop<'a>>,
    metadata: Object<Metadata<'a>>,
    error: Leaf<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BlockStart<'a> {
    content_block_index: Count,
    #[serde(borrow)]
    start: Object<Start<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Start<'a> {
    #[serde(borrow)]
    tool_use: Object<ToolStart<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ToolStart<'a> {
    #[serde(borrow)]
    tool_use_id: Leaf<'a>,
    name: Leaf<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BlockDelta<'a> {
    content_block_index: Count,
    #[serde(borrow)]
    delta: Object<Piece<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Piece<'a> {
    #[serde(borrow)]
    text: Leaf<'a>,
    tool_use: Object<InputPiece<'a>>,
    reasoning_content: Object<Thought<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InputPiece<'a> {
    #[serde(borrow)]
    input: Leaf<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Thought<'a> {
    #[serde(borrow)]
    text: Leaf<'a>,
    signature: Leaf<'a>,
    redacted_content: Leaf<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MessageStop<'a> {
    #[serde(borrow)]
    stop_reason: Leaf<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata<'a> {
    #[serde(borrow)]
    usage: Object<Counts<'a>>,
}

/// A content block that has begun and not ended.
#[derive(Default)]
struct Open {
    index: Option<u64>,
    text: String,
    thought: String,
    signature: String,
    redacted: String,
    /// The tool that is called: its id and its name. `None` in both for the tool whose input is the document.
    tool: Option<Option<(String, String)>>,
    input: ToolInput,
}

/// Reads an answer, whole or streamed. A stream ends with `metadata`, which has the usage; a stream without it is complete after
/// `messageStop`.
#[derive(Default)]
pub(crate) struct ConverseReader {
    pub(super) collector: Collector,
    open: Option<Box<Open>>,
    /// The blocks so far in the form of a request, if there are tools of the caller.
    blocks: Vec<Value>,
    call_ids: Vec<String>,
    has_reasoning: bool,
    has_event: bool,
}

impl ConverseReader {
    pub(crate) fn new(request: RequestInfo) -> Self {
        Self { collector: Collector::new(request), ..Self::default() }
    }

    /// Returns the block with this index; text and thoughts have no event at their beginning.
    fn at(&mut self, index: Option<u64>, out: &mut Deltas) -> &mut Open {
        if self.open.as_ref().is_some_and(|open| open.index != index) {
            self.close(out);
        }
        self.open.get_or_insert_with(|| Box::new(Open { index, ..Open::default() }))
    }

    fn begin(&mut self, block: BlockStart<'_>, out: &mut Deltas) {
        self.close(out);
        let tool = block.start.0.and_then(|start| start.tool_use.0).map(|tool| {
            let [id, name] = [tool.tool_use_id, tool.name].map(|leaf| leaf.into_text().unwrap_or_default());
            let carrier = self.collector.request.carrier.as_deref();
            let is_carrier = carrier == Some(name.as_str()) && !self.collector.is_carried;
            self.collector.is_carried |= is_carrier;
            (!is_carrier).then_some((id, name))
        });
        self.at(block.content_block_index.0, out).tool = tool;
    }

    fn more(&mut self, block: BlockDelta<'_>, out: &mut Deltas) {
        let Piece { text, tool_use, reasoning_content } = block.delta.0.unwrap_or_default();
        let keeps = self.collector.request.has_tools;
        let open = self.at(block.content_block_index.0, out);
        let text = text.into_text().unwrap_or_default();
        if keeps {
            open.text.push_str(&text);
        }
        let (mut passed, mut thought, mut held) = (String::new(), String::new(), 0);
        if let Some(piece) = tool_use.0 {
            let input = piece.input.as_str().unwrap_or_default();
            match open.tool {
                Some(None) => passed = open.input.push(input),
                _ => {
                    open.input.hold(input);
                    held = input.len();
                }
            }
        }
        let has_reasoning = reasoning_content.0.is_some();
        if let Some(more) = reasoning_content.0 {
            open.signature.push_str(more.signature.as_str().unwrap_or_default());
            open.redacted.push_str(more.redacted_content.as_str().unwrap_or_default());
            thought = more.text.into_text().unwrap_or_default();
            open.thought.push_str(if keeps { &thought } else { "" });
        }
        self.has_reasoning |= has_reasoning;
        self.collector.thought(thought, out);
        self.collector.text(text, out);
        self.collector.answer(passed, out);
        self.collector.hold(held);
    }

    fn close(&mut self, out: &mut Deltas) {
        let Some(open) = self.open.take() else { return };
        let Open { text, thought, signature, redacted, tool, input, .. } = *open;
        let keeps = self.collector.request.has_tools;
        match tool {
            Some(None) => self.collector.answer(input.rest(), out),
            Some(Some((id, name))) if self.collector.request.carrier.is_none() => {
                let arguments = input.rest();
                if keeps {
                    let input: Value = serde_json::from_str(&arguments).unwrap_or_else(|_| json!({}));
                    self.blocks.push(json!({"toolUse": {"toolUseId": id, "name": name, "input": input}}));
                    self.call_ids.push(id.clone());
                }
                self.collector.call(ToolCall::new(id, name, arguments), out);
            }
            Some(Some(_)) => {}
            None if !keeps => {}
            None if !redacted.is_empty() => {
                self.blocks.push(json!({"reasoningContent": {"redactedContent": redacted}}));
            }
            None if !thought.is_empty() || !signature.is_empty() => {
                let text = json!({"text": thought, "signature": signature});
                self.blocks.push(json!({"reasoningContent": {"reasoningText": text}}));
            }
            None if text.trim().is_empty() => {}
            None => self.blocks.push(json!({"text": text})),
        }
    }

    fn finish(&mut self, out: &mut Deltas) {
        self.close(out);
        if self.has_reasoning && !self.call_ids.is_empty() {
            let (blocks, ids) = (std::mem::take(&mut self.blocks), std::mem::take(&mut self.call_ids));
            out.push_back(original(Value::Array(blocks), ids));
        }
        self.collector.end(out);
    }
}

impl Messages for ConverseReader {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        let event: Event<'_> = lenient::from_str(text).map_err(|_| {
            bad_wire("an event of the stream is not one of the Converse API", text.as_bytes())
        })?;
        if !event.error.is_none() {
            return Err(self.collector.broken(&json!({"error": event.error})));
        }
        self.has_event |= !event.message_start.is_none();
        if let Some(block) = event.content_block_start.0 {
            self.begin(block, out);
        } else if let Some(block) = event.content_block_delta.0 {
            self.more(block, out);
        } else if !event.content_block_stop.is_none() {
            self.close(out);
        } else if let Some(stop) = event.message_stop.0 {
            self.close(out);
            self.collector.stopped(finish(stop.stop_reason.as_str().unwrap_or_default())?);
        } else if let Some(metadata) = event.metadata.0 {
            self.collector.usage = metadata.usage.0.and_then(|counts| counts.usage());
            self.finish(out);
        }
        Ok(())
    }

    fn usage(&self) -> Option<Usage> {
        self.collector.so_far()
    }

    /// Ends a stream without `metadata`. It is complete if a stop reason was received, and cut off otherwise.
    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault> {
        match self.collector.finish() {
            Some(_) => self.finish(out),
            None if self.has_event => return Err(Fault::cut_off("the stream ended without `messageStop`")),
            None => return Err(Fault::cut_off("the stream has no events")),
        }
        Ok(())
    }
}
