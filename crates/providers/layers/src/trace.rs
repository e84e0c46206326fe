use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use formwork_core::{Answer, Call, Delta, End, Fault, FaultKind, Finish, Layer, SharedProvider};
use futures_core::Stream;
use tracing::{Instrument as _, Span, field};

use crate::around::{Around, around};
use crate::names;

/// Adds a span for each call, in the semantic conventions of OpenTelemetry for generative AI; see [`names`].
///
/// It is a `tracing` span of level `INFO` and target `formwork`, with `otel.kind` `client`. Subscribe with
/// `tracing-opentelemetry` to export it. It does not contain the texts of prompts and answers.
///
/// ```
/// use std::sync::Arc;
/// use formwork_core::{Layer, Provider};
/// use formwork_layers::Trace;
///
/// let provider = Arc::new(formwork_testkit::Scripted::new(["{}"]));
/// let traced = Trace::new("openai", "gpt-5.4-mini").wrap(provider.clone());
/// assert_eq!(traced.name(), provider.name());
/// ```
#[derive(Debug, Clone)]
pub struct Trace {
    provider: Arc<str>,
    model: Arc<str>,
}

impl Trace {
    /// Creates a layer for a provider, by its name in the conventions (`openai`, `ollama`), and a model.
    pub fn new(provider: &str, model: &str) -> Self {
        Self { provider: provider.into(), model: model.into() }
    }
}

impl Layer for Trace {
    fn wrap(&self, inner: SharedProvider) -> SharedProvider {
        around(inner, self.clone())
    }
}

impl Trace {
    fn span(&self, call: &Call) -> Span {
        let Self { provider, model } = self;
        let span = tracing::info_span!(
            target: "formwork",
            "chat",
            "otel.name" = format!("chat {model}"),
            "otel.kind" = "client",
            "otel.status_code" = field::Empty,
            "gen_ai.operation.name" = "chat",
            "gen_ai.provider.name" = provider.as_ref(),
            "gen_ai.request.model" = model.as_ref(),
            "gen_ai.output.type" = "json",
            "gen_ai.request.temperature" = call.sampling.temperature,
            "gen_ai.request.top_p" = call.sampling.top_p,
            "gen_ai.request.seed" = call.sampling.seed,
            "gen_ai.request.max_tokens" = call.max_tokens,
            "gen_ai.response.model" = field::Empty,
            "gen_ai.response.finish_reasons" = field::Empty,
            "gen_ai.usage.input_tokens" = field::Empty,
            "gen_ai.usage.output_tokens" = field::Empty,
            "error.type" = field::Empty,
        );
        span
    }
}

impl Around for Trace {
    async fn call(&self, inner: &SharedProvider, call: &Call) -> Result<Answer, Fault> {
        let span = self.span(call);
        match inner.call(call).instrument(span.clone()).await {
            Ok(answer) => Ok(Answer::new(Spanned { answer, span })),
            Err(fault) => {
                failed(&span, fault.kind);
                Err(fault)
            }
        }
    }
}

fn failed(span: &Span, kind: FaultKind) {
    span.record(names::ERROR_TYPE, field::display(kind));
    span.record("otel.status_code", "ERROR");
}

/// Returns the name of a finish reason. The conventions leave these to the provider; the names are those of OpenAI, which
/// most providers use.
fn finish_reason(finish: &Finish) -> &str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::Refused => "refusal",
        Finish::Filtered => "content_filter",
        Finish::ToolCall => "tool_calls",
        other => other.name(),
    }
}

/// An answer that closes its span when it ends.
struct Spanned {
    answer: Answer,
    span: Span,
}

impl Stream for Spanned {
    type Item = Result<Delta, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let entered = this.span.clone().entered();
        let next = Pin::new(&mut this.answer).poll_next(cx);
        drop(entered);
        match &next {
            Poll::Ready(Some(Ok(Delta::End(End { finish, usage, model, .. })))) => {
                this.span.record(names::RESPONSE_FINISH_REASONS, finish_reason(finish));
                this.span.record(names::USAGE_INPUT_TOKENS, usage.input_tokens);
                this.span.record(names::USAGE_OUTPUT_TOKENS, usage.output_tokens);
                if let Some(model) = model {
                    this.span.record(names::RESPONSE_MODEL, model.as_str());
                }
            }
            Poll::Ready(Some(Err(fault))) => failed(&this.span, fault.kind),
            _ => {}
        }
        next
    }
}
