//! The attention of each token to the tokens before it and to itself.

use std::ops::Range;
use std::sync::OnceLock;

use candle_core::utils::barrier_pool;
use pulp::{Arch, Simd, WithSimd, as_arrays, as_arrays_mut};

use super::ops::softmax;
use super::{Cache, ModelConfig};

/// The minimum number of products per head for which a second thread pays off.
const WORTH_SHARING: usize = 1 << 14;

/// The number of parallel sums: a processor starts the next addition before the previous one is complete.
const SUMS: usize = 4;

/// Computes for each head of each new token the attention to all tokens up to it.
///
/// `queries` and the result have a row for each new token; the first of them is at position `start`. The result of a row
/// depends only on that row and the tokens before it, whatever the number of threads. The threads are those of candle's
/// pool, which spin while they wait, so that threads of another pool would find no free core.
pub(crate) fn attend(
    config: &ModelConfig,
    layer: usize,
    cache: &Cache,
    start: usize,
    queries: &[f32],
) -> Vec<f32> {
    let (width, head_dim) = (config.query_width(), config.head_dim);
    let rows = queries.len() / width;
    let shared = config.heads / config.kv_heads;
    let arch = Arch::new();
    let heads: Vec<OnceLock<Vec<f32>>> = (0..config.heads).map(|_| OnceLock::new()).collect();
    let mix = |range: Range<usize>| {
        for (head, mixed) in range.clone().zip(&heads[range]) {
            let (keys, values) = cache.read(layer, head / shared, start + rows);
            let part = head * head_dim..(head + 1) * head_dim;
            let queries = queries.chunks_exact(width).flat_map(|row| &row[part.clone()]).copied().collect();
            mixed.get_or_init(|| arch.dispatch(Head { width: head_dim, queries, keys, values, start }));
        }
    };
    if rows * (start + rows) * head_dim < WORTH_SHARING {
        mix(0..config.heads);
    } else {
        barrier_pool().execute_chunked(config.heads, mix);
    }
    let mut mixed = vec![0.0; queries.len()];
    for (head, rows) in heads.iter().enumerate() {
        let rows = rows.get().into_iter().flat_map(|rows| rows.chunks_exact(head_dim));
        for (row, part) in mixed.chunks_exact_mut(width).zip(rows) {
            row[head * head_dim..][..head_dim].copy_from_slice(part);
        }
    }
    mixed
}

/// One head of [`attend`], compiled for the instruction sets of different processors.
struct Head<'c> {
    width: usize,
    queries: Vec<f32>,
    keys: &'c [f32],
    values: &'c [f32],
    start: usize,
}

impl WithSimd for Head<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
        let Self { width, queries, keys, values, start } = self;
        let scale = (width as f32).sqrt().recip();
        let mut mixed = vec![0.0; queries.len()];
        let mut scores = Vec::new();
        let rows = queries.chunks_exact(width).zip(mixed.chunks_exact_mut(width));
        for (row, (query, mixed)) in rows.enumerate() {
            scores.resize(start + row + 1, 0.0);
            for (score, key) in scores.iter_mut().zip(keys.chunks_exact(width)) {
                *score = dot(simd, query, key) * scale;
            }
            softmax(&mut scores);
            weigh(simd, &scores, values, mixed);
        }
        mixed
    }
}

/// Returns the dot product.
#[inline(always)]
fn dot<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_tail), (b, b_tail)) = (S::as_simd_f32s(a), S::as_simd_f32s(b));
    let ((a, a_rest), (b, b_rest)) = (as_arrays::<SUMS, _>(a), as_arrays::<SUMS, _>(b));
    let mut sums = [simd.splat_f32s(0.0); SUMS];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..SUMS {
            sums[lane] = simd.mul_add_e_f32s(a[lane], b[lane], sums[lane]);
        }
    }
    for (a, b) in a_rest.iter().zip(b_rest) {
        sums[0] = simd.mul_add_e_f32s(*a, *b, sums[0]);
    }
    let [one, two, three, four] = sums;
    let sum = simd.add_f32s(simd.add_f32s(one, two), simd.add_f32s(three, four));
    a_tail.iter().zip(b_tail).fold(simd.reduce_sum_f32s(sum), |sum, (a, b)| sum + a * b)
}

/// Adds each row of `values`, multiplied by its weight, to `out`.
#[inline(always)]
fn weigh<S: Simd>(simd: S, weights: &[f32], values: &[f32], out: &mut [f32]) {
    let width = out.len();
    let (out, tail) = S::as_mut_simd_f32s(out);
    let tail_start = width - tail.len();
    let (parts, rest) = as_arrays_mut::<SUMS, _>(out);
    let rest_start = parts.len() * SUMS;
    for (part, out) in parts.iter_mut().enumerate() {
        // The sums stay in registers from the first row to the last.
        let mut sums = *out;
        for (weight, row) in weights.iter().zip(values.chunks_exact(width)) {
            let row = &S::as_simd_f32s(row).0[part * SUMS..][..SUMS];
            let weight = simd.splat_f32s(*weight);
            for lane in 0..SUMS {
                sums[lane] = simd.mul_add_e_f32s(weight, row[lane], sums[lane]);
            }
        }
        *out = sums;
    }
    if rest.is_empty() && tail.is_empty() {
        return;
    }
    for (weight, row) in weights.iter().zip(values.chunks_exact(width)) {
        let (vectors, numbers) = (&S::as_simd_f32s(row).0[rest_start..], &row[tail_start..]);
        for (sum, value) in rest.iter_mut().zip(vectors) {
            *sum = simd.mul_add_e_f32s(simd.splat_f32s(*weight), *value, *sum);
        }
        for (sum, value) in tail.iter_mut().zip(numbers) {
            *sum += weight * value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, step: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * step + 13) % 1000) as f32 / 500.0 - 1.0).collect()
    }

    /// The formula as it is written down, in 64 bits.
    fn plain(query: &[f32], keys: &[f32], values: &[f32]) -> Vec<f64> {
        let width = query.len();
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        let weights: Vec<f64> =
            keys.chunks_exact(width).map(|key| (product(query, key) / (width as f64).sqrt()).exp()).collect();
        let sum: f64 = weights.iter().sum();
        (0..width)
            .map(|at| {
                let column = values.chunks_exact(width).map(|row| f64::from(row[at]));
                weights.iter().zip(column).map(|(weight, value)| weight / sum * value).sum()
            })
            .collect()
    }

    #[test]
    fn a_head_is_mixed_as_the_formula_says_whatever_its_width() {
        for width in [1, 5, 16, 64, 72, 80, 128] {
            let (start, rows) = (9, 4);
            let (keys, values) =
                (numbers((start + rows) * width, 7919), numbers((start + rows) * width, 104_729));
            let queries = numbers(rows * width, 31);
            let head = |start: usize, queries: &[f32]| {
                Arch::new().dispatch(Head {
                    width,
                    queries: queries.to_vec(),
                    keys: &keys,
                    values: &values,
                    start,
                })
            };
            let mixed = head(start, &queries);
            for (row, (query, mixed)) in
                queries.chunks_exact(width).zip(mixed.chunks_exact(width)).enumerate()
            {
                let size = (start + row + 1) * width;
                for (found, exact) in mixed.iter().zip(plain(query, &keys[..size], &values[..size])) {
                    assert!((f64::from(*found) - exact).abs() < 1e-5, "{found} {exact}");
                }
                assert_eq!(head(start + row, query), mixed, "alone and among others");
            }
        }
    }
}
