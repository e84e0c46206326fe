//! The async, blocking and streaming drivers return the same result for all behaviours of models.

use std::sync::Arc;
use std::time::Duration;

use formwork_core::*;
use formwork_extract::{AsyncValidator, CheckResult, Extractor, Update};
use formwork_testkit::{Reply, Scripted, VirtualClock};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::*;

fn reply() -> impl Strategy<Value = Reply> {
    let limited = Fault::new(FaultKind::RateLimited, "busy").with_retry_after(Some(Duration::from_secs(9)));
    let reset = Fault::new(FaultKind::Unreachable, "reset");
    prop_oneof![
        Just(Reply::text(MARIA)),
        Just(Reply::pieces(MARIA.split_inclusive(' '))),
        Just(Reply::text(TOO_OLD)),
        Just(Reply::text(r#"{"age": 33}"#)),
        Just(Reply::text(r#"{"name": "Marta", "age": 34}"#)),
        Just(Reply::text("prose")),
        Just(Reply::text(format!("```json\n{MARIA}\n```"))),
        Just(Reply::pieces((0..200).map(|_| " Maria Maria"))),
        Just(Reply::truncated(r#"{"name": "Mar"#)),
        Just(Reply::refusal("I would rather not")),
        Just(Reply::from(FaultKind::Overloaded)),
        Just(Reply::from(FaultKind::Auth)),
        Just(Reply::from(FaultKind::SchemaRefused)),
        Just(Reply::fault(limited)),
        Just(Reply::pieces([r#"{"na"#]).broken_off(reset)),
        Just(Reply::text(MARIA).without_end()),
    ]
}

#[derive(Debug, Clone)]
struct Scene {
    scripts: Vec<Vec<Reply>>,
    validator: bool,
    fallback: bool,
    deadline: Option<u64>,
}

fn scene() -> impl Strategy<Value = Scene> {
    let scripts = vec(vec(reply(), 0..6), 1..3);
    (scripts, any::<bool>(), any::<bool>(), proptest::option::of(0..30_000_u64))
        .prop_map(|(scripts, validator, fallback, deadline)| Scene { scripts, validator, fallback, deadline })
}

/// An async validator that rejects `Marta`.
struct Known;

#[async_trait::async_trait]
impl AsyncValidator for Known {
    async fn validate(&self, value: &Value, _: &Context<'_>) -> CheckResult {
        let path = JsonPath::root().key("name");
        if value["name"] == "Marta" {
            Violation::new(path, "known", Stage::AsyncCheck).into()
        } else {
            CheckResult::none()
        }
    }
}

/// The scene from its beginning.
fn set(scene: &Scene) -> Extractor<Person> {
    let clock = Arc::new(VirtualClock::starting_at(Time(1_000)));
    let mut builder = Extractor::<Person>::builder().with_clock(clock).with_seed(1);
    for (nth, script) in scene.scripts.iter().enumerate() {
        let model = Scripted::new(script.clone()).with_name(format!("model {nth}"));
        builder = builder.with_target(backend(&Arc::new(model)));
    }
    if scene.validator {
        builder = builder.with_async_validator(Known);
    }
    if scene.fallback {
        builder = builder.with_fallback_fn(|_| Some(json!(maria())));
    }
    if let Some(deadline) = scene.deadline {
        builder = builder.with_deadline(Duration::from_millis(deadline));
    }
    builder.build().unwrap()
}

/// The result, and the streamed text of each call.
async fn streamed(scene: &Scene) -> (Result<Outcome<Person>, Error>, Vec<String>, Vec<CallRecord>) {
    let (mut updates, mut texts, mut finished) = (set(scene).stream(TEXT), Vec::new(), Vec::new());
    loop {
        match updates.next().await.unwrap() {
            Ok(Update::Done(outcome)) => return (Ok(outcome), texts, finished),
            Ok(Update::Started { .. }) => texts.push(String::new()),
            Ok(Update::Text(text)) => texts.last_mut().unwrap().push_str(&text),
            Ok(Update::Finished(call)) => finished.push(call),
            Ok(_) => {}
            Err(error) => return (Err(error), texts, finished),
        }
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn all_drivers_agree(scene in scene()) {
        let blocked = set(&scene).extract_blocking(TEXT);
        let (awaited, (streamed, texts, finished)) = runtime().block_on(async {
            (set(&scene).extract(TEXT).await, streamed(&scene).await)
        });
        prop_assert_eq!(&awaited, &blocked);
        prop_assert_eq!(&awaited, &streamed);
        let calls = awaited.as_ref().map_or_else(Error::calls, |outcome| &outcome.calls);
        // Each call was streamed once, with the text in the ledger. A failed call has no text there, and a runaway only the
        // text up to its detection.
        prop_assert_eq!(texts.len(), calls.len());
        prop_assert_eq!(finished.len(), calls.len());
        for ((text, finished_call), call) in texts.iter().zip(&finished).zip(calls) {
            let is_stopped = call.finish == Some(Finish::Stopped);
            prop_assert!(call.text.is_empty() || **text == *call.text || is_stopped);
            prop_assert!(text.starts_with(&*call.text));
            prop_assert_eq!((&finished_call.text, finished_call.cost, finished_call.started), (&call.text, call.cost, call.started));
        }
        if let Ok(outcome) = &awaited {
            prop_assert!(outcome.value.age <= 150);
        }
    }
}
