use std::num::NonZeroU32;
use std::time::Duration;

use formwork::config::Serve;
use formwork_core::Backoff;

/// The limits of the service.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// The most bytes of a request's body (default: 16 MiB, for pictures).
    pub max_body: usize,
    /// The most bytes of a schema, written as JSON (default: 256 KiB).
    pub max_schema: usize,
    /// The time that a schema may take to be compiled and lowered (default: 5 s).
    pub compile_timeout: Duration,
    /// The maximum number of compiled contracts in the cache (default: 512).
    pub max_contracts: usize,
    /// The most attempts of a request, over all targets (default: 10).
    pub max_attempts: u32,
    /// The most answers to a request, `n` (default: 128, which is the maximum of OpenAI).
    pub max_choices: u32,
    /// The time that the head of a request may take to arrive; a connection without a request is closed after it (default: 10 s).
    pub head_timeout: Duration,
    /// The time that the body of a request may take to arrive (default: 30 s).
    pub read_timeout: Duration,
    /// The time for which a client may keep its response waiting (default: 10 s). It runs out while the client reads less than 1 KiB per
    /// second.
    pub write_timeout: Duration,
    /// The time that a request may take, waiting for its turn included (default: 300 s).
    pub timeout: Duration,
    /// The most requests that are worked on at once (default: 256).
    pub max_concurrent: usize,
    /// The most requests that wait for their turn (default: 1,024). Further ones are refused with 503.
    pub max_waiting: usize,
    /// The time that a request waits for the reservations of open requests of its key to end, where they are all that its budget
    /// lacks (default: 2 s). Then it is refused with 429.
    pub budget_wait: Duration,
    /// The most streams that are open at once for each key (default: 1,024). Further ones are refused with 429.
    pub max_streams: usize,
    /// The most connections that are open at once (default: 16,384, at most half of the files that the process may open). Further ones
    /// wait to be accepted.
    pub max_connections: usize,
    /// The most connections of one address that are open at once, but those of this machine (default: 1,024, at most three quarters of
    /// all). Further ones are closed.
    pub max_per_address: usize,
    /// The time between two comments of a stream that has nothing to send (default: 10 s).
    pub keep_alive: Duration,
    /// The time that open requests have to end once the service stops (default: 14 s).
    pub drain: Duration,
    /// The age at which runs are deleted from the ledger, checked every hour (default: never).
    pub keep_runs: Option<Duration>,
    /// The age at which requests and answers of runs are deleted from the ledger (default: never).
    pub keep_bodies: Option<Duration>,
    /// Whether the schema of a request may say nothing about values, such as `{}` (default: false, which refuses it with 400).
    pub any: bool,
    /// The delays between repeated calls of a target that failed (default: 2 s, 4 s, 8 s).
    pub backoff: Backoff,
}

impl Limits {
    /// Returns the limits of a configuration: those of its section, the others with their defaults.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use formwork::config::Serve;
    /// use formwork_gateway::Limits;
    ///
    /// let mut serve = Serve::default();
    /// (serve.concurrency, serve.write_timeout_seconds) = (Some(64), Some(30.0));
    /// let limits = Limits::of(&serve);
    /// assert_eq!((limits.max_concurrent, limits.write_timeout), (64, Duration::from_secs(30)));
    /// assert_eq!(limits.max_waiting, Limits::default().max_waiting);
    /// ```
    pub fn of(serve: &Serve) -> Self {
        let own = Self::default();
        let seconds = |seconds: Option<f64>, own| {
            seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(own)
        };
        Self {
            max_body: serve.max_body_bytes.unwrap_or(own.max_body),
            max_schema: serve.max_schema_bytes.unwrap_or(own.max_schema),
            max_attempts: serve.max_attempts.unwrap_or(own.max_attempts),
            max_concurrent: serve.concurrency.unwrap_or(own.max_concurrent),
            max_waiting: serve.queue.unwrap_or(own.max_waiting),
            max_streams: serve.streams_per_key.unwrap_or(own.max_streams),
            max_per_address: serve.connections_per_address.unwrap_or(own.max_per_address),
            head_timeout: seconds(serve.head_timeout_seconds, own.head_timeout),
            write_timeout: seconds(serve.write_timeout_seconds, own.write_timeout),
            timeout: seconds(serve.timeout_seconds, own.timeout),
            keep_runs: serve.keep_runs_days.map(days),
            keep_bodies: serve.keep_texts_days.map(days),
            ..own
        }
    }
}

/// Returns a number of days as a duration.
fn days(days: NonZeroU32) -> Duration {
    Duration::from_secs(u64::from(days.get()) * 86_400)
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_body: 16 << 20,
            max_schema: 256 << 10,
            compile_timeout: Duration::from_secs(5),
            max_contracts: 512,
            max_attempts: 10,
            max_choices: 128,
            head_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(300),
            max_concurrent: 256,
            max_waiting: 1_024,
            budget_wait: Duration::from_secs(2),
            max_streams: 1_024,
            max_connections: 16_384,
            max_per_address: 1_024,
            keep_alive: Duration::from_secs(10),
            drain: Duration::from_secs(14),
            keep_runs: None,
            keep_bodies: None,
            any: false,
            backoff: Backoff::exponential(),
        }
    }
}
