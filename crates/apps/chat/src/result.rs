//! The result of a question.

use std::fmt;

use formwork_core::{CallRecord, CallResult, Error, ErrorKind, Failure, FaultKind, Trust, Usage, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of a question: an answer that satisfies the contract, or a structured failure.
///
/// ```
/// use formwork_chat::{ChatCode, JsonModeChatClient};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), formwork_core::Error> {
/// let model = std::sync::Arc::new(formwork_testkit::Scripted::new(["no", "never"]));
/// let client = JsonModeChatClient::builder().with_target(model).build()?;
/// let result = client.ask("What is JSON?").await;
/// assert!(result.answer().is_none());
/// assert_eq!(result.failure().unwrap().code, ChatCode::InvalidJson);
/// # Ok(()) }
/// ```
///
/// In JSON it is `{"status": "answered", "answer": {…}, …}` or `{"status": "failed", "code": "INVALID_JSON", …}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ChatResult<A> {
    /// The question was answered.
    Answered(Reply<A>),
    /// The question was not answered.
    Failed(ChatFailure),
}

/// An accepted answer, with the calls, tools and tokens behind it.
///
/// ```
/// use formwork_chat::JsonModeChatClient;
///
/// let good = r#"{"task": {"type": "qa", "user_intent": "learn"}, "answer": {"text": "A text format."},
///   "quality": {"confidence": 0.9, "assumptions": [], "risks": []}, "debug": {"schema_version": "1.0", "model": "m"}}"#;
/// let model = std::sync::Arc::new(formwork_testkit::Scripted::new([good]));
/// let client = JsonModeChatClient::builder().with_target(model).build()?;
/// let reply = client.ask_blocking("What is JSON?").into_result()?;
/// assert_eq!(reply.answer.answer.text, "A text format.");
/// assert_eq!((reply.attempts, reply.calls.len(), reply.tools.len()), (1, 1, 0));
/// assert_eq!((reply.trust.leaves, reply.trust.free), (8, 8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reply<A> {
    /// The answer.
    pub answer: A,
    /// The history of the answer's leaves: how many the model wrote freely, and which it did not.
    #[serde(default)]
    pub trust: Trust,
    /// The number of answers, including the accepted one.
    pub attempts: u32,
    /// The tools that were called, in order.
    pub tools: Vec<ToolUse>,
    /// Every call, in order; the text of the last one is the answer as the model wrote it.
    pub calls: Vec<CallRecord>,
    /// The tokens of all calls.
    pub usage: Usage,
    /// Remarks on parts of the configuration that had no or a weaker effect: one sentence each, without repetitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A tool call and its result. `Display` formats the call: `weather({"city":"Lisbon"})`.
///
/// ```
/// use formwork_chat::ToolUse;
/// use serde_json::json;
///
/// let call = ToolUse { name: "weather".into(), arguments: json!({"city": "Lisbon"}), result: json!("sunny") };
/// assert_eq!(call.to_string(), r#"weather({"city":"Lisbon"})"#);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolUse {
    /// The name of the tool.
    pub name: String,
    /// The arguments, validated by the tool's schema.
    pub arguments: Value,
    /// The result of the tool.
    pub result: Value,
}

/// The reason why a question was not answered.
///
/// ```
/// use formwork_chat::{ChatCode, JsonModeChatClient};
///
/// let model = std::sync::Arc::new(formwork_testkit::Scripted::new(["{}", "{}"]));
/// let client = JsonModeChatClient::builder().with_target(model).build()?;
/// let failure = client.ask_blocking("What is JSON?").into_result().unwrap_err();
/// assert_eq!(failure.code, ChatCode::SchemaValidationFailed);
/// assert_eq!((failure.attempts, failure.errors.len()), (2, 4));
/// # Ok::<(), formwork_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ChatFailure {
    /// The class of the failure, for programs.
    pub code: ChatCode,
    /// The message, in one line, for people.
    pub message: String,
    /// All errors of the last answer; empty if the failure has another cause.
    pub errors: Vec<Violation>,
    /// The number of answers.
    pub attempts: u32,
    /// The tools that were called, in order.
    pub tools: Vec<ToolUse>,
    /// Every call, in order.
    pub calls: Vec<CallRecord>,
    /// The tokens of all calls.
    pub usage: Usage,
    /// Remarks on parts of the configuration that had no or a weaker effect: one sentence each, without repetitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The class of a [`ChatFailure`].
///
/// ```
/// use formwork_chat::ChatCode;
///
/// assert_eq!(ChatCode::RateLimited.as_str(), "RATE_LIMITED");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum ChatCode {
    /// The last answer was not a JSON object: malformed, truncated, fenced, or of another type.
    InvalidJson,
    /// The last answer violated the contract.
    SchemaValidationFailed,
    /// A tool failed; the message names the tool and the reason.
    ToolFailed,
    /// The model kept calling tools instead of answering.
    ToolLoop,
    /// The time limit passed.
    Timeout,
    /// The server rejects requests because of a rate limit.
    RateLimited,
    /// The API key is missing, wrong, or lacks the permission.
    AuthenticationFailed,
    /// The account has no credit left.
    NoCredit,
    /// The server rejected the request as invalid.
    BadRequest,
    /// No server could be reached.
    Unavailable,
    /// The model refused to answer.
    Refused,
    /// The budget does not cover another call.
    BudgetExceeded,
    /// The caller cancelled the question.
    Cancelled,
    /// The client's configuration is invalid.
    Configuration,
}

