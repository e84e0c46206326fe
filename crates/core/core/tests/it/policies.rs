//! The ready policies do what the specifications of the applications require.

use std::sync::Arc;

use formwork_core::*;

use crate::support::*;

fn temperatures(driven: &Driven) -> Vec<Option<f64>> {
    driven.calls.iter().map(|(_, _, call)| call.sampling.temperature).collect()
}

#[test]
fn steps_of_the_temperature_go_with_the_attempts() {
    let plan =
        Plan::new(contract(), vec![target("ollama")]).with_policy(cooling()).with_fallback().build().unwrap();
    let driven = drive(&plan, input(), &[Reply::Says("I think it is a fine wallet.")]);
    assert_eq!(temperatures(&driven), [Some(0.3), Some(0.2), Some(0.1)]);
    let outcome = driven.run.finish().unwrap();
    assert_eq!((outcome.origin, outcome.calls.len()), (Origin::Fallback, 3));
    assert_eq!(outcome.provenance[0].source, Source::Fallback);
}

#[test]
fn a_schema_fault_and_a_sum_fault_are_attempts_alike() {
    let driven =
        drive(&plan(cooling()), input(), &[Reply::Says(BAD_RANGE), Reply::Says(BAD_SUM), Reply::Says(GOOD)]);
    assert_eq!(temperatures(&driven), [Some(0.3), Some(0.2), Some(0.1)]);
    let outcome = driven.run.finish().unwrap();
    let stages: Vec<Stage> = outcome
        .calls
        .iter()
        .filter_map(|call| match &call.verdict {
            CallResult::Failed { failure } => Some(failure.violations()[0].stage),
            _ => None,
        })
        .collect();
    assert_eq!(stages, [Stage::Schema, Stage::Check]);
    assert_eq!(outcome.value["score"], 700);
}

#[test]
fn attempts_count_over_all_targets() {
    let plan = Plan::new(contract(), vec![target("one"), target("two")])
        .with_policy(cooling().with_attempts_per_target(2))
        .build()
        .unwrap();
    let driven = drive(&plan, input(), &[Reply::Says("no")]);
    let targets: Vec<usize> = driven.calls.iter().map(|(_, target, _)| *target).collect();
    assert_eq!(targets, [0, 0, 1]);
    assert_eq!(driven.run.finish().unwrap_err().kind(), ErrorKind::Rejected);
}

#[test]
fn a_refused_schema_steps_down_without_using_up_an_attempt() {
    let driven =
        drive(&plan(cooling()), input(), &[Reply::Fails(FaultKind::SchemaRefused), Reply::Says("no")]);
    assert_eq!(temperatures(&driven), [Some(0.3), Some(0.3), Some(0.2), Some(0.1)]);
    let dialects: Vec<_> =
        driven.run.ledger().iter().map(|call| (call.attempt, call.dialect.as_str())).collect();
    assert_eq!(dialects, [(1, "strict"), (1, "prompt"), (2, "prompt"), (3, "prompt")]);
    let has_maximum = |nth: usize| driven.calls[nth].2.messages[0].text().contains("\"maximum\": 1000");
    assert_eq!([has_maximum(0), has_maximum(1)], [false, true]);
}

#[test]
fn a_corrective_message_is_the_last_one() {
    let fenced = "```json\n{}\n```";
    let plan = Plan::new(contract(), vec![target("openai")])
        .with_policy(corrective(1))
        .with_level(Level::Strict)
        .build()
        .unwrap();
    let driven = drive(&plan, input(), &[Reply::Says(fenced), Reply::Says(GOOD)]);
    let last = driven.calls[1].2.messages.last().unwrap();
    assert_eq!(last.role, Role::System);
    assert!(
        last.text().starts_with("INVALID_JSON: ")
            && last.text().ends_with("Return only a corrected JSON object."),
        "{}",
        last.text()
    );
    assert_eq!(temperatures(&driven), [None, None]);
    assert!(driven.run.finish().is_ok());

    let driven = drive(&plan, input(), &[Reply::Says("{\"x\": 1}")]);
    assert_eq!(driven.calls.len(), 2);
    let last = driven.calls[1].2.messages.last().unwrap().text();
    assert!(last.starts_with("SCHEMA_VALIDATION_FAILED: ") && last.matches("\n- ").count() == 4, "{last}");
}

