//! Accepted and rejected answers.

use formwork_core::Context;
use formwork_oracle::{AI_RESPONSE_SCHEMA, CrossCheck, ScoreSource, contract};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{answer, documents, scored, with};

/// Returns the violations of a document: keyword and path.
fn found(document: &Value) -> Vec<(String, String)> {
    let contract = contract(&CrossCheck::default()).unwrap();
    let judgement = contract.judge(document, &Context::EMPTY);
    judgement
        .violations
        .iter()
        .map(|violation| (violation.rule.clone(), violation.path.to_string()))
        .collect()
}

#[test]
fn each_of_the_ten_required_keys_is_missed_at_its_path() {
    let own = ["score", "scoreBreakdown", "reasoning", "risk_factors", "strengths"];
    let inner = ["activity", "maturity", "diversity", "riskBehavior", "surveyMatch"];
    let paths = own.iter().map(|name| format!("/{name}"));
    for pointer in paths.chain(inner.iter().map(|name| format!("/scoreBreakdown/{name}"))) {
        let mut document = answer(610);
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        document.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
        let path = format!("${}", pointer.replace('/', "."));
        assert_eq!(found(&document), [("required".to_owned(), path)]);
    }
}

#[test]
fn the_edges_are_where_the_specification_has_them() {
    for (document, rule, path) in [
        (answer(-1), "minimum", "$.score"),
        (answer(1001), "maximum", "$.score"),
        (answer(12.5), "type", "$.score"),
        (with("/scoreBreakdown/activity", 101), "maximum", "$.scoreBreakdown.activity"),
        (with("/reasoning", "123456789"), "minLength", "$.reasoning"),
        (with("/reasoning", "x".repeat(501)), "maxLength", "$.reasoning"),
    ] {
        assert_eq!(found(&document), [(rule.to_owned(), path.to_owned())], "{document}");
    }
    let dimensions = |value: u8| {
        json!({
            "activity": value, "maturity": value, "diversity": value, "riskBehavior": value, "surveyMatch": value
        })
    };
    let at = |score: u16, value: u8| {
        let mut document = answer(score);
        document["scoreBreakdown"] = dimensions(value);
        document
    };
    for document in [
        at(0, 0),
        at(1000, 100),
        answer(612.0),
        with("/reasoning", "🦀".repeat(10)),
        with("/reasoning", "x".repeat(500)),
    ] {
        assert_eq!(found(&document), [], "{document}");
    }
}

#[tokio::test]
async fn integral_fractions_and_further_keys_are_accepted() {
    let text = answer(610)
        .to_string()
        .replace("610", "6.12e2")
        .replace("\"reasoning\"", "\"extra\": 1, \"reasoning\"");
    let scored = scored(&crate::support::model([text.as_str()])).await;
    assert_eq!((scored.answer.score, scored.source, scored.attempts), (612, ScoreSource::Ai, 1));
}

proptest! {
    /// For every completion of the model, the score satisfies the contract after at most three calls.
    #[test]
    fn the_score_is_always_valid(scores in proptest::collection::vec(-50_i64..1100, 1..4), broken in 0_usize..4) {
        let mut replies: Vec<Value> = scores.iter().map(|score| answer(*score)).collect();
        if let Some(reply) = replies.get_mut(broken) {
            reply["strengths"] = json!([1]);
        }
        let model = documents(&replies);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let scored = runtime.block_on(scored(&model));
        prop_assert_eq!(crate::support::against(&scored, &CrossCheck::default()), Vec::<String>::new());
        prop_assert!(model.calls().len() <= 3);
        let first = replies.iter().take(3).find(|reply| found(reply).is_empty());
        let last = replies.last().filter(|reply| replies.len() < 3 && found(reply).is_empty());
        match first.or(last) {
            Some(right) => prop_assert_eq!(&json!(scored.answer.score), &right["score"]),
            None => prop_assert_eq!(scored.source, ScoreSource::Fallback),
        }
    }
}

#[test]
fn the_schema_in_the_examples_is_this_one() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/ai-score.schema.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    document.as_object_mut().unwrap().remove("$schema");
    assert_eq!(document, *AI_RESPONSE_SCHEMA);
}

#[test]
fn the_examples_that_come_along_are_right() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/oracle-few-shot.json");
    let examples = formwork_oracle::Examples::read(file.as_ref(), &CrossCheck::default()).unwrap();
    assert_eq!(examples.len(), 2);
    assert!(examples.iter().all(|example| example.words.contains("transactions: ")));
}
