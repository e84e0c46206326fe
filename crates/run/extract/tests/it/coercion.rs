//! Values that do not fit the schema, in runs: what the policy, the contract and the schema permit.

use std::sync::Arc;

use formwork_core::*;
use formwork_testkit::Scripted;
use serde_json::json;

use crate::support::*;

const TYPED: &str = r#"{"name": "Maria", "age": "34"}"#;

/// Returns the number of calls and the warnings about changed values.
fn calls(policy: Option<Policy>, answers: [&'static str; 2]) -> (usize, Vec<String>) {
    let model = Arc::new(Scripted::new(answers));
    let (mut builder, _) = persons(&model);
    if let Some(policy) = policy {
        builder = builder.with_policy(policy);
    }
    let outcome = builder.build().unwrap().extract_blocking(TEXT).unwrap();
    assert_eq!(outcome.value, maria());
    let coerced = outcome.warnings.iter().filter(|warning| warning.kind == WarningKind::Coerced);
    (outcome.calls.len(), coerced.map(ToString::to_string).collect())
}

#[test]
fn an_extractor_converts_what_loses_nothing_and_says_so() {
    assert_eq!(calls(None, [TYPED, MARIA]), (1, vec![r#"coerced at $.age: "34" was read as 34"#.to_owned()]));
    assert_eq!(calls(None, [r#"{"name": "Maria", "age": "about 34"}"#, MARIA]), (2, vec![]));
}

#[test]
fn a_policy_of_an_application_asks_again() {
    assert_eq!(calls(Some(Policy::new(3)), [TYPED, MARIA]), (2, vec![]));
    assert_eq!(calls(Some(Policy::new(3).with_coercion(Coercion::Fix)), [TYPED, MARIA]).0, 1);
}

#[test]
fn a_server_that_sent_the_wrong_type_has_not_enforced_the_schema() {
    for (answer, expected) in [(TYPED, true), (MARIA, false)] {
        let model = Arc::new(Scripted::new([answer]));
        let outcome = persons(&model).0.build().unwrap().extract_blocking(TEXT).unwrap();
        assert_eq!(outcome.calls[0].observation.is_some(), expected, "{answer}");
    }
}

#[test]
fn the_mode_of_an_accepted_answer_is_the_one_that_gave_it() {
    let contract = formwork_schema::contract::<Person>().unwrap();
    let mut target = Target::new("one", Capabilities::new(Enforcement::Schema));
    for name in ["openai", "json-object"] {
        target = target.with_mode(formwork_dialect::Dialects::builtin().get(name).unwrap());
    }
    let policy = Policy::new(3).with_coercion(Coercion::Fix);
    let plan = Plan::new(contract, vec![target]).with_policy(policy).build().unwrap();
    let mut run = Run::new(&plan, Input::from(TEXT));
    let Step::Call { id, .. } = run.step(&plan, Time(0)).unwrap() else { panic!() };
    run.on(&plan, Time(0), Event::answered(id, Completion::new(TYPED))).unwrap();
    let outcome = run.finish().unwrap();
    let kinds: Vec<_> = outcome.warnings.iter().map(|warning| warning.kind).collect();
    assert!(outcome.calls[0].observation.is_some());
    assert_eq!(kinds, [WarningKind::Coerced, WarningKind::EstimatedUsage]);
}

#[test]
fn a_converted_value_is_judged_by_the_whole_contract() {
    let model = Arc::new(Scripted::new([TYPED, MARIA]));
    let (builder, _) = persons(&model);
    let builder =
        builder.check(
            "$.age",
            "adult",
            |person: &Person| {
                if person.age > 34 { Ok(()) } else { Err("older".to_owned()) }
            },
        );
    let error = builder.with_max_attempts(1).build().unwrap().extract_blocking(TEXT).unwrap_err();
    assert_eq!(error.best().unwrap().violations[0].rule, "adult");
}

#[test]
fn the_marks_of_a_schema_decide_before_the_policy() {
    let schema = |how: &str| {
        json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "age": {"type": "integer", "default": 1, "x-formwork-coerce": how},
        }})
    };
    for (how, expected) in [
        ("drop", json!({"name": "Maria"})),
        ("default", json!({"name": "Maria", "age": 1})),
        ("ask", json!({"name": "Maria", "age": 34})),
    ] {
        let model = Arc::new(Scripted::new([r#"{"name": "Maria", "age": "old"}"#, MARIA]));
        let builder =
            formwork_extract::Extractor::for_document("person", schema(how)).with_target(backend(&model));
        let outcome = builder.build().unwrap().extract_blocking(TEXT).unwrap();
        assert_eq!(
            (outcome.value, outcome.calls.len()),
            (expected, if how == "ask" { 2 } else { 1 }),
            "{how}"
        );
    }
}
