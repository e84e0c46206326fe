//! The responses of targets of the protocol of their request, as far as they were received.

use formwork::providers::Protocol as RawProtocol;
use formwork_core::{Fault, FaultKind, Usage};
use formwork_wire::{RequestInfo, is_error};
use serde_json::json;
use tokio::time::{Duration, Instant};

use super::Shared;
use crate::document::Extent;
use crate::failover::{called, failed};
use crate::meter::{Answered, Meter};
use crate::protocol::events::EndMark;
use crate::protocol::{LINES, Protocol};
use crate::record::Made;

/// The body of a response: its counts, its end, and the error that the target told in it.
pub(super) struct Received {
    meter: Meter,
    mark: EndMark,
    is_stream: bool,
    /// Whether the event of an error has no end.
    is_open: bool,
    /// The end of the time for the request.
    until: Instant,
}

impl Received {
    pub(super) fn new(protocol: Option<&dyn Protocol>, is_stream: bool, until: Instant) -> Self {
        let mark = EndMark::new(protocol.map(Protocol::end).unwrap_or_default());
        Self { meter: Meter::default(), mark, is_stream, is_open: false, until }
    }

    pub(super) fn see(&mut self, piece: &[u8]) {
        self.meter.see(piece);
        if self.is_stream {
            self.mark.see(piece);
        }
    }

    pub(super) const fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Returns whether the last event of a stream came.
    pub(super) fn has_end(&self) -> bool {
        self.mark.is_seen() || self.meter.has_end(self.mark.is_long())
    }

    /// Returns whether an event with an error came, which nothing of the answer follows.
    pub(super) const fn has_error(&self) -> bool {
        self.mark.error().is_some()
    }

    /// Returns whether the model did not write what the schema asks for, as the target says.
    pub(super) fn is_wrong(&self) -> bool {
        self.mark.error().is_some_and(|error| is_error(error, "generation failed"))
    }

    /// Ends the body, and an event without its end with it. Returns the error that the target of the last call told, of the class that it
    /// has as a response with an error status.
    pub(super) fn told(&mut self, shared: &Shared, made: &[Made]) -> Option<Fault> {
        self.is_open |= self.mark.ends_with_error();
        let raw = called(&shared.engine, made).and_then(|target| target.raw.as_ref());
        let protocol = match raw.map(|raw| raw.protocol) {
            Some(RawProtocol::Anthropic) => "anthropic",
            Some(RawProtocol::Ollama) => "ollama/api",
            Some(RawProtocol::Responses) => "openai/responses",
            _ => "openai/chat",
        };
        // An error beside other members of an event or a document, such as a `Response` that failed.
        let beside = || Some(json!({"error": self.meter.error()?}));
        let Some(error) = self.mark.error().cloned().or_else(beside) else {
            // OpenRouter, vLLM and DeepSeek.
            let is_failure =
                |reason: &&str| matches!(*reason, "error" | "abort" | "insufficient_system_resource");
            let reason = self.meter.finish().filter(is_failure)?;
            let message = format!("the server ended the response early with `finish_reason` `{reason}`");
            return Some(Fault::new(FaultKind::Overloaded, message));
        };
        let mut fault = RequestInfo { protocol, ..RequestInfo::default() }.fault_within(&error, true);
        if is_error(&error, "prompt filtered") || is_error(&error, "generation failed") {
            // Neither is a sign of a target that is out of service.
            fault.kind = FaultKind::BadRequest;
        }
        if let Some(raw) = raw {
            fault.message = raw.transport.redact(&fault.message);
        }
        Some(fault)
    }

    /// Notes that the target of the last call failed in the middle of its answer, unless the time for the request is over, which says
    /// nothing about the target.
    pub(super) fn failed(&self, shared: &Shared, made: &[Made], fault: &Fault) {
        /// The transport's clock has milliseconds.
        const SLACK: Duration = Duration::from_millis(20);

        let left = self.until.saturating_duration_since(Instant::now());
        if fault.kind != FaultKind::Timeout || left >= SLACK {
            failed(&shared.engine, made, fault);
        }
    }

    /// Returns what the target left out of the end of its error. Readers leave out an event without its end.
    pub(super) fn rest(&mut self, media_type: &str) -> &'static [u8] {
        match std::mem::take(&mut self.is_open) {
            true if media_type == LINES => b"\n",
            true => b"\n\n",
            false => b"",
        }
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
