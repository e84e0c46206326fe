//! Measures comparable times: the sides take turns, so that other load on the machine affects all of them.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Instant;

/// The number of rounds.
const ROUNDS: usize = 400;

/// The minimum duration of a turn in nanoseconds: long compared with reading the clock, short compared with a time slice.
const TURN: f64 = 250_000.0;

/// The measured costs of two sides: medians of all rounds.
pub(super) struct Pair {
    pub(super) ours: f64,
    pub(super) peer: f64,
    /// The median of the rounds' ratios.
    pub(super) ratio: f64,
}

impl Pair {
    pub(super) fn of(rounds: &[(f64, f64)]) -> Self {
        Self {
            ours: median(rounds.iter().map(|(ours, _)| *ours)),
            peer: median(rounds.iter().map(|(_, peer)| *peer)),
            ratio: median(rounds.iter().map(|(ours, peer)| ours / peer)),
        }
    }
}

/// Measures two sides in turns: `turn` returns the cost of a turn of ours or of the peer. Returns both costs of each round.
pub(super) async fn rounds<E>(
    count: usize,
    mut turn: impl AsyncFnMut(Side) -> Result<f64, E>,
) -> Result<Vec<(f64, f64)>, E> {
    let mut rounds = Vec::with_capacity(count);
    for round in 0..count {
        // The sides swap the order every round, because the second one finds warm caches.
        rounds.push(if round % 2 == 0 {
            let ours = turn(Side::Ours).await?;
            (ours, turn(Side::Peer).await?)
        } else {
            let peer = turn(Side::Peer).await?;
            (turn(Side::Ours).await?, peer)
        });
    }
    Ok(rounds)
}

/// A side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Ours,
    Peer,
}

/// Measures the nanoseconds of a call of two sides in turns. Their results are kept from being optimized away.
pub(super) async fn pair<A, B>(mut ours: impl FnMut() -> A, mut peer: impl FnMut() -> B) -> Pair {
    let (our_calls, peer_calls) = (calls_per_turn(&mut ours), calls_per_turn(&mut peer));
    let rounds = rounds(ROUNDS, async |side| {
        Ok::<_, Infallible>(match side {
            Side::Ours => turn(&mut ours, our_calls),
            Side::Peer => turn(&mut peer, peer_calls),
        })
    });
    let Ok(rounds) = rounds.await;
    Pair::of(&rounds)
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
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let Pair { ratio, .. } = runtime.block_on(pair(|| work(2_000), || work(500)));
        assert!(ratio > 1.5, "{ratio}");
    }
}
