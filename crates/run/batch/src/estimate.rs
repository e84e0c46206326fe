use serde::Serialize;

/// A row whose cost is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// The length of the input, in any unit.
    pub length: f64,
    /// The cost of all calls of the row, in any unit.
    pub cost: f64,
}

/// The expected cost of a batch, by the costs of some of its rows.
///
/// ```
/// use formwork_batch::{Known, estimate};
///
/// let sample = [210.0, 190.0, 205.0, 640.0, 200.0, 195.0, 188.0, 230.0].map(|cost| Known { length: 100.0, cost });
/// let estimate = estimate(&sample, 1_000, 99_200.0).unwrap();
/// assert!(estimate.low < estimate.expected && estimate.expected < estimate.high);
/// assert!(estimate.low >= sample.iter().map(|row| row.cost).sum());
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

/// The number of rows from which on the cost is a function of the length.
const FITTED: usize = 8;

/// Estimates the cost of `rows` rows from the costs of some of them; the inputs of the others have the length `open_length` together.
/// The known costs are a part of the result that is certain. `None` for fewer than two known rows.
///
/// From eight known rows on, the expected cost of a row is a straight line over its length (least squares of the relative errors),
/// so that long rows that are still open are not taken for short ones. The interval is that of a t distribution on the logarithm of
/// the mean, with Johnson's correction for skew: costs of rows are skewed to the right, because some rows need retries.
///
/// ```
/// use formwork_batch::{Known, estimate};
///
/// assert_eq!(estimate(&[Known { length: 1.0, cost: 210.0 }], 1_000, 999.0), None);
/// // Each row costs 2 and 1 for each unit of its length, and the ten open rows are longer.
/// let sample: Vec<Known> = (1..=10).map(|nth| Known { length: f64::from(nth), cost: f64::from(nth) + 2.0 }).collect();
/// assert_eq!(estimate(&sample, 20, 165.0).unwrap().expected.round(), 75.0 + 165.0 + 20.0);
/// ```
pub fn estimate(sample: &[Known], rows: u64, open_length: f64) -> Option<Estimate> {
    let count = sample.len() as f64;
    if sample.len() < 2 {
        return None;
    }
    let known: f64 = sample.iter().map(|row| row.cost).sum();
    let left = rows.saturating_sub(sample.len() as u64) as f64;
    let line = Line::fit(sample);
    let length = if left > 0.0 { open_length / left } else { 0.0 };
    let mean = line.at(length);
    let expected = mean.mul_add(left, known);
    let whole = |low: f64, high: f64| {
        // Sums of fractions are inexact, and the expected cost lies within the interval.
        let (low, high) = ((known + low).min(expected), (known + high).max(expected));
        Some(Estimate { sampled: sample.len() as u64, rows, expected, low, high })
    };
    // Long rows miss the line by more than short ones, so errors are relative.
    let moment = |power: i32| {
        let errors = sample.iter().map(|row| (row.cost / line.at(row.length) - 1.0).powi(power));
        errors.sum::<f64>() / (count - line.parameters)
    };
    let variance = moment(2);
    // Also false for costs of 0, whose relative errors are no numbers.
    let is_spread = variance > f64::EPSILON && mean > 0.0;
    if left == 0.0 || !is_spread {
        return whole(mean * left, mean * left);
    }
    let spread_of_lengths =
        sample.iter().map(|row| (line.at(row.length) / line.cost - 1.0).powi(2)).sum::<f64>() / count;
    // The mean of the other rows differs from the line by chance in both.
    let error = (variance * (line.doubt(length, count) + (1.0 + spread_of_lengths) / left)).sqrt();
    let skew = moment(3) / variance.powf(1.5);
    let shift = skew * variance.sqrt() / (6.0 * count);
    // A sample of a skewed distribution tends to miss the expensive rows, and underestimates its own variance.
    let missed = 1.1 + 0.5 / count.sqrt();
    let spread = missed * quantile(sample.len() - line.parameters as usize) * error;
    let middle = mean * (1.0 + shift);
    whole(middle * (-spread).exp() * left, middle * spread.exp() * left)
}

/// The expected cost of a row by its length.
#[derive(Clone, Copy)]
struct Line {
    /// A point of the line: the means of the sample.
    length: f64,
    cost: f64,
    slope: f64,
    /// The number of parameters that the sample determines.
    parameters: f64,
    /// The sum of the weights of the rows, and that of their squared distances from the length.
    weights: (f64, f64),
}

