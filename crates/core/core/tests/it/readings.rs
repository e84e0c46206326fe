//! The selection among several readings of one text.

use formwork_core::*;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::*;

/// Returns a document that a model may write, and its number of violations of [`Score`]; `None` if the root has another
/// type. `n` makes each document different.
fn document(kind: usize, n: usize) -> (Value, Option<usize>) {
    let note = format!("document {n}");
    let parts = json!({"a": 70, "b": 70});
    match kind {
        0 => (json!({"score": 700, "parts": parts, "note": note}), Some(0)),
        1 => (json!({"score": "700", "parts": parts, "note": note}), Some(1)),
        2 => (json!({"score": "700", "parts": {"a": 70}, "note": note}), Some(2)),
        3 => (json!({"parts": null, "note": note, "why": "x", "how": "y"}), Some(4)),
        4 => (json!([n]), None),
        _ => (
            json!([{"note": note}, {"score": 700, "parts": parts, "note": note, "long": "x".repeat(200)}]),
            None,
        ),
    }
}

/// Returns the value that the run took from an answer: the accepted one, or the best of the others.
fn taken(text: &str) -> (bool, Value) {
    let plan = plan(cooling());
    match drive(&plan, input(), &[Reply::Says(text.to_owned().leak())]).run.finish() {
        Ok(outcome) => (true, outcome.value),
        Err(error) => (false, error.best().unwrap().value.clone()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_root_s_type_counts_most_then_the_violations_then_the_place(
        kinds in prop::collection::vec((0usize..6, any::<bool>()), 1..6), gap in "[a-z]{1,8}[.:]?[ \n]",
    ) {
        let documents: Vec<(Value, Option<usize>)> =
            kinds.iter().enumerate().map(|(n, (kind, _))| document(*kind, n)).collect();
        let mut text = gap.clone();
        for ((value, _), (_, fenced)) in documents.iter().zip(&kinds) {
            let (before, after) = if *fenced { ("\n```json\n", "\n```\n") } else { ("", "") };
            text.push_str(&format!("{before}{value}{after}{gap}"));
        }
        let rank = |violations: &Option<usize>| violations.unwrap_or(usize::MAX);
        let least = documents.iter().map(|(_, violations)| rank(violations)).min().unwrap();
        let best = documents.iter().rfind(|(_, violations)| rank(violations) == least).unwrap();
        prop_assert_eq!(taken(&text), (least == 0, best.0.clone()), "{}", text);
    }
}

#[test]
fn an_aside_of_another_type_is_never_the_draft() {
    for text in [
        r#"As in [1]: {"score": "x", "parts": {"a": "y"}}"#,
        r#"{"score": "x", "parts": {"a": "y"}} (see [1], [2])"#,
        "[1]\n```json\n{\"score\": \"x\", \"parts\": {\"a\": \"y\"}}\n```\n[2]",
        "```\n[1]\n```\n{\"score\": \"x\", \"parts\": {\"a\": \"y\"}}",
    ] {
        assert_eq!(taken(text), (false, json!({"score": "x", "parts": {"a": "y"}})), "{text}");
    }
}

#[test]
fn the_ledger_names_the_other_documents() {
    let text = format!("Draft: {BAD_RANGE} Final: {GOOD} [1]");
    let driven = drive(&plan(cooling()), input(), &[Reply::Says(text.clone().leak())]);
    let edits = driven.run.ledger()[0].edits.iter();
    let others: Vec<&str> =
        edits.filter(|edit| edit.kind == EditKind::OtherDocument).map(|edit| edit.span.of(&text)).collect();
    assert_eq!(others, [BAD_RANGE, "[1]"]);
}

#[test]
fn of_a_stopped_answer_only_whole_documents_count() {
    let plan = |level| {
        let numbers = |value: &Value, _: &Context<'_>, out: &mut Report| {
            if !value.is_array() {
                out.push(Violation::new(JsonPath::root(), "type", Stage::Schema).with_expected("array"));
            }
        };
        let contract = Contract::new(
            std::sync::Arc::new(Inline::new("list", json!({"type": "array"}))),
            std::sync::Arc::new(Free(Box::new(numbers))),
        );
        Plan::new(contract, vec![target("one")]).with_level(level).with_policy(cooling()).build().unwrap()
    };
    let class = |text: &'static str, level| {
        let driven = drive(&plan(level), input(), &[Reply::Ends(text, Finish::Stopped)]);
        match &driven.run.ledger()[0].verdict {
            CallResult::Failed { failure } => failure.class(),
            _ => "accepted",
        }
    };
    assert_eq!(class("[1, 2]\n\n\n", Level::Clean), "accepted");
    assert_eq!(class("[1, 2, [3", Level::Clean), "truncated");
    // The sequence may have had further documents.
    assert_eq!(class("{\"n\": 1}\n{\"n\": 1}\n{\"n\": 1}\n", Level::Lenient), "truncated");
}

/// A structure that is a closure.
struct Free(Box<dyn Validator>);

impl Validator for Free {
    fn validate(&self, value: &Value, cx: &Context<'_>, out: &mut Report) {
        self.0.validate(value, cx, out);
    }
}

impl Structure for Free {
    fn subschema(&self, _: &JsonPath, _: &Value) -> Option<Value> {
        None
    }
}
