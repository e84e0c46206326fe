//! What one or more votes of a model on a criterion come to. Pure.

use crate::{Indeterminate, Verdict};

/// The confidence from which on a verdict counts; 50 does, 49 does not.
pub const THRESHOLD: u8 = 50;

/// What a model said of a criterion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Vote {
    pub(crate) pass: bool,
    pub(crate) confidence: u8,
    pub(crate) reasoning: String,
    pub(crate) fix: String,
}

/// What the votes say together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Count<'v> {
    pub(crate) verdict: Verdict,
    pub(crate) confidence: u8,
    pub(crate) reason: Option<Indeterminate>,
    /// The vote whose words stand for all.
    pub(crate) speaker: Option<&'v Vote>,
}

/// The majority decides, with the mean confidence of those who are of it.
pub(crate) fn count(votes: &[Vote]) -> Count<'_> {
    let passing = votes.iter().filter(|vote| vote.pass).count();
    let failing = votes.len() - passing;
    let nobody = |reason, speaker| Count {
        verdict: Verdict::Indeterminate,
        confidence: 0,
        reason: Some(reason),
        speaker,
    };
    if votes.is_empty() {
        return nobody(Indeterminate::NoAnswer, None);
    }
    if passing == failing {
        return nobody(Indeterminate::Tied, votes.first());
    }
    let pass = passing > failing;
    let majority = || votes.iter().filter(|vote| vote.pass == pass);
    let sum: u32 = majority().map(|vote| u32::from(vote.confidence)).sum();
    let mean = sum as f64 / majority().count() as f64;
    // Rounded down: what is not quite 50 is below it.
    let confidence = mean.floor().min(100.0) as u8;
    let speaker = majority().max_by_key(|vote| vote.confidence);
    let (verdict, reason) = match (confidence < THRESHOLD, pass) {
        (true, _) => (Verdict::Indeterminate, Some(Indeterminate::LowConfidence)),
        (false, true) => (Verdict::Pass, None),
        (false, false) => (Verdict::Fail, None),
    };
    Count { verdict, confidence, reason, speaker }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vote(pass: bool, confidence: u8) -> Vote {
        Vote { pass, confidence, reasoning: String::new(), fix: String::new() }
    }

    fn counted(votes: &[(bool, u8)]) -> (Verdict, u8, Option<Indeterminate>) {
        let votes: Vec<_> = votes.iter().map(|(pass, confidence)| vote(*pass, *confidence)).collect();
        let Count { verdict, confidence, reason, .. } = count(&votes);
        (verdict, confidence, reason)
    }

    #[test]
    fn fifty_counts_and_less_does_not() {
        assert_eq!(counted(&[(true, 50)]), (Verdict::Pass, 50, None));
        assert_eq!(counted(&[(false, 50)]), (Verdict::Fail, 50, None));
        assert_eq!(counted(&[(true, 49)]), (Verdict::Indeterminate, 49, Some(Indeterminate::LowConfidence)));
        assert_eq!(counted(&[(true, 49), (true, 50), (false, 99)]).0, Verdict::Indeterminate);
    }

    #[test]
    fn the_majority_decides() {
        assert_eq!(counted(&[(true, 55), (false, 90), (true, 65)]), (Verdict::Pass, 60, None));
        assert_eq!(
            counted(&[(true, 55), (false, 90)]),
            (Verdict::Indeterminate, 0, Some(Indeterminate::Tied))
        );
        assert_eq!(counted(&[]), (Verdict::Indeterminate, 0, Some(Indeterminate::NoAnswer)));
    }

    proptest! {
        #[test]
        fn the_order_of_votes_changes_nothing(
            votes in proptest::collection::vec((any::<bool>(), 0u8..=100), 0..9),
            turn in 0usize..9,
        ) {
            let mut turned = votes.clone();
            turned.rotate_left(turn.min(votes.len()));
            prop_assert_eq!(counted(&votes), counted(&turned));
            turned.reverse();
            prop_assert_eq!(counted(&votes), counted(&turned));
        }
    }
}
