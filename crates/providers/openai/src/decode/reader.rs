use formwork_core::{Fault, FaultKind, Finish, ToolCall, Usage};
use formwork_wire::{
    CallPieces, Collector, Deltas, Messages, Reader, RequestInfo, TokenShape, bad_wire, error_in, lenient,
};
use serde_json::{Value, json};

use super::content::{calls, content_of, reasoning};
use super::shape::{Choice, Counts, DirectShape, Message, Shape};
use crate::fault::broken;

/// Whether a document is the whole response or a chunk of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// A chunk of a stream.
    Chunk,
    /// The whole response.
    Document,
}

/// Reads documents and chunks of Chat Completions. A stream ends with `[DONE]`.
pub(super) struct ChatReader {
    collector: Collector,
    /// Whether an event with JSON was received.
    has_event: bool,
    has_choice: bool,
    pieces: CallPieces,
    /// The calls so far; those beside a carrier have no arguments.
    calls: Vec<ToolCall>,
    /// The position of the call whose arguments are the document.
    carrier: Option<usize>,
}

impl ChatReader {
    pub(super) fn new(request: RequestInfo) -> Self {
        let (pieces, calls) = (CallPieces::default(), Vec::new());
        let collector = Collector::new(request);
        Self { collector, has_event: false, has_choice: false, pieces, calls, carrier: None }
    }

    /// Reads one document and returns whether it ended the response. `text` is its complete JSON text.
    fn take(
        &mut self,
        document: &mut Shape<'_>,
        text: &[u8],
        framing: Framing,
        out: &mut Deltas,
    ) -> Result<bool, Fault> {
        if document.may_be_error() {
            let whole: Value = serde_json::from_slice(text).unwrap_or_default();
            if error_in(&whole).is_some() {
                return broken(&mut self.collector, &whole, out).map(|()| true);
            }
        }
        self.collector.answered_by(&document.model);
        let usage = document.usage();
        let choice = document.choice();
        let of_choice = choice.as_ref().and_then(|(_, choice)| choice.usage.0.as_deref());
        let usage = usage.or_else(|| of_choice.and_then(Counts::usage));
        self.collector.usage = usage.or(self.collector.usage);
        let Some((position, choice)) = choice else { return Ok(false) };
        self.has_choice = true;
        TokenShape::push(choice.logprobs.0.take().and_then(|logprobs| logprobs.content.0), out);
        if let Some(error) = choice.error.value().filter(|error| error.is_object()) {
            return broken(&mut self.collector, &json!({"error": error}), out).map(|()| true);
        }
        match self.message_of(choice, framing) {
            Some(message) => self.read(message, out),
            None => {
                let direct: DirectShape<'_> = lenient::from_slice(text).unwrap_or_default();
                let choice = direct.choices.0.and_then(|choices| choices.into_iter().nth(position)?.0);
                self.read(&mut choice.unwrap_or_default(), out);
            }
        }
        match choice.finish_reason.as_str() {
            None | Some("") => {}
            Some(reason) => self.collector.stopped(finish(reason)?),
        }
        Ok(false)
    }

    /// Returns the message of a choice. Some servers repeat the whole text as `message` beside or after the last `delta`.
    fn message_of<'c, 'a>(
        &self,
        choice: &'c mut Choice<'a>,
        framing: Framing,
    ) -> Option<&'c mut Message<'a>> {
        let (delta, message) = (choice.delta.0.as_mut(), choice.message.0.as_deref_mut());
        match framing {
            Framing::Chunk => delta.or_else(|| message.filter(|_| !self.collector.has_text())),
            Framing::Document => message.or(delta),
        }
    }

