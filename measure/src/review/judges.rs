//! Scripted judges with a known accuracy.

use std::sync::atomic::{AtomicU64, Ordering};

use formwork_core::{Capabilities, Completion, Enforcement, SharedProvider};
use serde_json::json;

use crate::mixed::{STEP, mixed};
use crate::scripted::scripted;

/// A deterministic pseudorandom number generator (SplitMix64).
pub(super) struct Draws(AtomicU64);

impl Draws {
    pub(super) const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Returns a seed for another generator.
    pub(super) fn seed(&self) -> u64 {
        (self.next() * (1_u64 << 53) as f64) as u64
    }

    /// Returns a number from 0 to 1, without 1.
    pub(super) fn next(&self) -> f64 {
        let state = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed(state) as f64 / u64::MAX as f64
    }
}

/// The errors of a scripted judge. The figures of voting depend on them more than on anything else.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Errs {
    /// Random errors about any criterion, with low confidence: 80 % of the errors are within ten points of the threshold, and 30 %
    /// of the correct verdicts.
    Unsure,
    /// Random errors about any criterion, with the same confidence as correct verdicts.
    Sure,
    /// Errors always about the same criteria, with the same confidence as correct verdicts.
    Systematically,
    /// The constant verdict pass.
    Passing,
}

/// Returns a judge that is correct about a share of the criteria, or for a share of its verdicts on each criterion.
pub(super) fn reviewer(accuracy: f64, errs: Errs, seed: u64) -> SharedProvider {
    let draws = Draws::new(seed);
    scripted(capabilities(), move |call| {
        // The text of the criterion contains its correct verdict.
        let prompt = call.messages.last().map(|message| message.text()).unwrap_or_default();
        let criterion = prompt.lines().next().unwrap_or_default();
        let holds = criterion.contains("holds");
        let drawn = draws.next();
        let is_right = match errs {
            Errs::Unsure | Errs::Sure => drawn < accuracy,
            Errs::Systematically => {
                // The seed depends on the criterion, so that the result is always the same for it.
                let seed =
                    criterion.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(31) ^ u64::from(byte));
                Draws::new(seed).next() < accuracy
            }
            Errs::Passing => holds,
        };
        let is_unsure = errs == Errs::Unsure && !is_right;
        let near = draws.next() < if is_unsure { 0.8 } else { 0.3 };
        let confidence =
            if near { 50 + (draws.next() * 10.0) as u8 } else { 65 + (draws.next() * 35.0) as u8 };
        let verdict = if holds == is_right { "pass" } else { "fail" };
        let answer = json!({"reasoning": "Drawn.", "verdict": verdict, "confidence": confidence});
        Completion::new(answer.to_string())
    })
}

fn capabilities() -> Capabilities {
    Capabilities::new(Enforcement::None).with_dialect("prompt").with_temperature().with_seed()
}

/// Returns a judge of one pair, which is called in both orders: first with `a` in front. `truth` is the correct choice: `a`, `b` or
/// `tie`, and `bias` the probability of choosing the first text because of its position.
pub(super) fn pair_judge(truth: &str, accuracy: f64, bias: f64, seed: u64) -> SharedProvider {
    let (truth, calls, draws) = (truth.to_owned(), AtomicU64::new(0), Draws::new(seed));
    scripted(capabilities(), move |_| {
        let swapped = calls.fetch_add(1, Ordering::Relaxed) == 1;
        let right = match (truth.as_str(), swapped) {
            ("a", false) | ("b", true) => "first",
            ("a", true) | ("b", false) => "second",
            _ => "tie",
        };
        let wrong: Vec<&str> = ["first", "second", "tie"].into_iter().filter(|word| *word != right).collect();
        let better = if draws.next() < bias {
            "first"
        } else if draws.next() < accuracy {
            right
        } else if truth != "tie" {
            // If one text is better, an error is the choice of the other one.
            if right == "first" { "second" } else { "first" }
        } else {
            wrong[usize::from(draws.next() < 0.5)]
        };
        let answer = json!({"reasoning": "Drawn.", "better": better, "confidence": 80});
        Completion::new(answer.to_string())
    })
}

/// Returns the probability that such a judge is correct in both orders, if one text is better.
pub(super) fn right_twice(accuracy: f64, bias: f64) -> f64 {
    let read = (1.0 - bias) * accuracy;
    (bias + read) * read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_even_and_repeatable() {
        let draws = Draws::new(7);
        let drawn: Vec<f64> = (0..10_000).map(|_| draws.next()).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert!(drawn.iter().all(|one| (0.0..=1.0).contains(one)));
        assert_eq!(Draws::new(7).next(), drawn[0]);
    }
}
