//! Accepted and rejected answers.

use std::sync::Arc;

use formwork_core::Context;
use formwork_oracle::wallet::Wallet;
use formwork_oracle::{AI_RESPONSE_SCHEMA, CrossCheck, Examples, ScoreSource, contract};
use formwork_testkit::Scripted;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{answer, builder, documents, scored, wallet, with, wrong};

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

/// Finding O1: texts that say nothing about the wallet.
#[tokio::test]
async fn blank_and_copied_texts_are_violations_if_they_are_checked() {
    let few = r#"[{"wallet": {"transactions": []}, "answer": {"score": 100, "scoreBreakdown": {"activity": 0, "maturity": 0,
        "diversity": 0, "riskBehavior": 40, "surveyMatch": 0}, "reasoning": "A wallet that never did anything at all.",
        "risk_factors": ["no use"], "strengths": ["Regular use"]}}]"#;
    let examples = Examples::from_json("few.json", few.as_bytes(), &CrossCheck::default()).unwrap();
    let line = wallet().features().to_string().lines().next().unwrap().to_owned();
    for (pointer, text, rule, path) in [
        ("/reasoning", "1000.000000", "blankText", "$.reasoning"),
        ("/reasoning", "            ", "blankText", "$.reasoning"),
        ("/risk_factors/0", " ", "blankText", "$.risk_factors[0]"),
        ("/strengths/0", "90", "blankText", "$.strengths[0]"),
        ("/reasoning", "A wallet that never did anything at all.", "copiedText", "$.reasoning"),
        ("/reasoning", "a wallet that never did\nANYTHING at all", "copiedText", "$.reasoning"),
        ("/reasoning", "Score this wallet.", "copiedText", "$.reasoning"),
        ("/reasoning", &line, "copiedText", "$.reasoning"),
        ("/risk_factors/0", "No use.", "copiedText", "$.risk_factors[0]"),
        ("/risk_factors/0", "the numbers counted from its transactions", "", ""),
        ("/strengths/0", "score THIS wallet", "copiedText", "$.strengths[0]"),
        ("/strengths/0", &line, "copiedText", "$.strengths[0]"),
        ("/strengths/0", "wallet", "", ""),
        ("/reasoning", "Zwei Jahre stetige Nutzung.", "", ""),
    ] {
        let noise = with(pointer, text);
        let build = |model: &Arc<Scripted>| builder(model).with_examples(examples.clone());
        let unchecked = documents(std::slice::from_ref(&noise));
        let scored = build(&unchecked).build().unwrap().score(&wallet()).await.unwrap();
        assert_eq!((scored.source, unchecked.calls().len()), (ScoreSource::Ai, 1), "{text}");
        let checked = documents(&[noise, answer(610)]);
        let scored = build(&checked).with_texts_checked().build().unwrap().score(&wallet()).await.unwrap();
        let is_wrong = !rule.is_empty();
        assert_eq!((scored.source, checked.calls().len()), (ScoreSource::Ai, 1 + usize::from(is_wrong)));
        if is_wrong {
            assert_eq!(wrong(&scored.event.calls[0]), [(rule.to_owned(), path.to_owned())], "{text}");
        }
    }
    // The fallback says what it counts, in the words of an example or not.
    let prose = documents(&[json!("prose")]);
    let wallet = Wallet::from_json(
        br#"{"summary": {"transactions": 400, "first": "2025-01-01", "last": "2026-01-01", "active_days": 200}}"#,
    );
    let builder = builder(&prose).with_examples(examples).with_texts_checked();
    let scored = builder.build().unwrap().score(&wallet.unwrap()).await.unwrap();
    assert_eq!(
        (scored.source, &*scored.answer.strengths),
        (ScoreSource::Fallback, &["regular use".to_owned()][..])
    );
}
