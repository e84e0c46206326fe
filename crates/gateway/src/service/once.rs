//! Idempotency keys: a repeated request gets the response of the first one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, response};
use axum::response::Response;
use formwork_ledger::KeyId;
use hashlink::LinkedHashMap;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use crate::problem::{Kind, Problem};
use crate::seen::Seen;
use crate::vendor::sent;

/// The header with the idempotency key.
pub(super) const KEY: &str = "idempotency-key";

/// The header of a response that was given before.
pub(super) const REPLAYED: &str = "idempotent-replayed";

/// The time for which a response is kept.
const LIFE: Duration = Duration::from_secs(600);

/// The maximum number of responses that are kept, the maximum size of one, and of all together in bytes.
const MAX: usize = 1_000;
const MAX_BODY: usize = 4 << 20;
const MAX_BYTES: usize = 64 << 20;

/// A client, and its name for a request.
type Name = (Option<KeyId>, String);

/// The responses of the last ten minutes to requests with an idempotency key.
#[derive(Debug, Default)]
pub(crate) struct Once(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// In the order of their requests.
    entries: LinkedHashMap<Name, Arc<Entry>>,
    /// The size of the bodies of all responses, in bytes.
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    since: Instant,
    /// The [`digest`] of the request.
    request: [u8; 32],
    answer: watch::Receiver<Option<Answer>>,
}

/// A response with its whole body.
#[derive(Debug, Clone)]
struct Answer {
    head: response::Parts,
    body: Bytes,
}

impl Entry {
    /// Returns the size of the response's body; 0 while it is awaited.
    fn bytes(&self) -> usize {
        self.answer.borrow().as_ref().map_or(0, |answer| answer.body.len())
    }
}

impl Kept {
    /// Removes a response, if it is the one of this entry.
    fn remove(&mut self, name: &Name, entry: &Arc<Entry>) {
        if self.entries.get(name).is_some_and(|known| Arc::ptr_eq(known, entry)) {
            self.entries.remove(name);
            self.bytes -= entry.bytes();
        }
    }

    /// Removes responses that are too old, and the oldest of too many.
    fn clean(&mut self, now: Instant) {
        while let Some((_, oldest)) = self.entries.front() {
            let is_old = now.duration_since(oldest.since) >= LIFE;
            if !is_old && self.entries.len() <= MAX && self.bytes <= MAX_BYTES {
                break;
            }
            self.bytes -= oldest.bytes();
            self.entries.pop_front();
        }
    }
}

impl Once {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the entry of a request; of a new one also the place of its response.
    ///
    /// # Errors
    /// [`Kind::Invalid`] if the name was used for another request.
    fn entry(
        &self,
        name: &Name,
        request: [u8; 32],
        now: Instant,
    ) -> Result<(Arc<Entry>, Option<Place>), Problem> {
        let mut kept = self.kept();
        kept.clean(now);
        // Without a sender and an answer, the request ended in a panic.
        let is_there =
            |entry: &&Arc<Entry>| entry.answer.borrow().is_some() || entry.answer.has_changed().is_ok();
        if let Some(entry) = kept.entries.get(name).filter(is_there) {
            if entry.request != request {
                let message = "the idempotency key was used for another request in the last 10 minutes: choose a new one";
                return Err(Problem::invalid(KEY, message));
            }
            return Ok((Arc::clone(entry), None));
        }
        let (place, answer) = watch::channel(None);
        let entry = Arc::new(Entry { since: now, request, answer });
        kept.entries.insert(name.clone(), Arc::clone(&entry));
        kept.clean(now);
        Ok((entry, Some(place)))
    }

    /// Keeps a response, or removes its entry, so that a repetition is a new request.
    fn keep(&self, name: &Name, entry: &Arc<Entry>, place: &Place, answer: Option<Answer>, has_failed: bool) {
        let mut kept = self.kept();
        let status = answer.as_ref().map_or(500, |answer| answer.head.status.as_u16());
        let bytes = answer.as_ref().map_or(0, |answer| answer.body.len());
        if has_failed || status >= 500 || status == 429 || bytes > MAX_BODY {
            kept.remove(name, entry);
        } else if kept.entries.get(name).is_some_and(|known| Arc::ptr_eq(known, entry)) {
            kept.bytes += bytes;
        }
        place.send_replace(answer);
        kept.clean(Instant::now());
    }
}

/// The place of a response that is awaited.
type Place = watch::Sender<Option<Answer>>;

