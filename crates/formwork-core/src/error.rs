use std::fmt;

use formwork_json::JsonPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Attempt, Cost, ObservationKind, Usage, Verdict, Violation, is_answered};

/// Why a run gave up, as far as a caller has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The configuration does not allow what was asked for.
    Config,
    /// The schema cannot be used.
    Schema,
    /// No answer satisfied the contract.
    Rejected,
    /// The model declined.
    Refused,
    /// No provider answered.
    Unavailable,
    /// The deadline passed.
    Deadline,
    /// The budget does not allow another call.
    Budget,
    /// The caller stopped it.
    Cancelled,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Config => "cannot be done as configured",
            Self::Schema => "the schema cannot be used",
            Self::Rejected => "no valid answer",
            Self::Refused => "the model refused",
            Self::Unavailable => "no provider answered",
            Self::Deadline => "out of time",
            Self::Budget => "out of budget",
            Self::Cancelled => "cancelled",
        })
    }
}

/// A run that brought no acceptable answer, with everything that it learned.
///
/// `{}` is one line, `{:#}` lists the attempts. Values of the answers are masked in both.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
struct Inner {
    kind: ErrorKind,
    message: String,
    attempts: Vec<Attempt>,
    best: Option<Best>,
}

/// The answer that came nearest to the contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Best {
    /// The document.
    pub value: Value,
    /// All that is wrong with it.
    pub violations: Vec<Violation>,
}

impl Error {
    /// An error before any call.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: message.into(), attempts: Vec::new(), best: None }))
    }

    pub(crate) fn with_history(mut self, attempts: Vec<Attempt>, best: Option<Best>) -> Self {
        (self.0.attempts, self.0.best) = (attempts, best);
        self
    }

    /// The class that callers branch on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns what happened, in one line, without the class.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Every call that was made.
    pub fn attempts(&self) -> &[Attempt] {
        &self.0.attempts
    }

    /// Returns the tokens that all calls together used up.
    pub fn usage(&self) -> Usage {
        self.0.attempts.iter().fold(Usage::default(), |sum, attempt| sum.plus(attempt.usage))
    }

    /// Returns the cost of all calls together; money is `None` if the price of one is not known.
    pub fn cost(&self) -> Cost {
        self.0.attempts.iter().fold(Cost::default(), |sum, attempt| sum.plus(attempt.cost))
    }

    /// Returns whether a provider completed an answer, whatever was wrong with it. An answer that the deadline cut off
    /// does not count: whether its first token came in time is chance.
    pub fn is_answered(&self) -> bool {
        is_answered(self.attempts(), self.kind() == ErrorKind::Deadline)
    }

    /// The answer that came nearest, if there was a document at all.
    pub fn best(&self) -> Option<&Best> {
        self.0.best.as_ref()
    }

    /// The paths that the last attempt got wrong.
    pub fn paths(&self) -> Vec<&JsonPath> {
        let last = self.0.attempts.iter().rev().find_map(|attempt| match &attempt.verdict {
            Verdict::Failed { failure } if !failure.violations().is_empty() => Some(failure.violations()),
            _ => None,
        });
        last.unwrap_or_default().iter().map(|violation| &violation.path).collect()
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        if !f.alternate() {
            return Ok(());
        }
        for Attempt { attempt, target, verdict, observation, .. } in &self.attempts {
            write!(f, "\n  attempt {attempt}, {target}: ")?;
            match verdict {
                Verdict::Accepted => write!(f, "accepted")?,
                Verdict::Cancelled => write!(f, "cancelled")?,
                Verdict::Failed { failure: crate::Failure::Fault(fault) } => write!(f, "{fault}")?,
                Verdict::Failed { failure } => {
                    write!(f, "{}", failure.class())?;
                    for violation in failure.violations() {
                        write!(f, "\n    {}", violation.masked())?;
                    }
                }
            }
            // A refusal is told already: it is the fault.
            if let Some(observation) =
                observation.as_ref().filter(|observation| observation.kind == ObservationKind::Ignored)
            {
                write!(f, "\n    {observation}")?;
            }
        }
        Ok(())
    }
}
