//! Rows for other programs: what `--jsonl` takes and gives, and the output of `--json`.
//!
//! `schemas/` holds the JSON Schemas of all of them.

use formwork_core::{
    AddedBound, Attempt, Enforcement, Error, ErrorKind, LiftOp, Loss, Lowered, Origin, Outcome, Provenance,
    Refused, Shown, Usage, Violation,
};
use formwork_dialect::Finding;
use formwork_extract::Backend;
use formwork_json::{Edit, ReadError};
use formwork_oracle::wallet::Band;
use formwork_oracle::{PromptId, ScoreSource, Scored};
use formwork_review::GenerationResult;
use formwork_schema::SchemaError;
use formwork_skill::{Skill, SkillError, SkillOutcome, TemplateType};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A row of `formwork check --jsonl`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct CheckInput {
    /// Given back as it is.
    #[serde(default)]
    pub id: Value,
    /// The JSON Schema; without it that of `--schema`.
    #[serde(default)]
    pub schema: Option<Value>,
    /// The document.
    pub data: Value,
}

/// The answer to a row of `formwork check --jsonl`, and to each document of `formwork check --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CheckOutput {
    /// The row's `id`; the file's name where there are no rows.
    pub id: Value,
    /// Whether the document satisfies the schema; absent if that could not be found out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid: Option<bool>,
    /// The violations: the first 64, or all of them with `--all`.
    pub violations: Vec<Violation>,
    /// How many violations there are.
    pub total: usize,
    /// How many of them are not in `violations`; absent if all are.
    #[serde(default, skip_serializing_if = "is_none")]
    pub not_shown: usize,
    /// Why it could not be found out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RowError>,
}

/// Whether a count is left out of a row.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
const fn is_none(count: &usize) -> bool {
    *count == 0
}

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

/// Why there is no valid answer.
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
                    message: error.to_string(),
                    best: error.best().map(|best| best.value.clone()),
                }),
            },
        }
    }
}

/// A line of `formwork models --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ModelOutput {
    /// The name that `--model` takes.
    pub name: String,
    /// The model's kind and what it is good for.
    pub description: String,
    /// Its licence (SPDX).
    pub licence: String,
    /// The size of its file.
    pub bytes: u64,
    /// The file, if it is here.
    pub path: Option<String>,
}

/// A line of `formwork models --provider NAME --json`, and what `formwork models show` prints with `--provider`.
pub use formwork::ollama::{Model as ServerModelOutput, ModelDetails as ServerModelDetails};

/// A line of `formwork doctor --json`: one provider.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DoctorOutput {
    /// Its name in the configuration.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// The model that is asked; empty if the provider could not be made.
    pub model: String,
    /// Whether it works.
    pub state: DoctorState,
    /// How answers are enforced in the dialect that it is asked in first; absent if it could not be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
    /// The dialects that it is asked in, the strictest first.
    pub dialects: Vec<String>,
    /// The tokens that prompt and answer may have together, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
    /// Whether it was seen to keep to a schema; absent if that was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforced: Option<bool>,
    /// A note for people; empty if there is nothing.
    pub note: String,
    /// The error; empty if there is none.
    pub error: String,
    /// The fix; empty if nothing is wrong, or nothing is known to help.
    pub fix: String,
}

/// How a provider is, the better first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DoctorState {
    /// It does what it promises.
    Works,
    /// It cannot be reached, or does not do what it promises.
    Unavailable,
    /// The configuration is wrong.
    Misconfigured,
}

impl DoctorOutput {
    pub(crate) fn new(name: &str, kind: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            model: String::new(),
            state: DoctorState::Works,
            enforcement: None,
            dialects: Vec::new(),
            context_tokens: None,
            enforced: None,
            note: String::new(),
            error: String::new(),
            fix: String::new(),
        }
    }

    pub(crate) fn with_backend(mut self, backend: &Backend) -> Self {
        let modes = backend.rungs();
        self.enforcement = modes.first().map(|mode| mode.enforcement());
        self.dialects = modes.iter().map(|mode| mode.name().to_owned()).collect();
        self.context_tokens = backend.capabilities().context_tokens;
        self
    }

    pub(crate) fn enforced(mut self, enforced: bool) -> Self {
        self.enforced = Some(enforced);
        self
    }

    pub(crate) fn failed(mut self, state: DoctorState, error: &str, fix: &str) -> Self {
        (self.state, self.error, self.fix) = (state, error.to_owned(), fix.to_owned());
        self
    }
}

/// Why a row has no answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum RowError {
    /// The text cannot be read.
    Unreadable {
        /// In words.
        message: String,
        /// For programs.
        reason: ReadError,
    },
    /// The document does not satisfy the schema.
    Invalid {
        /// In words.
        message: String,
        /// All that is wrong with it.
        violations: Vec<Violation>,
    },
    /// The schema cannot be used.
    Schema {
        /// In words.
        message: String,
        /// For programs.
        reason: SchemaError,
    },
    /// The row is not what the command takes.
    Row {
        /// In words, with the line.
        message: String,
    },
}

