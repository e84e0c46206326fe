use formwork_core::Sampling;
use toktrie::SimpleVob;

/// The default seed, so that the same call gives the same answer.
const DEFAULT_SEED: u64 = 0x666F_726D_776F_726B;

/// The default top-p, as in llama.cpp. Without it, about one token in several hundred is very improbable, and such a
/// digit is a wrong number.
const DEFAULT_TOP_P: f64 = 0.95;

/// Tokens that are less probable than the best one by this factor (as a power of e) are never drawn.
const NEGLIGIBLE: f32 = 16.0;

/// Chooses tokens by temperature and top-p; the seed determines all draws.
#[derive(Debug)]
pub(crate) struct Sampler {
    temperature: f32,
    top_p: f32,
    state: u64,
    /// The candidates, kept to avoid an allocation per token.
    candidates: Vec<(u32, f32)>,
}

impl Sampler {
    /// Creates a sampler; the defaults are temperature 0 (always the most probable token) and [`DEFAULT_TOP_P`].
    ///
    /// # Errors
    /// A message about a value out of range.
    pub(crate) fn new(sampling: &Sampling) -> Result<Self, String> {
        let temperature = sampling.temperature.unwrap_or(0.0);
        let top_p = sampling.top_p.unwrap_or(DEFAULT_TOP_P);
        if !(temperature.is_finite() && temperature >= 0.0) {
            return Err(format!("the temperature {temperature} is not a number from 0 up"));
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            return Err(format!("top-p {top_p} is not above 0 and at most 1"));
        }
        let state = sampling.seed.unwrap_or(DEFAULT_SEED);
        let (temperature, top_p) = (temperature as f32, top_p as f32);
        Ok(Self { temperature, top_p, state, candidates: Vec::new() })
    }

    /// Returns the temperature; 0 if the most probable token is always chosen.
    pub(crate) const fn temperature(&self) -> f32 {
        self.temperature
    }

    /// Returns one of the tokens that the mask allows; `None` if it allows none.
    pub(crate) fn pick(&mut self, logits: &[f32], mask: Option<&SimpleVob>) -> Option<u32> {
        let (best, highest) = best(logits, mask)?;
        if self.temperature == 0.0 || !highest.is_finite() {
            return Some(best);
        }
        // Only a few of many thousand tokens can be drawn, which makes sorting and exponentials cheap.
        let threshold = highest - NEGLIGIBLE * self.temperature;
        self.candidates.clear();
        let (candidates, temperature) = (&mut self.candidates, self.temperature);
        allowed(logits, mask, threshold, |id, logit| {
            if logit >= threshold {
                candidates.push((id, ((logit - highest) / temperature).exp()));
            }
            threshold
        });
        if self.top_p < 1.0 {
            self.keep_nucleus();
        }
        let sum: f64 = self.candidates.iter().map(|(_, weight)| f64::from(*weight)).sum();
        let mut left = self.draw() * sum;
        for (id, weight) in &self.candidates {
            left -= f64::from(*weight);
            if left < 0.0 {
                return Some(*id);
            }
        }
        // Rounding can leave a tiny remainder after the last candidate.
        Some(best)
    }

    /// Keeps the most probable candidates whose sum reaches top-p.
    fn keep_nucleus(&mut self) {
        /// Few candidates exceed this weight, and mostly they suffice, so that the thousands below are not sorted.
        const LIKELY: f32 = 1e-3;
        let enough = self.top_p * self.candidates.iter().map(|(_, weight)| weight).sum::<f32>();
        let likely = |(_, weight): &(u32, f32)| *weight >= LIKELY;
        if self.candidates.iter().filter(|one| likely(one)).map(|(_, weight)| weight).sum::<f32>() >= enough {
            self.candidates.retain(likely);
        }
        // Ids order equal weights, so that the choice does not depend on the sorting algorithm.
        self.candidates.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut reached = 0.0;
        let nucleus = self.candidates.iter().position(|(_, weight)| {
            reached += weight;
            reached >= enough
        });
        self.candidates.truncate(nucleus.map_or(self.candidates.len(), |last| last + 1));
    }

