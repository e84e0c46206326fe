//! A document says itself whether it is complete.

use std::sync::Arc;

use formwork_core::*;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::*;

/// Returns the class of the first answer: `None` if it was accepted, else the name of the failure.
fn failure(plan: &Plan, text: &str, finish: &Finish) -> Option<&'static str> {
    let reply = Reply::Ends(text.to_owned().leak(), finish.clone());
    let driven = drive(plan, input(), &[reply]);
    driven.run.ledger()[0].verdict.failure().map(|failure| match failure {
        Failure::Truncated { .. } => "truncated",
        Failure::Refused { .. } => "refused",
        Failure::NotJson { .. } => "not JSON",
        Failure::Invalid { .. } => "invalid",
        _ => "other",
    })
}

/// Reasons that say nothing about the document.
fn reasons() -> Vec<Finish> {
    vec![
        Finish::Stop,
        Finish::Length,
        Finish::ToolCall,
        Finish::Stopped,
        Finish::other("eos"),
        Finish::other(""),
    ]
}

/// Returns objects and lists whose strings match a pattern.
fn document(strings: &'static str) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (-1000i64..1000).prop_map(Value::from),
        strings.prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..4)
                .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    });
    value.prop_filter("the root has brackets", |value| value.is_object() || value.is_array())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_root_that_the_model_did_not_end_is_truncated_whatever_the_reason(
        (value, level) in prop_oneof![
            (document("[a-z{}\\[\\]\", ]{0,8}"), Just(Level::Clean)),
            // With a missing quote, a bracket at the end of a string may be the end of the document.
            (document("[a-z\", ]{0,8}"), Just(Level::Lenient)),
        ],
        pretty: bool,
    ) {
        let plan = anything(level);
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        for finish in &reasons() {
            prop_assert_eq!(failure(&plan, &text, finish), None, "{:?}: {}", finish, text);
            let cuts = text.char_indices().map(|(at, _)| at).skip(1);
            for cut in cuts {
                let cut = &text[..cut];
                prop_assert_eq!(failure(&plan, cut, finish), Some("truncated"), "{:?}: {}", finish, cut);
            }
        }
    }
}

#[test]
fn a_score_is_accepted_whole_and_at_no_other_length_by_every_policy() {
    for policy in policies() {
        let plan = plan(policy);
        for finish in &reasons() {
            assert_eq!(failure(&plan, GOOD, finish), None, "{finish:?}");
            for cut in 1..GOOD.len() {
                assert_eq!(failure(&plan, &GOOD[..cut], finish), Some("truncated"), "{finish:?}: {cut}");
            }
        }
    }
}

#[test]
fn texts_and_words_end_themselves_and_a_number_needs_a_model_that_ended() {
    let plan = anything(Level::Lenient);
    for finish in &reasons() {
        for ended in ["\"a\"", "true", "false", "null", "12\n", "```json\n12\n```"] {
            assert_eq!(failure(&plan, ended, finish), None, "{finish:?}: {ended}");
        }
        assert_eq!(failure(&plan, "\"a", finish), Some("truncated"), "{finish:?}");
        let number = (!finish.is_by_model()).then_some("truncated");
        assert_eq!(failure(&plan, "12", finish), number, "{finish:?}");
    }
}

#[test]
fn brackets_of_the_reader_and_earlier_documents_do_not_end_a_root() {
    let plan = anything(Level::Lenient);
    for (text, expected) in [
        // The model ended the root, and the reader an inner value.
        (r#"{"a": [1, 2}"#, None),
        (r#"[{"a": 1]"#, None),
        (r#"{"a": 1]"#, Some("truncated")),
        ("[1, 2}", Some("truncated")),
        ("{\"a\": 1}\n{\"a\": 2, \"b\": [", Some("truncated")),
        ("```json\n{\"a\": 1}\n```\n```json\n{\"a\": 2, \"b\": ", Some("truncated")),
        ("```json\n{\"a\": 1\n```\nThat is all.", Some("truncated")),
        // Braces in prose are no document.
        ("{\"a\": 1}\nSee {chapter two", None),
        ("{\"a\": 1} [sic", None),
        // An aside of another type is no second answer.
        ("{\"a\": 1}, as in [1", None),
    ] {
        assert_eq!(failure(&plan, text, &Finish::Stop), expected, "{text}");
    }
}

#[test]
fn a_patch_that_was_cut_is_not_spliced_in() {
    let policy = Policy::new(2).with_patching(Patching::Attempt);
    for finish in &reasons() {
        let patch = r#"{"parts.a": 70, "note": "fi"#;
        let replies = [Reply::Says(BAD_RANGE), Reply::Ends(patch, finish.clone())];
        let driven = drive(&plan(policy.clone()), input(), &replies);
        assert!(driven.run.finish().is_err(), "{finish:?}");
        let whole = [Reply::Says(BAD_RANGE), Reply::Ends(r#"{"parts.a": 70}"#, finish.clone())];
        assert!(drive(&plan(policy.clone()), input(), &whole).run.finish().is_ok(), "{finish:?}");
    }
}

/// Wraps the root in an object, as dialects do that accept objects only.
#[derive(Debug)]
struct Wraps;

impl Lower for Wraps {
    fn name(&self) -> &str {
        "wraps"
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement::Schema
    }

    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
        let schema = json!({"type": "object", "properties": {"value": request.schema}});
        let lift = LiftOp { at: String::new(), lift: Lift::Unwrap("value".to_owned()) };
        Ok(Lowered::new(Enforcement::Schema, Some(schema)).with_lift(vec![lift]))
    }
}

#[test]
fn a_wrapped_number_has_an_end_of_its_own() {
    let contract = Contract::new(Arc::new(Inline::new("anything", json!({}))), Arc::new(Anything));
    let target = Target::new("primary", Capabilities::new(Enforcement::Schema)).with_mode(Arc::new(Wraps));
    let plan = Plan::new(contract, vec![target]).build().unwrap();
    for finish in &reasons() {
        assert_eq!(failure(&plan, r#"{"value": 12}"#, finish), None, "{finish:?}");
        assert_eq!(failure(&plan, r#"{"value": 12"#, finish), Some("truncated"), "{finish:?}");
    }
}
