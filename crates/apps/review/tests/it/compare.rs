use formwork_review::*;
use serde_json::json;

use crate::support::*;

fn pair() -> Pair {
    Pair { task: "Name a primary colour.".into(), a: "Red.".into(), b: "Lovely weather.".into() }
}

fn says(better: &str, confidence: u8) -> String {
    json!({"reasoning": "It answers.", "better": better, "confidence": confidence}).to_string()
}

async fn compare(judge: std::sync::Arc<Says>) -> Comparison {
    LlmReviewService::new(agent(judge).0).compare(&pair()).await.unwrap()
}

#[tokio::test]
async fn both_orders_are_called_and_have_to_agree() {
    let fair = Says::new(|call, _| {
        let prompt = last(call);
        says(if prompt.find("Red.") < prompt.find("Lovely") { "first" } else { "second" }, 90)
    });
    let comparison = compare(fair.clone()).await;
    assert_eq!(
        (comparison.preferred, comparison.consistent, comparison.price.calls),
        (Preferred::A, true, 2)
    );
    assert!(last(&fair.calls()[1]).contains("The first answer:\n---\nLovely weather."));
}

#[tokio::test]
async fn a_judge_that_favours_a_place_has_no_preference() {
    let comparison = compare(Says::new(|_, _| says("first", 99))).await;
    assert_eq!((comparison.preferred, comparison.consistent), (Preferred::Indeterminate, false));
    assert_eq!((comparison.forward.preferred, comparison.swapped.preferred), (Preferred::A, Preferred::B));
}

#[tokio::test]
async fn ties_and_doubts_are_indeterminate() {
    for answer in [says("tie", 90), says("first", 49)] {
        let comparison = compare(Says::new(move |_, _| answer.clone())).await;
        assert_eq!((comparison.preferred, comparison.consistent), (Preferred::Indeterminate, true));
    }
}