impl ChatCode {
    /// Returns the code as the documents write it, for example `INVALID_JSON`.
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

impl ChatFailure {
    /// Returns the number of errors of the last answer that `errors` leaves out because there are too many.
    pub fn left_out(&self) -> usize {
        let last = last_content(&self.calls).filter(|last| last.violations() == self.errors);
        last.map_or(0, Failure::left_out)
    }
}

impl<A> ChatResult<A> {
    /// Returns the answer, if there is one.
    pub const fn answer(&self) -> Option<&A> {
        match self {
            Self::Answered(reply) => Some(&reply.answer),
            Self::Failed(_) => None,
        }
    }

    /// Returns the failure, if there is one.
    pub const fn failure(&self) -> Option<&ChatFailure> {
        match self {
            Self::Answered(_) => None,
            Self::Failed(failure) => Some(failure),
        }
    }

    /// Returns what was done in a weaker way than configured, or not at all.
    pub fn warnings(&self) -> &[String] {
        match self {
            Self::Answered(reply) => &reply.warnings,
            Self::Failed(failure) => &failure.warnings,
        }
    }

    /// Returns every call, in order.
    pub fn calls(&self) -> &[CallRecord] {
        match self {
            Self::Answered(reply) => &reply.calls,
            Self::Failed(failure) => &failure.calls,
        }
    }

    /// Converts the result for the `?` operator.
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

impl fmt::Display for ToolUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name, self.arguments)
    }
}

/// The calls before a result, over all turns of a dialogue with tools.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) calls: Vec<CallRecord>,
    pub(crate) tools: Vec<ToolUse>,
    pub(crate) warnings: Vec<String>,
}

impl History {
    pub(crate) fn reply<A>(self, (answer, trust): (A, Trust)) -> ChatResult<A> {
        let (attempts, usage, warnings) = (self.attempts(), self.usage(), self.warnings());
        let Self { tools, calls, .. } = self;
        ChatResult::Answered(Reply { answer, trust, attempts, tools, calls, usage, warnings })
    }

    pub(crate) fn failure(
        self,
        code: ChatCode,
        message: impl Into<String>,
        errors: Vec<Violation>,
    ) -> ChatFailure {
        let (attempts, usage, warnings) = (self.attempts(), self.usage(), self.warnings());
        let (Self { tools, calls, .. }, message) = (self, message.into());
        ChatFailure { code, message, errors, attempts, tools, calls, usage, warnings }
    }

    /// Returns the failure of a run without an answer.
    pub(crate) fn error(mut self, error: &Error) -> ChatFailure {
        let last = last_content(error.calls()).filter(|_| error.kind() == ErrorKind::Rejected);
        let (errors, total) = last.map(|last| (last.violations().to_vec(), last.total())).unwrap_or_default();
        self.calls.extend_from_slice(error.calls());
        let code = code(error);
        let message = match errors.as_slice() {
            [] => error.message().to_owned(),
            _ => format!("the last answer has {total} {}", if total == 1 { "error" } else { "errors" }),
        };
        self.failure(code, message, errors)
    }

    /// Returns the notes of the calls and the warnings of the loop of tools, without repetitions.
    fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = Vec::new();
        for warning in self.calls.iter().flat_map(|call| &call.notes).chain(&self.warnings) {
            if !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
        warnings
    }

    /// Returns the number of answers, valid or not; failed calls have none.
    fn attempts(&self) -> u32 {
        let answered = |call: &&CallRecord| call.finish.is_some();
        u32::try_from(self.calls.iter().filter(answered).count()).unwrap_or(u32::MAX)
    }

    fn usage(&self) -> Usage {
        self.calls.iter().fold(Usage::default(), |sum, call| sum.plus(call.usage))
    }
}

fn code(error: &Error) -> ChatCode {
    match error.kind() {
        ErrorKind::Rejected => {
            last_content(error.calls()).map_or(ChatCode::SchemaValidationFailed, content_code)
        }
        ErrorKind::Refused => ChatCode::Refused,
        ErrorKind::Unavailable => fault_code(error.calls()).unwrap_or(ChatCode::Unavailable),
        ErrorKind::Deadline => ChatCode::Timeout,
        ErrorKind::Budget => ChatCode::BudgetExceeded,
        ErrorKind::Cancelled => ChatCode::Cancelled,
        // The last fault decides, because a server can report any of these classes.
        _ => fault_code(error.calls()).unwrap_or(ChatCode::Configuration),
    }
}

/// Returns the failure of the last answer, if there was an answer.
fn last_content(calls: &[CallRecord]) -> Option<&Failure> {
    calls
        .iter()
        .rev()
        .filter_map(|call| call.verdict.failure())
        .find(|failure| !failure.violations().is_empty())
}

/// Returns the code of a rejected answer, as the corrective message names it.
pub(crate) fn content_code(failure: &Failure) -> ChatCode {
    match failure {
        Failure::NotJson { .. } | Failure::Truncated { .. } => ChatCode::InvalidJson,
        other if matches!(other.violations(), [only] if only.rule == "json") => ChatCode::InvalidJson,
        _ => ChatCode::SchemaValidationFailed,
    }
}

/// Returns the code for the last call, if that call failed.
fn fault_code(calls: &[CallRecord]) -> Option<ChatCode> {
    let CallResult::Failed { failure: Failure::Fault(fault) } = &calls.last()?.verdict else { return None };
    Some(match fault.kind {
        FaultKind::Timeout => ChatCode::Timeout,
        FaultKind::RateLimited => ChatCode::RateLimited,
        FaultKind::Auth => ChatCode::AuthenticationFailed,
        FaultKind::NoCredit => ChatCode::NoCredit,
        FaultKind::BadRequest | FaultKind::SchemaRefused | FaultKind::Unsupported => ChatCode::BadRequest,
        _ => ChatCode::Unavailable,
    })
}
