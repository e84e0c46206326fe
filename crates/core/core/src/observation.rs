use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that a run learned about a target: whether an output mode works.
///
/// It is part of the [`CallRecord`](crate::CallRecord) that led to it. Evidence about later runs is counted separately, so that they start
/// in a mode that works; see [`Health`](crate::Health).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Observation {
    /// The index of the target in the plan.
    pub target: usize,
    /// The name of the target.
    pub name: String,
    /// The digest of the contract's schema; see [`Plan::schema_digest`](crate::Plan::schema_digest).
    pub schema: String,
    /// The index of the target's output mode, from 0.
    pub mode: usize,
    /// The dialect of that output mode.
    pub dialect: String,
    /// The kind of observation.
    pub kind: ObservationKind,
    /// The reason, cut at 300 bytes and without values of the answer.
    pub reason: String,
}

/// The kind of an [`Observation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ObservationKind {
    /// The target refused this schema in this dialect.
    Refused,
    /// The document breaks the schema in a way that enforcement makes impossible: the server accepted the schema and did not
    /// enforce it, although its capabilities promise that. The next call is made in a mode without enforcement.
    Ignored,
    /// The answer is prose, although the server promised to enforce the schema. The output mode stays.
    Prose,
    /// The answer with this schema ran away or reached the token limit: the next call sends the schema
    /// [bounded](crate::Tighten::Bounded).
    RanAway,
    /// The target completed a document of this schema that the bounds would have cut: the schema no longer needs bounds.
    Completed,
    /// It refused this parameter of sampling, with any schema: the next call leaves it out.
    RefusedSampling(SamplingParameter),
}

/// A parameter of sampling, which a call can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SamplingParameter {
    /// The temperature, which sets the randomness of tokens.
    Temperature,
    /// The probability of the tokens that are drawn from.
    TopP,
    /// The number that makes answers repeatable.
    Seed,
    /// The penalty of tokens that were written before.
    FrequencyPenalty,
}

impl SamplingParameter {
    /// Returns the name of the parameter in requests and in the configuration: `top_p`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Temperature => "temperature",
            Self::TopP => "top_p",
            Self::Seed => "seed",
            Self::FrequencyPenalty => "frequency_penalty",
        }
    }
}

/// Writes one line for logs: ``target `primary` ignored the schema (dialect `openai`): the answer is not JSON``.
impl fmt::Display for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, dialect, kind, reason, .. } = self;
        if let ObservationKind::RefusedSampling(parameter) = kind {
            let parameter = parameter.name();
            return write!(
                f,
                "target `{name}` refused `{parameter}`, which is left out from now on: {reason}"
            );
        }
        let verb = match kind {
            ObservationKind::Refused => "refused",
            ObservationKind::Ignored => "ignored",
            ObservationKind::Prose => "did not keep to",
            ObservationKind::RanAway => "ran away with",
            ObservationKind::Completed | ObservationKind::RefusedSampling(_) => "completed",
        };
        write!(f, "target `{name}` {verb} the schema (dialect `{dialect}`): {reason}")
    }
}
