use formwork_core::{Cost, JsonPath, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AiScore, ScoreEvent};

/// Where a score comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScoreSource {
    /// A model.
    Ai,
    /// The rule that counts transactions: see [`fallback`](crate::fallback).
    Fallback,
}

impl ScoreSource {
    /// As it stands in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ai => "ai",
            Self::Fallback => "fallback",
        }
    }
}

/// Which version of the prompt was used.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct PromptId {
    /// The prompt's name.
    pub name: String,
    /// The SHA-256 of all that a model is told beside the wallet, as 64 hexadecimal digits.
    pub hash: String,
}

/// A score with where it comes from: the same fields, whether a model gave it or the fallback.
///
/// In JSON it is the answer's own fields, then `source`, `prompt`, `model`, `attempts`, `usage` and `cost`, and `closed`
/// where the limit of tokens cut the answer. The same wallet, prompt and model in process give the same bytes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Scored {
    /// The score.
    #[serde(flatten)]
    pub answer: AiScore,
    /// Where it comes from.
    pub source: ScoreSource,
    /// The prompt that was used.
    pub prompt: PromptId,
    /// The model that gave it, or was asked last: as it calls itself, else the name of its provider.
    pub model: String,
    /// How many attempts were made: answers that count, over all targets.
    pub attempts: u32,
    /// The values of the answer that the limit of tokens cut; empty, and absent in JSON, for a complete answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<JsonPath>,
    /// The tokens that all calls together used up.
    pub usage: Usage,
    /// The cost of those.
    pub cost: Cost,
    /// The whole history; not part of the JSON form.
    #[serde(skip)]
    #[schemars(skip)]
    pub event: Box<ScoreEvent>,
}
