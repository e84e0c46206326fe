use std::sync::Arc;
use std::time::Duration;

use formwork_core::*;
use formwork_extract::Extractor;
use formwork_testkit::{Reply, Scripted};
use futures_util::StreamExt as _;
use proptest::prelude::*;

use crate::support::*;

#[tokio::test]
async fn retry_after_is_waited_for_on_the_clock() {
    let busy =
        Fault::new(FaultKind::RateLimited, "slow down").with_retry_after(Some(Duration::from_secs(30)));
    let model = Arc::new(Scripted::new([Reply::fault(busy), FaultKind::Overloaded.into(), MARIA.into()]));
    let (builder, clock) = persons(&model);
    let outcome = builder.build().unwrap().extract(TEXT).await.unwrap();
    assert_eq!(clock.waits(), [Duration::from_secs(30), Duration::from_secs(4)]);
    assert_eq!(faults(&outcome.calls), [FaultKind::RateLimited, FaultKind::Overloaded]);
    assert_eq!(outcome.calls[2].started, Time(35_000));
}

#[tokio::test]
async fn a_broken_stream_is_a_fault() {
    let cut = Fault::new(FaultKind::Unreachable, "connection reset");
    let replies = [Reply::pieces([r#"{"name""#]).broken_off(cut), Reply::text(MARIA)];
    let model = Arc::new(Scripted::new(replies));
    let outcome = persons(&model).0.build().unwrap().extract(TEXT).await.unwrap();
    assert_eq!(faults(&outcome.calls), [FaultKind::Unreachable]);

    // There is no error and the document is complete: only the missing end marker shows that the answer was cut off.
    let model = Arc::new(Scripted::new([Reply::text(MARIA).without_end(), Reply::text(MARIA)]));
    let (builder, clock) = persons(&model);
    let outcome = builder.build().unwrap().extract(TEXT).await.unwrap();
    assert_eq!(faults(&outcome.calls), [FaultKind::Unreachable]);
    assert_eq!((clock.waits().len(), outcome.calls.len()), (1, 2));
}

#[tokio::test]
async fn the_next_target_is_called() {
    let first = Arc::new(Scripted::new([Reply::from(FaultKind::Auth)]).with_name("first"));
    let second = Arc::new(Scripted::new([MARIA]).with_name("second"));
    let builder = persons(&first).0.with_target(backend(&second).with_name("spare"));
    let outcome = builder.build().unwrap().extract(TEXT).await.unwrap();
    assert_eq!(outcome.origin, Origin::Model { target: "spare".to_owned() });
    assert_eq!(outcome.calls.len(), 2);
}

#[tokio::test]
async fn a_runaway_stream_is_stopped_and_reported() {
    let clock = Arc::default();
    let model = Endless::new(&[r#"{"name": "Maria"#], Then::Repeat(" Maria Maria", clock));
    let builder = persons(&model).0.with_max_attempts(1);
    let error = builder.build().unwrap().extract(TEXT).await.unwrap_err();
    let [call] = error.calls() else { panic!("{error:#}") };
    assert_eq!((classes(error.calls()), call.finish.clone()), (vec!["stopped"], Some(Finish::Stopped)));
    assert!(call.usage.estimated && call.usage.output_tokens > 0);
    assert!(error.message().contains("runaway"), "{error}");
    assert!(model.dropped.load(std::sync::atomic::Ordering::SeqCst));
}

/// The loop costs tens of tokens instead of the limit of the answer, and no further call repeats it.
#[tokio::test]
async fn a_tiny_model_is_stopped_in_the_first_rounds_of_a_loop() {
    let model = Endless::new(&[r#"{"age": 34, "name": "Maria"#], Then::Repeat(" Maria", Arc::default()));
    let extractor =
        Extractor::<Person>::builder().with_target(backend(&model).with_tighten(Tighten::Bounded));
    let outcome = extractor.build().unwrap().extract(TEXT).await.unwrap();
    let [call] = outcome.calls() else { panic!("{outcome:?}") };
    assert_eq!((outcome.value.name.as_str(), call.restrained), ("Maria", true));
    // One piece for the beginning, and one for each round.
    assert!(call.usage.estimated && call.usage.output_tokens < 20, "{:?}", call.usage);
    assert!(model.dropped.load(std::sync::atomic::Ordering::SeqCst));
}

#[tokio::test]
async fn what_runs_on_after_a_whole_document_is_cut_off() {
    let model = Endless::new(&[MARIA], Then::Repeat("\n", Arc::default()));
    let outcome = persons(&model).0.build().unwrap().extract(TEXT).await.unwrap();
    assert_eq!((outcome.value, outcome.calls[0].finish.clone()), (maria(), Some(Finish::Stopped)));
    assert!(outcome.usage.estimated);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_pieces_of_an_answer_make_no_difference(
        text in prop::sample::select(vec![
            MARIA.to_owned(),
            format!(r#"{{"name": "Maria", "age": 34{}"#, " ".repeat(3_000)),
            format!(r#"{{"name": "{}", "age": 34}}"#, "ha ".repeat(1_500)),
            format!(r#"{{"name": "é{}", "age": 34}}"#, "é".repeat(3_000)),
            format!("{MARIA}{}{TOO_OLD}", "\n".repeat(3_000)),
            format!("{MARIA}{}{}", " ha".repeat(1_000), r#"{"name": "Marta", "age": 35}"#),
            format!("[1] {{\"name\": \"{}", "ha ".repeat(1_500)),
            format!("{MARIA}\n").repeat(100),
            format!("{}{MARIA}", "I think so. ".repeat(300)),
        ]),
        sizes in prop::collection::vec(1usize..400, 1..10),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let result = |pieces: Vec<String>| {
            let model = Arc::new(Scripted::new([Reply::pieces(pieces)]));
            let extractor = persons(&model).0.with_max_attempts(1).build().unwrap();
            runtime.block_on(extractor.extract(TEXT))
        };
        let (mut pieces, mut rest, mut sizes) = (Vec::new(), text.as_str(), sizes.iter().cycle());
        while !rest.is_empty() {
            let end = rest.char_indices().nth(*sizes.next().unwrap()).map_or(rest.len(), |(at, _)| at);
            pieces.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
        prop_assert_eq!(result(pieces), result(vec![text]));
    }
}

#[test]
fn what_stands_before_a_runaway_is_the_answer_where_it_is_whole() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for (text, class) in [
        (format!("{MARIA}{}", " ha".repeat(1_000)), "accepted"),
        (format!("As in [1]: {MARIA}{}", "\n".repeat(3_000)), "accepted"),
        (format!("{MARIA}\n").repeat(100), "accepted"),
        (format!("{MARIA}, or {{\"name\": \"{}", "ha ".repeat(1_000)), "stopped"),
        (format!("[1] {{\"name\": \"{}", "ha ".repeat(1_000)), "stopped"),
    ] {
        let model = Arc::new(Scripted::new([Reply::text(&text)]));
        let result = runtime.block_on(persons(&model).0.with_max_attempts(1).build().unwrap().extract(TEXT));
        let calls = result.as_ref().map_or_else(Error::calls, |outcome| &outcome.calls);
        assert_eq!(
            (classes(calls), calls[0].finish.clone()),
            (vec![class], Some(Finish::Stopped)),
            "{}",
            &text[..60]
        );
    }
}

#[tokio::test]
async fn reasoning_that_runs_away_is_stopped_too() {
    let reasoning = " Maria Maria".repeat(200);
    let model =
        Arc::new(Scripted::new([Reply::completion(Completion::new(MARIA).with_reasoning(reasoning))]));
    let builder = persons(&model).0.with_max_attempts(1);
    let error = builder.build().unwrap().extract(TEXT).await.unwrap_err();
    assert_eq!(classes(error.calls()), ["stopped"]);
}

/// Extracts inputs, `concurrency` at a time, and returns all results.
async fn many(
    extractor: &Extractor<Person>,
    inputs: usize,
    concurrency: usize,
) -> Vec<Result<Person, ErrorKind>> {
    let results = extractor.extract_all((0..inputs).map(|_| TEXT), concurrency);
    let kinds = results.map(|result| result.map(|outcome| outcome.value).map_err(|error| error.kind()));
    kinds.collect().await
}

#[tokio::test]
async fn while_the_only_target_cannot_be_reached_one_input_waits_and_the_others_fail_at_once() {
    let replies = std::iter::repeat_n(Reply::from(FaultKind::Unreachable), 4 + 2);
    let model = Arc::new(Scripted::new(replies.chain([Reply::text(MARIA)])));
    let (builder, clock) = persons(&model);
    let extractor = builder.with_fail_fast().build().unwrap();
    let failed = |results: Vec<Result<Person, ErrorKind>>| {
        results.iter().all(|result| *result == Err(ErrorKind::Unavailable))
    };
    assert!(failed(many(&extractor, 100, 1).await));
    assert_eq!(clock.waits(), [2, 4, 8].map(Duration::from_secs));
    assert_eq!(model.calls().len(), 4);

    // After that time, one input makes one call; each failure doubles the time.
    for (seconds, calls) in [(30, 5), (60, 6)] {
        clock.advance(Duration::from_secs(seconds - 1));
        assert!(failed(many(&extractor, 20, 5).await));
        assert_eq!(model.calls().len(), calls - 1, "{seconds} s are not over");
        clock.advance(Duration::from_secs(1));
        assert!(failed(many(&extractor, 20, 5).await));
        assert_eq!((model.calls().len(), clock.waits().len()), (calls, 3));
    }
    clock.advance(Duration::from_secs(120));
    let results = many(&extractor, 20, 1).await;
    assert!(results.iter().all(|result| result.as_ref() == Ok(&maria())), "{results:?}");

    let down = Arc::new(Scripted::new([Reply::from(FaultKind::Unreachable)]));
    let (builder, _) = persons(&down);
    assert!(failed(many(&builder.build().unwrap(), 3, 1).await));
    assert_eq!(down.calls().len(), 3 * 4);
}

#[tokio::test]
async fn inputs_do_not_fail_at_once_while_a_target_is_left_that_can_be_reached_or_is_only_busy() {
    let up = Arc::new(Scripted::new([Reply::text(MARIA)]).with_name("up"));
    let down = Arc::new(Scripted::new([Reply::from(FaultKind::Unreachable)]).with_name("down"));
    let (builder, _) = persons(&down);
    let extractor = builder.with_target(backend(&up)).with_fail_fast().build().unwrap();
    assert!(many(&extractor, 10, 1).await.iter().all(Result::is_ok));

    let busy = Arc::new(Scripted::new([Reply::from(FaultKind::Overloaded)]));
    let (builder, clock) = persons(&busy);
    let extractor = builder.with_fail_fast().build().unwrap();
    assert!(many(&extractor, 3, 1).await.iter().all(Result::is_err));
    assert_eq!((busy.calls().len(), clock.waits().len()), (3 * 4, 3 * 3));
}
