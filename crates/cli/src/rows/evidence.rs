use formwork_evidence::Evidence;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::RowError;

/// An input row of `formwork evidence --jsonl`.
///
/// ```
/// use formwork_cli::rows::EvidenceInput;
///
/// let row: EvidenceInput = serde_json::from_str(r#"{"id": 7, "input": "Ada, 36", "value": {"age": 36}}"#)?;
/// assert!(row.value["age"] == 36 && row.schema.is_none());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
pub struct EvidenceInput {
    /// The `id` of the result row: any JSON value, returned unchanged.
    #[serde(default)]
    pub id: Value,
    /// The input text.
    pub input: String,
    /// The answer.
    pub value: Value,
    /// The JSON Schema of the answer (default: that of `--schema`, if given).
    pub schema: Option<Value>,
}

/// A result row of `formwork evidence --jsonl` and `formwork evidence --json`.
///
/// ```json
/// {"id": 7, "evidence": [{"path": "$.age", "status": "exact", "spans": [{"start": 5, "end": 7}]}]}
/// ```
#[derive(Debug, Serialize, JsonSchema)]
pub struct EvidenceOutput {
    /// The `id` of the row; the name of the file without rows.
    pub id: Value,
    /// The evidence for each leaf of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Vec<Evidence>>,
    /// The error, if the row is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RowError>,
}
