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
use super::{patient, share};

/// The temperature of the documented target.
const TEMPERATURE: f64 = 0.7;

const VOTING: [(&str, Votes); 4] = [
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
struct Case {
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
    fn scripted() -> Self {
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
        "reviews at temperature {TEMPERATURE}, {seeds} seeds, criteria reordered with each, half of them true; \
         target: consistency > 95 %"
    );
    for (title, accuracy, errs) in JUDGES {
        for (name, votes) in VOTING {
            let judge = reviewer(accuracy, errs, 11);
            let measured = measure(&[Backend::from(judge)], &[Case::scripted()], votes, seeds).await?;
            println!("  scripted judge, {title}, {name}: {}", measured.words());
        }
    }
    Ok(())
}

pub(super) async fn real(backends: &[Backend], seeds: u64) -> Result<(), String> {
    for (name, votes) in [VOTING[0], VOTING[1], VOTING[3]] {
        let measured = measure(backends, &Case::replies(), votes, seeds).await?;
        println!("  the model, {name}: {}", measured.words());
        for row in &measured.rows {
            println!("    {}", row.words());
        }
    }
    Ok(())
}

/// The verdicts of a judge on one criterion, and the correct verdict.
#[derive(Debug, Default)]
struct Row {
    name: String,
    holds: bool,
    verdicts: Vec<Verdict>,
    unanswered: usize,
}

impl Row {
    fn add(&mut self, result: &CriterionResult) {
        // A missing verdict counts as neither consistent nor correct.
        match result.reason {
            Some(Indeterminate::NoAnswer | Indeterminate::NotReviewed) => self.unanswered += 1,
            _ => self.verdicts.push(result.verdict),
        }
    }

    fn of(&self, verdict: Verdict) -> usize {
        self.verdicts.iter().filter(|other| **other == verdict).count()
    }

    fn all(&self) -> usize {
        self.verdicts.len() + self.unanswered
    }

    fn right(&self) -> usize {
        self.of(if self.holds { Verdict::Pass } else { Verdict::Fail })
    }

    /// Returns the number of occurrences of the most frequent verdict.
    fn same(&self) -> usize {
        let counts = [Verdict::Pass, Verdict::Fail, Verdict::Indeterminate].map(|verdict| self.of(verdict));
        counts.into_iter().max().unwrap_or_default()
    }

    fn words(&self) -> String {
        format!(
            "{}, {}: pass {}, fail {}, indeterminate {}, no answer {}",
            self.name,
            if self.holds { "true" } else { "false" },
            self.of(Verdict::Pass),
            self.of(Verdict::Fail),
            self.of(Verdict::Indeterminate),
            self.unanswered
        )
    }
}

#[derive(Debug, Default)]
struct Measured {
    rows: Vec<Row>,
    calls: u32,
    extra: u32,
}

impl Measured {
    fn sum(&self, of: impl Fn(&Row) -> usize) -> usize {
        self.rows.iter().map(of).sum()
    }

    fn words(&self) -> String {
        let all = self.sum(Row::all);
        let each = f64::from(self.calls) / (all.max(1) as f64);
        format!(
            "consistent {}, right {}, {each:.2} calls a verdict ({} of {} for votes)",
            share(self.sum(Row::same), all),
            share(self.sum(Row::right), all),
            self.extra,
            self.calls
        )
    }
}

async fn measure(backends: &[Backend], cases: &[Case], votes: Votes, seeds: u64) -> Result<Measured, String> {
    let mut measured = Measured::default();
    for case in cases {
        let mut rows: BTreeMap<String, Row> = BTreeMap::new();
        for seed in 1..=seeds {
            let mut turned = ReviewRubric { votes, ..case.rubric.clone() };
            let by = seed as usize % turned.criteria.len();
            turned.criteria.rotate_left(by);
            let agent = patient(backends.iter().cloned()).with_seed(seed.wrapping_mul(7919));
            let mut service = LlmReviewService::new(agent);
            service.temperature = TEMPERATURE;
            let review = service.review(Material::new(json!(case.output)), &turned).await;
            let review = review.map_err(|error| format!("{error:#}"))?;
            measured.calls += review.price.calls;
            measured.extra += review.price.extra_calls;
            for result in &review.criteria_results {
                let id = &result.criterion_id;
                let row = rows.entry(id.clone()).or_insert_with(|| Row {
                    name: format!("{}, {id}", case.name),
                    holds: case.holds.get(id).copied().unwrap_or_default(),
                    ..Row::default()
                });
                row.add(result);
            }
        }
        measured.rows.extend(rows.into_values());
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(errs: Errs, accuracy: f64, votes: Votes) -> Measured {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let judge = reviewer(accuracy, errs, 11);
        runtime.block_on(measure(&[Backend::from(judge)], &[Case::scripted()], votes, 20)).unwrap()
    }

    fn shares(measured: &Measured) -> (f64, f64) {
        let all = measured.sum(Row::all) as f64;
        (measured.sum(Row::same) as f64 / all, measured.sum(Row::right) as f64 / all)
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
            assert_eq!(shares(&run(Errs::Sure, 1.0, votes)), (1.0, 1.0));
            // A constant verdict is perfectly consistent and correct for half of the criteria.
            assert_eq!(shares(&run(Errs::Passing, 0.5, votes)), (1.0, 0.5));
            let (consistent, right) = shares(&run(Errs::Systematically, 0.8, votes));
            assert!(consistent == 1.0 && right < 1.0, "voting mends nothing that is wrong every time");
        }
        let mut row = Row { holds: true, ..Row::default() };
        let result = |reason| CriterionResult {
            criterion_id: "a".into(),
            verdict: Verdict::Indeterminate,
            reasoning: String::new(),
            confidence: 0,
            reason: Some(reason),
            suggested_fix: None,
            votes: 0,
        };
        (0..5).for_each(|_| row.add(&result(Indeterminate::NoAnswer)));
        assert_eq!((row.all(), row.same(), row.right()), (5, 0, 0));
        row.add(&result(Indeterminate::LowConfidence));
        assert_eq!((row.all(), row.same(), row.right()), (6, 1, 0));
    }

    #[test]
    fn voting_on_everything_makes_a_judge_right_that_errs_seldom_and_wrong_one_that_errs_often() {
        let many = Votes { extra: 20, near: 50 };
        let none = Votes { extra: 0, near: 0 };
        let (_, before) = shares(&run(Errs::Sure, 0.8, none));
        let (_, after) = shares(&run(Errs::Sure, 0.8, many));
        assert!(after > before && after > 0.97, "{before} {after}");
        let (_, before) = shares(&run(Errs::Sure, 0.3, none));
        let (consistent, after) = shares(&run(Errs::Sure, 0.3, many));
        assert!(after < before && consistent > 0.9, "{before} {after} {consistent}");
    }
}
