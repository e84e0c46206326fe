use formwork_review::*;
use serde_json::json;

use crate::support::*;

fn rubric(votes: Votes) -> ReviewRubric {
    ReviewRubric { votes, ..ReviewRubric::new("r").with_criterion(Criterion::new("a", "It is short.")) }
}

const CLOSE: Votes = Votes { extra: 2, near: 10 };

#[tokio::test]
async fn a_close_verdict_is_voted_on_and_the_price_is_stated() {
    let judge =
        Says::new(|_, nth| if nth == 0 { verdict("pass", 55) } else { verdict("fail", 70 + nth as u8) });
    let (agent, _) = agent(judge.clone());
    let agent = agent.with_seed(7);
    let review = LlmReviewService::new(agent).review(json!("x"), &rubric(CLOSE)).await.unwrap();
    let result = &review.criteria_results[0];
    assert_eq!((result.verdict, result.confidence, result.votes), (Verdict::Fail, 71, 3));
    assert_eq!((review.price.calls, review.price.extra_calls), (3, 2));
    let sampled: Vec<_> =
        judge.calls().iter().map(|call| (call.sampling.temperature, call.sampling.seed)).collect();
    assert_eq!(sampled[0], (Some(0.2), Some(7)));
    assert!(
        sampled[1].0 == Some(0.7) && sampled[1].1 != sampled[0].1 && sampled[2].1 != sampled[1].1,
        "{sampled:?}"
    );
}

#[tokio::test]
async fn a_clear_one_is_not() {
    for confidence in [0, 39, 61, 100] {
        let judge = Says::new(move |_, _| verdict("pass", confidence));
        let (agent, _) = agent(judge.clone());
        let review = LlmReviewService::new(agent).review(json!("x"), &rubric(CLOSE)).await.unwrap();
        assert_eq!((judge.calls().len(), review.price.extra_calls), (1, 0), "{confidence}");
    }
    // Two equal votes settle it, unless they are below the threshold.
    for (confidence, extra) in [(40, 2), (50, 1), (60, 1)] {
        let judge = Says::new(move |_, _| verdict("pass", confidence));
        let (agent, _) = agent(judge.clone());
        let review = LlmReviewService::new(agent).review(json!("x"), &rubric(CLOSE)).await.unwrap();
        assert_eq!(
            (judge.calls().len(), review.price.extra_calls),
            (1 + extra, extra as u32),
            "{confidence}"
        );
    }
}

#[tokio::test]
async fn by_default_nobody_votes_twice() {
    let judge = Says::new(|_, _| verdict("pass", 50));
    let (agent, _) = agent(judge.clone());
    let review = LlmReviewService::new(agent).review(json!("x"), &rubric(Votes::default())).await.unwrap();
    assert_eq!((judge.calls().len(), review.criteria_results[0].verdict), (1, Verdict::Pass));
}

#[tokio::test]
async fn a_first_vote_that_contradicts_itself_is_one_of_many_where_all_are_voted_on() {
    let contradiction =
        json!({"reasoning": "It does not meet the criterion.", "verdict": "pass", "confidence": 95});
    let judge = Says::new(move |_, nth| match nth {
        0 | 1 => contradiction.to_string(),
        2 => verdict("fail", 20),
        _ => verdict("pass", 80),
    });
    let all = Votes { extra: 4, near: 50 };
    let (agent, _) = agent(judge.clone());
    let review = LlmReviewService::new(agent).review(json!("x"), &rubric(all)).await.unwrap();
    let result = &review.criteria_results[0];
    assert_eq!((result.verdict, result.confidence, result.votes), (Verdict::Pass, 80, 3));
    assert_eq!(
        (review.price.calls, review.price.extra_calls),
        (5, 3),
        "two for nothing, one unsure, two that settle it"
    );
}
