use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use formwork_core::Time;

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

    /// Returns the smallest id that is made at this time or later.
    pub(crate) const fn at(time: Time) -> Self {
        Self(((time.0.saturating_sub(EPOCH) << LOW) & (i64::MAX as u64)) as i64)
    }
}
