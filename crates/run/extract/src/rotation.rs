use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Selects the first target of each run, so that several targets share the load. The other targets follow in their order, as
/// backups.
///
/// The turns follow a fixed sequence without random numbers (smooth weighted round robin, as in nginx). Clones share the
/// position in the sequence, so several extractors can share the load of the same targets. See
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

/// The maximum length of the sequence. Larger weights are scaled down.
const MAX_TURNS: u64 = 1000;

impl Rotation {
    /// Returns a rotation in which each target comes first equally often (round robin). `targets` is the number of targets.
    pub fn even(targets: usize) -> Self {
        Self::weighted(&vec![1; targets])
    }

    /// Returns a rotation in which each target comes first in proportion to its weight. A target of weight 0 is only a
    /// backup. If all weights are 0, the first target always comes first. If the sum of the weights, divided by their greatest
    /// common divisor, exceeds 1000, they are scaled down to this sum; no positive weight becomes 0.
    pub fn weighted(weights: &[u32]) -> Self {
        Self { sequence: turns(weights).into(), turn: Arc::default() }
    }

    /// Returns the index of the first target of the next run, and advances the sequence.
    pub fn take_turn(&self) -> usize {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        self.sequence.get(turn % self.sequence.len().max(1)).copied().unwrap_or_default()
    }
}

/// Returns one round of the sequence: the indices of the targets, each as often as its weight.
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
