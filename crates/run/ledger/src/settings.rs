use std::time::Duration;

use crate::Redaction;

/// The settings of a ledger. The defaults suit a service with a few thousand requests a second.
///
/// ```
/// use formwork_ledger::{Ledger, Settings};
///
/// let settings = Settings { bodies: true, max_bytes: Some(1 << 30), ..Settings::default() };
/// let ledger = Ledger::in_memory(settings)?;
/// # drop(ledger);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whether requests and answers are stored (default: no). All other data of a run are always stored.
    pub bodies: bool,
    /// The texts that are removed before anything is written (default: API keys only).
    pub redaction: Redaction,
    /// The maximum time for which a run waits in memory, so that several are committed together (default: 200 ms).
    /// If the process is killed, the next one that opens the ledger records these runs, without their texts and violations.
    pub group_delay: Duration,
    /// The maximum number of runs per commit; a full group is committed without further delay (default: 512).
    pub group_size: usize,
    /// The maximum number of runs in the writer's queue (default: 16,384). Further runs are dropped and counted.
    pub max_queued: usize,
    /// The maximum number of bytes of requests and answers in the writer's queue (default: 64 MiB). Further ones are omitted and counted.
    pub max_queued_bytes: usize,
    /// The maximum length of a stored request or answer, in bytes (default: 1 MiB). Longer ones are omitted and counted.
    pub max_body: usize,
    /// The maximum size of the file in bytes (default: no limit). At this size no more runs are recorded; spending and keys may use
    /// one more mebibyte.
    pub max_bytes: Option<u64>,
    /// The maximum size of the cached values, in bytes (default: 64 MiB). The oldest values are removed first.
    pub max_cache_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bodies: false,
            redaction: Redaction::default(),
            group_delay: Duration::from_millis(200),
            group_size: 512,
            max_queued: 16_384,
            max_queued_bytes: 64 << 20,
            max_body: 1 << 20,
            max_bytes: None,
            max_cache_bytes: 64 << 20,
        }
    }
}
