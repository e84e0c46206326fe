use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The header with the identifier of a request, and of its response.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The maximum number of characters of a request's own id.
const MAX: usize = 128;

/// The identifier of a request.
///
/// ```
/// use axum::http::{HeaderMap, HeaderValue};
/// use formwork_serve::{RequestId, X_REQUEST_ID};
///
/// let headers = HeaderMap::from_iter([(X_REQUEST_ID, HeaderValue::from_static("order-7"))]);
/// assert_eq!(RequestId::of(&headers).as_str(), "order-7");
/// assert!(RequestId::new().as_str().starts_with("req-"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// Returns the request's own identifier (1 to 128 visible ASCII characters), or a new one.
    pub fn of(headers: &HeaderMap) -> Self {
        let own = headers.get(X_REQUEST_ID).and_then(|value| value.to_str().ok());
        let own = own
            .filter(|own| (1..=MAX).contains(&own.len()) && own.bytes().all(|byte| byte.is_ascii_graphic()));
        own.map_or_else(Self::new, |own| Self(own.into()))
    }

    /// Returns a new identifier, unique in this process and random between processes.
    #[expect(clippy::new_without_default, reason = "each one differs")]
    pub fn new() -> Self {
        static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(format!("req-{:016x}", KEYS.hash_one(number)).into())
    }

    /// Returns the identifier.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Writes the identifier into the headers of the response.
    pub fn write_to(&self, headers: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::from_str(&self.0) {
            headers.insert(X_REQUEST_ID, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &[u8]) -> RequestId {
        RequestId::of(&HeaderMap::from_iter([(X_REQUEST_ID, HeaderValue::from_bytes(value).unwrap())]))
    }

    #[test]
    fn a_name_is_taken_over_if_it_is_one() {
        assert_eq!(of(b"order-7").as_str(), "order-7");
        for bad in [b"".as_slice(), b"a b", &[b'x'; 129], "é".as_bytes(), b"a\tb"] {
            assert!(of(bad).as_str().starts_with("req-"), "{bad:?}");
        }
    }

    #[test]
    fn new_names_differ() {
        assert_ne!(RequestId::new(), RequestId::new());
    }
}
