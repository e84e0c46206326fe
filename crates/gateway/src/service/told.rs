//! Errors that targets tell in streams of status 200.

use formwork::providers::Protocol;
use formwork_core::{Fault, FaultKind};
use formwork_wire::{RequestInfo, is_error};
use tokio::time::{Duration, Instant};

use super::Shared;
use crate::failover::called;
use crate::meter::Meter;
use crate::protocol::events::EndMark;
use crate::record::Made;

/// Returns the error that the target of the last call told in its stream, of the class that it has as a response.
pub(super) fn told(shared: &Shared, made: &[Made], mark: &EndMark, meter: &Meter) -> Option<Fault> {
    let raw = called(&shared.engine, made).and_then(|target| target.raw.as_ref());
    let protocol = match raw.map(|raw| raw.protocol) {
        Some(Protocol::Anthropic) => "anthropic",
        Some(Protocol::Ollama) => "ollama/api",
        Some(Protocol::Responses) => "openai/responses",
        _ => "openai/chat",
    };
    let Some(error) = mark.error() else {
        // OpenRouter, vLLM and DeepSeek.
        let reason = meter
            .finish()
            .filter(|reason| matches!(*reason, "error" | "abort" | "insufficient_system_resource"))?;
        let message = format!("the server ended the response early with `finish_reason` `{reason}`");
        return Some(Fault::new(FaultKind::Overloaded, message));
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

/// Returns whether an answer broke off because the time for the request is over, which says nothing about the target.
pub(super) fn is_late(fault: &Fault, until: Instant) -> bool {
    /// The transport's clock has milliseconds.
    const SLACK: Duration = Duration::from_millis(20);

    fault.kind == FaultKind::Timeout && until.saturating_duration_since(Instant::now()) < SLACK
}
