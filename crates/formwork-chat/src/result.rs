//! The result of asking: data, whatever happens.

use std::fmt;

use formwork_core::{Attempt, Error, ErrorKind, Failure, FaultKind, Usage, Verdict, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of a question: an answer that keeps to the contract, or a structured failure. Never an exception.
///
/// In JSON it is `{"status": "answered", "answer": {…}, …}` or `{"status": "failed", "code": "INVALID_JSON", …}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ChatResult<A> {
    /// There is an answer.
    Answered(Reply<A>),
    /// There is none, and this is why.
    Failed(ChatFailure),
}

/// An answer with its history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reply<A> {
    /// The answer.
    pub answer: A,
    /// How many answers were asked for, the accepted one included.
    pub attempts: u32,
    /// The tools that were called on the way, in order.
    pub tools: Vec<ToolUse>,
    /// Every call, in order; the last one's text is the answer as the model wrote it.
    pub calls: Vec<Attempt>,
    /// The tokens that all calls together used up.
    pub usage: Usage,
}

/// A tool that was called; `Display` is `weather({"city":"Lisbon"})`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolUse {
    /// Its name.
    pub name: String,
    /// The arguments, as the contract of the tool accepted them.
    pub arguments: Value,
    /// The result of the tool.
    pub result: Value,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChatFailure {
    /// The class that programs branch on.
    pub code: ChatCode,
    /// One line for people.
    pub message: String,
    /// All that was wrong with the last answer; empty if the content was not at fault.
    pub errors: Vec<Violation>,
    /// How many answers were asked for.
    pub attempts: u32,
    /// The tools that were called on the way, in order.
    pub tools: Vec<ToolUse>,
    /// Every call, in order.
    pub calls: Vec<Attempt>,
    /// The tokens that all calls together used up.
    pub usage: Usage,
}

/// The class of a [`ChatFailure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum ChatCode {
    /// The last answer was no JSON object: malformed, cut off, fenced, or with another top.
    InvalidJson,
    /// The last answer broke the contract.
    SchemaValidationFailed,
    /// A tool failed; the message says which and why.
    ToolFailed,
    /// The model went on calling tools.
    ToolLoop,
    /// No answer in time.
    Timeout,
    /// The server takes no more requests for now.
    RateLimited,
    /// The key is missing, wrong, or not allowed to do this.
    AuthenticationFailed,
    /// The account has no credit left.
    NoCredit,
    /// The server does not take the request.
    BadRequest,
    /// No server answered.
    Unavailable,
    /// The model declined.
    Refused,
    /// The budget does not allow another call.
    BudgetExceeded,
    /// The caller stopped it.
    Cancelled,
    /// It cannot be done as it is configured.
    Configuration,
}

impl ChatCode {
    /// As the documents write it: `INVALID_JSON`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidJson => "INVALID_JSON",
            Self::SchemaValidationFailed => "SCHEMA_VALIDATION_FAILED",
            Self::ToolFailed => "TOOL_FAILED",
            Self::ToolLoop => "TOOL_LOOP",
            Self::Timeout => "TIMEOUT",
            Self::RateLimited => "RATE_LIMITED",
            Self::AuthenticationFailed => "AUTHENTICATION_FAILED",
            Self::NoCredit => "NO_CREDIT",
            Self::BadRequest => "BAD_REQUEST",
            Self::Unavailable => "UNAVAILABLE",
            Self::Refused => "REFUSED",
            Self::BudgetExceeded => "BUDGET_EXCEEDED",
            Self::Cancelled => "CANCELLED",
            Self::Configuration => "CONFIGURATION",
        }
    }
}

impl fmt::Display for ChatCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<A> ChatResult<A> {
    /// The answer, if there is one.
    pub const fn answer(&self) -> Option<&A> {
        match self {
            Self::Answered(reply) => Some(&reply.answer),
            Self::Failed(_) => None,
        }
    }

    /// Why there is none, if there is none.
    pub const fn failure(&self) -> Option<&ChatFailure> {
        match self {
            Self::Answered(_) => None,
            Self::Failed(failure) => Some(failure),
        }
    }

    /// The same for `?`.
    ///
    /// # Errors
    /// The failure.
    pub fn into_result(self) -> Result<Reply<A>, Box<ChatFailure>> {
        match self {
            Self::Answered(reply) => Ok(reply),
            Self::Failed(failure) => Err(Box::new(failure)),
        }
    }
}

