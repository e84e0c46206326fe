use std::sync::Arc;
use std::time::Duration;

use formwork_core::*;
use formwork_testkit::{Reply, Scripted};
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
    assert_eq!(faults(&outcome.attempts), [FaultKind::RateLimited, FaultKind::Overloaded]);
    assert_eq!(outcome.attempts[2].started, Time(35_000));
}

#[tokio::test]
async fn a_broken_stream_is_a_fault() {
    let cut = Fault::new(FaultKind::Unreachable, "connection reset");
    let replies = [Reply::pieces([r#"{"name""#]).broken_off(cut), Reply::text(MARIA)];
    let model = Arc::new(Scripted::new(replies));
    let outcome = persons(&model).0.build().unwrap().extract(TEXT).await.unwrap();
    assert_eq!(faults(&outcome.attempts), [FaultKind::Unreachable]);

    // Without any error, and with all of the document there: only the protocol knows that it was not the end.
    let model = Arc::new(Scripted::new([Reply::text(MARIA).without_end(), Reply::text(MARIA)]));
    let (builder, clock) = persons(&model);
    let outcome = builder.build().unwrap().extract(TEXT).await.unwrap();
    assert_eq!(faults(&outcome.attempts), [FaultKind::Unreachable]);
    assert_eq!((clock.waits().len(), outcome.attempts.len()), (1, 2));
}

#[tokio::test]
async fn the_next_target_is_asked() {
    let first = Arc::new(Scripted::new([Reply::from(FaultKind::Auth)]).with_name("first"));
    let second = Arc::new(Scripted::new([MARIA]).with_name("second"));
    let builder = persons(&first).0.with_target(backend(&second).with_name("spare"));
    let outcome = builder.build().unwrap().extract(TEXT).await.unwrap();
    assert_eq!(outcome.origin, Origin::Model { target: "spare".to_owned() });
    assert_eq!(outcome.attempts.len(), 2);
}

#[tokio::test]
async fn a_runaway_stream_is_stopped_and_reported() {
    let clock = Arc::default();
    let model = Endless::new(&[r#"{"name": "Maria"#], Then::Repeat(" Maria Maria", clock));
    let builder = persons(&model).0.with_max_attempts(1);
    let error = builder.build().unwrap().extract(TEXT).await.unwrap_err();
    let [attempt] = error.attempts() else { panic!("{error:#}") };
    assert_eq!((classes(error.attempts()), attempt.finish), (vec!["stopped"], Some(Finish::Stopped)));
    assert!(attempt.usage.estimated && attempt.usage.output_tokens > 0);
    assert!(error.message().contains("runaway"), "{error}");
    assert!(model.dropped.load(std::sync::atomic::Ordering::SeqCst));
}

#[tokio::test]
async fn what_runs_on_after_a_whole_document_is_cut_off() {
    let model = Endless::new(&[MARIA], Then::Repeat("\n", Arc::default()));
    let outcome = persons(&model).0.build().unwrap().extract(TEXT).await.unwrap();
    assert_eq!((outcome.value, outcome.attempts[0].finish), (maria(), Some(Finish::Stopped)));
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
        let attempts = result.as_ref().map_or_else(Error::attempts, |outcome| &outcome.attempts);
        assert_eq!(
            (classes(attempts), attempts[0].finish),
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
    assert_eq!(classes(error.attempts()), ["stopped"]);
}
