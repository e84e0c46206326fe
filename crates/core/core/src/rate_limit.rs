use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The unit of a [`RateLimit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Counted {
    /// Calls.
    Requests,
    /// Tokens of prompts and answers.
    Tokens,
    /// Tokens of prompts, without those that were read from a cache.
    InputTokens,
    /// Tokens of answers.
    OutputTokens,
}

/// A rate limit as the headers of a response report it. `docs/health.md` names the headers of each vendor.
///
/// ```
/// use std::time::Duration;
/// use formwork_core::{Counted, RateLimit};
///
/// let free = RateLimit::new(Counted::Requests, 42, Duration::from_secs(1)).with_limit(Some(60));
/// let used_up = RateLimit::new(Counted::Tokens, 0, Duration::from_secs(6));
/// assert_eq!(RateLimit::pause(&[free, used_up]), Some(Duration::from_secs(6)));
/// assert_eq!(RateLimit::pause(&[free]), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RateLimit {
    /// The unit of the numbers.
    pub counted: Counted,
    /// The size: the number that is left when nothing was used lately, if the server reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The number that was left when the server received the call.
    pub remaining: u64,
    /// The time until the limit is full again; in JSON, in milliseconds.
    #[serde(rename = "full_in_ms", with = "crate::fault::whole_millis")]
    pub full_in: Duration,
}

impl RateLimit {
    /// Creates a limit of unknown size.
    pub const fn new(counted: Counted, remaining: u64, full_in: Duration) -> Self {
        Self { counted, limit: None, remaining, full_in }
    }

    crate::setters! {
        /// Sets the size (default: unknown).
        #[must_use]
        pub const fn with_limit(limit: Option<u64>);
    }

    /// Returns the time until a server accepts another call: of the limits of which nothing is left, the longest time until the limit
    /// is full again; `None` if something is left of each.
    pub fn pause(limits: &[Self]) -> Option<Duration> {
        limits.iter().filter(|limit| limit.remaining == 0).map(|limit| limit.full_in).max()
    }
}
