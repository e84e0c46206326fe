use formwork_core::ErrorKind;
use formwork_oracle::wallet::Band;
use formwork_oracle::{PromptId, ScoreSource, Scored};
use schemars::JsonSchema;
use serde::Serialize;

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

/// The reason why there is no score.
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

/// The scores of one wallet with both versions of a prompt.
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
