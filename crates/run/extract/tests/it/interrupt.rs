//! Deadlines, cancellations and dropped futures.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context as Task, Waker};
use std::time::Duration;

use formwork_core::*;
use formwork_extract::{AsyncValidator, CancellationToken, CheckResult, Extraction, Fallback, Situation};
use formwork_testkit::{Reply, Scripted, VirtualClock};
use serde_json::{Value, json};

use crate::support::*;

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_provider_that_never_answers_ends_at_the_deadline() {
    for then in [Then::NeverBegin, Then::Hang] {
        let model = Endless::new(&[], then);
        let spare = Arc::new(Scripted::new([MARIA]));
        let (builder, clock) = persons(&model);
        let extractor = builder.with_target(backend(&spare)).with_deadline(MINUTE).build().unwrap();
        let error = extractor.extract(TEXT).await.unwrap_err();
        assert_eq!((error.kind(), faults(error.calls())), (ErrorKind::Deadline, vec![FaultKind::Timeout]));
        assert_eq!(clock.now(), Time(61_000));
        assert!(model.dropped.load(Ordering::SeqCst) && spare.calls().is_empty());
    }
}

#[tokio::test]
async fn an_answer_that_the_deadline_cuts_off_is_truncated_and_what_came_of_it_is_kept() {
    let whole = MARIA.len();
    for cut in 1..=whole {
        let model = Endless::new(&[&MARIA[..cut]], Then::Hang);
        let (builder, clock) = persons(&model);
        let result = builder.with_deadline(MINUTE).build().unwrap().extract(TEXT).await;
        assert!(clock.now() == Time(61_000) && model.dropped.load(Ordering::SeqCst));
        let calls = result.as_ref().map_or_else(Error::calls, |outcome| &outcome.calls);
        let [call] = calls else { panic!("{calls:?}") };
        assert_eq!((&*call.text, call.finish.clone()), (&MARIA[..cut], Some(Finish::Length)));
        assert!(call.usage.estimated && call.usage.output_tokens > 0, "{:?}", call.usage);
        match result {
            // The document is complete, and only the end of the answer is missing.
            Ok(outcome) => assert_eq!((cut, outcome.value), (whole, maria())),
            Err(error) => {
                assert_eq!((error.kind(), classes(error.calls())), (ErrorKind::Deadline, vec!["truncated"]));
                // Before the first value begins, there is nothing to keep.
                let name = error.best().and_then(|best| best.value.get("name"));
                assert_eq!(name.is_some(), cut >= r#"{"name": ""#.len(), "{name:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_provider_that_keeps_the_same_deadline_itself_makes_no_difference() {
    for (pieces, after, expected) in [
        (&[r#"{"name": "Mar"#][..], MINUTE, "truncated"),
        // The clock of the provider may be slightly ahead.
        (&[r#"{"name": "Mar"#][..], MINUTE - Duration::from_millis(5), "truncated"),
        (&[][..], MINUTE, "fault"),
        // A time-out that is not caused by the deadline is a temporary fault.
        (&[r#"{"name": "Mar"#][..], MINUTE / 2, "fault"),
    ] {
        let clock = Arc::new(VirtualClock::default());
        let model = Endless::new(pieces, Then::TimeOut(after, clock.clone()));
        let builder = persons(&model).0.with_clock(clock).with_deadline(MINUTE);
        let error = builder.build().unwrap().extract(TEXT).await.unwrap_err();
        assert_eq!((error.kind(), classes(error.calls())[0]), (ErrorKind::Deadline, expected), "{after:?}");
    }
}

#[tokio::test]
async fn a_provider_that_never_stops_ends_at_the_deadline() {
    let clock = Arc::new(VirtualClock::default());
    let model = Endless::new(&[], Then::Repeat(" ", clock.clone()));
    // White space counts as a runaway after 2 kB; the deadline passes earlier.
    let deadline = Duration::from_millis(100);
    let builder = persons(&model).0.with_clock(clock.clone()).with_deadline(deadline);
    let error = builder.build().unwrap().extract(TEXT).await.unwrap_err();
    assert_eq!((error.kind(), clock.now()), (ErrorKind::Deadline, Time(100)));
}

#[tokio::test(start_paused = true)]
async fn tokio_s_clock_keeps_the_deadline() {
    let model = Endless::new(&[], Then::Hang);
    let builder = formwork_extract::Extractor::<Person>::builder().with_target(backend(&model));
    let before = tokio::time::Instant::now();
    let error = builder.with_deadline(MINUTE).build().unwrap().extract(TEXT).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadline);
    let [call] = error.calls() else { panic!("{error:#}") };
    assert!(call.ended.since(call.started) >= MINUTE && before.elapsed() < 2 * MINUTE);
}

#[tokio::test]
async fn the_fallback_is_called_after_the_deadline() {
    let model = Endless::new(&[], Then::Hang);
    let builder = persons(&model).0.with_deadline(MINUTE).with_fallback_fn(|_| Some(json!(maria())));
    let outcome = builder.build().unwrap().extract(TEXT).await.unwrap();
    assert_eq!((outcome.value, outcome.origin), (maria(), Origin::Fallback));
}

/// An async validator or fallback that never completes.
struct Never;

#[async_trait::async_trait]
impl AsyncValidator for Never {
    async fn validate(&self, _: &Value, _: &Context<'_>) -> CheckResult {
        std::future::pending().await
    }
}

#[async_trait::async_trait]
impl Fallback for Never {
    async fn value(&self, _: &Situation<'_>) -> Option<Value> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_validator_that_never_answers_ends_at_the_deadline() {
    let model = Arc::new(Scripted::new([MARIA]));
    let builder = persons(&model).0.with_deadline(MINUTE).with_async_validator(Never);
    let error = builder.build().unwrap().extract(TEXT).await.unwrap_err();
    assert_eq!((error.kind(), classes(error.calls())), (ErrorKind::Deadline, vec!["invalid"]));
    assert_eq!(error.best().unwrap().violations[0].rule, "deadline");
}

/// Drives a run until it stalls, then cancels it.
async fn cancelled(extraction: Extraction<Person>) -> Error {
    let token = CancellationToken::new();
    let run = tokio::spawn(extraction.with_cancel(token.clone()).run());
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(!run.is_finished());
    token.cancel();
    run.await.unwrap().unwrap_err()
}

#[tokio::test]
async fn a_cancel_ends_every_wait_and_keeps_the_ledger() {
    let first = Arc::new(Scripted::new([Reply::from(FaultKind::Auth)]));
    let hanging = Endless::new(&[r#"{"na"#], Then::Hang);
    let calling = persons(&first).0.with_target(backend(&hanging)).build().unwrap();
    let error = cancelled(calling.extraction(TEXT)).await;
    assert_eq!((error.kind(), classes(error.calls())), (ErrorKind::Cancelled, vec!["fault", "cancelled"]));
    assert!(hanging.dropped.load(Ordering::SeqCst) && error.usage().estimated);

    let right = Arc::new(Scripted::new([MARIA]));
    let validating = persons(&right).0.with_async_validator(Never).build().unwrap();
    let error = cancelled(validating.extraction(TEXT)).await;
    assert_eq!((error.kind(), error.calls().len()), (ErrorKind::Cancelled, 1));

    let falling_back = persons(&first).0.with_fallback(Never).build().unwrap();
    let error = cancelled(falling_back.extraction(TEXT)).await;
    assert_eq!((error.kind(), error.calls().len()), (ErrorKind::Cancelled, 1));
}

/// A clock whose timers never fire.
#[derive(Debug)]
struct Stopped;

#[async_trait::async_trait]
impl Clock for Stopped {
    fn now(&self) -> Time {
        Time(0)
    }

    async fn sleep_until(&self, _: Time) {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_cancel_ends_a_wait() {
    let model = Arc::new(Scripted::new([Reply::from(FaultKind::Overloaded)]));
    let waiting = persons(&model).0.with_clock(Arc::new(Stopped)).build().unwrap();
    let error = cancelled(waiting.extraction(TEXT)).await;
    assert_eq!((error.kind(), classes(error.calls())), (ErrorKind::Cancelled, vec!["fault"]));
}

#[tokio::test]
async fn a_cancel_before_the_start_makes_no_call() {
    let model = Arc::new(Scripted::new([MARIA]));
    let token = CancellationToken::new();
    token.cancel();
    let extractor = persons(&model).0.build().unwrap();
    let error = extractor.extraction(TEXT).with_cancel(token).run().await.unwrap_err();
    assert_eq!((error.kind(), error.calls().len(), model.calls().len()), (ErrorKind::Cancelled, 0, 0));
}

#[test]
fn dropping_the_future_drops_the_call() {
    for (pieces, then) in [(&[][..], Then::NeverBegin), (&[r#"{"name""#][..], Then::Hang)] {
        let model = Endless::new(pieces, then);
        let extractor = persons(&model).0.build().unwrap();
        let dropped = || model.dropped.load(Ordering::SeqCst);
        {
            let mut run = pin!(extractor.extract(TEXT));
            assert!(run.as_mut().poll(&mut Task::from_waker(Waker::noop())).is_pending());
            assert!(!dropped());
        }
        assert!(dropped());
    }
}
