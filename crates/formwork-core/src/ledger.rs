use formwork_json::{Edit, JsonPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Enforcement, Fault, Finish, Lesson, Sampling, Time, Usage, Violation};

/// What something costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Tokens, of prompt and answer together.
    pub tokens: u64,
    /// Money, in millionths of a US dollar.
    pub micro_usd: u64,
}

impl Cost {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
        }
    }

    /// Whether it stays within a limit in both respects.
    pub const fn fits(self, limit: Self) -> bool {
        self.tokens <= limit.tokens && self.micro_usd <= limit.micro_usd
    }
}

/// What tokens cost, in millionths of a US dollar for a million tokens (so: in US dollars times one million per million).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// A million tokens of prompt.
    pub input: u64,
    /// A million tokens of answer.
    pub output: u64,
}

impl Price {
    /// What so much use costs, rounded up.
    pub fn of(self, usage: Usage) -> Cost {
        let micro = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let millionths = micro(usage.input_tokens, self.input) + micro(usage.output_tokens, self.output);
        Cost {
            tokens: usage.input_tokens.saturating_add(usage.output_tokens),
            micro_usd: u64::try_from(millionths.div_ceil(1_000_000)).unwrap_or(u64::MAX),
        }
    }
}

/// Why a call did not bring an acceptable answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "class", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Failure {
    /// The text could not be read as JSON.
    NotJson {
        /// What was wrong, as one violation of the rule `json`.
        violations: Vec<Violation>,
    },
    /// The document breaks the contract.
    Invalid {
        /// All that is wrong.
        violations: Vec<Violation>,
    },
    /// The answer ended at the limit of tokens.
    Truncated {
        /// The same as a violation.
        violations: Vec<Violation>,
    },
    /// The answer was stopped, because nothing valid could follow.
    Stopped {
        /// Why.
        violations: Vec<Violation>,
    },
    /// The model declined, or a filter removed the answer.
    Refused {
        /// What it said, capped.
        reason: String,
    },
    /// The call brought no answer.
    Fault(Fault),
}

impl Failure {
    /// What can be said about the content; empty for refusals and faults.
    pub fn violations(&self) -> &[Violation] {
        match self {
            Self::NotJson { violations }
            | Self::Invalid { violations }
            | Self::Truncated { violations }
            | Self::Stopped { violations } => violations,
            Self::Refused { .. } | Self::Fault(_) => &[],
        }
    }

    /// The class, as metrics name it.
    pub const fn class(&self) -> &'static str {
        match self {
            Self::NotJson { .. } => "not_json",
            Self::Invalid { .. } => "invalid",
            Self::Truncated { .. } => "truncated",
            Self::Stopped { .. } => "stopped",
            Self::Refused { .. } => "refused",
            Self::Fault(_) => "fault",
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Verdict {
    /// Its answer was accepted.
    Accepted,
    /// Its answer was not accepted, or there was none.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// The run was cancelled while it was under way.
    Cancelled,
}

impl Verdict {
    /// Why there was no acceptable answer; `None` if there was one, or the call was cancelled.
    pub const fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed { failure } => Some(failure),
            Self::Accepted | Self::Cancelled => None,
        }
    }
}

/// One call: what was asked, what came back, what it cost. Every call has its entry, on success and on failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Which attempt this call belongs to, from 1. Retries of a failed call and patches within belong to the same.
    pub attempt: u32,
    /// The target's name.
    pub target: String,
    /// The dialect that the schema was written in.
    pub dialect: String,
    /// How the schema was enforced.
    pub enforcement: Enforcement,
    /// The paths that were asked for; empty if the whole document was.
    pub patched: Vec<JsonPath>,
    /// How tokens were to be chosen: what was sent.
    pub sampling: Sampling,
    /// What the policy wanted to send and the target does not take.
    pub skipped: Vec<String>,
    /// When it began.
    pub started: Time,
    /// When it ended.
    pub ended: Time,
    /// The text that came back; empty if none did.
    pub text: String,
    /// Why the model stopped, if it answered.
    pub finish: Option<Finish>,
    /// What was changed to read the text.
    pub edits: Vec<Edit>,
    /// The values of the document that are incomplete, because the limit of tokens ended the answer and the document was
    /// closed without the model; see [`Source::Closed`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<JsonPath>,
    /// Whether the provider kept the model from writing on where the schema would have let it; see
    /// [`Completion::restrained`](crate::Completion::restrained).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restrained: bool,
    /// What it used up.
    pub usage: Usage,
    /// What that cost.
    pub cost: Cost,
    /// How it ended.
    pub verdict: Verdict,
    /// What it taught about the target, if it did: that it refuses the schema, or ignores it. Seldom, therefore boxed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lesson: Option<Box<Lesson>>,
}

/// Returns whether a provider completed an answer in one of these calls, whatever was wrong with it.
///
/// `late` says that the deadline ended the run. An answer that it cut off does not count then: whether its first token
/// came in time is chance.
pub fn is_answered(attempts: &[Attempt], late: bool) -> bool {
    let is_cut_off = |last: &Attempt| matches!(last.verdict.failure(), Some(Failure::Truncated { .. }));
    let whole = match attempts.split_last() {
        Some((last, before)) if late && is_cut_off(last) => before,
        _ => attempts,
    };
    whole.iter().any(|attempt| match &attempt.verdict {
        Verdict::Accepted => true,
        Verdict::Cancelled => false,
        Verdict::Failed { failure } => !matches!(failure, Failure::Fault(_)),
    })
}

/// Where an accepted value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// A model.
    Model {
        /// The target's name.
        target: String,
    },
    /// The fallback.
    Fallback,
}

/// How one part of the value came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// The model wrote it so.
    Native,
    /// The text had to be repaired to read it.
    Repaired,
    /// It was asked for again alone.
    Patched,
    /// It was asked for again alone, with a range that a rule computed.
    Narrowed,
    /// The limit of tokens ended the answer before this value was complete: the model was cut off in it, or wrote nothing
    /// of it. Of an object or a list it says that more members may have followed, and nothing about those that are there.
    /// It is accepted only where the policy says so.
    Closed,
    /// The fallback supplied it.
    Fallback,
}

/// How the value at one path, and all inside it that no longer path names, came to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// The part.
    pub path: JsonPath,
    /// How it came to be.
    pub source: Source,
    /// In which attempt, from 1.
    pub attempt: u32,
}

/// An accepted answer with its history: the response type.
///
/// `schemas/outcome.json` is its schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub origin: Origin,
    /// How its parts came to be; the first entry is the whole document.
    pub provenance: Vec<Provenance>,
    /// What soft checks found.
    pub warnings: Vec<Violation>,
    /// Every call, in order.
    pub attempts: Vec<Attempt>,
    /// What all calls together used up.
    pub usage: Usage,
    /// What that cost.
    pub cost: Cost,
}

impl<T> Outcome<T> {
    /// Returns the paths of the values that the limit of tokens left incomplete: those with [`Source::Closed`].
    pub fn closed(&self) -> impl Iterator<Item = &JsonPath> {
        self.provenance.iter().filter(|part| part.source == Source::Closed).map(|part| &part.path)
    }

    /// Returns whether the provider kept the model from writing on in an answer that was accepted; see
    /// [`Attempt::restrained`].
    pub fn is_restrained(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.restrained && attempt.verdict == Verdict::Accepted)
    }

    /// The same history with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Outcome<U> {
        let Self { value, origin, provenance, warnings, attempts, usage, cost } = self;
        Outcome { value: change(value), origin, provenance, warnings, attempts, usage, cost }
    }
}
