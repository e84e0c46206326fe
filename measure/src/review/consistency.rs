//! Measures the consistency and the accuracy of verdicts. Consistent verdicts are the same for every seed and every order of the
//! criteria. Half of the criteria hold for the reviewed text and half do not, so that a judge with a constant verdict is perfectly
//! consistent and has an accuracy of 50 %.

use std::collections::BTreeMap;

use formwork_extract::Backend;
use formwork_review::{
    Criterion, CriterionResult, Indeterminate, LlmReviewService, Material, ReviewRubric, Verdict, Votes,
};
use serde_json::json;

use super::judges::{Errs, reviewer};
use super::patient;
use super::tally::Tally;

/// The temperature of the documented target.
const TEMPERATURE: f64 = 0.7;

pub(super) const VOTING: [(&str, Votes); 4] = [
    ("no votes", Votes { extra: 0, near: 0 }),
    ("up to 2 more within 10 of the threshold", Votes { extra: 2, near: 10 }),
    ("up to 6 more within 15 of the threshold", Votes { extra: 6, near: 15 }),
    ("up to 20 more whatever its confidence", Votes { extra: 20, near: 50 }),
];

/// The scripted judges: name, accuracy, and kind of errors.
const JUDGES: [(&str, f64, Errs); 8] = [
    ("always right", 1.0, Errs::Sure),
    ("always says pass", 0.5, Errs::Passing),
    ("right 95 times of 100, unsure where it errs", 0.95, Errs::Unsure),
    ("right 95 times of 100, as sure where it errs", 0.95, Errs::Sure),
    ("right about 80 criteria of 100, always wrong about the same", 0.8, Errs::Systematically),
    ("right 80 times of 100, unsure where it errs", 0.8, Errs::Unsure),
    ("right 80 times of 100, as sure where it errs", 0.8, Errs::Sure),
    ("right 45 times of 100, as sure where it errs", 0.45, Errs::Sure),
];

/// A reviewed text, and the criteria with their correct verdicts.
pub(super) struct Case {
    name: &'static str,
    output: &'static str,
    rubric: ReviewRubric,
    holds: BTreeMap<String, bool>,
}

impl Case {
    fn new(name: &'static str, output: &'static str, criteria: &[(&str, String, bool)]) -> Self {
        let rubric = criteria.iter().fold(ReviewRubric::new(name), |rubric, (id, description, _)| {
            rubric.with_criterion(Criterion::new(*id, description))
        });
        let holds = criteria.iter().map(|(id, _, holds)| ((*id).to_owned(), *holds)).collect();
        Self { name, output, rubric, holds }
    }

    /// Returns a case whose criteria contain their correct verdict as a word.
    pub(super) fn scripted() -> Self {
        let holds = |n: usize| n.is_multiple_of(2);
        let ids: Vec<String> = (0..20).map(|n| format!("c{n}")).collect();
        let word = |n| if holds(n) { "holds" } else { "fails" };
        let criteria: Vec<_> = ids
            .iter()
            .enumerate()
            .map(|(n, id)| (id.as_str(), format!("Criterion {n} {}.", word(n)), holds(n)))
            .collect();
        Self::new("scripted", "x", &criteria)
    }

    /// Returns two replies to a customer. Each criterion holds for one of them and not for the other.
    fn replies() -> [Self; 2] {
        let criteria = |kind: bool| {
            [
                ("polite", "The reply is polite.", kind),
                ("answers", "The reply says where the parcel is.", kind),
                ("thanks", "The reply thanks the customer.", kind),
                ("spanish", "The reply is written in Spanish.", !kind),
                ("insult", "The reply insults the customer.", !kind),
                ("placeholder", "The reply has a placeholder in brackets that nobody filled in.", !kind),
            ]
            .map(|(id, description, holds)| (id, description.to_owned(), holds))
        };
        [
            Self::new(
                "a kind reply",
                "Thank you for your message. Your parcel left our house on Monday and should arrive tomorrow.",
                &criteria(true),
            ),
            Self::new(
                "a rude reply",
                "Ni idea, [Name]. Deja de preguntar de una vez, idiota.",
                &criteria(false),
            ),
        ]
    }
}

