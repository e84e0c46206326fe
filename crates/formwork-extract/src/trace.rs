//! The span around a whole run: the calls inside of it are its children.

use formwork_core::{Attempt, Error, ErrorKind, Origin, Outcome, Plan, Usage};
use serde_json::Value;
use tracing::{Span, field};

/// A span for one run, of level `INFO` and target `formwork`; nothing of prompts and answers is in it.
pub(crate) fn span(plan: &Plan) -> Span {
    tracing::info_span!(
        target: "formwork",
        "extract",
        "otel.kind" = "internal",
        "otel.status_code" = field::Empty,
        "formwork.schema" = plan.contract().schema().name(),
        "formwork.attempts" = field::Empty,
        "formwork.violations" = field::Empty,
        "formwork.fallback" = field::Empty,
        "gen_ai.usage.input_tokens" = field::Empty,
        "gen_ai.usage.output_tokens" = field::Empty,
        "error.type" = field::Empty,
    )
}

/// Writes the outcome of the run. A run whose future is dropped leaves a span without it.
pub(crate) fn record(span: &Span, result: &Result<Outcome<Value>, Error>) {
    if span.is_disabled() {
        return;
    }
    match result {
        Ok(outcome) => {
            span.record("formwork.fallback", outcome.origin == Origin::Fallback);
            history(span, &outcome.attempts, outcome.usage);
        }
        Err(error) => {
            span.record("formwork.fallback", false);
            span.record("error.type", error_type(error.kind()));
            span.record("otel.status_code", "ERROR");
            history(span, error.attempts(), error.usage());
        }
    }
}

fn history(span: &Span, attempts: &[Attempt], usage: Usage) {
    let failures = attempts.iter().filter_map(|attempt| attempt.verdict.failure());
    let violations: usize = failures.map(|failure| failure.violations().len()).sum();
    span.record("formwork.attempts", attempts.len() as u64);
    span.record("formwork.violations", violations as u64);
    span.record("gen_ai.usage.input_tokens", usage.input_tokens);
    span.record("gen_ai.usage.output_tokens", usage.output_tokens);
}

/// As the kinds are written in JSON.
const fn error_type(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Config => "config",
        ErrorKind::Schema => "schema",
        ErrorKind::Rejected => "rejected",
        ErrorKind::Refused => "refused",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Deadline => "deadline",
        ErrorKind::Budget => "budget",
        ErrorKind::Cancelled => "cancelled",
        // The conventions' word for what has none of its own.
        _ => "_OTHER",
    }
}
