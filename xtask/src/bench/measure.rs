//! Measures comparable times: the sides take turns, so that other load on the machine affects all of them.

use std::hint::black_box;
use std::time::Instant;

/// The number of rounds.
const ROUNDS: usize = 400;

/// The minimum duration of a turn in nanoseconds: long compared with reading the clock, short compared with a time slice.
const TURN: f64 = 250_000.0;

/// The measured times of two sides.
pub(super) struct Pair {
    /// Nanoseconds of one call, median.
    pub(super) ours: f64,
    /// Nanoseconds of one call, median.
    pub(super) peer: f64,
    /// The median of the rounds' ratios.
    pub(super) ratio: f64,
}

/// Measures two sides in turns. Their results are kept from being optimized away.
pub(super) fn pair<A, B>(mut ours: impl FnMut() -> A, mut peer: impl FnMut() -> B) -> Pair {
    let (our_calls, peer_calls) = (calls_per_turn(&mut ours), calls_per_turn(&mut peer));
    let mut rounds = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS {
        // The sides swap the order every round, because the second one finds warm caches.
        rounds.push(if round % 2 == 0 {
            let ours = turn(&mut ours, our_calls);
            (ours, turn(&mut peer, peer_calls))
        } else {
            let peer = turn(&mut peer, peer_calls);
            (turn(&mut ours, our_calls), peer)
        });
    }
    Pair {
        ours: median(rounds.iter().map(|(ours, _)| *ours)),
        peer: median(rounds.iter().map(|(_, peer)| *peer)),
        ratio: median(rounds.iter().map(|(ours, peer)| ours / peer)),
    }
}

/// Returns the nanoseconds per call over several calls.
fn turn<T>(call: &mut impl FnMut() -> T, calls: u32) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        black_box(call());
    }
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}

/// Returns the number of calls that fill a turn. The search for it also warms up caches.
fn calls_per_turn<T>(call: &mut impl FnMut() -> T) -> u32 {
    let mut calls = 1;
    while turn(call, calls) * f64::from(calls) < TURN && calls < 1 << 24 {
        calls *= 2;
    }
    calls
}

/// Returns the median (the lower one of an even number of values).
pub(super) fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.0);
        assert!(median([].into_iter()).is_nan());
    }

    #[test]
    fn twice_the_work_takes_longer() {
        let work = |times: u64| (0..times).fold(0u64, |sum, n| black_box(sum ^ n));
        let Pair { ratio, .. } = pair(|| work(2_000), || work(500));
        assert!(ratio > 1.5, "{ratio}");
    }
}
