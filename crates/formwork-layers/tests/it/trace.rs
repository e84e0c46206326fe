use std::io;
use std::sync::{Arc, Mutex};

use formwork_core::Layer;
use formwork_layers::Trace;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::slow::{Slow, call};

/// What a subscriber writes.
#[derive(Debug, Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The span of one call, as it stands when it is closed.
async fn span(slow: Slow) -> String {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    if let Ok(answer) = Trace::new("openai", "gpt-x").wrap(Arc::new(slow)).call(&call()).await {
        answer.collect().await.unwrap();
    }
    drop(guard);
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
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
