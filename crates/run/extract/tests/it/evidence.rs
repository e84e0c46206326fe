//! The evidence of an outcome.

use std::sync::Arc;

use formwork_core::evidence::Status;
use formwork_core::{Calibration, Calibrations, Confidence, Input, Message, Outcome};
use formwork_extract::{Extractor, ExtractorBuilder};
use formwork_testkit::Scripted;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
struct Bill {
    subtotal: f64,
    /// The amount due.
    total: f64,
    buyer: Option<String>,
}

const TEXT: &str = "Subtotal: 12.00\nShipping: 0.00\nAmount due: 12.00";

fn builder() -> ExtractorBuilder<Bill> {
    let model = Scripted::new([r#"{"subtotal": 12, "total": 12, "buyer": "Ada"}"#; 2]);
    Extractor::builder().with_target(Arc::new(model))
}

fn extractor() -> Extractor<Bill> {
    builder().build().unwrap()
}

#[test]
fn an_outcome_has_the_places_of_its_values_in_the_text_that_it_is_about() {
    let extractor = extractor();
    let outcome = extractor.extract_blocking(TEXT).unwrap();
    let found: Vec<_> = outcome.evidence().iter().map(|it| it.spans.first().map(|span| span.start)).collect();
    // The description of `total` chooses between equal numbers.
    assert_eq!(found, [Some(10), Some(43), None]);
    assert_eq!(outcome.evidence()[2].status, Status::NotFound);
    let summary = outcome.evidence_summary();
    assert_eq!((summary.exact + summary.normalised, summary.not_found, summary.not_stated), (2, 1, 0));
    // A prompt around the text is not the text.
    let input = Input::from(Message::user(format!("12.00 or what? {TEXT}"))).with_source(TEXT);
    let other = extractor.extract_blocking(input).unwrap();
    assert_eq!(other.evidence(), outcome.evidence());
}

#[derive(Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(extend("x-formwork-rules" = [
    {"rule": "weightedSum", "target": "$.sum", "terms": [{"path": "$.a", "weight": 1}, {"path": "$.b", "weight": 1}], "tolerance": 0},
    {"rule": "grounded", "target": "$.what"},
]))]
struct Added {
    a: u32,
    b: u32,
    sum: u32,
    what: String,
}

