use std::fmt;

use formwork_json::JsonPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallRecord, CallResult, Cost, Observation, ObservationKind, Usage, Violation, is_answered};

/// The class of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The configuration is invalid, or rules the request out.
    Config,
    /// The schema cannot be used.
    Schema,
    /// No answer satisfied the contract.
    Rejected,
    /// The text does not state a member that the schema requires; see [`Error::not_stated`].
    NotStated,
    /// The model declined.
    Refused,
    /// No provider answered.
    Unavailable,
    /// The deadline passed.
    Deadline,
    /// The budget does not allow another call.
    Budget,
    /// The caller cancelled the run.
    Cancelled,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Config => "cannot be done as configured",
            Self::Schema => "the schema cannot be used",
            Self::Rejected => "no valid answer",
            Self::NotStated => "the text does not state a required value",
            Self::Refused => "the model refused",
            Self::Unavailable => "no provider answered",
            Self::Deadline => "out of time",
            Self::Budget => "out of budget",
            Self::Cancelled => "cancelled",
        })
    }
}

/// A run without an acceptable answer, with its history.
///
/// `{}` is one line; `{:#}` adds a line for each call and violation. Both omit values of the answers.
///
/// ```
/// use formwork_core::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Config, "the plan has no target: add one");
/// assert_eq!(error.to_string(), "cannot be done as configured: the plan has no target: add one");
/// assert!(error.calls().is_empty() && error.best().is_none());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq)]
struct Inner {
    kind: ErrorKind,
    message: String,
    calls: Vec<CallRecord>,
    best: Option<Best>,
    not_stated: Vec<JsonPath>,
}

/// The answer that came nearest to the contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Best {
    /// The document.
    pub value: Value,
    /// Its violations.
    pub violations: Vec<Violation>,
}

impl Error {
    /// Creates an error without any call.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            calls: Vec::new(),
            best: None,
            not_stated: Vec::new(),
        }))
    }

    pub(crate) fn with_history(mut self, calls: Vec<CallRecord>, best: Option<Best>) -> Self {
        (self.0.calls, self.0.best) = (calls, best);
        self
    }

    pub(crate) fn with_not_stated(mut self, paths: Vec<JsonPath>) -> Self {
        self.0.not_stated = paths;
        self
    }

    /// Adds the message, the calls and the cost of another run for the same answer, which failed as well.
    ///
    /// ```
    /// use formwork_core::{Error, ErrorKind};
    ///
    /// let mut error = Error::new(ErrorKind::Rejected, "a");
    /// error.absorb(&Error::new(ErrorKind::Unavailable, "b"));
    /// assert_eq!(error.to_string(), "no valid answer: a; no provider answered: b");
    /// ```
    pub fn absorb(&mut self, other: &Self) {
        self.0.message = format!("{}; {other}", self.0.message);
        self.0.calls.extend_from_slice(other.calls());
    }

    /// Returns the class of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the description of the error in one line, without the class.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns every call in order.
    pub fn calls(&self) -> &[CallRecord] {
        &self.0.calls
    }

    /// Returns the tokens of all calls together.
    pub fn usage(&self) -> Usage {
        self.0.calls.iter().fold(Usage::default(), |sum, call| sum.plus(call.usage))
    }

    /// Returns the cost of all calls together. The amount of money is `None` if the price of a call is not known.
    pub fn cost(&self) -> Cost {
        self.0.calls.iter().fold(Cost::default(), |sum, call| sum.plus(call.cost))
    }

    /// Returns whether one of the calls brought an answer, valid or not. An answer that the deadline cut off does not
    /// count, because it is chance whether its first token came in time.
    pub fn is_answered(&self) -> bool {
        is_answered(self.calls(), self.kind() == ErrorKind::Deadline)
    }

    /// Returns the answer that came nearest to the contract; `None` if there was no document.
    pub fn best(&self) -> Option<&Best> {
        self.0.best.as_ref()
    }

    /// Returns the paths of the required members that were null or missing in two answers, so that the run ended
    /// ([`ErrorKind::NotStated`]); empty for every other error.
    pub fn not_stated(&self) -> &[JsonPath] {
        &self.0.not_stated
    }

    /// Returns the paths of the violations of the last answer.
    pub fn paths(&self) -> Vec<&JsonPath> {
        let last = self.0.calls.iter().rev().find_map(|call| match &call.verdict {
            CallResult::Failed { failure } if !failure.violations().is_empty() => Some(failure.violations()),
            _ => None,
        });
        last.unwrap_or_default().iter().map(|violation| &violation.path).collect()
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, message, calls, .. } = &*self.0;
        write!(f, "{kind}")?;
        if !message.is_empty() {
            write!(f, ": {message}")?;
        }
        if !f.alternate() {
            return Ok(());
        }
        for CallRecord { attempt, target, verdict, observation, .. } in calls {
            write!(f, "\n  attempt {attempt}, {target}: ")?;
            match verdict {
                CallResult::Accepted => write!(f, "accepted")?,
                CallResult::Cancelled => write!(f, "cancelled")?,
                CallResult::Probe => write!(f, "probe of the server, or a part of the document")?,
                CallResult::Failed { failure: crate::Failure::Fault(fault) } => write!(f, "{fault}")?,
                CallResult::Failed { failure } => {
                    write!(f, "{}", failure.class())?;
                    for violation in failure.violations() {
                        write!(f, "\n    {}", violation.masked())?;
                    }
                    if failure.left_out() > 0 {
                        write!(f, "\n    and {} more", failure.left_out())?;
                    }
                }
            }
            // A refusal of the schema is already printed: it is the fault of the call.
            let explains = |observation: &&Observation| {
                matches!(observation.kind, ObservationKind::Ignored | ObservationKind::Prose)
            };
            if let Some(observation) = observation.as_deref().filter(explains) {
                write!(f, "\n    {observation}")?;
            }
        }
        Ok(())
    }
}