#[test]
fn there_is_one_attempt_more_than_retries() {
    for (max_retries, calls) in [(0, 1), (1, 2), (3, 4)] {
        let driven = drive(&plan(corrective(max_retries)), input(), &[Reply::Says("no")]);
        assert_eq!(driven.calls.len(), calls);
    }
}

#[test]
fn a_folded_feedback_keeps_one_prompt_with_the_last_errors_only() {
    let answers = [Reply::Says(r#"{"parts": {"a": 1, "b": 1}}"#), Reply::Says(BAD_RANGE), Reply::Says("no")];
    // The target has one mode only; otherwise the first answer would prove that the schema is ignored.
    let only = Target::new("only", Capabilities::new(Enforcement::Schema))
        .with_mode(Arc::new(AsIs("strict", Enforcement::Schema)));
    let plan = Plan::new(contract(), vec![only]).with_policy(folded()).build().unwrap();
    let driven = drive(&plan, input(), &answers);
    let prompts: Vec<String> = driven
        .calls
        .iter()
        .map(|(_, _, call)| call.messages.iter().map(|message| message.text()).collect())
        .collect();
    assert!(
        driven
            .calls
            .iter()
            .all(|(_, _, call)| call.messages.len() == 1 && call.sampling.temperature.is_none())
    );
    assert_eq!(prompts.len(), 3);
    assert!(
        prompts[1]
            .contains("- Missing required field at path $.score\n- Missing required field at path $.note"),
        "{}",
        prompts[1]
    );
    assert!(prompts[2].contains("$.parts.a") && !prompts[2].contains("$.note"), "{}", prompts[2]);
    assert_eq!(driven.run.finish().unwrap_err().calls().len(), 3);
}

#[test]
fn a_temperature_above_the_bound_is_lowered_after_the_first_attempt() {
    let driven = drive(&plan(at_most(0.7)), input(), &[Reply::Says(BAD_RANGE)]);
    assert_eq!(temperatures(&driven), [Some(0.7), Some(0.2)]);
    let messages = &driven.calls[1].2.messages;
    assert_eq!(*messages[messages.len() - 2], Message::assistant(BAD_RANGE));
    let words = messages.last().unwrap().text();
    assert!(words.starts_with("Errors:\n- $.parts.a: "), "{words}");
    let driven = drive(&plan(at_most(0.1)), input(), &[Reply::Says("no")]);
    assert_eq!(temperatures(&driven), [Some(0.1), Some(0.1)]);
}

#[test]
fn failed_calls_wait_2_4_8_seconds_and_are_no_attempts() {
    let unavailable = Reply::Fails(FaultKind::Overloaded);
    let script = [unavailable.clone(), unavailable.clone(), unavailable.clone(), Reply::Says(GOOD)];
    let driven = drive(&plan(at_most(0.7)), input(), &script);
    let waits: Vec<u64> = driven.calls.windows(2).map(|pair| pair[1].0.since(pair[0].0).as_secs()).collect();
    assert_eq!(waits, [2, 4, 8]);
    let outcome = driven.run.finish().unwrap();
    assert!(outcome.calls.iter().all(|call| call.attempt == 1));

    let driven = drive(&plan(at_most(0.7)), input(), std::slice::from_ref(&unavailable));
    assert_eq!((driven.calls.len(), driven.run.finish().unwrap_err().kind()), (4, ErrorKind::Unavailable));

    let script =
        [unavailable.clone(), unavailable.clone(), unavailable.clone(), Reply::Says("no"), unavailable];
    let driven = drive(&plan(at_most(0.7)), input(), &script);
    assert_eq!(driven.calls.len(), 8, "the retries are counted anew for each attempt");

    let driven = drive(&plan(at_most(0.7)), input(), &[Reply::Fails(FaultKind::Auth)]);
    assert_eq!((driven.calls.len(), driven.run.finish().unwrap_err().kind()), (1, ErrorKind::Unavailable));
}

#[test]
fn a_longer_retry_after_wins() {
    let driven =
        drive(&plan(at_most(0.7)), input(), &[Reply::Limits(7), Reply::Limits(1), Reply::Says(GOOD)]);
    let waits: Vec<u64> = driven.calls.windows(2).map(|pair| pair[1].0.since(pair[0].0).as_secs()).collect();
    assert_eq!(waits, [7, 4]);
}

#[test]
fn a_policy_is_data() {
    for policy in policies() {
        let stored = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<Policy>(&stored).unwrap(), policy);
    }
}
