//! The oracle's document: a wallet's score with its breakdown. All benchmarks of judging use it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The schema in the oracle's document.
const SCHEMA: &str = include_str!("../../../examples/ai-score.schema.json");

/// The schema as a Rust type.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only decoded")]
pub(super) struct Score {
    score: u16,
    score_breakdown: Breakdown,
    reasoning: String,
    #[serde(rename = "risk_factors")]
    risk_factors: Vec<String>,
    strengths: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only decoded")]
struct Breakdown {
    activity: u8,
    maturity: u8,
    diversity: u8,
    risk_behavior: u8,
    survey_match: u8,
}

/// A completion that satisfies the schema.
pub(super) const VALID: &str = r#"{
  "score": 612,
  "scoreBreakdown": {"activity": 71, "maturity": 58, "diversity": 64, "riskBehavior": 49, "surveyMatch": 66},
  "reasoning": "The wallet has been active for 26 months with steady monthly volume across four protocols. Most of its value sits in two lending markets, and one bridge transfer in March went through an unverified contract. Survey answers match the on-chain history except for the stated holding period.",
  "risk_factors": ["One interaction with an unverified bridge contract", "62 % of the value in two markets"],
  "strengths": ["26 months of steady activity", "No liquidations", "Survey matches the chain"]
}"#;

/// A completion with five violations, in five fields.
pub(super) const FIVE_WRONG: &str = r#"{
  "score": 1612,
  "scoreBreakdown": {"activity": 171, "maturity": "58", "diversity": 64, "riskBehavior": 49, "surveyMatch": 66},
  "reasoning": "Too few",
  "risk_factors": ["One interaction with an unverified bridge contract", 62],
  "strengths": ["26 months of steady activity", "No liquidations", "Survey matches the chain"]
}"#;

/// A completion with one violation.
pub(super) const ONE_WRONG: &str = r#"{
  "score": 612,
  "scoreBreakdown": {"activity": 71, "maturity": 58, "diversity": 64, "riskBehavior": 149, "surveyMatch": 66},
  "reasoning": "The wallet has been active for 26 months with steady monthly volume across four protocols. Most of its value sits in two lending markets, and one bridge transfer in March went through an unverified contract. Survey answers match the on-chain history except for the stated holding period.",
  "risk_factors": ["One interaction with an unverified bridge contract", "62 % of the value in two markets"],
  "strengths": ["26 months of steady activity", "No liquidations", "Survey matches the chain"]
}"#;

/// Returns the schema as a JSON value.
pub(super) fn schema() -> Result<Value, String> {
    serde_json::from_str(SCHEMA).map_err(|error| format!("examples/ai-score.schema.json: {error}"))
}
