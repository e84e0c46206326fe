//! The mixing of SplitMix64, a pseudorandom number generator.

/// The difference of successive states.
pub(crate) const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns the number of a state.
pub(crate) const fn mixed(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}
