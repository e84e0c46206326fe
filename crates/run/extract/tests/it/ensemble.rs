//! Merged answers of several targets, with the history of each value.

use std::sync::Arc;

use formwork_core::{History, WarningKind};
use formwork_extract::{CancellationToken, Ensemble, Extractor, Opinions};
use formwork_testkit::Scripted;
use serde_json::{Value, json};

const TEXT: &str = "An apple, and two pears.";

fn opinions(schema: &Value, answers: &[&'static str]) -> Opinions {
    let extractors: Vec<Extractor<Value>> = answers
        .iter()
        .map(|answer| {
            let model = Arc::new(Scripted::new([*answer]));
            Extractor::for_document("order", schema.clone()).with_target(model).build().unwrap()
        })
        .collect();
    let asked = extractors.iter().enumerate().map(|(at, one)| (at.to_string(), one.extraction(TEXT)));
    let ensemble = Ensemble::new(extractors[0].plan().contract(), TEXT, asked.collect());
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(ensemble.run(&CancellationToken::new()))
        .unwrap()
}

fn items(item: &Value) -> Value {
    json!({"type": "object", "properties": {"items": {"type": "array", "items": item}}, "required": ["items"]})
}

#[test]
fn a_warning_follows_its_value_and_is_left_out_with_it() {
    let schema = items(
        &json!({"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer"}}, "required": ["k", "n"]}),
    );
    let plain = r#"{"items":[{"k":"apple","n":1},{"k":"pear","n":2}]}"#;
    let turned = r#"{"items":[{"k":"pear","n":"2"},{"k":"apple","n":1}]}"#;
    let alone = r#"{"items":[{"k":"pear","n":"2"},{"k":"fig","n":"7"},{"k":"apple","n":1}]}"#;
    for (answers, coerced) in [
        // Another answer wrote the same number, and is earlier.
        ([plain, turned], vec![]),
        ([turned, plain], vec!["$.items[0].n"]),
        // The merged list has the order of the first one.
        (
            [r#"{"items":[{"k":"apple","n":1},{"k":"pear","n":4}]}"#, alone],
            vec!["$.items[1].n", "$.items[2].n"],
        ),
    ] {
        let opinions = opinions(&schema, &answers);
        let outcome = opinions.outcome;
        let warned = outcome.warnings.iter().filter(|it| it.kind == WarningKind::Coerced);
        let paths: Vec<String> = warned.map(|it| it.path.clone().unwrap().to_string()).collect();
        let marked = outcome.trust.other.get(&History::Coerced).map_or(0, |leaves| leaves.count);
        assert_eq!(paths, coerced, "{}", outcome.value);
        assert_eq!(marked, coerced.len() as u64);
        let answers: Vec<&Value> = opinions.answers.iter().collect();
        let doubted = outcome.confidence_among(&answers).into_iter().filter(|it| it.factor < 1.0);
        assert_eq!(doubted.map(|it| it.path.to_string()).collect::<Vec<_>>(), coerced);
    }
}

#[test]
fn a_merged_value_has_the_sources_of_the_answers_that_its_leaves_were_taken_from() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let opinions = opinions(&schema, &[r#"{"a": "apple",}"#, r#"{"a": "apple", "b": "pears"}"#]);
    let trust = &opinions.outcome.trust;
    assert_eq!((trust.leaves, trust.free), (2, 1), "{trust}");
    assert_eq!(trust.other[&History::Repaired].paths, ["$.a".parse().unwrap()]);
}

#[test]
fn the_members_that_are_not_stated_are_those_of_the_merged_value() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string", "x-formwork-absent": true}}, "required": ["a", "b"]});
    for (answers, expected) in [
        ([r#"{"a": "apple", "b": "pears"}"#, r#"{"a": "apple", "b": null}"#], 0),
        ([r#"{"a": "apple", "b": null}"#, r#"{"a": "apple", "b": null}"#], 1),
        ([r#"{"a": "fig", "b": "pears"}"#, r#"{"a": "fig", "b": null}"#], 0),
    ] {
        assert_eq!(opinions(&schema, &answers).outcome.not_stated.len(), expected, "{answers:?}");
    }
}

/// Returns the merged answer of two, with the choices of an arbiter between them.
fn decided(schema: &Value, answers: [&'static str; 2], choices: &'static str) -> Opinions {
    let extractor = |schema: &Value, answer: &'static str| {
        let model = Arc::new(Scripted::new([answer]));
        Extractor::<Value>::for_document("order", schema.clone()).with_target(model).build().unwrap()
    };
    let extractors = answers.map(|answer| extractor(schema, answer));
    let asked = extractors.iter().enumerate().map(|(at, one)| (at.to_string(), one.extraction(TEXT)));
    let ensemble = Ensemble::new(extractors[0].plan().contract(), TEXT, asked.collect())
        .with_arbiter(|question, _| Ok(extractor(question.schema(), choices).extraction(TEXT)));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(ensemble.run(&CancellationToken::new())).unwrap()
}

#[test]
fn only_the_choices_that_violate_the_contract_are_left_out() {
    let integer = json!({"type": "integer"});
    let schema = json!({"type": "object", "properties": {"a": integer, "b": integer, "c": integer}, "required": ["a", "b", "c"],
        "not": {"properties": {"a": {"const": 7}, "b": {"const": 8}}}});
    let answers = [r#"{"a": 7, "b": 2, "c": 3}"#, r#"{"a": 1, "b": 8, "c": 9}"#];
    let opinions = decided(&schema, answers, r#"{"a": "7", "b": "8", "c": "9"}"#);
    assert_eq!(opinions.outcome.value, json!({"a": 7, "b": 2, "c": 9}), "{:?}", opinions.notes);
    let left_out = |notes: &[String]| notes.iter().any(|note| note.contains("those of b are left out"));
    assert!(left_out(&opinions.notes), "{:?}", opinions.notes);
    let warnings: Vec<String> = opinions.outcome.warnings.iter().map(|it| it.message.clone()).collect();
    assert!(left_out(&warnings), "{warnings:?}");
    // What no choice decided is a warning, too.
    let paths: Vec<String> =
        opinions.outcome.warnings.iter().filter_map(|it| Some(it.path.as_ref()?.to_string())).collect();
    assert_eq!(paths, ["$.b"]);
}
