//! Problems, in one vocabulary for all protocols.

use std::time::Duration;

use formwork_core::{Error, ErrorKind, Failure, Fault, FaultKind, Violation};
use formwork_ledger::RunOutcome;
use serde_json::{Value, json};

/// The kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// The request is invalid or not supported.
    Invalid,
    /// The key is missing or wrong.
    Unauthorized,
    /// The key, the host or the origin is not allowed to do this.
    Forbidden,
    UnknownModel,
    /// There is no such resource.
    NotFound,
    NoSuchMethod,
    ReadTimeout,
    TooLarge,
    UnsupportedMediaType,
    /// No answer satisfied the contract.
    Unmendable,
    /// The text does not state a member that the schema requires.
    NotStated,
    /// Too many requests of this client, or upstream.
    RateLimited,
    /// The budget does not allow another call.
    OutOfBudget,
    /// Too many requests wait already, or the service is stopping.
    Busy,
    /// No target answers.
    Unavailable,
    /// A target answers, but does not take our key, or not in its protocol.
    Upstream,
    Deadline,
    Internal,
}

impl Kind {
    pub(crate) const fn status(self) -> u16 {
        self.facts().0
    }

    /// Returns the name in logs, metrics and the `code` of errors.
    pub(crate) const fn name(self) -> &'static str {
        self.facts().1
    }

    /// Returns the `type` of errors of OpenAI's protocols.
    pub(crate) const fn openai(self) -> &'static str {
        self.facts().2
    }

    /// Returns the `type` of errors of Anthropic's protocol.
    pub(crate) const fn anthropic(self) -> &'static str {
        self.facts().3
    }

    /// Returns the outcome of a run that ends with it.
    pub(crate) const fn outcome(self) -> RunOutcome {
        RunOutcome::Failed(self.facts().4)
    }

    /// Returns the status, the name, the types of errors of OpenAI and Anthropic, and the kind of the run's failure.
    const fn facts(self) -> (u16, &'static str, &'static str, &'static str, ErrorKind) {
        use ErrorKind::{Budget, Cancelled, Config, Deadline, NotStated, Rejected, Schema, Unavailable};

        const INVALID: &str = "invalid_request_error";
        const SERVER: &str = "server_error";
        const RATE: &str = "rate_limit_error";
        match self {
            Self::Invalid => (400, "invalid_request", INVALID, INVALID, Schema),
            Self::Unauthorized => {
                (401, "invalid_api_key", "authentication_error", "authentication_error", Config)
            }
            Self::Forbidden => (403, "forbidden", "permission_error", "permission_error", Config),
            Self::UnknownModel => (404, "model_not_found", INVALID, "not_found_error", Config),
            Self::NotFound => (404, "not_found", INVALID, "not_found_error", Config),
            Self::NoSuchMethod => (405, "method_not_allowed", INVALID, INVALID, Config),
            Self::ReadTimeout => (408, "read_timeout", INVALID, INVALID, Config),
            Self::TooLarge => (413, "request_too_large", INVALID, "request_too_large", Config),
            Self::UnsupportedMediaType => (415, "unsupported_media_type", INVALID, INVALID, Config),
            Self::Unmendable => (422, "contract_violated", INVALID, INVALID, Rejected),
            Self::NotStated => (422, "not_stated", INVALID, INVALID, NotStated),
            Self::RateLimited => (429, "rate_limit_exceeded", RATE, RATE, Unavailable),
            Self::OutOfBudget => (429, "insufficient_quota", "insufficient_quota", RATE, Budget),
            Self::Busy => (503, "overloaded", SERVER, "overloaded_error", Cancelled),
            Self::Unavailable => (503, "no_target_available", SERVER, "overloaded_error", Unavailable),
            Self::Upstream => (502, "bad_gateway", SERVER, "api_error", Unavailable),
            Self::Deadline => (504, "deadline_exceeded", SERVER, "timeout_error", Deadline),
            Self::Internal => (500, "internal_error", SERVER, "api_error", Config),
        }
    }
}

/// Our advice where a prompt is too long, which vendors say in many phrases.
const CONTEXT: &str = "exceed the model's context window";

/// The faults of connections, with their messages for clients.
const OF_CONNECTIONS: [(FaultKind, &str); 3] = [
    (FaultKind::Unreachable, "the connection to the target failed"),
    (FaultKind::Timeout, "the target did not respond in time"),
    (FaultKind::BadWire, "the target cannot be used: its response violates its protocol"),
];

/// A request that has no answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Problem {
    pub(crate) kind: Kind,
    /// One line for people.
    pub(crate) message: String,
    /// The code of the target's error, if the request is the reason (default: the name of the kind).
    pub(crate) code: Option<Box<str>>,
    /// The kind of the target's failure, if it is the reason.
    pub(crate) fault: Option<FaultKind>,
    /// Whether the protocol has the member, and only the service cannot act on it.
    pub(crate) is_unsupported: bool,
    /// The member of the request that is wrong.
    pub(crate) param: Option<String>,
    /// All that is wrong with the best answer.
    pub(crate) violations: Vec<Violation>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) calls: usize,
}

/// The end of a run without an accepted value.
pub(crate) enum Unaccepted {
    /// The model declined, for this reason.
    Refused(String),
    /// The answer ended at the limit of tokens, after this text.
    Truncated(String),
    Problem(Problem),
}

