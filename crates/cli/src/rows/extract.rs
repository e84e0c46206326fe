use formwork_core::{
    CallRecord, Confidence, Cost, Error, ErrorKind, JsonPath, Origin, Outcome, Provenance, Trust, Usage,
    Warning,
};
use formwork_evidence::{Disputed, Evidence};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An input row of `formwork extract --jsonl`.
///
/// ```
/// use formwork_cli::rows::ExtractInput;
///
/// let row: ExtractInput = serde_json::from_str(r#"{"id": "a", "input": "Maria, 34"}"#)?;
/// assert!(row.id == "a" && row.input == "Maria, 34" && row.schema.is_none());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ExtractInput {
    /// The `id` of the result row: any JSON value, returned unchanged.
    #[serde(default)]
    pub id: Value,
    /// The input text.
    pub input: String,
    /// The JSON Schema of the answer (default: that of `--schema`).
    pub schema: Option<Value>,
}

/// A result row of `formwork extract --jsonl` and `formwork extract --json`.
///
/// ```json
/// {"id": "a", "ok": true, "value": {"age": 34}, "origin": {"from": "model", "target": "primary"}, "calls": […], "usage": {…}, "cost": {…}}
/// ```
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ExtractOutput {
    /// The `id` of the row; null without rows.
    pub id: Value,
    /// Whether a value was accepted.
    pub ok: bool,
    /// The accepted value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The origin of the value: a model or the fallback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The source of each part of the value; the first entry is the whole document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Vec<Provenance>>,
    /// The history of the leaves of the value: how many the model wrote freely, and which it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// The places of the values in the input, with `--evidence`, and with `--json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Vec<Evidence>>,
    /// The confidence in each value, with `--ensemble`, `--flag-below` and `--calibration`: a score that orders values, and with a
    /// calibration a probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Vec<Confidence>>,
    /// The values on which the answers of `--ensemble` differ. Missing if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disputed: Vec<Disputed>,
    /// Warnings for readers of the value: whatever was cut, repaired, dropped, chosen, rounded, coerced or restrained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<Warning>>,
    /// The paths of the members that are null, because the text does not state them; with an error, of the required members that it
    /// does not state. Missing if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_stated: Vec<JsonPath>,
    /// The error, if no value was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ExtractError>,
    /// Every call, in order.
    pub calls: Vec<CallRecord>,
    /// The tokens of all calls together.
    pub usage: Usage,
    /// The cost of all calls together.
    pub cost: Cost,
}

/// The reason why no value was accepted.
///
/// ```
/// use formwork_cli::rows::ExtractError;
/// use formwork_core::ErrorKind;
///
/// let message = "no valid answer in 3 calls".to_owned();
/// let error = ExtractError { class: ErrorKind::Rejected, message, best: None };
/// assert_eq!(serde_json::to_value(error)?["class"], "rejected");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExtractError {
    /// The kind of error.
    pub class: ErrorKind,
    /// The message for people.
    pub message: String,
    /// The rejected answer with the fewest violations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<Value>,
}

impl ExtractOutput {
    /// Adds the evidence for the value.
    pub(crate) fn with_evidence(self, result: &Result<Outcome<Value>, Error>) -> Self {
        Self { evidence: result.as_ref().ok().map(|outcome| outcome.evidence().to_vec()), ..self }
    }

    pub(crate) fn new(id: Value, result: &Result<Outcome<Value>, Error>) -> Self {
        match result.clone() {
            Ok(outcome) => Self {
                id,
                ok: true,
                value: Some(outcome.value),
                origin: Some(outcome.origin),
                provenance: Some(outcome.provenance),
                trust: Some(outcome.trust),
                warnings: Some(outcome.warnings),
                not_stated: outcome.not_stated,
                calls: outcome.calls,
                usage: outcome.usage,
                cost: outcome.cost,
                ..Self::default()
            },
            Err(error) => Self {
                id,
                not_stated: error.not_stated().to_vec(),
                calls: error.calls().to_vec(),
                usage: error.usage(),
                cost: error.cost(),
                error: Some(ExtractError {
                    class: error.kind(),
                    // The error of a row must not mention the configuration.
                    message: match error.kind() {
                        ErrorKind::Config => error.message().to_owned(),
                        _ => error.to_string(),
                    },
                    best: error.best().map(|best| best.value.clone()),
                }),
                ..Self::default()
            },
        }
    }
}
