use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher as _;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use formwork_core::Time;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;

/// Names a run in the ledger. Later ids are larger; `Display` and JSON are `run_` and 13 characters.
///
/// An id has 41 bits of milliseconds and 22 bits that differ between processes. Ids of one process are unique. Two
/// processes that write to one file in the same millisecond choose the same id once in four million times; the second
/// of the two runs is counted as lost then ([`Health::shed_runs`](crate::Health::shed_runs)).
///
/// ```
/// use formwork_ledger::RecordId;
///
/// let (first, second) = (RecordId::next(), RecordId::next());
/// assert!(first < second);
/// let text = first.to_string();
/// assert!(text.starts_with("run_") && text.len() == 17);
/// assert_eq!(text.parse::<RecordId>()?, first);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(pub(crate) i64);

/// The bits below the milliseconds.
const LOW: u32 = 22;

/// 2020-01-01, from which the milliseconds of ids count, so that 41 bits last until 2089.
const EPOCH: u64 = 1_577_836_800_000;

/// Crockford's alphabet: digits and letters that people do not mistake for each other.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The characters that 63 bits take.
const LENGTH: usize = 13;

impl RecordId {
    /// Returns an id that no other run of this process has.
    pub fn next() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        static SEED: OnceLock<RandomState> = OnceLock::new();
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).saturating_sub(EPOCH);
        // The upper half of the range stays free to count on within one millisecond.
        let low = SEED.get_or_init(RandomState::new).hash_one(millis) & ((1 << (LOW - 1)) - 1);
        let fresh = ((millis << LOW) | low) & (i64::MAX as u64);
        let next = |last: u64| Some(fresh.max(last + 1));
        let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or_default();
        Self(i64::try_from(fresh.max(last + 1)).unwrap_or(i64::MAX))
    }
}

impl RecordId {
    /// Returns the smallest id that is made at this time or later.
    pub(crate) const fn at(time: Time) -> Self {
        Self(((time.0.saturating_sub(EPOCH) << LOW) & (i64::MAX as u64)) as i64)
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [b'0'; LENGTH];
        let mut rest = self.0.unsigned_abs();
        for place in text.iter_mut().rev() {
            *place = ALPHABET[(rest & 31) as usize];
            rest >>= 5;
        }
        write!(f, "run_{}", String::from_utf8_lossy(&text))
    }
}

impl FromStr for RecordId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::NotAnId(text.chars().take(40).collect());
        let digits = text.strip_prefix("run_").filter(|digits| digits.len() == LENGTH).ok_or_else(wrong)?;
        let mut id = 0_u128;
        for byte in digits.bytes() {
            let place =
                ALPHABET.iter().position(|&known| known == byte.to_ascii_lowercase()).ok_or_else(wrong)?;
            id = (id << 5) | place as u128;
        }
        i64::try_from(id).map(Self).map_err(|_| wrong())
    }
}

impl Serialize for RecordId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RecordId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_and_read_back() {
        let ids: Vec<_> = (0..10_000).map(|_| RecordId::next()).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
        for id in [ids[0], RecordId(0), RecordId(i64::MAX)] {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        for wrong in ["", "run_", "7", "run_zzzzzzzzzzzzz", "run_0123456789abcd", "run_01hzy3k8w2m4u"] {
            assert!(wrong.parse::<RecordId>().is_err(), "{wrong}");
        }
    }
}
