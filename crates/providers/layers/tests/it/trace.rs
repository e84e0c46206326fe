use std::sync::Arc;

use formwork_core::Layer;
use formwork_layers::Trace;
use formwork_testkit::{FmtSpan, Log};

use crate::slow::{Slow, call};

/// Returns the span of one call as it is logged when it closes.
async fn span(slow: Slow) -> String {
    let log = Log::default();
    let guard = log.listen(FmtSpan::CLOSE);
    if let Ok(answer) = Trace::new("openai", "gpt-x").wrap(Arc::new(slow)).call(&call()).await {
        answer.collect().await.unwrap();
    }
    drop(guard);
    let text = log.text();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[tokio::test]
async fn a_call_is_a_span_with_the_conventions_names() {
    let text = span(Slow::default()).await;
    for field in [
        r#"otel.name="chat gpt-x""#,
        r#"otel.kind="client""#,
        r#"gen_ai.operation.name="chat""#,
        r#"gen_ai.provider.name="openai""#,
        r#"gen_ai.request.model="gpt-x""#,
        "gen_ai.request.temperature=0.3",
        "gen_ai.request.max_tokens=64",
        r#"gen_ai.response.finish_reasons="stop""#,
        r#"gen_ai.response.model="slow-1""#,
        "gen_ai.usage.input_tokens=5",
        "gen_ai.usage.output_tokens=3",
    ] {
        assert!(text.contains(field), "{field} is not in {text}");
    }
    assert!(!text.contains("secret") && !text.contains("error.type") && !text.contains("seed"), "{text}");
}

#[tokio::test]
async fn a_fault_is_a_class_in_the_span() {
    let text = span(Slow { fails: true, ..Slow::default() }).await;
    assert!(text.contains("error.type=overloaded") && text.contains(r#"otel.status_code="ERROR""#), "{text}");
}
