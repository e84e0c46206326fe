/// Counts values by size.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    /// One count for each bound, and one for larger values.
    counts: Vec<u64>,
    sum: f64,
}

/// Bounds for attempts of a score, whose default maximum is three.
pub(super) const ATTEMPTS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 6.0];

/// Bounds for seconds of a score, close to each other around the specification's 4 and 10.
pub(super) const SCORE_SECONDS: &[f64] =
    &[0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 15.0, 30.0, 60.0, 120.0];

/// The bounds that OpenTelemetry recommends for `gen_ai.client.operation.duration`.
pub(super) const CALL_SECONDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// The bounds that OpenTelemetry recommends for `gen_ai.client.token.usage`.
pub(super) const TOKENS: &[f64] = &[
    1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0,
    16777216.0, 67108864.0,
];

/// The bounds that OpenTelemetry recommends for `http.server.request.duration`.
pub(super) const REQUEST_SECONDS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    pub(super) fn add(&mut self, value: f64) {
        // Bounds are inclusive: Prometheus' `le` means "less or equal".
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
            self.sum += value;
        }
    }

    /// Returns each bound with the number of values up to it; the last bound is infinite.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let sums = self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        bounds.zip(sums)
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(super) const fn sum(&self) -> f64 {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_own_bucket() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        for value in [0.5, 1.0, 1.5, 2.0, 2.1] {
            histogram.add(value);
        }
        let cumulative: Vec<(f64, u64)> = histogram.cumulative().collect();
        assert_eq!(cumulative, [(1.0, 2), (2.0, 4), (f64::INFINITY, 5)]);
        assert_eq!((histogram.count(), histogram.sum()), (5, 7.1));
    }
}
