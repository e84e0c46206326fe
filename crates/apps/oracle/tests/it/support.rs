//! Answers, wallets and requests.

use std::sync::{Arc, Mutex};

use formwork_core::{Call, CallRecord, Context, Failure, Report, Validator as _};
use formwork_oracle::wallet::Wallet;
use formwork_oracle::{AI_RESPONSE_SCHEMA, CrossCheck, Oracle, OracleBuilder, ScoreEvent, Scored};
use formwork_testkit::{Reply, Scripted};
use serde_json::{Value, json};

/// An answer whose breakdown sums up to 607.5.
pub(crate) fn answer(score: impl Into<Value>) -> Value {
    json!({
        "score": score.into(),
        "scoreBreakdown": {"activity": 80, "maturity": 70, "diversity": 60, "riskBehavior": 51, "surveyMatch": 40},
        "reasoning": "Two years of steady use.",
        "risk_factors": ["one mixer"],
        "strengths": ["age"],
    })
}

/// The same answer with another value at a JSON Pointer.
pub(crate) fn with(pointer: &str, value: impl Into<Value>) -> Value {
    let mut answer = answer(610);
    *answer.pointer_mut(pointer).unwrap() = value.into();
    answer
}

pub(crate) fn wallet() -> Wallet {
    Wallet::from_json(
        br#"{
            "address": "0xabc", "as_of": "2026-11-01",
            "summary": {"transactions": 40, "failed": 2, "first": "2025-11-01", "last": "2026-10-22", "active_days": 20,
                        "counterparties": 9},
            "survey": {"experience": "regular"}
        }"#,
    )
    .unwrap()
}

pub(crate) fn model(replies: impl IntoIterator<Item = impl Into<Reply>>) -> Arc<Scripted> {
    Arc::new(Scripted::new(replies))
}

/// A model with these documents, in order.
pub(crate) fn documents(documents: &[Value]) -> Arc<Scripted> {
    model(documents.iter().map(|document| Reply::text(document.to_string())))
}

pub(crate) fn builder(model: &Arc<Scripted>) -> OracleBuilder {
    Oracle::builder().with_target(Arc::clone(model))
}

pub(crate) async fn scored(model: &Arc<Scripted>) -> Scored {
    builder(model).build().unwrap().score(&wallet()).await.unwrap()
}

/// Records events.
#[derive(Clone, Default)]
pub(crate) struct Events(pub(crate) Arc<Mutex<Vec<ScoreEvent>>>);

impl Events {
    pub(crate) fn of(&self) -> Vec<ScoreEvent> {
        self.0.lock().unwrap().clone()
    }
}

impl formwork_oracle::ScoreObserver for Events {
    fn scored(&self, event: &ScoreEvent) {
        self.0.lock().unwrap().push(event.clone());
    }
}

pub(crate) fn temperatures(calls: &[Call]) -> Vec<Option<f64>> {
    calls.iter().map(|call| call.sampling.temperature).collect()
}

/// Returns the violations of an attempt's answer: keyword and path.
pub(crate) fn wrong(call: &CallRecord) -> Vec<(String, String)> {
    let failure = call.verdict.failure().map(Failure::violations).unwrap_or_default();
    failure.iter().map(|violation| (violation.rule.clone(), violation.path.to_string())).collect()
}

/// Returns the violations of a score, in its JSON form.
pub(crate) fn against(scored: &Scored, check: &CrossCheck) -> Vec<String> {
    let value = serde_json::to_value(scored).unwrap();
    let mut report = Report::default();
    formwork_schema::compile(&AI_RESPONSE_SCHEMA).unwrap().validate(&value, &Context::EMPTY, &mut report);
    check.rule().validate(&value, &Context::EMPTY, &mut report);
    report.violations().iter().map(ToString::to_string).collect()
}
