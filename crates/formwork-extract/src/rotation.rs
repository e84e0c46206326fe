use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Decides which of several targets a run asks first, so that runs share the load; the other targets stay behind it, in their
/// order, as its backups.
///
/// The turns follow a fixed sequence (smooth weighted round robin, as in nginx), and no random numbers. Clones share the turn,
/// so several extractors over the same targets share the load as well. See
/// [`Backend::with_rotation`](crate::Backend::with_rotation).
///
/// ```
/// use formwork_extract::Rotation;
///
/// let rotation = Rotation::weighted(&[2, 1]);
/// let first: Vec<usize> = (0..6).map(|_| rotation.take_turn()).collect();
/// assert_eq!(first, [0, 1, 0, 0, 1, 0]);
/// ```
#[derive(Debug, Clone)]
pub struct Rotation {
    sequence: Arc<[usize]>,
    turn: Arc<AtomicUsize>,
}

/// The maximum length of the sequence. Larger weights are scaled down to it.
const MAX_TURNS: u64 = 1000;

impl Rotation {
    /// Returns a rotation in which each of `targets` targets is the first one equally often (round robin).
    pub fn even(targets: usize) -> Self {
        Self::weighted(&vec![1; targets])
    }

    /// Returns a rotation in which each target is the first one as often as its weight says. A target of weight 0 is a backup
    /// only; if all weights are 0, the first target is always the first one. Weights whose sum is more than 1000 after
    /// division by their greatest common divisor are scaled down to that sum, and none of them falls to 0.
    pub fn weighted(weights: &[u32]) -> Self {
        Self { sequence: turns(weights).into(), turn: Arc::default() }
    }

    /// Returns the place of the target that the next run asks first, and advances the sequence.
    pub fn take_turn(&self) -> usize {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.sequence.get(turn % self.sequence.len().max(1)).copied().unwrap_or_default()
    }
}

/// Returns one round of turns: the places of the targets, each as often as its weight.
fn turns(weights: &[u32]) -> Vec<usize> {
    let divisor = weights.iter().fold(0, |divisor, weight| common_divisor(divisor, *weight)).max(1);
    let sum: u64 = weights.iter().map(|weight| u64::from(weight / divisor)).sum();
    let scaled = |weight: u32| match u64::from(weight / divisor) {
        weight if sum <= MAX_TURNS || weight == 0 => weight,
        weight => (weight * MAX_TURNS / sum).max(1),
    };
    let weights: Vec<i64> =
        weights.iter().map(|weight| i64::try_from(scaled(*weight)).unwrap_or_default()).collect();
    let total: i64 = weights.iter().sum();
    let mut current = vec![0; weights.len()];
    let mut turns = Vec::new();
    for _ in 0..total {
        let mut first = 0;
        for (at, weight) in weights.iter().enumerate() {
            current[at] += weight;
            if current[at] > current[first] {
                first = at;
            }
        }
        current[first] -= total;
        turns.push(first);
    }
    turns
}

const fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::{MAX_TURNS, turns};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_target_has_its_share_of_turns_and_never_waits_for_long(
            weights in prop::collection::vec(0..40_u32, 1..8),
        ) {
            let turns = turns(&weights);
            let sum: u32 = weights.iter().sum();
            for (at, weight) in weights.iter().enumerate() {
                let places: Vec<usize> = (0..turns.len()).filter(|turn| turns[*turn] == at).collect();
                prop_assert_eq!(places.len() as u64 * u64::from(sum), u64::from(*weight) * turns.len() as u64);
                // The turns of one target are spread over the round.
                for pair in places.windows(2) {
                    let distance = 2 * sum.div_ceil(*weight) as usize + weights.len();
                    prop_assert!(pair[1] - pair[0] <= distance, "{:?}: {:?}", weights, turns);
                }
            }
        }

        #[test]
        fn any_weights_give_a_round_of_bounded_length_without_losing_a_target(
            weights in prop::collection::vec(any::<u32>(), 1..8),
        ) {
            let turns = turns(&weights);
            prop_assert!(turns.len() as u64 <= MAX_TURNS + weights.len() as u64);
            for (at, weight) in weights.iter().enumerate() {
                prop_assert_eq!(turns.contains(&at), *weight > 0);
            }
        }
    }
}