impl fmt::Display for ChatFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ChatFailure {}

impl fmt::Display for ToolUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name, self.arguments)
    }
}

/// The calls before a result, over all steps of a dialogue with tools.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) calls: Vec<Attempt>,
    pub(crate) tools: Vec<ToolUse>,
}

impl History {
    pub(crate) fn reply<A>(self, answer: A) -> ChatResult<A> {
        let (attempts, usage) = (self.attempts(), self.usage());
        ChatResult::Answered(Reply { answer, attempts, tools: self.tools, calls: self.calls, usage })
    }

    pub(crate) fn failure(
        self,
        code: ChatCode,
        message: impl Into<String>,
        errors: Vec<Violation>,
    ) -> ChatFailure {
        let (attempts, usage) = (self.attempts(), self.usage());
        ChatFailure {
            code,
            message: message.into(),
            errors,
            attempts,
            tools: self.tools,
            calls: self.calls,
            usage,
        }
    }

    /// A run that brought no answer.
    pub(crate) fn error(mut self, error: &Error) -> ChatFailure {
        let errors = match error.kind() {
            ErrorKind::Rejected => {
                last_content(error.attempts()).map_or(&[][..], Failure::violations).to_vec()
            }
            _ => Vec::new(),
        };
        self.calls.extend_from_slice(error.attempts());
        let code = code(error);
        let message = match errors.as_slice() {
            [] => error.message().to_owned(),
            errors => format!(
                "the last answer has {} {}",
                errors.len(),
                if errors.len() == 1 { "error" } else { "errors" }
            ),
        };
        self.failure(code, message, errors)
    }

    /// Answers, whatever was in them; calls that failed brought none.
    fn attempts(&self) -> u32 {
        let answered = |call: &&Attempt| call.finish.is_some();
        u32::try_from(self.calls.iter().filter(answered).count()).unwrap_or(u32::MAX)
    }

    fn usage(&self) -> Usage {
        self.calls.iter().fold(Usage::default(), |sum, call| sum.plus(call.usage))
    }
}

fn code(error: &Error) -> ChatCode {
    match error.kind() {
        ErrorKind::Rejected => {
            last_content(error.attempts()).map_or(ChatCode::SchemaValidationFailed, content_code)
        }
        ErrorKind::Refused => ChatCode::Refused,
        ErrorKind::Unavailable => fault_code(error.attempts()).unwrap_or(ChatCode::Unavailable),
        ErrorKind::Deadline => ChatCode::Timeout,
        ErrorKind::Budget => ChatCode::BudgetExceeded,
        ErrorKind::Cancelled => ChatCode::Cancelled,
        // A server may be the one to say so.
        _ => fault_code(error.attempts()).unwrap_or(ChatCode::Configuration),
    }
}

/// Returns what was wrong with the last answer, if there was one.
fn last_content(calls: &[Attempt]) -> Option<&Failure> {
    calls
        .iter()
        .rev()
        .filter_map(|call| call.verdict.failure())
        .find(|failure| !failure.violations().is_empty())
}

/// The code of content that was not accepted, as the corrective message names it.
pub(crate) fn content_code(failure: &Failure) -> ChatCode {
    match failure {
        Failure::NotJson { .. } | Failure::Truncated { .. } => ChatCode::InvalidJson,
        other if matches!(other.violations(), [only] if only.rule == "json") => ChatCode::InvalidJson,
        _ => ChatCode::SchemaValidationFailed,
    }
}

/// The code of the last call, if that failed.
fn fault_code(calls: &[Attempt]) -> Option<ChatCode> {
    let Verdict::Failed { failure: Failure::Fault(fault) } = &calls.last()?.verdict else { return None };
    Some(match fault.kind {
        FaultKind::Timeout => ChatCode::Timeout,
        FaultKind::RateLimited => ChatCode::RateLimited,
        FaultKind::Auth => ChatCode::AuthenticationFailed,
        FaultKind::NoCredit => ChatCode::NoCredit,
        FaultKind::BadRequest | FaultKind::SchemaRefused | FaultKind::Unsupported => ChatCode::BadRequest,
        _ => ChatCode::Unavailable,
    })
}
