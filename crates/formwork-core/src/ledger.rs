use formwork_json::{Edit, JsonPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(doc)]
use crate::Error;
use crate::{Enforcement, Fault, Finish, Observation, Sampling, Time, Usage, Violation};

/// The cost of something, or the most that it may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Tokens, of prompt and answer together. As a limit `u64::MAX` does not limit.
    pub tokens: u64,
    /// Money, in millionths of a US dollar. `None` where the price of a call is not known, and as a limit where money is not
    /// limited.
    pub micro_usd: Option<u64>,
}

/// Nothing, which is known.
impl Default for Cost {
    fn default() -> Self {
        Self { tokens: 0, micro_usd: Some(0) }
    }
}

impl Cost {
    /// Both together. What is added to something unknown is unknown.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        let micro_usd = match (self.micro_usd, other.micro_usd) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            _ => None,
        };
        Self { tokens: self.tokens.saturating_add(other.tokens), micro_usd }
    }

    /// Returns what is left of this limit after a cost; what is unlimited stays so, and of what is unknown nothing is left.
    #[must_use]
    pub const fn minus(self, spent: Self) -> Self {
        let micro_usd = match (self.micro_usd, spent.micro_usd) {
            (Some(limit), Some(spent)) => Some(limit.saturating_sub(spent)),
            (Some(_), None) => Some(0),
            (None, _) => None,
        };
        let tokens =
            if self.tokens == u64::MAX { u64::MAX } else { self.tokens.saturating_sub(spent.tokens) };
        Self { tokens, micro_usd }
    }

    /// Whether it stays within a limit in both respects. What is unknown stays within no limit of money.
    pub const fn fits(self, limit: Self) -> bool {
        let money = match (self.micro_usd, limit.micro_usd) {
            (_, None) => true,
            (Some(cost), Some(limit)) => cost <= limit,
            (None, Some(_)) => false,
        };
        self.tokens <= limit.tokens && money
    }
}

/// The price of a million tokens. In files it is US dollars (`0.15`), kept to the millionth.
///
/// ```
/// use formwork_core::Price;
///
/// let price: Price = serde_json::from_str(r#"{"input": 0.15, "output": 0.6}"#)?;
/// assert_eq!(price, Price { input: 150_000, output: 600_000 });
/// assert_eq!(serde_json::to_string(&price)?, r#"{"input":0.15,"output":0.6}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// A million tokens of prompt: in millionths of a US dollar here, in US dollars in files, from 0 to 1,000,000.
    #[serde(with = "dollars")]
    #[schemars(with = "f64", range(min = 0, max = 1_000_000))]
    pub input: u64,
    /// A million tokens of answer, in the same units.
    #[serde(with = "dollars")]
    #[schemars(with = "f64", range(min = 0, max = 1_000_000))]
    pub output: u64,
}

/// Millionths of a dollar, written as dollars.
mod dollars {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// The largest price that is taken for one: nobody charges a million dollars for a million tokens.
    const MAX: f64 = 1e6;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(super) fn serialize<S: Serializer>(micro: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(*micro as f64 / 1e6)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        if (0.0..=MAX).contains(&dollars) {
            return Ok((dollars * 1e6).round() as u64);
        }
        Err(D::Error::custom(format!(
            "expected US dollars for a million tokens from 0 to {MAX}, such as 0.15, found {dollars}"
        )))
    }
}

impl Price {
    /// Returns the cost of so much use, rounded up.
    pub fn of(self, usage: Usage) -> Cost {
        let micro = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let millionths = micro(usage.input_tokens, self.input) + micro(usage.output_tokens, self.output);
        Cost {
            micro_usd: Some(u64::try_from(millionths.div_ceil(1_000_000)).unwrap_or(u64::MAX)),
            ..usage.unpriced()
        }
    }
}

impl Usage {
    /// Returns the cost where nobody knows the price: the tokens alone.
    pub const fn unpriced(self) -> Cost {
        Cost { tokens: self.input_tokens.saturating_add(self.output_tokens), micro_usd: None }
    }
}

/// Why a call did not bring an acceptable answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "class", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Failure {
    /// The text could not be read as JSON.
    NotJson {
        /// The error, as one violation of the rule `json`.
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
        /// The model's words, capped.
        reason: String,
    },
    /// The call brought no answer.
    Fault(Fault),
}

impl Failure {
    /// Returns the violations that can be named of the content; none for refusals and faults.
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
#[non_exhaustive]
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
    /// The parameters that the policy wanted to send and the target does not take.
    pub skipped: Vec<String>,
    /// When it began.
    pub started: Time,
    /// When it ended.
    pub ended: Time,
    /// The text that came back; empty if none did.
    pub text: String,
    /// Why the model stopped, if it answered.
    pub finish: Option<Finish>,
    /// The changes that were made to read the text.
    pub edits: Vec<Edit>,
    /// The values of the document that are incomplete, because the limit of tokens ended the answer and the document was
    /// closed without the model; see [`Source::Closed`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<JsonPath>,
    /// Whether the provider kept the model from writing on where the schema would have let it; see
    /// [`Completion::restrained`](crate::Completion::restrained).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restrained: bool,
    /// The tokens that it used up.
    pub usage: Usage,
    /// The cost of those.
    pub cost: Cost,
    /// How it ended.
    pub verdict: Verdict,
    /// The observation about the target, if there was one: that it refuses the schema, or ignores it. Seldom, therefore boxed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<Box<Observation>>,
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
#[non_exhaustive]
pub struct Outcome<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub origin: Origin,
    /// How its parts came to be; the first entry is the whole document.
    pub provenance: Vec<Provenance>,
    /// The findings of soft checks.
    pub warnings: Vec<Violation>,
    /// Every call, in order.
    pub attempts: Vec<Attempt>,
    /// The tokens that all calls together used up.
    pub usage: Usage,
    /// The cost of those.
    pub cost: Cost,
}

impl<T> Outcome<T> {
    /// Returns every call that was made, as [`Error::attempts`] does.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// Returns the tokens that all calls together used up, as [`Error::usage`] does.
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns the cost of all calls and external steps together, as [`Error::cost`] does; money is `None` if the price of one
    /// is not known.
    pub const fn cost(&self) -> Cost {
        self.cost
    }

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
