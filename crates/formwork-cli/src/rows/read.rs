use formwork_json::Edit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::RowError;

/// A row of `formwork read --jsonl`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ReadInput {
    /// Given back as it is.
    #[serde(default)]
    pub id: Value,
    /// The text.
    pub input: String,
    /// The JSON Schema that the document should satisfy; without it that of `--schema`, if there is one.
    #[serde(default)]
    pub schema: Option<Value>,
}

/// The answer to a row of `formwork read --jsonl`, and of `formwork read --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReadOutput {
    /// The row's `id`; the file's name where there are no rows.
    pub id: Value,
    /// Whether a document was found, and satisfies the schema if there is one.
    pub ok: bool,
    /// The document; the nearest one if none satisfies the schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The changes that were made to read it, and what was left out: the other documents are edits of kind `other_document`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edits: Option<Vec<Edit>>,
    /// The other documents of the text, in its order; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Value>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RowError>,
}
