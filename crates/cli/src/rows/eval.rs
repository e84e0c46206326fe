use std::collections::BTreeMap;

use formwork_eval::Effort;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A row of the gold of `formwork eval`.
///
/// ```
/// use formwork_cli::rows::EvalGold;
///
/// let row: EvalGold = serde_json::from_str(r#"{"id": "a", "expected": {"total": 12.5}, "input": "Total: 12.50"}"#)?;
/// assert_eq!(row.expected.unwrap()["total"], 12.5);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct EvalGold {
    /// The identifier, by which answers are matched: any JSON value.
    pub id: Value,
    /// The hand-verified value.
    #[serde(default, deserialize_with = "present")]
    pub expected: Option<Value>,
    /// The JSON Schema of the value (default: that of `--schema`, if given).
    pub schema: Option<Value>,
    /// The input text.
    pub input: Option<String>,
    /// A file with the input text, relative to the file of the gold, in the place of `input`.
    pub file: Option<String>,
}

/// A row of the answers of `formwork eval`.
///
/// ```
/// use formwork_cli::rows::EvalAnswer;
///
/// let row: EvalAnswer = serde_json::from_str(r#"{"id": "a", "value": null}"#)?;
/// assert_eq!(row.value, Some(serde_json::Value::Null));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct EvalAnswer {
    /// The identifier of the gold row.
    pub id: Value,
    /// The answer; null if there is none.
    #[serde(default, deserialize_with = "present")]
    pub value: Option<Value>,
    /// The name of the configuration, if `formwork eval` asked for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// The models of its targets, for which alone a calibration on it holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The digest of the plan and the input, by which `--resume` recognizes an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The reason why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The calls, tokens, cost and time for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// The share of the score of each value that its history and tokens leave, by path, from 0 to 1; 1 for values that are not named. `--calibrate`
    /// counts them as `extract` does.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub factors: BTreeMap<String, f64>,
}

/// Reads a member that is present, even if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
