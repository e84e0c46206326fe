use formwork_core::{AddedBound, Enforcement, LiftOp, Loss, Lowered, Refused, SchemaText};
use formwork_dialect::LintFinding;
use formwork_schema::SchemaError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A row of `formwork lower --jsonl`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct LowerInput {
    /// Given back as it is.
    #[serde(default)]
    pub id: Value,
    /// The JSON Schema.
    pub schema: Value,
    /// Documents that are valid under the schema, to be written as a provider of this dialect would write them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<Vec<Value>>,
}

/// The answer to a row of `formwork lower --jsonl`, and of `formwork lower --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LowerOutput {
    /// The row's `id`; the file's name where there are no rows.
    pub id: Value,
    /// Whether the schema can be lowered, or looked at with `--lint`.
    pub ok: bool,
    /// The schema that is sent to be enforced; absent if nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The keywords that the dialect cannot say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<Vec<Loss>>,
    /// How the provider is asked to enforce it, with `--explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
    /// The schema as it is written into the prompt, with `--explain`; absent where the provider shows the schema to the
    /// model itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown: Option<SchemaText>,
    /// How an answer is mapped back, with `--explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lift: Option<Vec<LiftOp>>,
    /// The bounds that were added, with `--tighten bounded` and `--explain`. A value that is full at one is not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Vec<AddedBound>>,
    /// For each of the row's `instances`, in their order, the answer that means it; `null` where the lowered schema allows
    /// none. Members that a closed object does not name are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowered: Option<Vec<Value>>,
    /// For each of the row's `instances`, the document that its answer is mapped back to; `null` where that is impossible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifted: Option<Vec<Value>>,
    /// The parts of the schema as it stands that the dialect would reject, ignore or misread, with `--lint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<LintFinding>>,
    /// Why there is none of this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<LowerError>,
}

/// The reason why a schema was not lowered.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum LowerError {
    /// The schema cannot be used.
    Schema {
        /// In words.
        message: String,
        /// For programs.
        reason: SchemaError,
    },
    /// The schema can be used, but not in this dialect.
    Refused {
        /// In words.
        message: String,
        /// RFC 6901 JSON Pointer into the schema.
        pointer: String,
    },
    /// The row is not what the command takes.
    Row {
        /// In words, with the line.
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
    pub(crate) fn failed(id: Value, error: LowerError) -> Self {
        Self { ok: false, error: Some(error), ..Self::empty(id) }
    }

    pub(crate) fn found(id: Value, findings: Vec<LintFinding>) -> Self {
        Self { findings: Some(findings), ..Self::empty(id) }
    }

    pub(crate) fn new(id: Value, lowered: Lowered, explained: bool) -> Self {
        let Lowered { schema, enforcement, shown, lift, bounds, losses, .. } = lowered;
        Self {
            schema,
            losses: Some(losses),
            enforcement: explained.then_some(enforcement),
            shown: shown.filter(|_| explained),
            lift: explained.then_some(lift),
            bounds: Some(bounds).filter(|bounds| explained && !bounds.is_empty()),
            ..Self::empty(id)
        }
    }

    const fn empty(id: Value) -> Self {
        Self {
            id,
            ok: true,
            schema: None,
            losses: None,
            enforcement: None,
            shown: None,
            lift: None,
            bounds: None,
            lowered: None,
            lifted: None,
            findings: None,
            error: None,
        }
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
