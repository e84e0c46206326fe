//! Scripted judges with a known accuracy.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use formwork_core::{Answer, Call, Capabilities, Completion, Enforcement, Fault, Provider};
use serde_json::json;

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
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let state = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64
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

/// A judge that is correct about a share of the criteria, or for a share of its verdicts on each criterion.
pub(super) struct Reviewer {
    accuracy: f64,
    errs: Errs,
    draws: Draws,
    capabilities: Capabilities,
}

impl Reviewer {
    pub(super) fn new(accuracy: f64, errs: Errs, seed: u64) -> Self {
        Self { accuracy, errs, draws: Draws::new(seed), capabilities: capabilities() }
    }

    /// Returns whether the next verdict on a criterion is correct.
    fn is_right(&self, criterion: &str, holds: bool) -> bool {
        let drawn = self.draws.next();
        match self.errs {
            Errs::Unsure | Errs::Sure => drawn < self.accuracy,
            Errs::Systematically => {
                // The seed depends on the criterion, so that the result is always the same for it.
                let seed =
                    criterion.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(31) ^ u64::from(byte));
                Draws::new(seed).next() < self.accuracy
            }
            Errs::Passing => holds,
        }
    }
}

impl std::fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reviewer({}, {:?})", self.accuracy, self.errs)
    }
}

fn capabilities() -> Capabilities {
    Capabilities::new(Enforcement::None).with_dialect("prompt").with_temperature().with_seed()
}

#[async_trait]
impl Provider for Reviewer {
    fn name(&self) -> &str {
        "scripted"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        // The text of the criterion contains its correct verdict.
        let prompt = call.messages.last().map(|message| message.text()).unwrap_or_default();
        let criterion = prompt.lines().next().unwrap_or_default();
        let holds = criterion.contains("holds");
        let is_right = self.is_right(criterion, holds);
        let is_unsure = self.errs == Errs::Unsure && !is_right;
        let near = self.draws.next() < if is_unsure { 0.8 } else { 0.3 };
        let confidence =
            if near { 50 + (self.draws.next() * 10.0) as u8 } else { 65 + (self.draws.next() * 35.0) as u8 };
        let verdict = if holds == is_right { "pass" } else { "fail" };
        let answer = json!({"reasoning": "Drawn.", "verdict": verdict, "confidence": confidence});
        Ok(Completion::new(answer.to_string()).into())
    }
}

/// A judge of one pair, which is called in both orders: first with `a` in front.
pub(super) struct PairJudge {
    /// The correct choice: `a`, `b` or `tie`.
    truth: String,
    accuracy: f64,
    /// The probability of choosing the first text because of its position.
    bias: f64,
    calls: AtomicU64,
    draws: Draws,
    capabilities: Capabilities,
}

impl PairJudge {
    pub(super) fn new(truth: &str, accuracy: f64, bias: f64, seed: u64) -> Self {
        let draws = Draws::new(seed);
        Self {
            truth: truth.to_owned(),
            accuracy,
            bias,
            calls: AtomicU64::new(0),
            draws,
            capabilities: capabilities(),
        }
    }
}

/// Returns the probability that such a judge is correct in both orders, if one text is better.
pub(super) fn right_twice(accuracy: f64, bias: f64) -> f64 {
    let read = (1.0 - bias) * accuracy;
    (bias + read) * read
}

impl std::fmt::Debug for PairJudge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PairJudge({})", self.accuracy)
    }
}

#[async_trait]
impl Provider for PairJudge {
    fn name(&self) -> &str {
        "scripted"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, _: &Call) -> Result<Answer, Fault> {
        let swapped = self.calls.fetch_add(1, Ordering::Relaxed) == 1;
        let right = match (self.truth.as_str(), swapped) {
            ("a", false) | ("b", true) => "first",
            ("a", true) | ("b", false) => "second",
            _ => "tie",
        };
        let wrong: Vec<&str> = ["first", "second", "tie"].into_iter().filter(|word| *word != right).collect();
        let better = if self.draws.next() < self.bias {
            "first"
        } else if self.draws.next() < self.accuracy {
            right
        } else if self.truth != "tie" {
            // If one text is better, an error is the choice of the other one.
            if right == "first" { "second" } else { "first" }
        } else {
            wrong[usize::from(self.draws.next() < 0.5)]
        };
        let answer = json!({"reasoning": "Drawn.", "better": better, "confidence": 80});
        Ok(Completion::new(answer.to_string()).into())
    }
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
