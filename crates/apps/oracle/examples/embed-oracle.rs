//! Uses this crate alone, with a scripted model: `cargo run -p formwork-oracle --example embed-oracle`.
//!
//! The model's first score does not follow from its breakdown, its second answer is prose, and then it is unavailable.
//! Any other provider works in its place.

use std::sync::Arc;

use formwork_core::{Backoff, FaultKind};
use formwork_oracle::wallet::Wallet;
use formwork_oracle::{Oracle, ScoreEvent, policy};
use formwork_testkit::{Reply, Scripted};

fn answer(score: u16) -> Reply {
    Reply::text(format!(
        r#"{{"score": {score},
            "scoreBreakdown": {{"activity": 80, "maturity": 70, "diversity": 60, "riskBehavior": 51, "surveyMatch": 40}},
            "reasoning": "Two years of steady use.", "risk_factors": [], "strengths": ["age"]}}"#
    ))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = [answer(990), answer(610), Reply::text("About 600."), FaultKind::Unreachable.into()];
    let oracle = Oracle::builder()
        .with_target(Arc::new(Scripted::new(script)))
        .with_policy(policy().with_backoff(Backoff::none()))
        .with_observer(|event: &ScoreEvent| {
            for rejection in event.rejections() {
                println!("  rejected: {:?}", rejection.reasons());
            }
        })
        .build()?;
    let wallet = Wallet::from_json(
        br#"{
            "as_of": "2026-11-01",
            "summary": {"transactions": 320, "failed": 4, "first": "2024-10-01", "last": "2026-10-28",
                        "active_days": 150, "counterparties": 41}
        }"#,
    )?;
    for _ in 0..2 {
        let scored = oracle.score(&wallet).await?;
        println!("{} from {}, attempts: {}", scored.answer.score, scored.source.as_str(), scored.attempts);
    }
    Ok(())
}
