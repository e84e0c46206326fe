//! Messages between the side that submits rows and the workers.

#[cfg(any(test, feature = "restate"))]
use formwork_core::Outcome;
use formwork_core::{CallRecord, Run, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::row::{Accepted, RunError};

/// The version of these messages. A worker understands those of its own version and of older ones.
pub(super) const PROTOCOL: u32 = 3;

/// The name of the service that takes rows to their results.
pub(super) const ROWS: &str = "FormworkRow";

/// The name of the keyed service that keeps contracts, by their digests.
pub(super) const CONTRACTS: &str = "FormworkContract";

/// The name of the keyed service that gives the calls to a target their times.
#[cfg(any(test, feature = "restate"))]
pub(super) const PACE: &str = "FormworkPace";

/// The key of the state that holds a contract.
#[cfg(feature = "restate")]
pub(super) const CONTRACT: &str = "contract";

/// A row for a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RowRequest {
    pub(super) protocol: u32,
    /// The digest of the contract.
    pub(super) contract: String,
    /// The digest of the providers and policies that the row is for; absent for those of any worker of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
    /// The text to extract from.
    pub(super) input: String,
    /// The run to continue, if another engine began one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<Box<Run>>,
    /// The time at which that run was stored.
    #[serde(default)]
    pub(super) stored: Time,
}

/// The calls of a row that may have been made by executions that died, and are not in its result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lost {
    #[serde(default, rename = "uncertain")]
    pub(super) calls: u32,
    /// Their maximum cost in millionths of a US dollar, as far as prices are known.
    #[serde(default, rename = "uncertain_micro_usd")]
    pub(super) micro_usd: u64,
}

/// The result of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RowReply {
    /// Whether the worker could not continue the run of the request, and began a new one.
    #[serde(default)]
    pub(super) restarted: bool,
    #[serde(flatten)]
    pub(super) lost: Lost,
    pub(super) end: RunEnd,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RunEnd {
    Accepted(Box<Accepted>),
    Failed(RunError),
}

impl RunEnd {
    /// Returns every call of the run, in order.
    pub(super) fn calls(&self) -> &[CallRecord] {
        match self {
            Self::Accepted(accepted) => &accepted.outcome.calls,
            Self::Failed(error) => &error.calls,
        }
    }

    pub(super) fn into_result(self) -> Result<Accepted, RunError> {
        match self {
            Self::Accepted(accepted) => Ok(*accepted),
            Self::Failed(error) => Err(error),
        }
    }
}

#[cfg(any(test, feature = "restate"))]
impl From<Result<Outcome<Value>, formwork_core::Error>> for RunEnd {
    fn from(result: Result<Outcome<Value>, formwork_core::Error>) -> Self {
        match result {
            Ok(outcome) => Self::Accepted(Box::new(outcome.into())),
            Err(error) => Self::Failed(error.into()),
        }
    }
}

/// The version of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) protocol: u32,
    pub(super) version: String,
    /// The digest of the worker's providers and policies.
    pub(super) target: Option<String>,
}

#[cfg(any(test, feature = "restate"))]
impl Hello {
    /// Returns the version message of this version, for a worker with these providers.
    pub(super) fn own(target: Option<&str>) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { protocol: PROTOCOL, version, target: target.map(str::to_owned) }
    }
}

/// Returns the digest of a contract, by which workers find it. The order of members counts, because models see it.
pub(super) fn digest(contract: &Value) -> String {
    format!("{:x}", Sha256::digest(contract.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_digest_is_of_the_whole_contract_and_of_its_order() {
        let contracts =
            [json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}), json!({"a": 1, "b": 3}), json!({"a": 1})];
        let digests: std::collections::HashSet<_> = contracts.iter().map(digest).collect();
        assert_eq!(digests.len(), contracts.len());
        assert!(digests.iter().all(|digest| digest.len() == 64));
    }
}
