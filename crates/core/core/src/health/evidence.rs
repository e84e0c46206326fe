use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Fault, SamplingParameter, Time};

/// The evidence of one call about its target. A [`Run`](crate::Run) derives it from the results of its calls, and
/// [`Health`](crate::Health) counts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
#[must_use]
pub struct Evidence {
    /// The target: its [identity](crate::Target::with_identity), else its name.
    pub target: String,
    /// The name of the target in its plan.
    pub name: String,
    /// Whether the target has an identity, so that the evidence can be stored for other processes.
    #[serde(skip)]
    pub has_identity: bool,
    /// The model, in the provider's notation; empty if it is unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The digest of the contract's schema.
    pub schema: String,
    /// A number for the input of the run: equal inputs have equal numbers.
    pub request: u64,
    /// The time at which the call ended.
    pub at: Time,
    /// Whether the call asked the server to enforce the schema.
    pub enforced: bool,
    /// The result that counts.
    pub shown: Shown,
}

impl Evidence {
    /// Creates the evidence of a call for the request 0, which asked the server to enforce the schema.
    pub fn new(target: impl Into<String>, schema: impl Into<String>, at: Time, shown: Shown) -> Self {
        let target = target.into();
        Self {
            name: target.clone(),
            target,
            has_identity: false,
            model: String::new(),
            schema: schema.into(),
            request: 0,
            at,
            enforced: true,
            shown,
        }
    }

    crate::setters! {
        /// Sets the number for the input of the run (default: 0).
        pub const fn with_request(request: u64);
        /// Marks the call as one in an output mode without schema enforcement.
        pub const fn without_enforcement(enforced = false);
    }
}

/// The result of a call, as far as it is evidence about the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Shown {
    /// The server answered. The answer is no evidence about the schema.
    Answered,
    /// The headers of an answer say that nothing is left of a rate limit.
    LimitReached {
        /// The time until the server takes another call, in milliseconds.
        pause_ms: u64,
    },
    /// The document is complete, and enforcement of the schema allows it.
    Complete {
        /// The size of the document.
        size: Size,
        /// Whether the schema had bounds that [`Health`](crate::Health) asked for.
        bounded: bool,
    },
    /// Enforcement of the schema makes this document impossible.
    Impossible {
        /// The broken keyword with its path.
        reason: String,
    },
    /// An answer is prose or a refusal, and the run may still end otherwise.
    InProse {
        /// The proof, without values of the answer.
        reason: String,
    },
    /// The run ended with an answer of this target that is prose, or a document in prose.
    Prose {
        /// The proof, without values of the answer.
        reason: String,
    },
    /// The run ended with a refusal of this target.
    Declined,
    /// The answer reached the token limit, or was stopped as a runaway.
    RanAway {
        /// The limit.
        reason: String,
        /// The size of the longest complete document so far.
        #[serde(default)]
        longest: Size,
    },
    /// A value is longer than a bound that [`Health`](crate::Health) asked for: the server does not enforce the bound.
    BeyondBound,
    /// The server rejected the schema in this dialect.
    SchemaRefused {
        /// The dialect.
        dialect: String,
        /// The message of the server.
        reason: String,
    },
    /// The server rejected a sampling parameter.
    SamplingRefused {
        /// The parameter.
        parameter: SamplingParameter,
        /// The message of the server.
        reason: String,
    },
    /// The call failed.
    Failed {
        /// The fault.
        fault: Fault,
    },
    /// A run ended because it could not reach the target.
    GaveUp,
}

/// The lengths of the longest values in documents, which bounds on lengths must exceed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// The number of items of the longest list, or of members of the largest object.
    pub items: u64,
    /// The number of characters of the longest string.
    pub text: u64,
    /// The number of characters of the longest member name.
    pub name: u64,
}

impl Size {
    /// Returns the size of a document.
    ///
    /// ```
    /// use formwork_core::Size;
    ///
    /// let size = Size::of(&serde_json::json!({"list": ["a", "bcd"]}));
    /// assert_eq!((size.items, size.text, size.name), (2, 3, 4));
    /// ```
    pub fn of(value: &Value) -> Self {
        let length = |text: &str| text.chars().count() as u64;
        let inner = |items: usize| Self { items: items as u64, ..Self::default() };
        match value {
            Value::String(text) => Self { text: length(text), ..Self::default() },
            Value::Array(items) => {
                items.iter().map(Self::of).fold(inner(items.len()), |all, one| all.or(one))
            }
            Value::Object(members) => members.iter().fold(inner(members.len()), |all, (name, member)| {
                all.or(Self::of(member)).or(Self { name: length(name), ..Self::default() })
            }),
            _ => Self::default(),
        }
    }

    /// Returns the larger of each length.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            items: self.items.max(other.items),
            text: self.text.max(other.text),
            name: self.name.max(other.name),
        }
    }

    /// Returns a quarter more of each length that is known, so that a slightly longer document does not fill the bounds.
    #[must_use]
    pub fn exceeded(self) -> Self {
        let more = |length: u64| if length == 0 { 0 } else { length.saturating_add(length / 4 + 1) };
        Self { items: more(self.items), text: more(self.text), name: more(self.name) }
    }
}