#[test]
fn rules_in_the_schema_of_a_type_hold_and_derive_values() {
    let answers =
        [r#"{"a": 3, "b": 4, "sum": 8, "what": "fruit"}"#, r#"{"a": 3, "b": 4, "sum": 7, "what": "apples"}"#];
    let model = Arc::new(Scripted::new(answers));
    let outcome = Extractor::<Added>::builder()
        .with_target(model.clone())
        .build()
        .unwrap()
        .extract_blocking("3 apples, 4 pears")
        .unwrap();
    let rules: Vec<_> =
        outcome.calls[0].verdict.failure().unwrap().violations().iter().map(|it| it.rule.clone()).collect();
    assert_eq!(rules, ["weightedSum", "grounded"]);
    let statuses: Vec<_> = outcome.evidence().iter().map(|it| it.status).collect();
    assert_eq!(statuses, [Status::Exact, Status::Exact, Status::Computed, Status::Exact]);
    assert_eq!((outcome.evidence_summary().computed, outcome.evidence_summary().not_found), (1, 0));
    let sent = format!("{:?}", model.calls());
    assert!(!sent.contains("x-formwork-rules"), "{sent}");
    // Rules that cannot be read are an error of the schema.
    let wrong =
        serde_json::json!({"type": "string", "x-formwork-rules": [{"rule": "grounder", "target": "$"}]});
    let error = Extractor::for_document("wrong", wrong).with_target(model).build().unwrap_err().to_string();
    assert!(error.contains("x-formwork-rules") && error.contains("grounder"), "{error}");
}

#[test]
fn a_changed_value_has_its_own_evidence_and_a_stored_outcome_has_none() {
    let outcome = extractor().extract_blocking(TEXT).unwrap();
    assert_eq!(outcome.evidence().len(), 3);
    let stored: Outcome<Bill> = serde_json::from_value(serde_json::to_value(&outcome).unwrap()).unwrap();
    assert!(stored.evidence().is_empty() && stored == outcome);
    let total = outcome.map(|bill| Value::from(bill.total));
    let evidence = total.evidence();
    assert!(evidence.len() == 1 && evidence[0].path.is_root() && evidence[0].status == Status::Normalised);
}

#[test]
fn the_confidence_in_values_is_that_of_their_evidence_and_of_other_answers() {
    let outcome = extractor().extract_blocking(TEXT).unwrap();
    let scores = |all: &[formwork_core::Confidence]| all.iter().map(|it| it.score).collect::<Vec<_>>();
    let alone = scores(&outcome.confidence());
    assert!(alone[0] > 0.9 && alone[1] > 0.9 && alone[2] < 0.1, "{alone:?}");
    assert_eq!(outcome.least_sure().unwrap().path.to_string(), "$.buyer");
    let other = serde_json::json!({"subtotal": 12, "total": 21, "buyer": "Ada"});
    let beside = scores(&outcome.confidence_beside(&[&other]));
    assert!(beside[1] < beside[2] && beside[2] < beside[0], "{beside:?}");
    // A stored outcome has neither text nor schema.
    let stored: Outcome<Bill> = serde_json::from_value(serde_json::to_value(&outcome).unwrap()).unwrap();
    assert_eq!(scores(&stored.confidence()), [0.5; 3]);
}

/// A calibration counts wherever the confidence is read, if it was fitted on answers like these.
#[test]
fn calibrations_of_an_extractor_make_the_confidence_of_its_outcomes_a_probability() {
    let fitted = |configuration: &str, others: usize, probability: f64| Calibration {
        models: Vec::new(),
        configuration: configuration.to_owned(),
        others,
        evidence: true,
        documents: 9,
        leaves: 99,
        error: 0.01,
        points: vec![[0.5, probability]],
    };
    let all = [fitted("named", 0, 0.9), fitted("scripted", 0, 0.8), fitted("scripted", 1, 0.7)];
    let other = serde_json::json!({"subtotal": 12, "total": 21, "buyer": "Ada"});
    for (name, used, alone, beside) in [
        (Some("named"), &all[..], Some(0.9), Some(0.7)),
        // The target that answers, and not another configuration.
        (None, &all[..], Some(0.8), Some(0.7)),
        (Some("unknown"), &all[..], Some(0.8), Some(0.7)),
        (Some("unknown"), &all[..1], None, None),
        (None, &all[2..], None, Some(0.7)),
        (None, &[], None, None),
    ] {
        let calibrations = Calibrations::new(used.to_vec());
        let calibrations = name.map_or(calibrations.clone(), |name| calibrations.named(name));
        let extractor = builder().with_calibrations(calibrations).build().unwrap();
        let outcome = extractor.extract_blocking(TEXT).unwrap();
        let probabilities = |all: Vec<Confidence>| all.iter().map(|it| it.probability).collect::<Vec<_>>();
        assert_eq!(probabilities(outcome.confidence()), [alone; 3], "{name:?}");
        assert_eq!(probabilities(outcome.confidence_beside(&[&other])), [beside; 3], "{name:?}");
        assert_eq!(outcome.least_sure().unwrap().probability, alone, "{name:?}");
        assert_eq!(
            outcome.least_sure().unwrap().is_below(0.85),
            alone.is_none_or(|it| it < 0.85),
            "{name:?}"
        );
        // A value about another text of the same contract.
        let again = outcome.with_source(TEXT, extractor.plan().contract());
        assert_eq!(probabilities(again.confidence()), [alone; 3], "{name:?}");
        // The scores of values without a text are other scores.
        let none = again.with_source("", extractor.plan().contract());
        assert_eq!(probabilities(none.confidence()), [None; 3], "{name:?}");
    }
}
