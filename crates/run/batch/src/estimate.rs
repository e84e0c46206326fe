use serde::Serialize;

/// The expected cost of a batch, by the costs of some of its rows.
///
/// ```
/// use formwork_batch::estimate;
///
/// let sample = [210.0, 190.0, 205.0, 640.0, 200.0, 195.0, 188.0, 230.0];
/// let estimate = estimate(&sample, 1_000).unwrap();
/// assert!(estimate.low < estimate.expected && estimate.expected < estimate.high);
/// assert!(estimate.low >= sample.iter().sum());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Estimate {
    /// The rows whose costs are known.
    pub sampled: u64,
    /// The rows of the batch that take calls.
    pub rows: u64,
    /// The expected cost of all rows, in the unit of the sample.
    pub expected: f64,
    /// The lower end of the interval that has the real cost in 90 of 100 batches.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Estimates the cost of `rows` rows from the costs of a random sample of them. The sample itself is a part of the cost that is
/// certain. `None` for fewer than two rows.
///
/// The interval is that of a t distribution on the logarithm of the mean, with Johnson's correction for skew: costs of rows are
/// skewed to the right, because some rows are long or need retries.
///
/// ```
/// use formwork_batch::estimate;
///
/// assert_eq!(estimate(&[210.0], 1_000), None);
/// let estimate = estimate(&[210.0, 190.0, 200.0], 1_000).unwrap();
/// assert_eq!((estimate.sampled, estimate.expected), (3, 200_000.0));
/// ```
pub fn estimate(sample: &[f64], rows: u64) -> Option<Estimate> {
    let count = sample.len() as f64;
    if sample.len() < 2 {
        return None;
    }
    let known: f64 = sample.iter().sum();
    let mean = known / count;
    let moment =
        |power: i32| sample.iter().map(|cost| (cost - mean).powi(power)).sum::<f64>() / (count - 1.0);
    let variance = moment(2);
    let left = rows.saturating_sub(sample.len() as u64) as f64;
    let expected = mean.mul_add(left, known);
    let whole = |low: f64, high: f64| {
        Some(Estimate { sampled: sample.len() as u64, rows, expected, low: known + low, high: known + high })
    };
    if left == 0.0 || variance <= 0.0 || mean <= 0.0 {
        return whole(mean * left, mean * left);
    }
    // The mean of the other rows differs from that of the sample by chance in both.
    let error = (variance * (1.0 / count + 1.0 / left)).sqrt();
    let skew = moment(3) / variance.powf(1.5);
    let shift = skew * variance.sqrt() / (6.0 * count);
    // A sample of a skewed distribution tends to miss the expensive rows, and underestimates its own variance.
    let missed = 1.1 + 0.5 / count.sqrt();
    let spread = missed * quantile(sample.len() - 1) * error / mean;
    let middle = mean + shift;
    whole(middle * (-spread).exp() * left, middle * spread.exp() * left)
}

/// Returns the 95 % quantile of the t distribution, by the expansion of Cornish and Fisher; exact to 2 % from three
/// degrees of freedom on.
fn quantile(degrees: usize) -> f64 {
    const Z: f64 = 1.644_853_6;
    let n = degrees as f64;
    let z3 = Z.powi(3);
    match degrees {
        1 => 6.314,
        2 => 2.920,
        _ => Z + (z3 + Z) / (4.0 * n) + (5.0 * Z.powi(5) + 16.0 * z3 + 3.0 * Z) / (96.0 * n * n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64 as numbers between 0 and 1.
    struct Chance(u64);

    impl Chance {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
        }

        fn log_normal(&mut self, sigma: f64) -> f64 {
            let (one, two) = (self.uniform(), self.uniform());
            (sigma * (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos()).exp()
        }
    }

    /// Returns the share of batches whose real cost was in the interval.
    fn coverage(sample: usize, rows: usize, batches: usize, seed: u64) -> f64 {
        let mut chance = Chance(seed);
        let covered = (0..batches).filter(|_| {
            let costs: Vec<f64> = (0..rows).map(|_| 300.0 * chance.log_normal(0.8)).collect();
            let estimate = estimate(&costs[..sample], rows as u64).unwrap();
            (estimate.low..=estimate.high).contains(&costs.iter().sum())
        });
        covered.count() as f64 / batches as f64
    }

    #[test]
    fn the_interval_covers_the_real_cost_of_log_normal_batches() {
        for (sample, rows) in [(10, 1000), (20, 2000), (50, 2000), (50, 10_000), (100, 2000), (200, 1000)] {
            let share = coverage(sample, rows, 200, 19);
            assert!((0.85..=0.97).contains(&share), "{sample} of {rows} rows: {share}");
        }
    }

    #[test]
    fn equal_costs_and_a_whole_sample_leave_no_doubt() {
        let equal = estimate(&[5.0; 10], 100).unwrap();
        assert_eq!((equal.low, equal.expected, equal.high), (500.0, 500.0, 500.0));
        let whole = estimate(&[1.0, 2.0, 9.0], 3).unwrap();
        assert_eq!((whole.low, whole.expected, whole.high), (12.0, 12.0, 12.0));
        assert_eq!(estimate(&[1.0], 10), None);
        assert!((quantile(9) - 1.833).abs() < 0.01 && (quantile(3) - 2.353).abs() < 0.05);
    }
}
