//! The types of an answer that keeps to the contract.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// StructuredAnswerLite 1.0: the contract of every answer.
///
/// All fields are required and no others are allowed, at every level. `schemas/structured-answer-lite.v1.json` is its schema.
///
/// ```
/// use formwork_chat::{StructuredAnswerLite, TaskKind};
///
/// let answer: StructuredAnswerLite = serde_json::from_str(r#"{
///   "task": {"type": "qa", "user_intent": "learn what JSON is"},
///   "answer": {"text": "A text format for data."},
///   "quality": {"confidence": 0.95, "assumptions": [], "risks": []},
///   "debug": {"schema_version": "1.0", "model": "m"}
/// }"#)?;
/// assert_eq!(answer.task.kind, TaskKind::Qa);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
// Models read the description, and the example above is Rust.
#[schemars(
    description = "StructuredAnswerLite 1.0: the contract of every answer. All fields are required and no others are allowed, at every level."
)]
pub struct StructuredAnswerLite {
    /// The task that was asked for.
    pub task: Task,
    /// The answer.
    pub answer: TextAnswer,
    /// The quality of the answer, as the model estimates it.
    pub quality: Quality,
    /// The source of the answer.
    pub debug: Source<V1_0>,
}

/// StructuredAnswer 1.1: StructuredAnswerLite with a payload of your own type in `answer.data`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StructuredAnswer<T> {
    /// The task that was asked for.
    pub task: Task,
    /// The answer.
    pub answer: DataAnswer<T>,
    /// The quality of the answer, as the model estimates it.
    pub quality: Quality,
    /// The source of the answer.
    pub debug: Source<V1_1>,
}

/// The task that was asked for.
///
/// ```
/// use formwork_chat::{Task, TaskKind};
///
/// let task: Task = serde_json::from_str(r#"{"type": "qa", "user_intent": "learn what JSON is"}"#)?;
/// assert_eq!(task.kind, TaskKind::Qa);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Task {
    /// The kind of task.
    #[serde(rename = "type")]
    pub kind: TaskKind,
    /// The user's wish, in the model's words.
    pub user_intent: String,
}

/// A kind of task.
///
/// ```
/// use formwork_chat::TaskKind;
///
/// assert_eq!(serde_json::to_value(TaskKind::Other).unwrap(), TaskKind::NAMES[4]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// Answers a question.
    Qa,
    /// Extracts data from a text.
    Extraction,
    /// Assigns classes.
    Classification,
    /// Summarizes a text.
    Summarization,
    /// Anything else.
    Other,
}

impl TaskKind {
    /// The names of all kinds in the contract.
    pub const NAMES: [&str; 5] = ["qa", "extraction", "classification", "summarization", "other"];
}

/// Hand-written, because the derived schema has a subschema with a description for each kind.
impl JsonSchema for TaskKind {
    fn schema_name() -> Cow<'static, str> {
        "TaskKind".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"enum": Self::NAMES})
    }
}

/// An answer of text alone.
///
/// ```
/// let answer: formwork_chat::TextAnswer = serde_json::from_str(r#"{"text": "A text format."}"#)?;
/// assert_eq!(answer.text, "A text format.");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct TextAnswer {
    /// The text.
    pub text: String,
}

/// An answer of text and data.
///
/// ```
/// use formwork_chat::DataAnswer;
///
/// let answer: DataAnswer<Vec<u8>> = serde_json::from_str(r#"{"text": "Two and three.", "data": [2, 3]}"#)?;
/// assert_eq!(answer.data, [2, 3]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct DataAnswer<T> {
    /// The text.
    pub text: String,
    /// The payload.
    pub data: T,
}

/// The quality of an answer, as the model estimates it.
///
/// ```
/// use formwork_chat::Quality;
///
/// let quality = Quality { confidence: 0.9, assumptions: Vec::new(), risks: vec!["old data".into()] };
/// assert_eq!(serde_json::to_value(quality).unwrap()["confidence"], 0.9);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Quality {
    /// The confidence of the model, from 0.0 to 1.0.
    #[schemars(schema_with = "confidence")]
    pub confidence: f64,
    /// The assumptions that it made.
    pub assumptions: Vec<String>,
    /// The ways in which it may be wrong.
    pub risks: Vec<String>,
}

/// The source of an answer; `V` is the version of its contract.
///
/// ```
/// use formwork_chat::{Source, V1_0};
///
/// let source = Source { schema_version: V1_0, model: "m".into() };
/// assert_eq!(serde_json::to_value(source).unwrap()["schema_version"], V1_0::TEXT);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Source<V> {
    /// The contract's version.
    pub schema_version: V,
    /// The model, as it calls itself.
    pub model: String,
}

fn confidence(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "number", "minimum": 0.0, "maximum": 1.0})
}

/// Defines a version of the contract: a type whose only value is its text.
macro_rules! version {
    ($name:ident, $text:literal) => {
        #[doc = concat!("Version ", $text, " of the contract: no other text deserialises as it.")]
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $name;

        impl $name {
            /// The text of the version.
            pub const TEXT: &str = $text;
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(Self::TEXT)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match String::deserialize(deserializer)?.as_str() {
                    Self::TEXT => Ok(Self),
                    other => Err(D::Error::custom(format_args!("version {other:?} is not {:?}", Self::TEXT))),
                }
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"const": Self::TEXT})
            }
        }
    };
}

version!(V1_0, "1.0");
version!(V1_1, "1.1");
