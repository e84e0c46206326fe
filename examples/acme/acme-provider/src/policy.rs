use formwork::core::{Ask, Capabilities, Decision, Reask, RetryContext, RetryPolicy, Sampling};

/// A retry policy: at most two whole answers, and no patches.
#[derive(Debug)]
pub struct Twice;

impl RetryPolicy for Twice {
    fn first(&self, _: &Capabilities) -> Sampling {
        Sampling::default()
    }

    fn decide(&self, seen: &RetryContext<'_>) -> Decision {
        if seen.attempts > 1 || seen.faults > 0 {
            return Decision::GiveUp;
        }
        Decision::Ask(Reask::new(Ask::Whole, seen.sampling))
    }

    fn patches(&self) -> bool {
        false
    }
}
