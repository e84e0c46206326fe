use formwork_core::{Attempt, Error, ErrorKind, Origin, Outcome, Provenance, Usage, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A row of `formwork extract --jsonl`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ExtractInput {
    /// Given back as it is.
    #[serde(default)]
    pub id: Value,
    /// The text.
    pub input: String,
    /// The JSON Schema that the answer satisfies; without it that of `--schema`.
    #[serde(default)]
    pub schema: Option<Value>,
}

/// The answer to a row of `formwork extract --jsonl`, and of `formwork extract --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExtractOutput {
    /// The row's `id`; null where there are no rows.
    pub id: Value,
    /// Whether there is a valid answer.
    pub ok: bool,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// How its parts came to be; the first entry is the whole document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Vec<Provenance>>,
    /// The findings of soft checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<Violation>>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ExtractError>,
    /// Every call, in order.
    pub attempts: Vec<Attempt>,
    /// The tokens that all calls together used up.
    pub usage: Usage,
}

/// The reason why there is no valid answer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExtractError {
    /// The class.
    pub class: ErrorKind,
    /// In words.
    pub message: String,
    /// The answer that came nearest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<Value>,
}

impl ExtractOutput {
    pub(crate) fn new(id: Value, result: &Result<Outcome<Value>, Error>) -> Self {
        match result.clone() {
            Ok(Outcome { value, origin, provenance, warnings, attempts, usage, .. }) => Self {
                id,
                ok: true,
                value: Some(value),
                origin: Some(origin),
                provenance: Some(provenance),
                warnings: Some(warnings),
                error: None,
                attempts,
                usage,
            },
            Err(error) => Self {
                id,
                ok: false,
                value: None,
                origin: None,
                provenance: None,
                warnings: None,
                attempts: error.attempts().to_vec(),
                usage: error.usage(),
                error: Some(ExtractError {
                    class: error.kind(),
                    // A row that cannot be used says what is wrong with it, and nothing of the configuration.
                    message: match error.kind() {
                        ErrorKind::Config => error.message().to_owned(),
                        _ => error.to_string(),
                    },
                    best: error.best().map(|best| best.value.clone()),
                }),
            },
        }
    }
}
