//! Random numbers that are a function of a seed and a position, so that a stored run continues with the same ones.

/// Returns a number of SplitMix64 (Steele, Lea and Flood, 2014) with this seed, from 0 up to but not including 1; `n` is 1 for the
/// first number.
pub(super) fn nth(seed: u64, n: u64) -> f64 {
    let mut z = seed.wrapping_add(n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        let published: [u64; 5] = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        for (n, bits) in (1..).zip(published) {
            assert_eq!(nth(1_234_567, n), (bits >> 11) as f64 / (1u64 << 53) as f64, "{n}");
        }
    }
}
