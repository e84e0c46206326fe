//! The answers that prove that a server ignores its schema, with the real dialects and the real validator.

use std::sync::Arc;

use formwork_core::*;
use formwork_extract::{Backend, Extractor};
use formwork_testkit::Scripted;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::*;

/// Returns the observations after one answer to a call for this schema in this dialect, and the schema that was sent.
fn taught(contract: Contract, dialect: &str, text: &str) -> Option<(Option<ObservationKind>, Value)> {
    let model = Arc::new(Scripted::new([text]));
    let backend = Backend::from(Arc::clone(&model)).with_mode(formwork_dialect::dialect(dialect)?);
    let extractor = Extractor::<Value>::for_contract(contract).with_target(backend).with_max_attempts(1);
    // Some dialects cannot express some schemas.
    let extractor = extractor.build().ok()?;
    let calls = match extractor.extract_blocking(TEXT) {
        Ok(outcome) => outcome.calls,
        Err(error) => error.calls().to_vec(),
    };
    let sent = model.calls()[0].schema()?.clone();
    Some((calls[0].observation.as_ref().map(|observation| observation.kind), sent))
}

fn contract(schema: &Value) -> Contract {
    formwork_schema::contract_for(Arc::new(Inline::new("any", schema.clone()))).unwrap()
}

/// A validator that rejects the structure of every value, so that a proof depends only on the sent schema.
struct Suspicious;

impl Validator for Suspicious {
    fn validate(&self, _: &Value, _: &Context<'_>, out: &mut Report) {
        out.push(Violation::new(JsonPath::root(), "type", Stage::Schema));
    }
}

impl Structure for Suspicious {
    fn subschema(&self, _: &JsonPath, _: &Value) -> Option<Value> {
        None
    }
}

fn suspected(schema: &Value, dialect: &str, text: &str) -> Option<(Option<ObservationKind>, Value)> {
    let schema = Arc::new(Inline::new("any", schema.clone()));
    taught(Contract::new(schema, Arc::new(Suspicious)), dialect, text)
}

fn any_dialect() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["openai", "anthropic", "llama-cpp", "ollama", "llguidance"])
}

fn keeps_to(schema: &Value, value: &Value) -> bool {
    contract(schema).judge(value, &Context::EMPTY).is_accepted()
}

/// Returns a strategy for a schema, a dialect, and answers that satisfy or slightly violate the sent schema.
fn any_answers() -> impl Strategy<Value = (Value, &'static str, Vec<Value>)> {
    let inputs = (formwork_testkit::schema(), any_dialect());
    inputs.prop_flat_map(|(schema, dialect)| {
        let sent = suspected(&schema, dialect, "{}").map(|(_, sent)| sent).unwrap_or(schema.clone());
        let value = formwork_testkit::instance(&sent);
        (Just(schema), Just(dialect), Just(sent), value).prop_map(|(schema, dialect, sent, value)| {
            let misses = formwork_testkit::near_misses(&sent, &value);
            (
                schema,
                dialect,
                std::iter::once(value).chain(misses.into_iter().map(|miss| miss.value)).collect(),
            )
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The validator of answers, applied to the sent schema, decides what counts as a proof.
    #[test]
    fn no_answer_that_keeps_to_what_was_sent_is_a_proof((schema, dialect, answers) in any_answers()) {
        for answer in answers {
            if let Some((Some(_), sent)) = suspected(&schema, dialect, &answer.to_string()) {
                prop_assert!(!keeps_to(&sent, &answer), "{} keeps to {}", answer, sent);
            }
        }
    }
}

#[test]
fn near_misses_of_structure_are_proofs() {
    let schema = json!({
        "type": "object",
        "properties": {
            "kind": {"enum": ["a", "b"]},
            "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
            "of": {"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]},
        },
        "required": ["kind", "tags", "of"],
        "additionalProperties": false,
        "$defs": {"x": {"type": "object", "properties": {"y": {"type": "integer"}}, "required": ["y"], "additionalProperties": false}},
    });
    let wrong = [
        r#"{"kind": "c", "tags": ["x"], "of": null}"#,
        r#"{"kind": "a", "tags": [], "of": null}"#,
        r#"{"kind": "a", "tags": ["x", "y", "z"], "of": null}"#,
        r#"{"kind": "a", "tags": ["x", 1], "of": null}"#,
        r#"{"kind": "a", "tags": ["x"], "of": {"y": "1"}}"#,
        r#"{"kind": "a", "tags": ["x"]}"#,
    ];
    for dialect in ["openai", "llama-cpp", "ollama", "llguidance"] {
        for text in wrong {
            let (observation, sent) = taught(contract(&schema), dialect, text).unwrap();
            assert_eq!(observation, Some(ObservationKind::Ignored), "{dialect}: {text} for {sent}");
        }
        let right = r#"{"kind": "a", "tags": ["x"], "of": {"y": 1}}"#;
        assert_eq!(taught(contract(&schema), dialect, right).unwrap().0, None);
    }
}