    /// Returns the next number from 0 to 1 of SplitMix64 (Steele, Lea and Flood, 2014).
    fn draw(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Returns the allowed token with the highest logit, the first of equals. NaN counts as the lowest logit.
fn best(logits: &[f32], mask: Option<&SimpleVob>) -> Option<(u32, f32)> {
    let mut best: Option<(u32, f32)> = None;
    allowed(logits, mask, f32::NEG_INFINITY, |id, logit| {
        let logit = if logit.is_nan() { f32::NEG_INFINITY } else { logit };
        if best.is_none_or(|(_, most)| logit > most) {
            best = Some((id, logit));
        }
        best.map_or(f32::NEG_INFINITY, |(_, highest)| highest)
    });
    best
}

/// Returns the natural logarithm of the probability of a token among those that the mask allows, at temperature 1.
pub(crate) fn log_prob(logits: &[f32], mask: Option<&SimpleVob>, token: u32) -> f32 {
    logits.get(token as usize).map_or(f32::NEG_INFINITY, |own| own - log_total(logits, mask))
}

/// Returns the logarithm of the sum of the exponentials of the logits that the mask allows.
pub(crate) fn log_total(logits: &[f32], mask: Option<&SimpleVob>) -> f32 {
    let Some((_, highest)) = best(logits, mask) else { return f32::NEG_INFINITY };
    let (threshold, mut sum) = (highest - NEGLIGIBLE, 0.0);
    allowed(logits, mask, threshold, |_, logit| {
        if logit >= threshold {
            sum += (logit - highest).exp();
        }
        threshold
    });
    highest + sum.ln()
}

/// Calls `each` for the allowed tokens in order. `each` returns the minimum logit of relevant tokens from there on;
/// `threshold` is the first minimum. Runs of irrelevant tokens, which are most, are skipped at once.
fn allowed(
    logits: &[f32],
    mask: Option<&SimpleVob>,
    mut threshold: f32,
    mut each: impl FnMut(u32, f32) -> f32,
) {
    const RUN: usize = 32;
    let words = mask.map_or(&[][..], SimpleVob::as_slice).iter().copied();
    let all = std::iter::repeat_n(u32::MAX, if mask.is_none() { logits.len().div_ceil(RUN) } else { 0 });
    let starts = (0u32..).step_by(RUN);
    for ((start, mut word), run) in starts.zip(words.chain(all)).zip(logits.chunks(RUN)) {
        // Compiles to SIMD; NaN is ignored.
        let highest =
            run.iter().fold(f32::NEG_INFINITY, |max, logit| if *logit > max { *logit } else { max });
        if highest < threshold {
            continue;
        }
        while word != 0 {
            let bit = word.trailing_zeros();
            word &= word - 1;
            if let Some(logit) = run.get(bit as usize) {
                threshold = each(start + bit, *logit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sampler(temperature: f64, top_p: f64, seed: u64) -> Sampler {
        let sampling = Sampling::default().with_temperature(temperature).with_top_p(top_p).with_seed(seed);
        Sampler::new(&sampling).unwrap()
    }

    fn logits() -> impl Strategy<Value = Vec<f32>> {
        let logit = prop_oneof![8 => -30f32..30.0, 1 => Just(f32::NAN), 1 => Just(f32::NEG_INFINITY)];
        proptest::collection::vec(logit, 1..200)
    }

    proptest! {
        #[test]
        fn only_allowed_tokens_are_picked(
            logits in logits(),
            bits in proptest::collection::vec(any::<bool>(), 200),
            temperature in 0f64..3.0,
            top_p in 0.01f64..=1.0,
            seed in any::<u64>(),
        ) {
            let mask = SimpleVob::from_slice(&bits[..logits.len()]);
            let picked = sampler(temperature, top_p, seed).pick(&logits, Some(&mask));
            prop_assert_eq!(picked.is_some(), bits[..logits.len()].contains(&true));
            if let Some(id) = picked {
                prop_assert!(mask.is_allowed(id));
            }
        }

        #[test]
        fn the_same_seed_picks_the_same(logits in logits(), seed in any::<u64>()) {
            let draw = || {
                let mut sampler = sampler(0.8, 0.9, seed);
                (0..5).map(|_| sampler.pick(&logits, None)).collect::<Vec<_>>()
            };
            prop_assert_eq!(draw(), draw());
        }

        #[test]
        fn a_tiny_nucleus_is_greedy(logits in proptest::collection::vec(-30f32..30.0, 1..100), seed in any::<u64>()) {
            let greedy = sampler(0.0, 1.0, seed).pick(&logits, None).unwrap();
            let nucleus = sampler(1.0, 1e-6, seed).pick(&logits, None).unwrap();
            prop_assert_eq!(logits[greedy as usize], logits[nucleus as usize]);
        }
    }

    #[test]
    fn draws_follow_the_distribution() {
        let logits = [0f32, 2f32.ln(), 4f32.ln(), f32::NEG_INFINITY];
        let mut sampler = sampler(1.0, 1.0, 7);
        let mut counts = [0u32; 4];
        for _ in 0..70_000 {
            counts[sampler.pick(&logits, None).unwrap() as usize] += 1;
        }
        for (count, expected) in counts.iter().zip([10_000i64, 20_000, 40_000, 0]) {
            assert!((i64::from(*count) - expected).abs() < 600, "{counts:?}");
        }
    }

    #[test]
    fn the_probabilities_of_allowed_tokens_add_up() {
        let logits = [0f32, 2f32.ln(), 4f32.ln(), f32::NEG_INFINITY, 3f32.ln()];
        let mask = SimpleVob::from_slice(&[true, true, false, true, true]);
        let of = |token: u32, mask: Option<&SimpleVob>| (log_prob(&logits, mask, token).exp() * 10.0).round();
        assert_eq!([0, 1, 2, 3, 4].map(|token| of(token, None)), [1.0, 2.0, 4.0, 0.0, 3.0]);
        let sum: f32 = [0, 1, 3, 4].map(|token| log_prob(&logits, Some(&mask), token).exp()).iter().sum();
        assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        for (temperature, top_p) in [(-1.0, 1.0), (f64::NAN, 1.0), (1.0, 0.0), (1.0, 1.5), (1.0, f64::NAN)] {
            let sampling = Sampling::default().with_temperature(temperature).with_top_p(top_p);
            assert!(Sampler::new(&sampling).is_err());
        }
    }
}
