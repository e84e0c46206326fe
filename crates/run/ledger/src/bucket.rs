//! Classes of durations, for percentiles.

/// Returns the class of a duration in milliseconds: 0 for none, else the quarters of its binary logarithm, from 1.
pub(crate) fn bucket(millis: u64) -> i64 {
    if millis == 0 { 0 } else { ((millis as f64).log2() * 4.0).floor() as i64 + 1 }
}

/// Returns the middle of a class in milliseconds, from which its durations differ by at most 10 %.
pub(crate) fn middle(bucket: i64) -> u64 {
    if bucket <= 0 { 0 } else { ((bucket as f64 - 0.5) / 4.0).exp2().round() as u64 }
}
