use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The error of a schema that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("the schema cannot be used: #{pointer}: {message}")]
pub struct SchemaError {
    /// RFC 6901 JSON Pointer into the schema.
    pub pointer: String,
    /// The reason, and what to do.
    pub message: String,
}
