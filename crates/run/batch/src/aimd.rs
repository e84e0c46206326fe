use std::time::Duration;

/// The number of calls that a target may have open at the same time, found by additive increase and multiplicative decrease.
///
/// A call that is answered without delay raises the limit by one per round of calls; a rate limit or an overload lowers it to
/// 70 %, and answers that take more than three times as long as the fastest ones lower it to 90 %. It falls at most once per
/// round, because all calls of a round meet the same congestion.
///
/// ```
/// use std::time::Duration;
/// use formwork_batch::Aimd;
///
/// let mut limit = Aimd::new(8, 64);
/// (0..9).for_each(|_| limit.answered(Duration::from_millis(200)));
/// assert_eq!(limit.limit(), 9);
/// limit.refused();
/// assert_eq!(limit.limit(), 6);
/// ```
#[derive(Debug, Clone)]
pub struct Aimd {
    limit: f64,
    max: f64,
    /// The shortest latency that was seen lately, in seconds; it rises slowly, so that a target may become
    /// slower for good.
    fastest: f64,
    /// A moving average of the latency, in seconds.
    usual: f64,
    /// The calls that must end before the limit may fall again.
    round: u32,
    /// Whether the limit doubles per round, because nothing has lowered it yet.
    is_starting: bool,
}

impl Aimd {
    /// Creates a limit that starts at `start` calls and stays between 1 and `max`.
    pub fn new(start: u32, max: u32) -> Self {
        let max = f64::from(max.max(1));
        Self {
            limit: f64::from(start).clamp(1.0, max),
            max,
            fastest: f64::MAX,
            usual: 0.0,
            round: 0,
            is_starting: false,
        }
    }

    /// Doubles the limit with each round until it is lowered for the first time (default: it grows by one per round).
    #[must_use]
    pub const fn with_slow_start(mut self) -> Self {
        self.is_starting = true;
        self
    }

    /// Returns the number of calls that may be open at the same time, at least 1.
    pub fn limit(&self) -> usize {
        self.limit as usize
    }

    /// Notes a call that was answered after this time.
    pub fn answered(&mut self, latency: Duration) {
        self.round = self.round.saturating_sub(1);
        let seconds = latency.as_secs_f64().max(1e-4);
        // A single call meets no congestion, so its duration is the target's own.
        let known = if self.limit < 2.0 { seconds } else { self.fastest * (1.0 + 5e-4 / self.limit) };
        self.fastest = known.min(seconds);
        self.usual = if self.usual == 0.0 { seconds } else { self.usual.mul_add(0.95, seconds * 0.05) };
        // Differences of a few milliseconds come from this machine, not from the target.
        if self.usual > 3.0 * self.fastest && self.usual > 0.05 {
            self.fall(0.9);
        } else {
            let step = if self.is_starting { 1.0 } else { 1.0 / self.limit };
            self.limit = (self.limit + step).min(self.max);
        }
    }

    /// Notes a call that the target refused because it has too many: status 429, 503 or 529.
    pub fn refused(&mut self) {
        if self.round > 0 {
            self.round -= 1;
            return;
        }
        self.fall(0.7);
    }

    fn fall(&mut self, to: f64) {
        if self.round > 0 {
            return;
        }
        self.is_starting = false;
        self.limit = (self.limit * to).max(1.0);
        self.round = self.limit as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a target that answers `capacity` calls at a time and refuses the rest; returns the limits of the last rounds.
    fn settled(capacity: usize, rounds: usize) -> Vec<usize> {
        let mut limit = Aimd::new(4, 256).with_slow_start();
        let mut seen = Vec::new();
        for _ in 0..rounds {
            let open = limit.limit();
            (0..open.min(capacity)).for_each(|_| limit.answered(Duration::from_millis(100)));
            (capacity..open).for_each(|_| limit.refused());
            seen.push(limit.limit());
        }
        seen.split_off(rounds / 2)
    }

    #[test]
    fn the_limit_settles_around_what_the_target_takes() {
        for capacity in [1, 2, 5, 20, 100] {
            let seen = settled(capacity, 400);
            let mean = seen.iter().sum::<usize>() as f64 / seen.len() as f64;
            let (low, high) = (0.6 * capacity as f64, 1.4 * capacity as f64 + 1.0);
            assert!((low..=high).contains(&mean), "{capacity}: {mean}");
        }
    }

    #[test]
    fn latency_that_grows_with_load_lowers_it_and_a_slower_target_is_no_load() {
        // Beyond 10 calls at a time, each further call delays all.
        let mut limit = Aimd::new(4, 256).with_slow_start();
        for _ in 0..300 {
            let open = limit.limit();
            let latency = Duration::from_millis(100 * open.div_ceil(10) as u64);
            (0..open).for_each(|_| limit.answered(latency));
        }
        assert!((8..=60).contains(&limit.limit()), "{}", limit.limit());
        let mut slow = Aimd::new(4, 64);
        (0..200).for_each(|_| slow.answered(Duration::from_millis(100)));
        (0..20_000).for_each(|_| slow.answered(Duration::from_secs(9)));
        assert_eq!(slow.limit(), 64);
    }

    #[test]
    fn it_stays_between_one_and_the_maximum() {
        let mut limit = Aimd::new(0, 3);
        (0..100).for_each(|_| limit.refused());
        assert_eq!(limit.limit(), 1);
        (0..1000).for_each(|_| limit.answered(Duration::from_millis(1)));
        assert_eq!(limit.limit(), 3);
    }
}
