//! The support of a value by its input.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The support of a value by the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// The value stands in the input as it is.
    Exact,
    /// The value stands in the input in another notation: case, white space, punctuation, numbers, dates, currencies.
    Normalised,
    /// The value is not in the input, but a rule of the schema derives it from other values.
    Computed,
    /// The value is not in the input, but a quote that the model gave for it is.
    Quoted,
    /// The value was not found. `null` and empty texts are never found.
    NotFound,
}
