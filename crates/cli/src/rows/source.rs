//! The input of an extraction, for the evidence of its values.

use formwork_evidence::{Evidence, Index};
use serde_json::Value;

/// The input text of an extraction and the schema of its answer, for the evidence.
#[derive(Debug, Clone)]
pub(crate) struct SourceText {
    pub(crate) text: String,
    pub(crate) schema: Value,
    /// Whether to print the evidence on standard error, if the output is the value alone.
    pub(crate) print: bool,
}

impl SourceText {
    /// Returns the place of each value of an answer in the input text.
    pub(crate) fn evidence(&self, value: &Value) -> Vec<Evidence> {
        Index::new(&self.text).evidence(value, Some(&self.schema))
    }
}
