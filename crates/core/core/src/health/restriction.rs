use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Time;

/// An observation that is in force: what it restricts, since when, on which evidence, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Restriction {
    /// The target: its [identity](crate::Target::with_identity), else its name.
    pub target: String,
    /// The name of the target in the plan of the last evidence.
    pub name: String,
    /// The model of the last answer; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The digest of the schema; absent if the observation is about all schemas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// The effect.
    pub kind: RestrictionKind,
    /// The number of calls or requests that the observation is based on.
    pub count: u32,
    /// The time of the first evidence.
    pub since: Time,
    /// The time of the last evidence.
    pub last: Time,
    /// The time at which it ends, if there is no further evidence.
    pub until: Time,
    /// The last evidence, in words.
    pub evidence: String,
}

/// The effect of a [`Restriction`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RestrictionKind {
    /// The schema is sent in an output mode without enforcement.
    Unenforced,
    /// The schema is sent with bounds on lengths.
    Bounded,
    /// The schema is not sent in this dialect.
    Refused(String),
    /// This sampling parameter is not sent.
    WithoutSampling(String),
    /// The target is skipped if there is another one.
    OutOfService,
}

/// The number of characters of a schema's digest that identify it in a message.
const DIGEST: usize = 8;

/// Writes one line without times: ``primary: the schema 9f86d081 is sent without enforcement, because of 2 requests: the answer
/// is not JSON``.
impl fmt::Display for Restriction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, model, schema, kind, count, evidence, .. } = self;
        match model {
            Some(model) => write!(f, "{name} ({model}): ")?,
            None => write!(f, "{name}: ")?,
        }
        match schema {
            Some(digest) => {
                write!(f, "the schema {} is ", digest.get(..DIGEST).unwrap_or(digest))?;
            }
            None if *kind == RestrictionKind::Unenforced => f.write_str("every schema is ")?,
            None => {}
        }
        let plural = if *count == 1 { "" } else { "s" };
        let unit = match kind {
            RestrictionKind::Unenforced => {
                f.write_str("sent in an output mode without enforcement")?;
                "request"
            }
            RestrictionKind::Bounded => {
                f.write_str("sent with bounds on lengths")?;
                "answer"
            }
            RestrictionKind::Refused(dialect) => {
                write!(f, "not sent in the dialect `{dialect}`")?;
                "call"
            }
            RestrictionKind::WithoutSampling(parameter) => {
                write!(f, "`{parameter}` is not sent")?;
                "call"
            }
            RestrictionKind::OutOfService => {
                f.write_str("it is skipped if there is another target")?;
                "call"
            }
        };
        write!(f, ", because of {count} {unit}{plural}: {evidence}")
    }
}