/// Answers a request with an idempotency key: once, also for clients that disconnect and repeat it. A repetition waits for the
/// first response. Responses that invite the client to come back (429, 5xx) and long ones are not kept, so that a repetition is a
/// new request. A stream is sent when it is complete.
///
/// # Errors
/// [`Kind::Invalid`] for a wrong key.
pub(super) async fn answer<F>(
    all: &Arc<Once>,
    client: Option<KeyId>,
    (parts, text): (Parts, String),
    seen: Arc<Seen>,
    call: impl FnOnce(Request<Body>) -> F,
) -> Result<Response, Problem>
where
    F: Future<Output = Response> + Send + 'static,
{
    let key = parts.headers.get(KEY).and_then(|key| key.to_str().ok()).unwrap_or_default();
    if !(1..=255).contains(&key.len()) {
        return Err(Problem::invalid(KEY, "`Idempotency-Key` has 1 to 255 visible ASCII characters"));
    }
    let name = (client, key.to_owned());
    let digest = digest(&parts, &text);
    let (entry, place) = all.entry(&name, digest, Instant::now())?;
    let is_replayed = place.is_none();
    if let Some(place) = place {
        let call = call(Request::from_parts(parts, Body::from(text)));
        let (once, entry) = (Arc::clone(all), Arc::clone(&entry));
        // The task goes on if the client disconnects, so that the repetition finds its response.
        tokio::spawn(async move {
            let (head, body) = call.await.into_parts();
            let body = to_bytes(body, MAX_BYTES).await;
            // The status of a stream says nothing about its end.
            let has_failed = seen.has_failed();
            once.keep(&name, &entry, &place, body.ok().map(|body| Answer { head, body }), has_failed);
        });
    }
    let mut answer = entry.answer.clone();
    let answer = answer.wait_for(Option::is_some).await.ok().and_then(|answer| answer.clone());
    let Some(Answer { mut head, body }) = answer else {
        return Err(Problem::new(Kind::Unavailable, "the response broke off: repeat the request"));
    };
    if is_replayed {
        head.headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(Response::from_parts(head, Body::from(body)))
}

/// Returns the digest of what a response depends on: the resource, the headers that the service or its targets read, and the body.
fn digest(parts: &Parts, text: &str) -> [u8; 32] {
    let own = parts.headers.iter().filter(|(name, _)| name.as_str().starts_with("x-formwork-"));
    let own = own.map(|(name, value)| (name, value.clone()));
    let mut headers: Vec<_> =
        own.chain(sent(&parts.headers)).map(|(name, value)| (name.as_str(), value)).collect();
    headers.sort_unstable();
    let mut digest = Sha256::new();
    digest.update(parts.uri.path());
    for (name, value) in headers {
        digest.update([0]);
        digest.update(name);
        digest.update([0]);
        digest.update(value);
    }
    digest.update([0, 0]);
    digest.update(text);
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers a request with a body of this size.
    fn answered(once: &Once, name: &str, status: u16, bytes: usize, now: Instant) {
        let name = (None, name.to_owned());
        let (entry, place) = once.entry(&name, [0; 32], now).unwrap();
        let head = axum::http::Response::builder().status(status).body(()).unwrap().into_parts().0;
        once.keep(&name, &entry, &place.unwrap(), Some(Answer { head, body: vec![0; bytes].into() }), false);
    }

    fn is_known(once: &Once, name: &str, now: Instant) -> bool {
        let name = (None, name.to_owned());
        let (entry, place) = once.entry(&name, [0; 32], now).unwrap();
        if place.is_some() {
            once.kept().remove(&name, &entry);
        }
        place.is_none()
    }

    #[test]
    fn a_request_that_ended_without_a_response_can_be_made_again() {
        let (once, now) = (Once::default(), Instant::now());
        let name = (None, "a".to_owned());
        let (_, place) = once.entry(&name, [0; 32], now).unwrap();
        assert!(once.entry(&name, [0; 32], now).unwrap().1.is_none(), "it is awaited");
        drop(place);
        assert!(once.entry(&name, [0; 32], now).unwrap().1.is_some());
    }

    #[test]
    fn responses_are_bounded_in_number_size_and_time() {
        let (once, now) = (Once::default(), Instant::now());
        for (name, status, bytes, is_kept) in [
            ("a", 200, 9, true),
            ("b", 400, 9, true),
            ("c", 429, 9, false),
            ("d", 503, 9, false),
            ("e", 200, MAX_BODY + 1, false),
        ] {
            answered(&once, name, status, bytes, now);
            assert_eq!(is_known(&once, name, now), is_kept, "{name}");
        }
        assert!(once.entry(&(None, "a".to_owned()), [1; 32], now).is_err(), "another request");
        let late = now + LIFE;
        assert!(!is_known(&once, "a", late));
        assert_eq!(once.kept().entries.len(), 0);
        for nth in 0..MAX + 5 {
            answered(&once, &nth.to_string(), 200, 1, late);
        }
        assert!(is_known(&once, "5", late) && !is_known(&once, "4", late));
        for nth in 0..20 {
            answered(&once, &format!("long {nth}"), 200, MAX_BODY, late);
        }
        let kept = once.kept();
        assert!(kept.bytes <= MAX_BYTES && kept.bytes > MAX_BYTES - MAX_BODY, "{}", kept.bytes);
        let sum: usize = kept.entries.values().map(|entry| entry.bytes()).sum();
        assert_eq!(sum, kept.bytes);
    }
}
