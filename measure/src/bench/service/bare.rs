//! The peer of the comparison: an axum handler that deserializes the same request and serializes the same response. It has no
//! model, checks, limits, request identifiers or metrics.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::bench::process;

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read")]
struct Wallet {
    address: Option<String>,
    as_of: Option<String>,
    summary: Summary,
    survey: Option<Survey>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read")]
struct Summary {
    transactions: u64,
    failed: u64,
    first: Option<String>,
    last: Option<String>,
    active_days: u64,
    counterparties: u64,
    categories: BTreeMap<String, u64>,
    protocols: BTreeMap<String, u64>,
    risk_flags: BTreeMap<String, u64>,
    volume_usd: f64,
    largest_usd: f64,
    balance_usd: Option<f64>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read")]
struct Survey {
    experience: Option<String>,
    active_since: Option<String>,
    uses: Vec<String>,
    risk_tolerance: Option<String>,
    answers: Vec<SurveyAnswer>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only read")]
struct SurveyAnswer {
    question: String,
    answer: String,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scored {
    score: u16,
    #[serde(rename = "scoreBreakdown")]
    breakdown: Breakdown,
    reasoning: String,
    risk_factors: Vec<String>,
    strengths: Vec<String>,
    source: String,
    prompt: Prompt,
    model: String,
    attempts: u32,
    usage: Usage,
    cost: Cost,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Breakdown {
    activity: u8,
    maturity: u8,
    diversity: u8,
    risk_behavior: u8,
    survey_match: u8,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Prompt {
    name: String,
    hash: String,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
    reasoning_tokens: u64,
    estimated: bool,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cost {
    tokens: u64,
    micro_usd: u64,
}

pub(in crate::bench) async fn serve(answer: &str) -> Result<(), Failure> {
    let answer: &'static Scored = Box::leak(Box::new(serde_json::from_str(answer)?));
    let router = Router::new().route("/v1/score", post(score)).with_state(answer);
    Ok(axum::serve(process::listen().await?, router).await?)
}

async fn score(State(answer): State<&'static Scored>, Json(_): Json<Wallet>) -> Json<Scored> {
    Json(answer.clone())
}
