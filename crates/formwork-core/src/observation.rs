use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An observation that a run made of a target: whether a way of asking it works.
///
/// It stands in the [`Attempt`](crate::Attempt) that taught it. Whoever keeps observations gives the next run the modes to
/// start from; see [`Run::with_start_modes`](crate::Run::with_start_modes).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Observation {
    /// Which of the plan's targets.
    pub target: usize,
    /// The name of that target.
    pub name: String,
    /// The digest of the contract's schema; see [`Plan::schema_digest`](crate::Plan::schema_digest).
    pub schema: String,
    /// On which of the target's modes it was asked, from 0.
    pub mode: usize,
    /// The dialect of that output mode.
    pub dialect: String,
    /// The observation.
    pub kind: ObservationKind,
    /// How that showed, capped and without values of the answer.
    pub reason: String,
}

/// The outcome of asking a target in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ObservationKind {
    /// It refused this schema in this dialect.
    Refused,
    /// It took the schema and did not keep to it, though that had been promised. That is about the target: no other
    /// schema would fare better.
    Ignored,
    /// It ran away, or into the limit of tokens, with this schema: the next call sends it
    /// [bounded](crate::Tighten::Bounded).
    RanAway,
    /// It completed a document of this schema that the bounds would have cut: the schema need not be bounded any more.
    Completed,
    /// It refused this parameter of sampling, with any schema: the next call leaves it out.
    RefusedSampling(SamplingParameter),
}

/// A parameter of sampling, which a call can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SamplingParameter {
    /// How freely tokens are drawn.
    Temperature,
    /// The probability of the tokens that are drawn from.
    TopP,
    /// The number that makes answers repeatable.
    Seed,
}

impl SamplingParameter {
    /// Returns the name of the parameter in requests and in the configuration: `top_p`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Temperature => "temperature",
            Self::TopP => "top_p",
            Self::Seed => "seed",
        }
    }
}

/// One line for logs: ``target `primary` ignored the schema (dialect `openai`): the answer is not JSON``.
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
            ObservationKind::RanAway => "ran away with",
            ObservationKind::Completed | ObservationKind::RefusedSampling(_) => "completed",
        };
        write!(f, "target `{name}` {verb} the schema (dialect `{dialect}`): {reason}")
    }
}
