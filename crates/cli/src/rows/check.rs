use formwork_core::{Violation, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::RowError;

/// An input row of `formwork check --jsonl`.
///
/// ```
/// use formwork_cli::rows::CheckInput;
///
/// let row: CheckInput = serde_json::from_str(r#"{"id": 1, "data": {"age": 34}}"#)?;
/// assert!(row.id == 1 && row.data["age"] == 34 && row.schema.is_none());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
pub struct CheckInput {
    /// The `id` of the result row: any JSON value, returned unchanged.
    #[serde(default)]
    pub id: Value,
    /// The JSON Schema (default: that of `--schema`).
    pub schema: Option<Value>,
    /// The document.
    pub data: Value,
}

/// A result row of `formwork check --jsonl` and `formwork check --json`.
///
/// ```
/// use formwork_cli::rows::CheckOutput;
/// use serde_json::json;
///
/// let (violations, warnings) = (Vec::new(), Vec::new());
/// let row = CheckOutput { id: 1.into(), valid: Some(true), violations, total: 0, not_shown: 0, warnings, error: None };
/// assert_eq!(serde_json::to_value(row)?, json!({"id": 1, "valid": true, "violations": [], "total": 0}));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct CheckOutput {
    /// The `id` of the row; the name of the file without rows.
    pub id: Value,
    /// Whether the document satisfies the schema; absent if the check failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid: Option<bool>,
    /// The violations: the first 64, or all of them with `--all`.
    pub violations: Vec<Violation>,
    /// The number of all violations.
    pub total: usize,
    /// The number of violations that are not in `violations`; absent if 0.
    #[serde(default, skip_serializing_if = "is_none")]
    pub not_shown: usize,
    /// The names that are repeated, the values that were converted and the numbers that were rounded; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The reason why the check failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RowError>,
}

impl CheckOutput {
    /// Returns whether the document is valid.
    pub(crate) fn is_ok(&self) -> bool {
        self.valid == Some(true)
    }
}

/// Returns whether a count is omitted from a row.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
const fn is_none(count: &usize) -> bool {
    *count == 0
}
