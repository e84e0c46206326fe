//! The probe schemas with valid and invalid documents, and the schemas that schemars generates.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub(crate) struct Probe {
    pub(crate) name: String,
    pub(crate) schema: Value,
    #[serde(default)]
    pub(crate) valid: Vec<Value>,
    #[serde(default)]
    pub(crate) invalid: Vec<Value>,
    /// The results of the engines, by engine.
    pub(crate) measured: BTreeMap<String, String>,
}

pub(crate) fn probes() -> Vec<Probe> {
    let rows = include_str!("../data/dialect_probes.jsonl").lines();
    rows.map(|row| serde_json::from_str(row).unwrap()).collect()
}
