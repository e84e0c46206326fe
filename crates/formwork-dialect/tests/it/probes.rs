//! Our probe schemas, with documents that are valid and invalid under each, and the shapes that schemars makes.

use std::collections::BTreeMap;

use formwork_core::{LossKind, Lower as _, LowerRequest, lift};
use formwork_dialect::Native;
use formwork_testkit::instance;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde::Deserialize;
use serde_json::Value;

use crate::model::{allows, sample};

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

/// Probes whose valid documents are all outside of what is sent on purpose: `1.0` for an integer, members that the
/// schema does not name, integers over 2^53.
const TIGHTER: [&str; 3] = ["integer as 1.0", "additionalProperties true + properties", "int64 big"];

#[test]
fn every_probe_is_sound() {
    let mut wrong = Vec::new();
    for Probe { name, schema, valid, invalid, .. } in probes() {
        let lowered = match Native::LLGUIDANCE.lower(&LowerRequest::new(&schema)) {
            Ok(lowered) => lowered,
            Err(refused) => {
                wrong.push(format!("{name}: {refused}"));
                continue;
            }
        };
        let sent = lowered.schema.as_ref().unwrap();
        let allowed =
            |document: &Value| allows(sent, document).map_err(|error| format!("{name}: {error} in {sent}"));
        match valid.iter().map(allowed).collect::<Result<Vec<_>, _>>() {
            Err(error) => wrong.push(error),
            Ok(verdicts)
                if !TIGHTER.contains(&name.as_str()) && !verdicts.is_empty() && !verdicts.contains(&true) =>
            {
                wrong.push(format!("{name}: no valid document is allowed by {sent}"));
            }
            Ok(_) => {}
        }
        let said = lowered.losses.iter().any(|loss| loss.kind != LossKind::Tightened);
        for document in invalid.iter().filter(|document| allowed(document) == Ok(true)) {
            if !said {
                wrong.push(format!("{name}: {document} is allowed and no loss says so, by {sent}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of 77:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_rust_types_make_keeps_every_variant() {
    // Documents as serde writes values of those types, objects closed.
    let documents: BTreeMap<&str, Vec<Value>> =
        serde_json::from_str(include_str!("../data/schemars_documents.json")).unwrap();
    for row in include_str!("../data/schemars_shapes.jsonl").lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        let (name, schema) = (row["name"].as_str().unwrap(), &row["schema"]);
        let lowered = Native::LLGUIDANCE.lower(&LowerRequest::new(schema)).unwrap();
        let sent = lowered.schema.as_ref().unwrap();
        for document in &documents[name] {
            assert_eq!(allows(sent, document), Ok(true), "{name}: {document} by {sent}");
        }
    }
}

#[test]
fn what_may_be_sent_can_be_judged() {
    let mut runner = TestRunner::deterministic();
    for Probe { name, schema, .. } in probes() {
        let Ok(lowered) = Native::LLGUIDANCE.lower(&LowerRequest::new(&schema)) else { continue };
        let said = lowered.losses.iter().any(|loss| loss.kind != LossKind::Tightened);
        let compiled = formwork_schema::compile(&schema).unwrap();
        for _ in 0..4 {
            let mut draw = |below: usize| (0..below).new_tree(&mut runner).unwrap().current();
            let document = sample(lowered.schema.as_ref().unwrap(), &mut draw).unwrap();
            let (value, problems) = lift(document, &lowered);
            assert!(problems.is_empty(), "{name}: {problems:?}");
            assert!(said || compiled.is_valid(&value), "{name}: {value} is allowed and invalid");
        }
    }
}

#[test]
fn instances_of_closed_schemas_are_allowed() {
    // What the strategy makes is valid; what is closed, small and without losses must be allowed as it is.
    let mut runner = TestRunner::deterministic();
    let mut tried = 0;
    for Probe { name, schema, .. } in probes() {
        let Ok(lowered) = Native::LLGUIDANCE.lower(&LowerRequest::new(&schema)) else { continue };
        let sent = lowered.schema.as_ref().unwrap();
        if lowered.losses.iter().any(|loss| loss.kind == LossKind::Tightened) {
            continue;
        }
        for _ in 0..4 {
            let document = instance(&schema).new_tree(&mut runner).unwrap().current();
            if spaced_in_order(&document, sent) {
                tried += 1;
                assert_eq!(allows(sent, &document), Ok(true), "{name}: {document} by {sent}");
            }
        }
    }
    assert!(tried > 40, "{tried}");
}

/// Whether the members of a flat document stand in the order of the schema, which is the only one that is generated.
fn spaced_in_order(document: &Value, sent: &Value) -> bool {
    let (Some(members), Some(properties)) = (document.as_object(), sent["properties"].as_object()) else {
        return true;
    };
    let places: Vec<_> =
        members.keys().map(|name| properties.keys().position(|known| known == name)).collect();
    places.is_sorted() && places.iter().all(Option::is_some)
}
