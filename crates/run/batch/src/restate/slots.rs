//! The pace of targets: workers take slots for calls from a keyed service, as many at a time as a tenth of a second has.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::ingress::Client;
use super::message::PACE;
use super::pool::Pool;

/// The age up to which unused slots of the past are still used.
const STALE: Duration = Duration::from_secs(1);

/// The pause after a request for slots that failed.
const PAUSE: Duration = Duration::from_millis(500);

/// The time that a request for slots may take.
const LIMIT: Duration = Duration::from_secs(30);

/// A request for slots.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Take {
    pub(super) calls_per_second: f64,
    pub(super) count: u32,
}

/// The slots that a worker has, by the names of targets.
#[derive(Debug)]
pub(super) struct Slots {
    ingress: Client,
    service: String,
    calls_per_second: f64,
    taken: Mutex<HashMap<String, Lease>>,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    next: Instant,
    left: u32,
}

impl Slots {
    pub(super) fn new(ingress: Client, pool: &Pool, calls_per_second: f64) -> Self {
        Self {
            ingress,
            service: pool.service(PACE),
            calls_per_second: calls_per_second.max(1e-3),
            taken: Mutex::default(),
        }
    }

    /// Waits until the time of the next slot of a target.
    pub(super) async fn wait(&self, target: &str) {
        let mut taken = self.taken.lock().await;
        let usable =
            taken.get(target).copied().filter(|lease| lease.left > 0 && lease.next.elapsed() < STALE);
        let lease = match usable {
            Some(lease) => lease,
            None => self.lease(target).await,
        };
        let at = lease.next;
        let next = at + Duration::from_secs_f64(1.0 / self.calls_per_second);
        taken.insert(target.to_owned(), Lease { next, left: lease.left - 1 });
        drop(taken);
        tokio::time::sleep_until(at).await;
    }

    /// Takes slots, at least one, however long Restate does not answer: the row of a broken connection is dropped anyway.
    async fn lease(&self, target: &str) -> Lease {
        let count = (self.calls_per_second / 10.0).clamp(1.0, 1000.0) as u32;
        let take = Take { calls_per_second: self.calls_per_second, count };
        let body = serde_json::to_string(&take).unwrap_or_default();
        let path = format!("/{}/{}/take", self.service, encoded(target));
        loop {
            let taken = self.ingress.post(&path, None, body.clone(), Some(LIMIT)).await;
            if let Some(wait) = taken.ok().and_then(|response| response.read()) {
                return Lease { next: Instant::now() + Duration::from_millis(wait), left: count };
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Returns a name as one segment of a path.
fn encoded(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    name.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment() {
        assert_eq!(encoded("openai/gpt-4o mini"), "openai%2Fgpt-4o%20mini");
    }
}
