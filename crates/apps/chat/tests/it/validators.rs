//! The hand-written validator and the compiled schema have the same verdicts.

use formwork_chat::{AnswerContract, StructuredAnswer, StructuredAnswerLite};
use formwork_core::{Context, Inline, Report, Schema as _, Validator, Violation};
use formwork_testkit::{instance, near_misses};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::good;

#[derive(Debug, schemars::JsonSchema, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only described")]
struct Data {
    tags: Vec<String>,
    count: Option<u8>,
}

fn found(validator: &dyn Validator, value: &Value) -> Vec<Violation> {
    let mut report = Report::default();
    validator.validate(value, &Context::EMPTY, &mut report);
    let mut violations = report.violations().to_vec();
    violations.sort_by_key(|violation| (violation.path.to_string(), violation.rule.clone()));
    violations
}

fn both<A: AnswerContract>(value: &Value) -> [Vec<Violation>; 2] {
    let compiled = formwork_schema::compile(Inline::of::<A>().document()).unwrap();
    [found(A::validator().unwrap().as_ref(), value), found(compiled.as_ref(), value)]
}

/// A document that satisfies the contract, or is a mutation of one.
fn documents<A: AnswerContract>() -> impl Strategy<Value = Value> {
    let schema = Inline::of::<A>().document().clone();
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..4u8, anything()), 0..5);
    (instance(&schema), edits).prop_map(|(mut document, edits)| {
        for (place, kind, value) in edits {
            let mut places = Vec::new();
            walk(&document, &mut String::new(), &mut places);
            let at = places[place.index(places.len())].clone();
            match (kind, document.pointer_mut(&at)) {
                (0, Some(Value::Object(members))) => {
                    members.insert("extra".to_owned(), value);
                }
                (1, Some(Value::Object(members))) => {
                    let name = members.keys().next().cloned().unwrap_or_default();
                    members.shift_remove(&name);
                }
                (2, Some(Value::Array(items))) => items.push(value),
                (_, Some(node)) => *node = value,
                _ => {}
            }
        }
        document
    })
}

fn walk(node: &Value, at: &mut String, places: &mut Vec<String>) {
    places.push(at.clone());
    let steps: Vec<(String, &Value)> = match node {
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (name.replace('~', "~0").replace('/', "~1"), member))
            .collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        _ => Vec::new(),
    };
    for (step, inner) in steps {
        let length = at.len();
        at.push('/');
        at.push_str(&step);
        walk(inner, at, places);
        at.truncate(length);
    }
}

fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-2.0..2.0f64).prop_map(Value::from),
        Just(json!(1)),
        Just(json!("qa")),
        ".{0,200}".prop_map(Value::from),
        Just(json!([1, "a"])),
        Just(json!({"text": 1, "data": {"tags": [5]}})),
        Just(good()),
    ]
}

proptest! {
    #[test]
    fn the_same_verdicts_paths_and_words(document in documents::<StructuredAnswerLite>()) {
        let [by_hand, compiled] = both::<StructuredAnswerLite>(&document);
        prop_assert_eq!(by_hand, compiled, "{}", document);
    }

    #[test]
    fn with_data_too(document in documents::<StructuredAnswer<Data>>()) {
        let [by_hand, compiled] = both::<StructuredAnswer<Data>>(&document);
        prop_assert_eq!(by_hand, compiled, "{}", document);
    }
}

#[test]
fn the_near_misses_of_the_schema() {
    let schema = Inline::of::<StructuredAnswerLite>().document().clone();
    let misses = near_misses(&schema, &good());
    assert!(misses.len() > 20, "{}", misses.len());
    for miss in misses {
        let [by_hand, compiled] = both::<StructuredAnswerLite>(&miss.value);
        assert!(!by_hand.is_empty(), "{}", miss.value);
        assert_eq!(by_hand, compiled, "{}", miss.value);
    }
    assert_eq!(both::<StructuredAnswerLite>(&good()), [vec![], vec![]]);
}

#[test]
fn the_client_takes_either() {
    use crate::support::{client, model};
    let mut wrong = good();
    wrong["quality"]["confidence"] = json!("high");
    for bad in [wrong.to_string(), "[1]".to_owned(), "{".to_owned()] {
        let failures: Vec<_> = [false, true]
            .into_iter()
            .map(|by_schema| {
                let model = model([bad.as_str()]);
                let builder = client(&model);
                let builder = if by_schema { builder.with_schema_validation() } else { builder };
                let result = builder.build().unwrap().ask_blocking("x");
                let failure = result.failure().unwrap().clone();
                (failure.code, failure.errors, model.calls())
            })
            .collect();
        assert_eq!(failures[0], failures[1], "{bad}");
    }
}