impl Problem {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            code: None,
            fault: None,
            is_unsupported: false,
            param: None,
            violations: Vec::new(),
            retry_after: None,
            calls: 0,
        }
    }

    pub(crate) fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..Self::new(Kind::Invalid, message) }
    }

    /// Returns the code in errors of protocols that have one.
    pub(crate) fn code(&self) -> &str {
        self.code.as_deref().unwrap_or_else(|| self.kind.name())
    }

    /// Returns the class of the call that it ended, as the ledger names it.
    pub(crate) fn class(&self) -> &'static str {
        match (self.fault, self.kind) {
            (Some(fault), _) => fault.name(),
            (None, Kind::Deadline) => FaultKind::Timeout.name(),
            (None, Kind::Busy) => "cancelled",
            (None, _) => FaultKind::BadWire.name(),
        }
    }

    /// Returns the value of `x-should-retry`, which official clients obey: they retry 408, 409, 429 and every 5xx by themselves.
    pub(crate) const fn should_retry(&self) -> bool {
        // A server that failed internally may answer the next call.
        matches!(self.kind, Kind::RateLimited | Kind::Busy | Kind::Unavailable | Kind::ReadTimeout)
            || matches!((self.kind, self.fault), (Kind::Upstream, Some(FaultKind::Overloaded)))
    }

    /// Returns the message for the client. Those of connections have the address of a target, which is for the log and the ledger.
    pub(crate) fn told(&self) -> &str {
        let of_connection = OF_CONNECTIONS.iter().find(|(kind, _)| self.fault == Some(*kind));
        of_connection.map_or(self.message.as_str(), |(_, message)| message)
    }

    /// Returns whether the message of a call of this class may have the address of a target.
    pub(crate) fn is_of_connection(class: &str) -> bool {
        OF_CONNECTIONS.iter().any(|(kind, _)| kind.name() == class)
    }

    /// Returns the seconds of `retry-after`, where the client may come back.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        let least = |wait: Duration| wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        self.should_retry().then(|| self.retry_after.map_or(1, least).clamp(1, 3600))
    }

    /// Returns the violations as they stand in errors.
    pub(crate) fn violations(&self) -> Option<Value> {
        let one = |violation: &Violation| {
            json!({
                "path": violation.path.to_string(),
                "rule": violation.rule,
                "expected": violation.expected,
                "found": violation.found,
            })
        };
        (!self.violations.is_empty()).then(|| self.violations.iter().map(one).collect())
    }

    /// Returns the problem of a call that failed.
    pub(crate) fn of_fault(fault: &Fault) -> Self {
        let kind = match fault.kind {
            FaultKind::RateLimited => Kind::RateLimited,
            FaultKind::Timeout => Kind::Deadline,
            FaultKind::Overloaded if fault.is_server_error() => Kind::Upstream,
            FaultKind::Unreachable | FaultKind::Overloaded => Kind::Unavailable,
            FaultKind::BadRequest | FaultKind::SchemaRefused => Kind::Invalid,
            // The client cannot correct the gateway's keys and configuration.
            _ => Kind::Upstream,
        };
        let message = match kind {
            Kind::Upstream if !fault.is_server_error() => format!("the target cannot be used: {fault}"),
            _ => fault.to_string(),
        };
        // Other faults are about the keys and the servers of the gateway.
        let own = Some(fault).filter(|_| kind == Kind::Invalid);
        let is_long = own.is_some_and(|own| own.message.contains(CONTEXT));
        let code = is_long.then(|| "context_length_exceeded".into());
        Self {
            code: code.or_else(|| own?.code.clone()),
            param: own.and_then(|own| own.param.as_deref()).map(str::to_owned),
            fault: Some(fault.kind),
            retry_after: fault.retry_after,
            ..Self::new(kind, message)
        }
    }
}

/// Returns the class of a failed run for the client.
pub(crate) fn of_error(error: &Error) -> Unaccepted {
    let failures = || error.calls().iter().rev().filter_map(|call| call.verdict.failure());
    let last = failures().next();
    let problem = match error.kind() {
        ErrorKind::Refused => {
            // The message of the error has words of its own for a refusal without a text.
            let reason = match last {
                Some(Failure::Refused { reason }) => reason.as_str(),
                _ => "",
            };
            return Unaccepted::Refused(reason.to_owned());
        }
        ErrorKind::Rejected => match (last, error.calls().last()) {
            (Some(Failure::Truncated { .. }), Some(call)) => {
                return Unaccepted::Truncated(call.text.to_string());
            }
            _ => {
                let best = error.best().map(|best| best.violations.clone());
                let violations = best.filter(|violations| !violations.is_empty());
                let violations = violations
                    .or_else(|| last.map(|failure| failure.violations().to_vec()))
                    .unwrap_or_default();
                Problem { violations, ..Problem::new(Kind::Unmendable, error.to_string()) }
            }
        },
        ErrorKind::NotStated => {
            let violations = error.best().map(|best| best.violations.clone()).unwrap_or_default();
            Problem { violations, ..Problem::new(Kind::NotStated, error.to_string()) }
        }
        ErrorKind::Schema => Problem::new(Kind::Invalid, error.to_string()),
        ErrorKind::Budget => Problem::new(Kind::OutOfBudget, error.to_string()),
        ErrorKind::Deadline => Problem::new(Kind::Deadline, error.to_string()),
        ErrorKind::Cancelled => Problem::new(Kind::Busy, "the request was cancelled"),
        ErrorKind::Unavailable | ErrorKind::Config => {
            let fault = failures().find_map(|failure| match failure {
                Failure::Fault(fault) => Some(fault),
                _ => None,
            });
            match fault {
                Some(fault) => Problem { message: error.to_string(), ..Problem::of_fault(fault) },
                None => Problem::new(Kind::Upstream, error.to_string()),
            }
        }
        _ => Problem::new(Kind::Internal, error.to_string()),
    };
    Unaccepted::Problem(Problem { calls: error.calls().len(), ..problem })
}
