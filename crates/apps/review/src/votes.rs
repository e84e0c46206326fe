//! Counts the votes of a model on a criterion. Pure.

use formwork_core::Trust;

use crate::{Indeterminate, Verdict};

/// The minimum confidence of a verdict that counts: 50 counts, 49 is indeterminate.
///
/// ```
/// assert_eq!(formwork_review::THRESHOLD, 50);
/// ```
pub const THRESHOLD: u8 = 50;

/// A model's vote on a criterion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Vote {
    pub(crate) pass: bool,
    pub(crate) confidence: u8,
    pub(crate) reasoning: String,
    pub(crate) fix: String,
    /// The history of the answer's leaves.
    pub(crate) trust: Trust,
}

/// The result of counting all votes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Count<'v> {
    pub(crate) verdict: Verdict,
    pub(crate) confidence: u8,
    pub(crate) reason: Option<Indeterminate>,
    /// The vote that provides the reasoning and the fix.
    pub(crate) speaker: Option<&'v Vote>,
}

/// Counts the votes: the majority decides, with its mean confidence. Votes below the threshold are abstentions.
pub(crate) fn count(votes: &[Vote]) -> Count<'_> {
    let (passing, failing) = sides(votes);
    if passing == failing {
        let surest = votes.iter().max_by_key(|vote| vote.confidence);
        let (reason, confidence) = match surest {
            None => (Indeterminate::NoAnswer, 0),
            Some(vote) if passing == 0 => (Indeterminate::LowConfidence, vote.confidence),
            Some(_) => (Indeterminate::Tied, 0),
        };
        return Count { verdict: Verdict::Indeterminate, confidence, reason: Some(reason), speaker: surest };
    }
    let pass = passing > failing;
    let majority = || votes.iter().filter(|vote| is_sure(vote) && vote.pass == pass);
    let sum: u32 = majority().map(|vote| u32::from(vote.confidence)).sum();
    let mean = sum as f64 / majority().count() as f64;
    Count {
        verdict: if pass { Verdict::Pass } else { Verdict::Fail },
        confidence: mean.floor().min(100.0) as u8,
        reason: None,
        speaker: majority().max_by_key(|vote| vote.confidence),
    }
}

/// Returns whether `left` more votes cannot change the verdict.
pub(crate) fn is_settled(votes: &[Vote], left: u32) -> bool {
    let (passing, failing) = sides(votes);
    passing.abs_diff(failing) > left as usize
}

/// Returns the numbers of votes for `pass` and for `fail`, without abstentions.
fn sides(votes: &[Vote]) -> (usize, usize) {
    let sure = || votes.iter().filter(|vote| is_sure(vote));
    let passing = sure().filter(|vote| vote.pass).count();
    (passing, sure().count() - passing)
}

const fn is_sure(vote: &Vote) -> bool {
    vote.confidence >= THRESHOLD
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vote(pass: bool, confidence: u8) -> Vote {
        Vote { pass, confidence, reasoning: String::new(), fix: String::new(), trust: Trust::default() }
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
    }

    #[test]
    fn the_majority_decides() {
        assert_eq!(counted(&[(true, 55), (false, 90), (true, 65)]), (Verdict::Pass, 60, None));
        assert_eq!(
            counted(&[(true, 55), (false, 90)]),
            (Verdict::Indeterminate, 0, Some(Indeterminate::Tied))
        );
        assert_eq!(counted(&[(true, 49), (true, 0), (false, 99)]), (Verdict::Fail, 99, None));
        assert_eq!(counted(&[(true, 49), (true, 50), (false, 99)]).2, Some(Indeterminate::Tied));
        assert_eq!(counted(&[]), (Verdict::Indeterminate, 0, Some(Indeterminate::NoAnswer)));
    }

    proptest! {
        #[test]
        fn what_is_settled_stays(
            votes in proptest::collection::vec((any::<bool>(), 0u8..=100), 0..9),
            more in proptest::collection::vec((any::<bool>(), 0u8..=100), 0..9),
        ) {
            let cast: Vec<_> = votes.iter().map(|(pass, confidence)| vote(*pass, *confidence)).collect();
            if is_settled(&cast, more.len() as u32) {
                let all: Vec<_> = votes.iter().chain(&more).copied().collect();
                prop_assert_eq!(counted(&votes).0, counted(&all).0);
            }
        }

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
