//! Values that cannot be requested alone are requested with the whole document: findings A11 and A12.

use std::sync::Arc;

use formwork_core::*;
use serde_json::{Value, json};

use crate::support::*;

/// Refuses the schemas of patches.
#[derive(Debug)]
struct WholeOnly;

impl Lower for WholeOnly {
    fn name(&self) -> &str {
        "whole-only"
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement::Schema
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        if *request.schema != schema() {
            let (dialect, pointer) = (self.name().to_owned(), String::new());
            return Err(Refused::new(dialect, "a patch").with_pointer(pointer));
        }
        AsIs("strict", Enforcement::Schema).lower(request)
    }
}

fn patches(driven: &Driven) -> Vec<bool> {
    driven.run.ledger().iter().map(|call| !call.patched.is_empty()).collect()
}

fn with(rule: Rule) -> Contract {
    Contract::new(Arc::new(Inline::new("score", schema())), Arc::new(Score)).with_rule(rule)
}

fn path<P: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> P {
    text.parse().unwrap()
}

/// Rules that no value satisfies: no integer is within the tolerance, and the list does not exist.
fn impossible() -> [Rule; 2] {
    let term = Term { path: path("$.parts.a"), weight: 0.1 };
    [
        Rule::WeightedSum { target: path("$.score"), terms: vec![term], tolerance: 0.1 },
        Rule::MemberOf { target: path("$.note"), of: path("$.parts.list") },
    ]
}

#[test]
fn a_patch_that_the_dialect_refuses_is_a_whole_answer() {
    let target = Target::new("primary", Capabilities::default()).with_mode(Arc::new(WholeOnly));
    for patching in [Patching::Attempt, Patching::Within(2)] {
        let policy = Policy::new(2).with_patching(patching);
        let plan = Plan::new(contract(), vec![target.clone()]).with_policy(policy).build().unwrap();
        let driven = drive(&plan, input(), &[Reply::Says(BAD_SUM), Reply::Says(GOOD)]);
        assert_eq!(patches(&driven), [false, false], "{patching:?}");
        assert!(driven.run.finish().is_ok());
    }
}

#[test]
fn a_patch_that_no_value_could_satisfy_is_a_whole_answer() {
    let answer = Reply::Says(r#"{"score": 3, "parts": {"a": 15, "b": 70}, "note": "fine"}"#);
    let [sum, _] = impossible();
    let plan = Plan::new(with(sum), vec![target("primary")]).with_policy(Policy::new(2)).build().unwrap();
    // The range is 1.5 with a tolerance of 0.1, which has no integer.
    let driven = drive(
        &plan,
        input(),
        &[answer, Reply::Says(r#"{"score": 7, "parts": {"a": 70, "b": 70}, "note": ""}"#)],
    );
    assert_eq!(patches(&driven), [false, false]);
    assert!(driven.run.finish().is_ok());
}

/// Requests patches whether they are possible or not.
#[derive(Debug)]
struct Stubborn;

impl RetryPolicy for Stubborn {
    fn first(&self, _: &Capabilities) -> Sampling {
        Sampling::default()
    }

    fn decide(&self, seen: &RetryContext<'_>) -> Decision {
        if seen.attempts > 1 {
            return Decision::GiveUp;
        }
        let ask = Ask::Patch(vec![path("$.score")]);
        Decision::Ask(Reask::new(ask, Sampling::default()).within_attempt())
    }
}

#[test]
fn a_policy_that_insists_on_such_a_patch_gets_a_whole_answer() {
    let target = Target::new("primary", Capabilities::default()).with_mode(Arc::new(WholeOnly));
    let plan = Plan::new(contract(), vec![target]).with_policy(Stubborn).build().unwrap();
    let driven = drive(&plan, input(), &[Reply::Says(BAD_SUM), Reply::Says(GOOD)]);
    assert_eq!(patches(&driven), [false, false]);
    assert!(driven.run.finish().is_ok());
}

#[test]
fn a_schema_that_is_true_or_false_is_narrowed_without_a_panic() {
    for rule in impossible().into_iter().chain([Rule::AtMost { target: path("$.x_a"), limit: path("$.max") }])
    {
        let narrowing = rule.narrow(&json!({"parts": {"a": 15, "list": []}, "max": 4}));
        let Some((_, narrowing)) = narrowing else { continue };
        let mut schema = Value::Bool(false);
        Rule::tighten(&mut schema, &narrowing);
        assert_eq!(schema, Value::Bool(false));
        schema = Value::Bool(true);
        Rule::tighten(&mut schema, &narrowing);
        assert!(schema.is_object());
    }
}

/// A rule about each item of a list narrows the patch of the item that violates it.
#[test]
fn a_rule_with_a_wildcard_narrows_the_patch_of_the_value_that_it_is_about() {
    let rule = Rule::AtMost { target: path("$.parts[*]"), limit: path("$.score") };
    let answer = Reply::Says(r#"{"score": 60, "parts": {"a": 70, "b": 50}, "note": "fine"}"#);
    let plan = Plan::new(with(rule), vec![target("primary")]).with_policy(Policy::new(2)).build().unwrap();
    let driven = drive(&plan, input(), &[answer, Reply::Says(r#"{"parts.a": 55}"#)]);
    let (_, _, patch) = &driven.calls[1];
    assert_eq!(patch.schema().unwrap()["properties"]["parts.a"]["maximum"], 60);
    assert_eq!(driven.run.finish().unwrap().value["parts"]["a"], 55);
}
