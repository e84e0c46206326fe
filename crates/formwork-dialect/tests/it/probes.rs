//! Our probe schemas, with documents that are valid and invalid under each, and the shapes that schemars makes.

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
    /// What the engines themselves made of it, by engine.
    pub(crate) measured: BTreeMap<String, String>,
}

pub(crate) fn probes() -> Vec<Probe> {
    let rows = include_str!("../data/dialect_probes.jsonl").lines();
    rows.map(|row| serde_json::from_str(row).unwrap()).collect()
}
