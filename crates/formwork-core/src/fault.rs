use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a call failed, as far as a policy has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FaultKind {
    /// No connection, or one that ended before the answer did.
    Unreachable,
    /// No answer in time.
    Timeout,
    /// Too many requests; `retry_after` says when to come back, if the server said.
    RateLimited,
    /// The server has too much to do, or failed for a reason of its own.
    Overloaded,
    /// The key is missing, wrong, or not allowed to do this.
    Auth,
    /// The account has no credit left.
    NoCredit,
    /// The request cannot be served as it is.
    BadRequest,
    /// The schema was refused: with a looser form of it the call may succeed.
    SchemaRefused,
    /// The model or a feature does not exist there.
    Unsupported,
    /// The response is not the protocol.
    BadWire,
}

impl FaultKind {
    /// Whether the same call may succeed later.
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::Unreachable | Self::Timeout | Self::RateLimited | Self::Overloaded)
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Unreachable => "connection failed",
            Self::Timeout => "timed out",
            Self::RateLimited => "rate limited",
            Self::Overloaded => "overloaded",
            Self::Auth => "not authorised",
            Self::NoCredit => "no credit",
            Self::BadRequest => "bad request",
            Self::SchemaRefused => "schema refused",
            Self::Unsupported => "not supported",
            Self::BadWire => "unexpected answer",
        }
    }
}

impl std::fmt::Display for FaultKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.words())
    }
}

/// A call that brought no answer. What an answer says wrong is a [`Violation`](crate::Violation) instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{kind}: {message}")]
#[non_exhaustive]
pub struct Fault {
    /// The class that policies branch on.
    pub kind: FaultKind,
    /// One line for people: what happened, and what to do about it. Never holds a key.
    pub message: String,
    /// HTTP status, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the server asked to wait.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "millis")]
    #[schemars(with = "Option<u64>")]
    pub retry_after: Option<Duration>,
    /// The server's identifier of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Fault {
    /// Returns the fault of an answer that ended before its end, without any error: the same call may bring all of it
    /// the next time. `what` says what was missed.
    pub fn cut_off(what: &str) -> Self {
        Self::new(FaultKind::Unreachable, format!("the answer was cut off: {what}"))
    }

    /// A fault with a message for people.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), status: None, retry_after: None, request_id: None }
    }

    /// Sets the HTTP status (default: none).
    #[must_use]
    pub const fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// Sets how long the server asked to wait (default: it did not).
    #[must_use]
    pub const fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        self.retry_after = wait;
        self
    }

    /// Sets the server's identifier of the request (default: none).
    #[must_use]
    pub fn with_request_id(mut self, id: Option<String>) -> Self {
        self.request_id = id;
        self
    }
}

/// An optional duration as whole milliseconds.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(|value| u64::try_from(value.as_millis()).unwrap_or(u64::MAX)).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}
