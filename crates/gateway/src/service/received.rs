//! The responses of targets of the protocol of their request, as far as they were received.

use formwork::providers::Protocol as RawProtocol;
use formwork_core::{Fault, FaultKind, Usage};
use formwork_wire::{RequestInfo, is_error};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Shared;
use crate::document::Extent;
use crate::failover::{called, failed, is_late};
use crate::meter::{Answered, Meter};
use crate::pass::redacted;
use crate::protocol::events::EndMark;
use crate::protocol::{LINES, Protocol};
use crate::record::Made;

/// The body of a response: its counts, its end, and the error that the target told in it.
pub(super) struct Received {
    meter: Meter,
    mark: EndMark,
    is_stream: bool,
    /// The last two bytes that are no carriage returns.
    last: [u8; 2],
    error: Option<Value>,
    /// Whether the event of the error has no end.
    is_open: bool,
    /// The end of the time for the request.
    until: Instant,
}

impl Received {
    pub(super) fn new(protocol: Option<&Protocol>, is_stream: bool, until: Instant) -> Self {
        let mark = EndMark::new(protocol.map(|protocol| protocol.end).unwrap_or_default());
        Self { meter: Meter::default(), mark, is_stream, last: *b"\n\n", error: None, is_open: false, until }
    }

    /// Returns the fault of a stream that ended without its last event.
    pub(super) fn endless() -> Fault {
        Fault::new(FaultKind::Overloaded, "the stream of the target ended without its last event")
    }

    pub(super) fn see(&mut self, piece: &[u8]) {
        self.meter.see(piece);
        if self.is_stream {
            self.mark.see(piece);
            let end = piece.get(piece.len().saturating_sub(4)..).unwrap_or_default();
            for byte in end.iter().filter(|byte| **byte != b'\r') {
                self.last = [self.last[1], *byte];
            }
        }
    }

    pub(super) const fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Returns whether a stream has the sign of its end, and no document is open: nothing follows.
    pub(super) const fn is_complete(&self) -> bool {
        self.mark.is_seen() && self.meter.is_between()
    }

    /// Returns whether the last event of a stream came.
    pub(super) fn has_end(&self) -> bool {
        self.mark.is_seen() || self.meter.has_end(self.mark.is_long())
    }

    /// Returns whether a stream has an error, which nothing of the answer follows.
    pub(super) const fn has_error(&self) -> bool {
        self.mark.error().is_some() || self.meter.has_error()
    }

    /// Returns whether the [error](Self::told) says that the model did not write what the schema asks for.
    pub(super) fn is_wrong(&self) -> bool {
        self.error.as_ref().is_some_and(|error| is_error(error, "generation failed"))
    }

    /// Ends the body, and an event without its end with it. Returns the error that the target of the last call told, of the class that it
    /// has as a response with an error status. `document` is the whole body, if it was parsed.
    pub(super) fn told(&mut self, shared: &Shared, made: &[Made], document: Option<&Value>) -> Option<Fault> {
        self.is_open = self.mark.ends_with_error();
        self.error = self.mark.error().cloned();
        if self.error.is_none() {
            // An error beside other members of an event or a document, such as a `Response` that failed.
            let error = self.meter.error();
            self.error = error.map(|error| document.cloned().unwrap_or_else(|| json!({"error": error})));
            self.is_open = self.is_stream && self.meter.is_between();
        }
        if self.error.is_none() && self.meter.is_between() {
            // OpenRouter, vLLM and DeepSeek.
            let is_failure = |it: &&str| matches!(*it, "error" | "abort" | "insufficient_system_resource");
            let reason = self.meter.finish().filter(is_failure);
            self.is_open &= reason.is_some();
            let message = format!("the server ended the response early with `finish_reason` `{}`", reason?);
            return Some(Fault::new(FaultKind::Overloaded, message));
        }
        let error = self.error.as_ref()?;
        let raw = called(&shared.engine, made).and_then(|target| target.raw.as_ref());
        let protocol = match raw.map(|raw| raw.protocol) {
            Some(RawProtocol::Anthropic) => "anthropic",
            Some(RawProtocol::Ollama) => "ollama/api",
            Some(RawProtocol::Responses) => "openai/responses",
            _ => "openai/chat",
        };
        let mut fault = RequestInfo { protocol, ..RequestInfo::default() }.fault_within(error, true);
        if is_error(error, "prompt filtered") || is_error(error, "generation failed") {
            // Neither is a sign of a target that is out of service.
            fault.kind = FaultKind::BadRequest;
        }
        if let Some(raw) = raw {
            fault.message = raw.transport.redact(&fault.message);
        }
        Some(fault)
    }

    /// Returns a piece of the response of the target of the last call without our secrets, once it has told an error, which may quote them.
    pub(super) fn redacted(&self, shared: &Shared, made: &[Made], piece: Vec<u8>) -> Vec<u8> {
        match called(&shared.engine, made).and_then(|target| target.raw.as_ref()) {
            Some(raw) if self.has_error() => redacted(raw, piece),
            _ => piece,
        }
    }

    /// Notes that the target of the last call failed in the middle of its answer, unless the time for the request is over, which says
    /// nothing about the target.
    pub(super) fn failed(&self, shared: &Shared, made: &[Made], fault: &Fault) {
        if !is_late(fault, self.until) {
            failed(&shared.engine, made, fault);
        }
    }

    /// Returns what the target left out of the end of the event of its error. Readers leave out an event without its end.
    pub(super) fn rest(&mut self, media_type: &str) -> &'static [u8] {
        let end: &[u8] = if media_type == LINES { b"\n" } else { b"\n\n" };
        let has_end = self.last.ends_with(end);
        if std::mem::take(&mut self.is_open) && !has_end { end } else { b"" }
    }

    /// Returns whether there is nothing of an answer: an error before it costs nothing, as it does as a response.
    pub(super) const fn is_empty(&self) -> bool {
        self.meter.is_empty()
    }

    /// Returns the model and its reason to stop, as far as the body has named them.
    pub(super) fn answered(&mut self) -> Answered {
        self.meter.answered()
    }

    pub(super) fn usage(&mut self, prompt: Extent, is_whole: bool) -> Usage {
        self.meter.usage(prompt, is_whole)
    }
}