impl Line {
    fn fit(sample: &[Known]) -> Self {
        let count = sample.len() as f64;
        let length = sample.iter().map(|row| row.length).sum::<f64>() / count;
        let cost = sample.iter().map(|row| row.cost).sum::<f64>() / count;
        let level = Self { length, cost, slope: 0.0, parameters: 1.0, weights: (0.0, 0.0) };
        let is_varied = sample.iter().any(|row| (row.length - length).abs() > 1e-6 * length);
        if sample.len() < FITTED || !is_varied {
            return level;
        }
        let mut line = level;
        // The weights are those of the line before, and hardly change after the third one.
        for _ in 0..3 {
            line = line.weighted(sample, 0.1 * cost);
            let is_rising = line.slope > 0.0;
            if !is_rising {
                return level;
            }
        }
        // An empty input does not cost less than nothing.
        if line.at(0.0) < 0.0 { Self { slope: cost / length, ..level } } else { line }
    }

    /// Returns the line with the least squares of the errors relative to this line, which counts as `least` where it is lower.
    fn weighted(self, sample: &[Known], least: f64) -> Self {
        let weight = |row: &Known| self.at(row.length).max(least).powi(-2);
        let sum =
            |part: &dyn Fn(&Known) -> f64| sample.iter().map(|row| weight(row) * part(row)).sum::<f64>();
        let all = sum(&|_| 1.0);
        let (length, cost) = (sum(&|row| row.length) / all, sum(&|row| row.cost) / all);
        let squares = sum(&|row| (row.length - length).powi(2));
        let slope = sum(&|row| (row.length - length) * (row.cost - cost)) / squares;
        Self { length, cost, slope, parameters: 2.0, weights: (all, squares) }
    }

    fn at(&self, length: f64) -> f64 {
        self.slope.mul_add(length - self.length, self.cost)
    }

    /// Returns the variance of the line at this length, relative to its value there and to the variance of a row.
    fn doubt(&self, length: f64, count: f64) -> f64 {
        if self.parameters < 2.0 {
            return 1.0 / count;
        }
        let (all, squares) = self.weights;
        (1.0 / all + (length - self.length).powi(2) / squares) / self.at(length).powi(2)
    }
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

    /// Returns the share of batches whose real cost was in the interval, and the mean width of the interval by the real cost. The cost
    /// of a row is its length times a random number, and the rows that are done are shorter than the others by `slant`.
    fn coverage(sample: usize, rows: usize, batches: usize, (varied, slant): (f64, f64)) -> (f64, f64) {
        let mut chance = Chance(19);
        let (mut covered, mut width) = (0.0, 0.0);
        for _ in 0..batches {
            let all: Vec<Known> = (0..rows)
                .map(|nth| {
                    let longer = if nth < sample { 1.0 } else { 1.0 + slant };
                    let length = 300.0 * longer * chance.log_normal(varied);
                    Known {
                        length,
                        cost: (50.0 + length) * chance.log_normal(if varied > 0.0 { 0.3 } else { 0.8 }),
                    }
                })
                .collect();
            let open = all[sample..].iter().map(|row| row.length).sum();
            let estimate = estimate(&all[..sample], rows as u64, open).unwrap();
            let real = all.iter().map(|row| row.cost).sum();
            covered += f64::from(u8::from((estimate.low..=estimate.high).contains(&real)));
            width += (estimate.high - estimate.low) / real;
        }
        (covered / batches as f64, width / batches as f64)
    }

    #[test]
    fn the_interval_covers_the_real_cost_of_log_normal_batches() {
        for (sample, rows) in [(10, 1000), (20, 2000), (50, 2000), (50, 10_000), (100, 2000), (200, 1000)] {
            let (share, _) = coverage(sample, rows, 200, (0.0, 0.0));
            assert!((0.85..=0.97).contains(&share), "{sample} of {rows} rows: {share}");
        }
    }

    #[test]
    fn the_interval_follows_the_lengths_of_the_rows() {
        for slant in [0.0, 0.5, 2.0] {
            let (share, width) = coverage(100, 1000, 100, (0.8, slant));
            assert!((0.85..=1.0).contains(&share), "{slant}: {share}");
            // Without the lengths it is 0.34 wide, and never has the real cost of rows that are longer by half.
            assert!(width < 0.25, "{slant}: {width}");
        }
    }

    #[test]
    fn equal_costs_and_a_whole_sample_leave_no_doubt() {
        let row = |cost| Known { length: 1.0, cost };
        let equal = estimate(&[row(5.0); 10], 100, 90.0).unwrap();
        assert_eq!((equal.low, equal.expected, equal.high), (500.0, 500.0, 500.0));
        let whole = estimate(&[row(1.0), row(2.0), row(9.0)], 3, 0.0).unwrap();
        assert_eq!((whole.low, whole.expected, whole.high), (12.0, 12.0, 12.0));
        assert_eq!(estimate(&[row(1.0)], 10, 9.0), None);
        assert!((quantile(9) - 1.833).abs() < 0.01 && (quantile(3) - 2.353).abs() < 0.05);
    }
}