impl From<ReadError> for RowError {
    fn from(reason: ReadError) -> Self {
        Self::Unreadable { message: reason.to_string(), reason }
    }
}

impl From<SchemaError> for RowError {
    fn from(reason: SchemaError) -> Self {
        Self::Schema { message: reason.to_string(), reason }
    }
}

impl From<Vec<Violation>> for RowError {
    fn from(violations: Vec<Violation>) -> Self {
        let first = violations.first().map(ToString::to_string).unwrap_or_default();
        let message = match violations.len() {
            0 | 1 => first,
            n => format!("{first} (and {} more)", n - 1),
        };
        Self::Invalid { message, violations }
    }
}

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
    pub shown: Option<Shown>,
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
    pub findings: Option<Vec<Finding>>,
    /// Why there is none of this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<LowerError>,
}

/// Why a schema was not lowered.
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

    pub(crate) fn found(id: Value, findings: Vec<Finding>) -> Self {
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

/// A row of `formwork oracle batch`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OracleOutput {
    /// The wallet's file, or its file and line.
    pub id: String,
    /// Whether there is a score.
    pub ok: bool,
    /// The score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<Scored>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<OracleError>,
}

/// Why there is no score.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OracleError {
    /// The class; `config` for a wallet that cannot be used.
    pub class: ErrorKind,
    /// In words.
    pub message: String,
}

/// The output of `formwork oracle compare --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OracleCompareOutput {
    /// The results of the first version.
    pub first: OracleVersion,
    /// The results of the second version.
    pub second: OracleVersion,
    /// How many points the scores of a wallet are apart, on average.
    pub mean_difference: f64,
    /// The scores, in the order of the wallets.
    pub wallets: Vec<OracleCompared>,
}

/// The results of one version of a prompt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OracleVersion {
    /// The version.
    pub prompt: PromptId,
    /// How many wallets were scored.
    pub scored: u64,
    /// Scores that were valid at the first try, without any edit.
    pub compliant: u64,
    /// Scores for which the model was asked again.
    pub retried: u64,
    /// Scores that were counted, because no model gave a valid one.
    pub fallbacks: u64,
    /// Scores within what the wallet expects.
    pub in_band: u64,
    /// Wallets that expect something.
    pub with_band: u64,
    /// The average score.
    pub mean_score: f64,
    /// The average time, in milliseconds.
    pub mean_latency_ms: f64,
    /// The average length of all answers to one wallet, in tokens.
    pub mean_output_tokens: f64,
}

/// One wallet, scored with both versions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OracleCompared {
    /// The wallet's file, or its file and line.
    pub id: String,
    /// The score that a person would give.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Band>,
    /// The score by the first version.
    pub first: OracleVersionScore,
    /// The score by the second version.
    pub second: OracleVersionScore,
}

/// A score with one version.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct OracleVersionScore {
    /// From 0 to 1000.
    pub score: u16,
    /// Where it comes from.
    pub source: ScoreSource,
}

/// A skill in `formwork skill list --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillRow {
    /// The skill's name.
    pub name: String,
    /// The skill's purpose.
    pub description: String,
    /// The kind of template that does the work; null is a handler.
    pub template_type: Option<TemplateType>,
    /// Its file.
    pub file: String,
    /// The JSON Schema of its inputs.
    pub inputs: Value,
    /// The JSON Schema of its output; null where it says none.
    pub output: Option<Value>,
}

impl SkillRow {
    pub(crate) fn new(skill: &Skill) -> Self {
        Self {
            name: skill.name().to_owned(),
            description: skill.descriptor().description.clone(),
            template_type: skill.descriptor().template_type,
            file: skill.file().to_owned(),
            inputs: skill.input_schema(),
            output: skill.output_schema().cloned(),
        }
    }
}

/// The output of `formwork skill run --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillRunOutput {
    /// The skill.
    pub skill: String,
    /// Whether it brought something.
    pub ok: bool,
    /// The outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<SkillOutcome>,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<SkillRunError>,
}

/// Why a skill brought nothing.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillRunError {
    /// The class, if a model was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorKind>,
    /// In words.
    pub message: String,
    /// Every call, where something was to be generated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<GenerationResult>,
}

impl SkillRunOutput {
    pub(crate) fn new(skill: &str, result: &Result<SkillOutcome, SkillError>) -> Self {
        let error = result.as_ref().err().map(|error| SkillRunError {
            class: error.kind(),
            message: error.to_string(),
            generation: match error {
                SkillError::Generation { result, .. } => Some((**result).clone()),
                _ => None,
            },
        });
        Self { skill: skill.to_owned(), ok: result.is_ok(), outcome: result.as_ref().ok().cloned(), error }
    }
}
