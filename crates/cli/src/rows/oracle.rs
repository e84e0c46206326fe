use formwork_core::{ErrorKind, Trust};
use formwork_oracle::calibration::Standing;
use formwork_oracle::wallet::Band;
use formwork_oracle::{PromptId, ScoreSource, Scored};
use schemars::JsonSchema;
use serde::Serialize;

/// A result row of `formwork oracle batch`.
///
/// ```json
/// {"id": "wallets.jsonl:2", "ok": true, "score": {"score": 640, "scoreBreakdown": {…}, "source": "ai", …}}
/// ```
#[derive(Debug, Serialize, JsonSchema)]
pub struct OracleOutput {
    /// The file of the wallet, or its file and line.
    pub id: String,
    /// Whether there is a score.
    pub ok: bool,
    /// The score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<Scored>,
    /// The result of a calibration for scores of this model with this prompt; absent without a score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Standing>,
    /// The score of the fallback, which counts, for comparison; absent without a score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<u16>,
    /// The history of the answer's leaves: how many the model wrote freely, and which it did not; absent without a score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// The error, if there is no score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<OracleError>,
}

/// The reason why there is no score.
///
/// ```
/// use formwork_cli::rows::OracleError;
/// use formwork_core::ErrorKind;
///
/// let error = OracleError { class: ErrorKind::Config, message: "w.json:1:5: expected a string".into() };
/// assert_eq!(serde_json::to_value(error)?["class"], "config");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Serialize, JsonSchema)]
pub struct OracleError {
    /// The kind of error; `config` for an invalid wallet.
    pub class: ErrorKind,
    /// The message for people.
    pub message: String,
}

/// The output of `formwork oracle compare --json`.
///
/// ```json
/// {"first": {"scored": 20, "compliant": 17, …}, "second": {…}, "mean_difference": 35.5, "wallets": […]}
/// ```
#[derive(Debug, Serialize, JsonSchema)]
pub struct OracleCompareOutput {
    /// The results of the first version.
    pub first: OracleVersion,
    /// The results of the second version.
    pub second: OracleVersion,
    /// The mean absolute difference of the two scores of a wallet, in points.
    pub mean_difference: f64,
    /// The scores, in the order of the wallets.
    pub wallets: Vec<OracleCompared>,
}

/// The results of one version of a prompt.
///
/// ```json
/// {"prompt": {"name": "v2", …}, "scored": 20, "compliant": 17, "retried": 3, "fallbacks": 0, "in_band": 9, "with_band": 12, …}
/// ```
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct OracleVersion {
    /// The version of the prompt.
    pub prompt: PromptId,
    /// The number of scored wallets.
    pub scored: u64,
    /// The number of scores that were valid in the first answer, without edits.
    pub compliant: u64,
    /// The number of scores that needed a retry.
    pub retried: u64,
    /// The number of scores by the fallback, because no model gave a valid score.
    pub fallbacks: u64,
    /// The number of scores within the expected range of the wallet.
    pub in_band: u64,
    /// The number of wallets with an expected range.
    pub with_band: u64,
    /// The mean score.
    pub mean_score: f64,
    /// The mean time in milliseconds.
    pub mean_latency_ms: f64,
    /// The mean number of output tokens per wallet.
    pub mean_output_tokens: f64,
}

/// The scores of one wallet with both versions of a prompt.
///
/// ```json
/// {"id": "wallets/staker.json", "first": {"score": 640, "source": "ai"}, "second": {"score": 700, "source": "ai"}}
/// ```
#[derive(Debug, Serialize, JsonSchema)]
pub struct OracleCompared {
    /// The file of the wallet, or its file and line.
    pub id: String,
    /// The expected score of the wallet, as set by a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Band>,
    /// The score with the first version.
    pub first: OracleVersionScore,
    /// The score with the second version.
    pub second: OracleVersionScore,
}

/// A score with one version.
///
/// ```
/// use formwork_cli::rows::OracleVersionScore;
/// use formwork_oracle::ScoreSource;
/// use serde_json::json;
///
/// let score = OracleVersionScore { score: 640, source: ScoreSource::Fallback };
/// assert_eq!(serde_json::to_value(score)?, json!({"score": 640, "source": "fallback"}));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct OracleVersionScore {
    /// The score from 0 to 1000.
    pub score: u16,
    /// The source of the score: a model or the fallback.
    pub source: ScoreSource,
}
