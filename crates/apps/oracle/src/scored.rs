use formwork_core::{Cost, JsonPath, Usage};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{AiScore, PromptId, ScoreEvent, ScoreSource};

/// A score with its source; the fields are the same for a model's score and the fallback's.
///
/// The JSON form has the fields of the answer, then `source`, `prompt`, `model`, `attempts`, `usage` and `cost`, and
/// `closed` if the token limit truncated the answer. In one process, the same wallet, prompt and model give the same
/// bytes.
///
/// ```
/// use formwork_oracle::{Oracle, wallet::Wallet};
/// use formwork_testkit::Scripted;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let oracle = Oracle::builder().with_target(std::sync::Arc::new(Scripted::new(["{}", "{}", "{}"]))).build()?;
/// let scored = oracle.score(&Wallet::from_json(br#"{"transactions": []}"#)?).await?;
/// let json = serde_json::to_value(&scored)?;
/// assert_eq!((&json["source"], &json["attempts"], &json["score"]), (&"fallback".into(), &3.into(), &0.into()));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Scored {
    /// The answer with the score.
    #[serde(flatten)]
    pub answer: AiScore,
    /// The source of the score.
    pub source: ScoreSource,
    /// The version of the prompt.
    pub prompt: PromptId,
    /// The model that gave the score or was called last: its own name for itself, otherwise the configured
    /// model, otherwise the name of its provider.
    pub model: String,
    /// The number of attempts: answers, over all targets.
    pub attempts: u32,
    /// The paths of values that the token limit truncated; empty, and absent in JSON, for a complete answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<JsonPath>,
    /// The tokens of all calls.
    pub usage: Usage,
    /// The cost of all calls.
    pub cost: Cost,
    /// The whole history; not in the JSON form.
    #[serde(skip)]
    #[schemars(skip)]
    pub event: Box<ScoreEvent>,
}
