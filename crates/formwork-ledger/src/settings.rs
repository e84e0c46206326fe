use std::time::Duration;

use crate::Redaction;

/// The settings of a ledger. The defaults suit a service with a few thousand requests a second.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whether requests and answers are kept (default: no). Everything else of a run is kept in any case.
    pub bodies: bool,
    /// The rules by which texts are removed before anything is written (default: API keys alone).
    pub redaction: Redaction,
    /// How long a run may wait in memory for others to be committed with (default: 200 ms). A process that is killed
    /// loses at most these runs.
    pub group_delay: Duration,
    /// How many runs are committed at once at most, and without further delay (default: 512).
    pub group_size: usize,
    /// How many runs may wait to be written (default: 16,384). Further ones are lost and counted.
    pub max_queued: usize,
    /// How many bytes of requests and answers may wait to be written (default: 64 MiB). Further ones are left out and counted.
    pub max_queued_bytes: usize,
    /// How many bytes of one request or answer are kept (default: 1 MiB). Longer ones are left out and counted.
    pub max_body: usize,
    /// The size of the file in bytes from which nothing more is recorded (default: none). Spending and keys have another
    /// mebibyte.
    pub max_bytes: Option<u64>,
    /// How many bytes the cached values take at most (default: 64 MiB). The oldest ones make room.
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
