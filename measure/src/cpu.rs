//! The CPU time of this process, also for the examples, which are programs of their own.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Returns the CPU time of all threads of this process so far.
///
/// # Errors
/// The error of the system, if it has no such clock.
pub(crate) fn cpu() -> nix::Result<Duration> {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from)
}
