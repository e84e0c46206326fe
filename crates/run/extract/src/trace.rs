//! The tracing span of a run. The spans of its calls are its children.

use formwork_core::{CallRecord, Error, ErrorKind, Failure, Origin, Outcome, Plan, Usage};
use serde_json::Value;
use tracing::{Span, field};

/// Returns the span of a run, with level `INFO` and target `formwork`. It contains no text of prompts and answers.
pub(crate) fn span(plan: &Plan) -> Span {
    tracing::info_span!(
        target: "formwork",
        "extract",
        "otel.kind" = "internal",
        "otel.status_code" = field::Empty,
        "formwork.schema" = plan.contract().schema().name(),
        "formwork.calls" = field::Empty,
        "formwork.violations" = field::Empty,
        "formwork.fallback" = field::Empty,
        "gen_ai.usage.input_tokens" = field::Empty,
        "gen_ai.usage.output_tokens" = field::Empty,
        "error.type" = field::Empty,
    )
}

/// Records the result of a run. The span of a dropped run has no result.
pub(crate) fn record(span: &Span, result: &Result<Outcome<Value>, Error>) {
    if span.is_disabled() {
        return;
    }
    match result {
        Ok(outcome) => {
            span.record("formwork.fallback", outcome.origin == Origin::Fallback);
            history(span, &outcome.calls, outcome.usage);
        }
        Err(error) => {
            span.record("formwork.fallback", false);
            span.record("error.type", error_type(error.kind()));
            span.record("otel.status_code", "ERROR");
            history(span, error.calls(), error.usage());
        }
    }
}

fn history(span: &Span, calls: &[CallRecord], usage: Usage) {
    let failures = calls.iter().filter_map(|call| call.verdict.failure());
    let violations: usize = failures.map(Failure::total).sum();
    span.record("formwork.calls", calls.len() as u64);
    span.record("formwork.violations", violations as u64);
    span.record("gen_ai.usage.input_tokens", usage.input_tokens);
    span.record("gen_ai.usage.output_tokens", usage.output_tokens);
}

/// Returns the name of an error kind in JSON.
const fn error_type(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Config => "config",
        ErrorKind::Schema => "schema",
        ErrorKind::Rejected => "rejected",
        ErrorKind::NotStated => "not_stated",
        ErrorKind::Refused => "refused",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Deadline => "deadline",
        ErrorKind::Budget => "budget",
        ErrorKind::Cancelled => "cancelled",
        // OpenTelemetry's value of `error.type` for errors without a name of their own.
        _ => "_OTHER",
    }
}
