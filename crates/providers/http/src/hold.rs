//! The pause that a server's rate limits ask for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use formwork_core::Time;
use tokio::runtime::Handle;

/// The longest pause that is waited for. After a longer one, the request is sent, and the server's 429 goes to the retry policy.
const LONGEST: Duration = Duration::from_secs(20);

/// The time from which on the server takes requests, by the headers of its last response.
#[derive(Debug, Default)]
pub(crate) struct Hold(AtomicU64);

impl Hold {
    /// Records the pause of a response; `None` if it leaves further requests.
    ///
    /// A response never shortens a pause: requests wait for its end, so that every response before it answers an older request.
    pub(crate) fn set(&self, pause: Option<Duration>, now: Time) {
        if let Some(pause) = pause.filter(|pause| *pause <= LONGEST) {
            self.0.fetch_max(now.after(pause).0, Ordering::Relaxed);
        }
    }

    /// Returns the rest of the pause, or `None` if a request with that time until its deadline is not held.
    fn rest(&self, now: Time, left: Option<Duration>) -> Option<Duration> {
        // A longer rest means that the clock was set back.
        let pause = Time(self.0.load(Ordering::Relaxed)).since(now);
        (!pause.is_zero() && pause <= LONGEST && left.is_none_or(|left| pause < left)).then_some(pause)
    }

    /// Waits for the end of the pause, unless the deadline is before it. `left` is the time until the deadline.
    pub(crate) async fn wait(&self, now: Time, left: Option<Duration>) {
        // Without a runtime the request is a fault.
        if let Some(pause) = self.rest(now, left).filter(|_| Handle::try_current().is_ok()) {
            tokio::time::sleep(pause).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends_by_time_and_not_by_a_response_to_an_older_request() {
        let seconds = |count: u64| Duration::from_secs(count);
        let at = |count: u64| Time(1_000_000 + count * 1000);
        // The pauses of responses with their times, then the time of a request, its deadline, and how long it is held.
        type Case<'a> = (&'a [(u64, Option<u64>)], u64, Option<u64>, Option<u64>);
        let cases: &[Case<'_>] = &[
            (&[], 0, None, None),
            (&[(0, None)], 0, None, None),
            (&[(0, Some(6))], 1, None, Some(5)),
            (&[(0, Some(6)), (1, None)], 1, None, Some(5)),
            (&[(0, Some(6)), (1, Some(2))], 2, None, Some(4)),
            (&[(0, Some(6)), (1, Some(8))], 2, None, Some(7)),
            (&[(0, Some(6))], 6, None, None),
            (&[(0, Some(6))], 1, Some(5), None),
            (&[(0, Some(6))], 1, Some(6), Some(5)),
            (&[(0, Some(21))], 1, None, None),
            (&[(30, Some(20))], 0, None, None),
        ];
        for (responses, now, left, held) in cases {
            let hold = Hold::default();
            for (time, pause) in *responses {
                hold.set(pause.map(seconds), at(*time));
            }
            assert_eq!(hold.rest(at(*now), left.map(seconds)), held.map(seconds), "{responses:?} at {now}");
        }
    }
}
