//! The same input, the same verdict: with every seed, and with the criteria in another order.

use std::collections::BTreeMap;
use std::sync::Arc;

use formwork_extract::Backend;
use formwork_review::{Criterion, LlmReviewService, Material, ReviewRubric, Verdict, Votes};
use serde_json::json;

use super::judges::Reviewer;
use super::{patient, share};

/// The temperature that the document's target is measured at.
const TEMPERATURE: f64 = 0.7;

const VOTING: [(&str, Votes); 4] = [
    ("no votes", Votes { extra: 0, near: 0 }),
    ("up to 2 more within 10 of the threshold", Votes { extra: 2, near: 10 }),
    ("up to 6 more within 15 of the threshold", Votes { extra: 6, near: 15 }),
    ("up to 20 more whatever its confidence", Votes { extra: 20, near: 50 }),
];

pub(super) async fn scripted(seeds: u64) -> Result<(), String> {
    println!(
        "review consistency at temperature {TEMPERATURE}, {seeds} seeds, criteria reordered with each; target > 95 %"
    );
    for accuracy in [1.0, 0.95, 0.8] {
        // Twenty criteria, so that the figure does not hang on a single one.
        let rubric = (0..20).fold(ReviewRubric::new("scripted"), |rubric, n| {
            let truth = if n % 2 == 0 { "holds" } else { "fails" };
            rubric.with_criterion(Criterion::new(format!("c{n}"), format!("Criterion {n} {truth}.")))
        });
        for (name, votes) in VOTING {
            let judge = Arc::new(Reviewer::new(accuracy, 11));
            let measured =
                measure(&[Backend::from(judge)], &rubric.clone().with_votes(votes), "x", seeds).await?;
            println!("  scripted judge, right {:.0} % of the time, {name}: {measured}", 100.0 * accuracy);
        }
    }
    Ok(())
}

pub(super) async fn real(backends: &[Backend], seeds: u64) -> Result<(), String> {
    let rubric = ReviewRubric::new("reply")
        .with_criterion(Criterion::new("polite", "The reply is polite."))
        .with_criterion(Criterion::new("answers", "The reply says where the parcel is."));
    let reply =
        "Thank you for your message. Your parcel left our house on Monday and should arrive tomorrow.";
    for (name, votes) in [VOTING[0], VOTING[1], VOTING[3]] {
        let measured = measure(backends, &rubric.clone().with_votes(votes), reply, seeds).await?;
        println!("  the model, {name}: {measured}");
    }
    Ok(())
}

async fn measure(
    backends: &[Backend],
    rubric: &ReviewRubric,
    output: &str,
    seeds: u64,
) -> Result<String, String> {
    let mut verdicts: BTreeMap<String, Vec<Verdict>> = BTreeMap::new();
    let (mut calls, mut extra) = (0, 0);
    for seed in 1..=seeds {
        let mut turned = rubric.clone();
        let by = seed as usize % turned.criteria.len();
        turned.criteria.rotate_left(by);
        let agent = patient(backends.iter().cloned()).with_seed(seed.wrapping_mul(7919));
        let service = LlmReviewService::new(agent).with_temperature(TEMPERATURE);
        let review = service
            .review(Material::new(json!(output)), &turned)
            .await
            .map_err(|error| format!("{error:#}"))?;
        calls += review.price.calls;
        extra += review.price.extra_calls;
        for result in review.criteria_results {
            verdicts.entry(result.criterion_id).or_default().push(result.verdict);
        }
    }
    let (same, all) = verdicts.values().fold((0, 0), |(same, all), verdicts| {
        let of = |verdict| verdicts.iter().filter(|other| **other == verdict).count();
        let most = [Verdict::Pass, Verdict::Fail, Verdict::Indeterminate].map(of).into_iter().max();
        (same + most.unwrap_or_default(), all + verdicts.len())
    });
    let each = f64::from(calls) / (all.max(1) as f64);
    Ok(format!("{}, {each:.2} calls a verdict ({extra} of {calls} for votes)", share(same, all)))
}
