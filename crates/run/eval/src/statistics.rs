//! Intervals by resampling (bootstrap) whole documents.

/// The share of the resamples that an interval contains.
const CONFIDENCE: f64 = 0.95;

/// The maximum number of drawn documents of one interval.
const MAX_DRAWS: usize = 20_000_000;

/// A generator of pseudo-random numbers (SplitMix64): the same seed gives the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number below `end`.
    fn below(&mut self, end: usize) -> usize {
        let wide = u128::from(self.next()) * end as u128;
        usize::try_from(wide >> 64).unwrap_or_default()
    }
}

/// Returns the number of resamples for a number of documents: 1000, fewer beyond 20,000 documents, at least 100.
pub(crate) fn resamples(documents: usize) -> usize {
    (MAX_DRAWS / documents.max(1)).clamp(100, 1000)
}

/// The maximum number of documents whose counts are kept for resampling. Beyond it, the interval of a ratio is that of its normal
/// approximation, which differs by less than the third digit.
pub(crate) const MAX_RESAMPLED: usize = 20_000;

/// The sums of a part and a whole over documents, and of their products: enough for the ratio and its variance.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Sums {
    part: f64,
    whole: f64,
    part_part: f64,
    part_whole: f64,
    whole_whole: f64,
}

impl Sums {
    pub(crate) fn add(&mut self, [part, whole]: [f64; 2]) {
        self.part += part;
        self.whole += whole;
        self.part_part += part * part;
        self.part_whole += part * whole;
        self.whole_whole += whole * whole;
    }

    /// Returns the 95 % interval of a share by the linearized variance of the ratio; `None` without a whole.
    pub(crate) fn interval(&self) -> Option<[f64; 2]> {
        let ratio = (self.whole > 0.0).then(|| self.part / self.whole)?;
        let squares = self.part_part - 2.0 * ratio * self.part_whole + ratio * ratio * self.whole_whole;
        // The quantile of 97.5 % of the normal distribution.
        let half = 1.959_963_985 * squares.max(0.0).sqrt() / self.whole;
        Some([(ratio - half).max(0.0), (ratio + half).min(1.0)])
    }
}

/// Returns the ratio of the two sums of each resample, in ascending order. Resamples without a denominator are omitted.
pub(crate) fn ratios(documents: &[[f64; 2]], seed: u64) -> Vec<f64> {
    let mut random = Random(seed);
    let resample = |random: &mut Random| {
        let drawn = (0..documents.len()).filter_map(|_| documents.get(random.below(documents.len())));
        drawn.fold([0.0, 0.0], |[part, whole], document| [part + document[0], whole + document[1]])
    };
    let sums = (0..resamples(documents.len())).map(|_| resample(&mut random));
    let mut ratios: Vec<f64> = sums.filter(|sums| sums[1] > 0.0).map(|[part, whole]| part / whole).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

/// Returns the 95 % interval of sorted resamples; `None` without any.
pub(crate) fn interval(sorted: &[f64]) -> Option<[f64; 2]> {
    let at =
        |share: f64| sorted.get((share * (sorted.len().checked_sub(1)?) as f64).round() as usize).copied();
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Some([at(tail)?, at(1.0 - tail)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_sums_is_that_of_resamples() {
        let mut random = Random(7);
        for share in [2, 5, 9] {
            let documents: Vec<[f64; 2]> = (0..600)
                .map(|_| {
                    let whole = 1 + random.below(12);
                    let right = (0..whole).filter(|_| random.below(10) < share).count();
                    [right as f64, whole as f64]
                })
                .collect();
            let mut sums = Sums::default();
            documents.iter().for_each(|document| sums.add(*document));
            let (by_sums, resampled) = (sums.interval().unwrap(), interval(&ratios(&documents, 1)).unwrap());
            for (one, other) in by_sums.iter().zip(resampled) {
                assert!((one - other).abs() < 0.004, "{by_sums:?} {resampled:?}");
            }
        }
        assert_eq!(Sums::default().interval(), None);
    }
}