    fn read(&mut self, message: &mut Message<'_>, out: &mut Deltas) {
        let mut thoughts = reasoning(message);
        let mut refusal = message.refusal.take().into_text().unwrap_or_default();
        let content = if message.content.is_none() { &mut message.text } else { &mut message.content };
        let content = content_of(content.take(), &mut thoughts, &mut refusal);
        self.collector.thought(thoughts, out);
        self.collector.text(content, out);
        self.collector.refusal(refusal, out);
        for piece in calls(message) {
            let id = piece.id.into_text().unwrap_or_default();
            let nth = self.pieces.position(piece.index, &id, piece.name.is_some());
            if nth == self.calls.len() {
                self.calls.push(ToolCall::new(id, piece.name.unwrap_or_default(), ""));
            }
            let call = &mut self.calls[nth];
            match &self.collector.request.carrier {
                Some(tool) => {
                    let may_carry = call.name.is_empty() || call.name == *tool;
                    if may_carry && *self.carrier.get_or_insert(nth) == nth {
                        self.collector.is_carried = true;
                        self.collector.answer(piece.arguments, out);
                    }
                }
                None => {
                    self.collector.hold(piece.arguments.len());
                    call.arguments.push_str(&piece.arguments);
                }
            }
        }
    }

    /// Emits the calls of other tools and the final delta.
    fn finish(&mut self, out: &mut Deltas) {
        if self.collector.request.carrier.is_none() {
            self.calls.drain(..).for_each(|call| self.collector.call(call, out));
        }
        self.collector.end(out);
    }
}

impl Messages for ChatReader {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        match text.trim() {
            // An empty event is a keep-alive.
            "" => Ok(()),
            "[DONE]" if self.has_choice => {
                self.finish(out);
                Ok(())
            }
            "[DONE]" => Err(Fault::new(FaultKind::BadWire, "the stream has `[DONE]` before any event")),
            text => {
                let mut shape = lenient::from_str(text)
                    .map_err(|_| bad_wire("an event of the stream is not JSON", text.as_bytes()))?;
                self.has_event = true;
                self.take(&mut shape, text.as_bytes(), Framing::Chunk, out).map(|_| ())
            }
        }
    }

    /// Ends a stream without `[DONE]`, which some servers omit. It is complete if a finish reason was received, and cut off
    /// otherwise.
    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault> {
        if self.collector.finish().is_some() {
            self.finish(out);
            return Ok(());
        }
        if self.has_event && !self.has_choice {
            return Err(Fault::new(FaultKind::BadWire, "the stream has no `choices`"));
        }
        Err(Fault::cut_off("the stream ended without a `finish_reason`"))
    }

    fn usage(&self) -> Option<Usage> {
        self.collector.so_far()
    }
}

impl Reader for ChatReader {
    fn document(&mut self, body: &[u8], out: &mut Deltas) -> Result<(), Fault> {
        if body.trim_ascii().is_empty() {
            return Err(Fault::new(FaultKind::BadWire, "the server sent an empty response"));
        }
        let mut shape = lenient::from_slice(body).map_err(|_| bad_wire("the response is not JSON", body))?;
        if self.take(&mut shape, body, Framing::Document, out)? {
            return Ok(());
        }
        if !self.has_choice {
            return Err(bad_wire("the response has no `choices`", body));
        }
        self.finish(out);
        Ok(())
    }
}

/// Returns why the model stopped.
fn finish(reason: &str) -> Result<Finish, Fault> {
    Ok(match reason.to_ascii_lowercase().as_str() {
        // `eos` and `eos_token`: servers of Hugging Face and Together.
        "stop" | "eos" | "eos_token" | "end_turn" => Finish::Stop,
        "length" | "max_tokens" | "max_output_tokens" | "model_length" => Finish::Length,
        "content_filter" | "safety" => Finish::Filtered,
        "refusal" => Finish::Refused,
        "tool_calls" | "tool_call" | "function_call" => Finish::ToolCall,
        // Sent by OpenRouter and Mistral; by vLLM and SGLang; by DeepSeek.
        "error" | "abort" | "insufficient_system_resource" => {
            let message = format!("the server ended the response early with `finish_reason` `{reason}`");
            return Err(Fault::new(FaultKind::Overloaded, message));
        }
        _ => Finish::other(reason),
    })
}
