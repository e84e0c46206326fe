use formwork_core::Violation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::RowError;

/// A row of `formwork check --jsonl`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct CheckInput {
    /// Given back as it is.
    #[serde(default)]
    pub id: Value,
    /// The JSON Schema; without it that of `--schema`.
    #[serde(default)]
    pub schema: Option<Value>,
    /// The document.
    pub data: Value,
}

/// The answer to a row of `formwork check --jsonl`, and to each document of `formwork check --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckOutput {
    /// The row's `id`; the file's name where there are no rows.
    pub id: Value,
    /// Whether the document satisfies the schema; absent if that could not be found out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid: Option<bool>,
    /// The violations: the first 64, or all of them with `--all`.
    pub violations: Vec<Violation>,
    /// How many violations there are.
    pub total: usize,
    /// How many of them are not in `violations`; absent if all are.
    #[serde(default, skip_serializing_if = "is_none")]
    pub not_shown: usize,
    /// Why it could not be found out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RowError>,
}

/// Whether a count is left out of a row.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
const fn is_none(count: &usize) -> bool {
    *count == 0
}
