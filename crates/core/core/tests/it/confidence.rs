//! The confidence in values that were corrected.

use crate::support::*;
use formwork_core::*;

/// Returns the confidence in the values of a run, which are those of `GOOD`.
fn confidence(script: &[Reply]) -> Vec<Confidence> {
    let plan = Plan::new(contract(), vec![target("primary")]).with_level(Level::Lenient).build().unwrap();
    let outcome =
        drive(&plan, Input::new(["Score 700 of a 70 and b 70 is fine."]), script).run.finish().unwrap();
    assert_eq!(outcome.value, serde_json::from_str::<serde_json::Value>(GOOD).unwrap());
    outcome.confidence()
}

#[test]
fn an_answer_that_needed_a_correction_is_never_surer_than_one_that_did_not() {
    use Reply::{Likely, Says};
    let broken = r#"{"score": 700, "parts": {"a": 70, "b": 70}, "note": "fine",}"#;
    let all = ["$.score", "$.parts.a", "$.parts.b", "$.note"];
    for (corrections, corrected) in [
        (vec![(BAD_RANGE, 0.9), (r#"{"parts.a": 70}"#, 0.9)], &all[1..2]),
        (vec![(BAD_SUM, 0.9), (r#"{"score": 700}"#, 0.9)], &all[..1]),
        (
            vec![("{}", 0.9), (r#"{"score": 700, "parts": {"a": 70, "b": 70}, "note": "fine"}"#, 0.9)],
            &all[..],
        ),
        (vec![(BAD_RANGE, 0.9), ("[", 0.5), (GOOD, 0.9)], &[]),
        (vec![(broken, 0.9)], &all[..]),
    ] {
        for has_tokens in [true, false] {
            let says =
                |(text, p): &(&'static str, f64)| if has_tokens { Likely(text, *p) } else { Says(text) };
            let clean = confidence(&[says(&(GOOD, 0.9))]);
            let after = confidence(&corrections.iter().map(says).collect::<Vec<_>>());
            for (before, after) in clean.iter().zip(&after) {
                let is_corrected = corrected.contains(&after.path.to_string().as_str());
                assert_eq!(before.tokens.is_some(), has_tokens, "{before:?}");
                assert_eq!(after.tokens, before.tokens, "{after:?} of {corrections:?}");
                assert_eq!(after.score < before.score, is_corrected, "{after:?} of {corrections:?}");
                assert!(after.score <= before.score, "{after:?} of {corrections:?}");
            }
        }
    }
}

#[test]
fn the_tokens_of_a_corrected_value_are_those_of_the_call_that_wrote_it() {
    let after = confidence(&[Reply::Likely(BAD_RANGE, 0.9), Reply::Likely(r#"{"parts.a": 70}"#, 0.5)]);
    let first = after.iter().map(|it| it.tokens.map(|[_, first]| (first * 100.0).round()));
    assert_eq!(first.collect::<Vec<_>>(), [Some(90.0), Some(50.0), Some(90.0), Some(90.0)]);
    let without = confidence(&[Reply::Likely(BAD_RANGE, 0.9), Reply::Says(r#"{"parts.a": 70}"#)]);
    assert_eq!(without[1].tokens, None);
    assert_eq!(without[0], after[0]);
}

#[test]
fn the_calls_of_other_runs_say_nothing_of_the_tokens_of_a_value() {
    let plan = Plan::new(contract(), vec![target("primary")]).build().unwrap();
    let outcome = |probability| {
        let script = [Reply::Likely(GOOD, probability)];
        drive(&plan, Input::new(["Score 700 of a 70 and b 70 is fine."]), &script).run.finish().unwrap()
    };
    let alone = outcome(0.3);
    let mut after = alone.clone();
    after.absorb(outcome(1.0));
    assert_eq!(after.confidence(), alone.confidence());
    // No call wrote a merged value.
    assert!(after.confidence_among(&[&after.value]).iter().all(|it| it.tokens.is_none()));
}

#[test]
fn every_corrected_value_counts_however_many_there_are() {
    let items: Vec<String> = (0..50).map(|item| format!("{item}, ")).collect();
    let broken: &'static str = format!("[{}]", items.concat()).leak();
    let clean: &'static str = broken.replace(", ]", "]").leak();
    let scores = |text| {
        let outcome = drive(&anything(Level::Lenient), Input::new([items.concat()]), &[Reply::Says(text)])
            .run
            .finish()
            .unwrap();
        outcome.confidence().iter().map(|it| it.score).collect::<Vec<_>>()
    };
    assert!(scores(broken).iter().zip(scores(clean)).all(|(after, before)| *after < before));
}
