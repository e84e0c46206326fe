//! Combines the results of the criteria into a review. Pure.

use crate::{
    Criterion, CriterionResult, Gate, GenerationError, Indeterminate, ReviewPrice, ReviewResult, Verdict,
};

/// Returns the review with these results; `error` is the reason why the review could not be carried out, if so.
pub(crate) fn aggregate(
    results: Vec<(&Criterion, CriterionResult)>,
    error: Option<GenerationError>,
    price: ReviewPrice,
) -> ReviewResult {
    let mut review = ReviewResult { pass: error.is_none(), error, price, ..ReviewResult::default() };
    for (criterion, mut result) in results {
        let Criterion { id, description, fix, .. } = criterion;
        match result.verdict {
            Verdict::Pass => {}
            Verdict::Fail => {
                review.pass = false;
                review.issues.push(format!("{id}: {description} ({})", result.reasoning));
                let suggestion =
                    result.suggested_fix.take().filter(|suggestion| !suggestion.trim().is_empty());
                let fix = suggestion
                    .or_else(|| fix.clone())
                    .unwrap_or_else(|| format!("Change the output so that this holds: {description}"));
                review.suggested_fixes.push(fix.clone());
                result.suggested_fix = Some(fix);
            }
            Verdict::Indeterminate => {
                let why = result.reason.map_or("", Indeterminate::words);
                review.indeterminate.push(format!("{id}: {description} ({why})"));
            }
        }
        review.criteria_results.push(result);
    }
    review.gate = match (review.pass, review.indeterminate.is_empty()) {
        (false, _) => Gate::Fail,
        (true, true) => Gate::Pass,
        (true, false) => Gate::Undecided,
    };
    review
}

/// Returns the result of a criterion that could not be evaluated.
pub(crate) fn undecided(criterion: &Criterion, reason: Indeterminate, why: String) -> CriterionResult {
    let result = CriterionResult::new(&criterion.id, Verdict::Indeterminate, why, 0);
    CriterionResult { reason: Some(reason), ..result }
}

#[cfg(test)]
mod tests {
    use formwork_core::{Error, ErrorKind};
    use proptest::prelude::*;

    use super::*;

    fn verdicts() -> impl Strategy<Value = Vec<Verdict>> {
        let one = prop_oneof![Just(Verdict::Pass), Just(Verdict::Fail), Just(Verdict::Indeterminate)];
        proptest::collection::vec(one, 0..8)
    }

    proptest! {
        #[test]
        fn it_passes_if_it_was_carried_out_and_nothing_failed(verdicts in verdicts(), carried_out in any::<bool>()) {
            let criterion = Criterion::new("a", "b");
            let results = verdicts.iter().map(|verdict| {
                let result = undecided(&criterion, Indeterminate::Tied, String::new());
                (&criterion, CriterionResult { verdict: *verdict, ..result })
            });
            let error = Error::new(ErrorKind::Unavailable, "no judge");
            let error = (!carried_out).then(|| GenerationError::from(&error));
            let review = aggregate(results.collect(), error, ReviewPrice::default());
            let of = |kind| verdicts.iter().filter(|verdict| **verdict == kind).count();
            prop_assert_eq!(review.pass, carried_out && of(Verdict::Fail) == 0);
            prop_assert_eq!(review.passes(false), review.pass);
            prop_assert_eq!(review.passes(true), review.pass && of(Verdict::Indeterminate) == 0);
            prop_assert_eq!(review.gate == Gate::Fail, !review.pass);
            prop_assert_eq!(review.gate == Gate::Pass, review.passes(true));
            prop_assert_eq!(review.issues.len(), of(Verdict::Fail));
            prop_assert_eq!(review.suggested_fixes.len(), of(Verdict::Fail));
            prop_assert_eq!(review.indeterminate.len(), of(Verdict::Indeterminate));
        }
    }
}
