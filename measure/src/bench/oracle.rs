//! The oracle's document: the prompt, the schema of a wallet's score, and completions. All benchmarks of judging and of calls use it.

pub(super) use formwork_oracle::AiScore as Score;
use serde_json::Value;

/// The schema in the oracle's document.
const SCHEMA: &str = include_str!("../../../examples/ai-score.schema.json");

/// The API key of both sides.
pub(super) const KEY: &str = "sk-0123456789abcdef0123456789abcdef0123456789abcdef";

pub(super) const MODEL: &str = "gpt-4.1-mini";

pub(super) const SYSTEM: &str = "You are an analyst of on-chain behaviour. You score wallets from 0 to 1000, and you give \
    the parts of the score, the reasons for it, what counts against the wallet and what counts for it.";

/// A text of the length of a wallet's summary.
pub(super) const INPUT: &str = "Score this wallet. 412 transactions over 26 months, 18 protocols, mostly DEX trades and \
    lending. Two lending markets hold 62 % of the value: a stablecoin pool since January of last year, and a staked token \
    since May. No liquidations; the lowest health factor was 1.41, in August. One bridge transfer in March went through a \
    contract that is not verified, for 3 200 USD, and nothing came back from it since. One interaction with a flagged mixer \
    two years ago, for 0.1 ETH, incoming. Monthly volume lies between 4 000 and 9 000 USD without a gap. The owner answered \
    the survey: he holds for longer than a year (the median holding period on chain is seven months), he does not use \
    leverage (confirmed), he knows what he signs (twelve unlimited approvals are open, four of them to contracts that are \
    not used any more), and he takes part in governance (nine votes in four protocols, the last one three weeks ago).";

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
