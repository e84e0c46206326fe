use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The class of a [`Fault`], which retry policies decide by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FaultKind {
    /// No connection, or a connection that closed before the answer was complete.
    Unreachable,
    /// No response in time.
    Timeout,
    /// Too many requests; `retry_after` is the delay that the server requests, if any.
    RateLimited,
    /// The server is overloaded or failed internally.
    Overloaded,
    /// The API key is missing, wrong, or lacks a permission.
    Auth,
    /// The account has no credit left.
    NoCredit,
    /// The server rejects the request as invalid.
    BadRequest,
    /// The server rejects the schema: the call may succeed with a looser form of it.
    SchemaRefused,
    /// The server does not have the model or a feature.
    Unsupported,
    /// The response violates the protocol.
    BadWire,
}

/// The part of a failed call's connection that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Connection {
    /// No connection was made: it was refused, or TLS failed.
    Failed,
    /// The name of the server has no address.
    NoAddress,
    /// The time was over before a connection was made.
    Late,
    /// The connection was made, and ended before the response was complete.
    Broken,
}

impl FaultKind {
    /// Returns whether the same call may succeed later.
    ///
    /// ```
    /// use formwork_core::FaultKind;
    ///
    /// assert!(FaultKind::RateLimited.is_transient() && !FaultKind::Auth.is_transient());
    /// ```
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::Unreachable | Self::Timeout | Self::RateLimited | Self::Overloaded)
    }

    /// Returns the name in JSON.
    ///
    /// ```
    /// assert_eq!(formwork_core::FaultKind::RateLimited.name(), "rate_limited");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::Auth => "auth",
            Self::NoCredit => "no_credit",
            Self::BadRequest => "bad_request",
            Self::SchemaRefused => "schema_refused",
            Self::Unsupported => "unsupported",
            Self::BadWire => "bad_wire",
        }
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

/// The failure of a call: there is no answer. A defect of an answer is a [`Violation`](crate::Violation) instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{}: {message}", self.words())]
#[non_exhaustive]
pub struct Fault {
    /// The class that retry policies decide by.
    pub kind: FaultKind,
    /// One line for people: what failed, and what to do. Never contains a key.
    pub message: String,
    /// The state of the connection, if it is known to be the reason. Without it, [`FaultKind::Unreachable`] means that no connection
    /// was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
    /// The HTTP status, if there was a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The delay that the server requests before a retry; in JSON, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "millis")]
    #[schemars(with = "Option<u64>")]
    pub retry_after: Option<Duration>,
    /// The server's identifier of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The server's own code of the error, for example `unsupported_parameter`; at most 128 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Box<str>>,
    /// The member of the request that the server names as the reason, for example `messages[0].content`; at most 128 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub param: Option<Box<str>>,
}

impl Fault {
    /// Creates the fault of an answer that ended early without an error; a retry may bring all of it. `what` names the
    /// missing part.
    pub fn cut_off(what: &str) -> Self {
        Self::new(FaultKind::Unreachable, format!("the answer was cut off: {what}"))
            .with_connection(Connection::Broken)
    }

    /// Creates a fault with a message for people.
    ///
    /// ```
    /// use std::time::Duration;
    /// use formwork_core::{Fault, FaultKind};
    ///
    /// let fault = Fault::new(FaultKind::RateLimited, "60 requests per minute are allowed")
    ///     .with_status(429)
    ///     .with_retry_after(Some(Duration::from_secs(20)));
    /// assert_eq!(fault.to_string(), "rate limited: 60 requests per minute are allowed");
    /// ```
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            connection: None,
            status: None,
            retry_after: None,
            request_id: None,
            code: None,
            param: None,
        }
    }

    /// Returns whether the server failed internally: a response with a status of a server error other than 503 and 529, by which a
    /// server says that it is overloaded. Such a fault has the kind [`FaultKind::Overloaded`] as well.
    ///
    /// ```
    /// use formwork_core::{Fault, FaultKind};
    ///
    /// let fault = |status| Fault::new(FaultKind::Overloaded, "oh no").with_status(status);
    /// assert_eq!(fault(500).to_string(), "server error: oh no");
    /// assert!(fault(500).is_server_error() && !fault(529).is_server_error());
    /// ```
    pub fn is_server_error(&self) -> bool {
        let is_error = |status| status >= 500 && !matches!(status, 503 | 529);
        self.kind == FaultKind::Overloaded && self.status.is_some_and(is_error)
    }

    fn words(&self) -> &'static str {
        if self.is_server_error() { "server error" } else { self.kind.words() }
    }

    crate::setters! {
        /// Sets the state of the connection (default: unknown).
        #[must_use]
        pub const fn with_connection(Some(connection): Connection);
        /// Sets the HTTP status (default: none).
        #[must_use]
        pub const fn with_status(Some(status): u16);
        /// Sets the delay that the server requests before a retry (default: none).
        #[must_use]
        pub const fn with_retry_after(retry_after: Option<Duration>);
        /// Sets the server's identifier of the request (default: none).
        #[must_use]
        pub fn with_request_id(request_id: Option<String>);
        /// Sets the server's own code of the error (default: none).
        #[must_use]
        pub fn with_code(code: Option<Box<str>>);
        /// Sets the member of the request that the server names (default: none).
        #[must_use]
        pub fn with_param(param: Option<Box<str>>);
    }
}

/// Reads and writes a duration as whole milliseconds.
pub(crate) mod whole_millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(value.as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

/// Reads and writes an optional duration as whole milliseconds.
pub(crate) mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(|value| u64::try_from(value.as_millis()).unwrap_or(u64::MAX)).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}
