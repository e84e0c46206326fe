use formwork_core::{AddedBound, Enforcement, LiftOp, LintFinding, Loss, Lowered, Refused, SchemaText};
use formwork_dialect::Reaction;
use formwork_schema::SchemaError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An input row of `formwork lower --jsonl`.
///
/// ```
/// use formwork_cli::rows::LowerInput;
///
/// let row: LowerInput = serde_json::from_str(r#"{"id": 1, "schema": {"type": "object"}}"#)?;
/// assert!(row.id == 1 && row.schema["type"] == "object");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
pub struct LowerInput {
    /// The `id` of the result row: any JSON value, returned unchanged.
    #[serde(default)]
    pub id: Value,
    /// The JSON Schema.
    pub schema: Value,
    /// Valid documents of the schema, to convert to the form of an answer in this dialect (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<Vec<Value>>,
}

/// A result row of `formwork lower --jsonl` and `formwork lower --json`.
///
/// ```json
/// {"id": 1, "ok": true, "schema": {"type": "object", "additionalProperties": false, …}, "losses": […]}
/// ```
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct LowerOutput {
    /// The `id` of the row; the name of the file without rows.
    pub id: Value,
    /// Whether the schema was lowered, or checked with `--lint`.
    pub ok: bool,
    /// The schema in the request, for enforcement; absent if none is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The keywords that the dialect cannot express.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<Vec<Loss>>,
    /// The enforcement by the provider, with `--explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
    /// The schema in the prompt, with `--explain`; absent if the provider puts the schema into the prompt itself.
    #[serde(rename = "shown", skip_serializing_if = "Option::is_none")]
    pub prompt_schema: Option<SchemaText>,
    /// The operations that lift an answer, with `--explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lift: Option<Vec<LiftOp>>,
    /// The added bounds, with `--tighten bounded` and `--explain`. A value that fills a bound counts as incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Vec<AddedBound>>,
    /// For each of the `instances`, in their order, the answer in this dialect; `null` if the lowered schema allows
    /// none. Members that a closed object does not name are omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowered: Option<Vec<Value>>,
    /// For each of the `instances`, the document that its answer is lifted to; `null` if that is impossible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifted: Option<Vec<Value>>,
    /// The parts of the original schema that the dialect would reject, ignore or misread, with `--lint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<LintFinding<Reaction>>>,
    /// The error, if the schema was not lowered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<LowerError>,
}

/// The reason why a schema was not lowered.
///
/// ```
/// use formwork_cli::rows::LowerError;
///
/// let error = LowerError::Refused { message: "no value is an object".into(), pointer: "/properties/a".into() };
/// assert_eq!(serde_json::to_value(error)?["class"], "refused");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum LowerError {
    /// The schema is invalid.
    Schema {
        /// The message for people.
        message: String,
        /// The reason for programs.
        reason: SchemaError,
    },
    /// The schema is valid, but cannot be lowered to this dialect.
    Refused {
        /// The message for people.
        message: String,
        /// RFC 6901 JSON Pointer into the schema.
        pointer: String,
    },
    /// The row is invalid.
    Row {
        /// The message for people, with the line.
        message: String,
    },
}

impl LowerError {
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Schema { message, .. } | Self::Refused { message, .. } | Self::Row { message } => message,
        }
    }
}

impl LowerOutput {
    /// Returns whether nothing was refused or found.
    pub(crate) fn is_ok(&self) -> bool {
        self.ok && self.findings.as_ref().is_none_or(Vec::is_empty)
    }

    pub(crate) fn failed(id: Value, error: LowerError) -> Self {
        Self { ok: false, error: Some(error), ..Self::empty(id) }
    }

    pub(crate) fn found(id: Value, findings: Vec<LintFinding<Reaction>>) -> Self {
        Self { findings: Some(findings), ..Self::empty(id) }
    }

    pub(crate) fn new(id: Value, lowered: Lowered, explained: bool) -> Self {
        let Lowered { schema, enforcement, prompt_schema, lift, bounds, losses, .. } = lowered;
        Self {
            schema,
            losses: Some(losses),
            enforcement: explained.then_some(enforcement),
            prompt_schema: prompt_schema.filter(|_| explained),
            lift: explained.then_some(lift),
            bounds: Some(bounds).filter(|bounds| explained && !bounds.is_empty()),
            ..Self::empty(id)
        }
    }

    fn empty(id: Value) -> Self {
        Self { id, ok: true, ..Self::default() }
    }
}

impl From<Refused> for LowerError {
    fn from(refused: Refused) -> Self {
        Self::Refused { message: refused.to_string(), pointer: refused.pointer }
    }
}

impl From<SchemaError> for LowerError {
    fn from(reason: SchemaError) -> Self {
        Self::Schema { message: reason.to_string(), reason }
    }
}
