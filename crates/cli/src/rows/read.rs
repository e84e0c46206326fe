use formwork_core::Warning;
use formwork_json::Edit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::RowError;

/// An input row of `formwork read --jsonl`.
///
/// ```
/// use formwork_cli::rows::ReadInput;
///
/// let row: ReadInput = serde_json::from_str(r#"{"id": 7, "input": "Sure: {'age': 34,}"}"#)?;
/// assert!(row.id == 7 && row.schema.is_none());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ReadInput {
    /// The `id` of the result row: any JSON value, returned unchanged.
    #[serde(default)]
    pub id: Value,
    /// The text; `text` is another name of the member.
    #[serde(alias = "text")]
    pub input: String,
    /// The JSON Schema of the document (default: that of `--schema`, if given).
    pub schema: Option<Value>,
}

/// A result row of `formwork read --jsonl` and `formwork read --json`.
///
/// ```
/// use formwork_cli::rows::ReadOutput;
/// use serde_json::json;
///
/// let value = Some(json!({"age": 34}));
/// let row = ReadOutput { id: 7.into(), ok: true, value, edits: None, others: Vec::new(), warnings: Vec::new(), error: None };
/// assert_eq!(serde_json::to_value(row)?, json!({"id": 7, "ok": true, "value": {"age": 34}}));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ReadOutput {
    /// The `id` of the row; the name of the file without rows.
    pub id: Value,
    /// Whether a document was found, and satisfies the schema if there is one.
    pub ok: bool,
    /// The document; the nearest one if none satisfies the schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The edits that reading required. Each other document of the text is an edit of kind `other_document`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edits: Option<Vec<Edit>>,
    /// The other documents in the order of the text; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Value>,
    /// The numbers of the document that were rounded, and other documents that were left out; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The error, if no document was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RowError>,
}

/// A result row of `formwork read --progress --jsonl`: what each byte of a growing text decides about its first document.
///
/// ```
/// use formwork_cli::rows::ReadProgress;
/// use serde_json::json;
///
/// let row = ReadProgress { id: 7.into(), complete_at: None, impossible_at: Some(8), valid_prefix: 0, error: None };
/// let expected = json!({"id": 7, "complete_at": null, "impossible_at": 8, "valid_prefix": 0});
/// assert_eq!(serde_json::to_value(row)?, expected);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReadProgress {
    /// The `id` of the row.
    pub id: Value,
    /// The index of the byte that completes the document: its last byte, or the byte after a number; for a number at the end of the
    /// text, the length of the text. `null` if the document is not complete or not valid.
    pub complete_at: Option<usize>,
    /// The index of the first byte after which the document cannot become valid, whatever follows. `null` if there is none.
    pub impossible_at: Option<usize>,
    /// The number of bytes up to the end of the last value that ended while the document could still become valid; 0 before the
    /// first one.
    pub valid_prefix: usize,
    /// The error of a row that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RowError>,
}
