//! The operations of a transformer besides matrix products, on plain slices.

use super::Family;

/// Scales each row of `x` to a root mean square of one, and then by `weight`.
pub(crate) fn rms_norm(x: &[f32], weight: &[f32], epsilon: f32) -> Vec<f32> {
    let mut out = Vec::with_capacity(x.len());
    for row in x.chunks_exact(weight.len()) {
        let scale = (dot(row, row) / row.len() as f32 + epsilon).sqrt().recip();
        out.extend(row.iter().zip(weight).map(|(x, weight)| x * scale * weight));
    }
    out
}

/// Adds `more` to `x`, repeatedly if it is shorter.
pub(crate) fn add(x: &mut [f32], more: &[f32]) {
    for row in x.chunks_exact_mut(more.len()) {
        for (x, more) in row.iter_mut().zip(more) {
            *x += more;
        }
    }
}

/// Computes `silu(gate) * up` into `gate`.
pub(crate) fn swiglu(gate: &mut [f32], up: &[f32]) {
    for (gate, up) in gate.iter_mut().zip(up) {
        *gate = *gate / (1.0 + (-*gate).exp()) * up;
    }
}

/// Returns the dot product. It has sixteen running sums, because a single one must be added in order, without SIMD.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0; LANES];
    let (a_tail, b_tail) = (a.chunks_exact(LANES).remainder(), b.chunks_exact(LANES).remainder());
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let tail: f32 = a_tail.iter().zip(b_tail).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + tail
}

/// Converts scores to weights with the sum one.
#[inline(always)]
pub(crate) fn softmax(scores: &mut [f32]) {
    let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = (*score - most).exp();
        sum += *score;
    }
    for score in scores {
        *score /= sum;
    }
}

/// The rotation of queries and keys at one position: a cosine and a sine for each pair.
#[derive(Debug)]
pub(crate) struct Rotation(Vec<(f32, f32)>);

impl Rotation {
    pub(crate) fn at(position: usize, rope_dim: usize, base: f32) -> Self {
        let angle = |pair: usize| position as f32 * base.powf(-((2 * pair) as f32) / rope_dim as f32);
        Self((0..rope_dim / 2).map(|pair| (angle(pair).cos(), angle(pair).sin())).collect())
    }

    /// Rotates every head of a row; values of a head beyond the rotated ones stay.
    pub(crate) fn apply(&self, row: &mut [f32], head_dim: usize, family: Family) {
        let half = self.0.len();
        for head in row.chunks_exact_mut(head_dim) {
            for (pair, (cos, sin)) in self.0.iter().enumerate() {
                let (first, second) = match family {
                    Family::Llama => (2 * pair, 2 * pair + 1),
                    Family::Qwen2 => (pair, pair + half),
                };
                let (a, b) = (head[first], head[second]);
                head[first] = a * cos - b * sin;
                head[second] = a * sin + b * cos;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_shares_are_right() {
        let a: Vec<f32> = (0..37).map(|i| i as f32).collect();
        assert_eq!(dot(&a, &a), (0..37).map(|i| (i * i) as f32).sum::<f32>());
        let mut shares = [1.0, 1.0, f32::NEG_INFINITY];
        softmax(&mut shares);
        assert_eq!(shares, [0.5, 0.5, 0.0]);
        let mut x = [1.0, 2.0, 3.0, 4.0];
        add(&mut x, &[10.0, 20.0]);
        assert_eq!(x, [11.0, 22.0, 13.0, 24.0]);
        let norm = rms_norm(&[3.0, 4.0], &[1.0, 2.0], 0.0);
        assert!(
            (norm[0] - 3.0 / 12.5f32.sqrt()).abs() < 1e-6 && (norm[1] - 8.0 / 12.5f32.sqrt()).abs() < 1e-6
        );
    }

    #[test]
    fn a_rotation_keeps_lengths_and_the_families_pair_differently() {
        let rotation = Rotation::at(3, 4, 10_000.0);
        let (mut llama, mut qwen) = ([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5.0]);
        rotation.apply(&mut llama, 5, Family::Llama);
        rotation.apply(&mut qwen, 5, Family::Qwen2);
        let (cos, sin) = (3f32.cos(), 3f32.sin());
        assert!((llama[0] - (cos - 2.0 * sin)).abs() < 1e-6);
        assert!((qwen[0] - (cos - 3.0 * sin)).abs() < 1e-6);
        assert_eq!((llama[4], qwen[4]), (5.0, 5.0));
        assert!((dot(&llama, &llama) - 55.0).abs() < 1e-4 && (dot(&qwen, &qwen) - 55.0).abs() < 1e-4);
    }
}
