use std::sync::Arc;

use formwork_core::*;
use formwork_extract::{Backend, CancellationToken};
use formwork_layers::Trace;
use formwork_testkit::{FmtSpan, Log, Reply, Scripted};
use serde_json::json;

use crate::support::*;

fn used(text: &str, tokens: u64) -> Reply {
    let usage = Usage::new(2 * tokens, tokens);
    Reply::completion(Completion::new(text).with_usage(usage))
}

fn traced(replies: impl IntoIterator<Item = Reply>) -> Backend {
    let model = Trace::new("openai", "gpt-x").wrap(Arc::new(Scripted::new(replies)));
    Backend::new(model).with_mode(Arc::new(AsIs))
}

fn extractor(backend: Backend) -> formwork_extract::ExtractorBuilder<Person> {
    formwork_extract::Extractor::<Person>::builder().with_target(backend)
}

#[tokio::test]
async fn a_run_is_a_span_and_its_calls_are_inside() {
    let log = Log::default();
    let extractor = extractor(traced([used(TOO_OLD, 7), used(r#"{"age": 34}"#, 5)])).build().unwrap();
    let guard = log.listen(FmtSpan::CLOSE);
    extractor.extract(TEXT).await.unwrap();
    drop(guard);
    let lines = log.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for call in &lines[..2] {
        assert!(call.contains("extract{") && call.contains(r#":chat{otel.name="chat gpt-x""#), "{call}");
    }
    let run = &lines[2];
    for field in [
        r#"otel.kind="internal""#,
        r#"formwork.schema="Person""#,
        "formwork.calls=2",
        "formwork.violations=1",
        "formwork.fallback=false",
        "gen_ai.usage.input_tokens=24",
        "gen_ai.usage.output_tokens=12",
    ] {
        assert!(run.contains(field), "{field} is not in {run}");
    }
    assert!(!run.contains("chat") && !run.contains("error.type") && !run.contains("Maria"), "{run}");
}

#[tokio::test]
async fn all_violations_of_an_answer_are_counted_also_those_that_a_report_does_not_keep() {
    // A text, an integer that is rounded, and a number beyond the range of a double, for which `null` stands in.
    for item in ["\"x\"", "123456789012345678901", "1e400"] {
        let log = Log::default();
        let schema = json!({"type": "array", "items": {"type": "integer"}});
        let answer = format!("[{}]", vec![item; Report::CAP + 88].join(", "));
        let extractor = formwork_extract::Extractor::<serde_json::Value>::for_document("list", schema)
            .with_target(traced([used(&answer, 1)]))
            .with_policy(Policy::new(1))
            .build()
            .unwrap();
        let guard = log.listen(FmtSpan::CLOSE);
        let error = extractor.extract(TEXT).await.unwrap_err();
        drop(guard);
        let (lines, failure) = (log.lines(), error.calls()[0].verdict.failure().unwrap());
        assert!(lines.last().unwrap().contains("formwork.violations=600"), "{item}: {lines:?}");
        let counts = (failure.violations().len(), failure.left_out(), failure.total());
        assert_eq!(counts, (Report::CAP, 88, 600), "{item}");
        assert!(format!("{error:#}").lines().any(|line| line == "    and 88 more"), "{item}");
    }
}

#[tokio::test]
async fn a_stream_and_a_driver_are_traced_alike() {
    let log = Log::default();
    let extractor = extractor(traced([used(MARIA, 1)])).build().unwrap();
    let guard = log.listen(FmtSpan::CLOSE);
    extractor.stream(TEXT).outcome().await.unwrap();
    let model = Trace::new("openai", "gpt-x").wrap(Arc::new(Scripted::new([used(MARIA, 1)])));
    let driver = formwork_extract::Driver::new([model]);
    let plan = Arc::clone(extractor.plan());
    let run = Run::new(&plan, TEXT.into());
    driver.drive(&plan, run.clone(), &CancellationToken::new()).await.unwrap();
    driver.stream(plan, run, CancellationToken::new()).outcome().await.unwrap();
    drop(guard);
    let lines = log.lines();
    assert_eq!(lines.len(), 6, "{lines:?}");
    for pair in lines.chunks(2) {
        assert!(pair[0].contains("extract{") && pair[0].contains(":chat{"), "{pair:?}");
        assert!(pair[1].contains("formwork.calls=1") && !pair[1].contains("chat"), "{pair:?}");
    }
}

#[tokio::test]
async fn an_error_and_a_fallback_are_reported_in_the_span() {
    let log = Log::default();
    let guard = log.listen(FmtSpan::CLOSE);
    let failing = || traced([Reply::from(FaultKind::Auth)]);
    extractor(failing()).build().unwrap().extract(TEXT).await.unwrap_err();
    let saved = extractor(failing()).with_fallback_fn(|_| Some(json!(maria()))).build().unwrap();
    saved.extract(TEXT).await.unwrap();
    drop(guard);
    let lines = log.lines();
    let (failed, saved) = (&lines[1], &lines[3]);
    assert!(failed.contains(r#"error.type="unavailable""#), "{failed}");
    assert!(failed.contains(r#"otel.status_code="ERROR""#) && failed.contains("formwork.fallback=false"));
    assert!(saved.contains("formwork.fallback=true") && !saved.contains("error.type"), "{saved}");
}

#[tokio::test]
async fn a_model_that_ignores_its_schema_is_warned_of_once() {
    let log = Log::default();
    let extractor = extractor(traced([used("[]", 1), used("[1]", 1), used(MARIA, 1)]));
    let guard = log.listen(FmtSpan::CLOSE);
    extractor.build().unwrap().extract(TEXT).await.unwrap();
    drop(guard);
    let all = log.lines();
    let warnings: Vec<_> = all.iter().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warnings.len(), 1, "{all:?}");
    assert!(warnings[0].contains("target `scripted` ignored the schema (dialect `as-is`)"), "{warnings:?}");
}