pub(super) async fn scripted(seeds: u64) -> Result<(), String> {
    println!(
        "scripted judges at temperature {TEMPERATURE}, {seeds} seeds, criteria reordered with each, half of them true"
    );
    for (title, accuracy, errs) in JUDGES {
        for (name, votes) in VOTING {
            let mut tally = Tally::default();
            let judge = [Backend::from(reviewer(accuracy, errs, 11))];
            measure(&mut tally, &judge, &[Case::scripted()], votes, seeds).await?;
            let rows = tally.rows();
            println!("  {title}, {name}\n    {}\n    {}", rows[2], rows[3]);
            println!("    calls a verdict: {:.2}", tally.calls() as f64 / rows[2].of.max(1) as f64);
        }
    }
    Ok(())
}

/// Adds the verdicts of a real judge.
pub(super) async fn real(
    tally: &mut Tally,
    backends: &[Backend],
    votes: Votes,
    seeds: u64,
) -> Result<(), String> {
    measure(tally, backends, &Case::replies(), votes, seeds).await
}

/// Returns the verdict of a judge; `None` without a usable answer.
fn given(result: &CriterionResult) -> Option<Verdict> {
    match result.reason {
        Some(Indeterminate::NoAnswer | Indeterminate::NotReviewed) => None,
        _ => Some(result.verdict),
    }
}

pub(super) async fn measure(
    tally: &mut Tally,
    backends: &[Backend],
    cases: &[Case],
    votes: Votes,
    seeds: u64,
) -> Result<(), String> {
    for case in cases {
        for seed in 1..=seeds {
            let mut turned = ReviewRubric { votes, ..case.rubric.clone() };
            let by = seed as usize % turned.criteria.len();
            turned.criteria.rotate_left(by);
            let agent = patient(backends.iter().cloned()).with_seed(seed.wrapping_mul(7919));
            let mut service = LlmReviewService::new(agent.with_observer(tally.watch.clone()));
            service.temperature = TEMPERATURE;
            let review = service.review(Material::new(json!(case.output)), &turned).await;
            let review = review.map_err(|error| format!("{error:#}"))?;
            for result in &review.criteria_results {
                let id = &result.criterion_id;
                let verdicts = tally.verdicts.entry(format!("{}, {id}", case.name)).or_default();
                verdicts.holds = case.holds.get(id).copied().unwrap_or_default();
                verdicts.given.push(given(result));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::runtime;

    fn run(errs: Errs, accuracy: f64, votes: Votes) -> Tally {
        let mut tally = Tally::default();
        let (judge, cases) = ([Backend::from(reviewer(accuracy, errs, 11))], [Case::scripted()]);
        runtime().unwrap().block_on(measure(&mut tally, &judge, &cases, votes, 20)).unwrap();
        tally
    }

    fn shares(errs: Errs, accuracy: f64, votes: Votes) -> (f64, f64) {
        let rows = run(errs, accuracy, votes).rows();
        (rows[2].share(), rows[3].share())
    }

    #[test]
    fn true_and_false_criteria_are_equally_many() {
        let [kind, rude] = Case::replies();
        for case in [&[Case::scripted()][..], &[kind, rude]] {
            let all: Vec<bool> = case.iter().flat_map(|case| case.holds.values().copied()).collect();
            assert_eq!(2 * all.iter().filter(|holds| **holds).count(), all.len());
        }
    }

    #[test]
    fn a_judge_that_does_not_judge_is_seen() {
        for (_, votes) in VOTING {
            assert_eq!(shares(Errs::Sure, 1.0, votes), (1.0, 1.0));
            // A constant verdict is perfectly consistent and correct for half of the criteria.
            let constant = run(Errs::Passing, 0.5, votes);
            let rows = constant.rows();
            assert_eq!((rows[2].share(), rows[3].share()), (1.0, 0.5));
            assert_eq!((rows[2].met, rows[3].met), (Some(true), Some(false)));
            assert_eq!(
                constant.remarks(),
                ["the judge said `pass` 400 times of 400: it does not distinguish texts"]
            );
            let (consistent, right) = shares(Errs::Systematically, 0.8, votes);
            assert!(consistent == 1.0 && right < 1.0, "voting mends nothing that is wrong every time");
        }
    }

    #[test]
    fn voting_on_everything_makes_a_judge_right_that_errs_seldom_and_wrong_one_that_errs_often() {
        let many = Votes { extra: 20, near: 50 };
        let none = Votes { extra: 0, near: 0 };
        let (_, before) = shares(Errs::Sure, 0.8, none);
        let (_, after) = shares(Errs::Sure, 0.8, many);
        assert!(after > before && after > 0.97, "{before} {after}");
        let (_, before) = shares(Errs::Sure, 0.3, none);
        let (consistent, after) = shares(Errs::Sure, 0.3, many);
        assert!(after < before && consistent > 0.9, "{before} {after} {consistent}");
    }
}
