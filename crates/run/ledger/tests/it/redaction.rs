use formwork_core::Time;
use formwork_ledger::{Ledger, Redaction, RunQuery, Settings};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::given::{NOW, retried, with_bodies};

/// The bytes of the whole file and its journal.
fn bytes_after(settings: Settings, body: &str, answer: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path().join("ledger.db"), settings).unwrap();
    let mut run = retried(NOW);
    run.request = Some(body.to_owned());
    run.calls[0].answer = Some(answer.to_owned());
    run.calls[1].answer = None;
    ledger.record(run);
    ledger.flush_blocking().unwrap();
    assert_eq!(ledger.runs(&RunQuery::default()).unwrap().runs.len(), 1);
    let files = std::fs::read_dir(folder.path()).unwrap();
    files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn keys_are_removed_from_every_text_without_any_rule() {
    let hex = "0123456789abcdef".repeat(4);
    let keys = [
        format!("fw_{hex}"),
        "sk-proj-abcdefghijklmnop1234".to_owned(),
        "sk-ant-api03-AbCdEfGhIjKlMnOpQrSt".to_owned(),
        format!("AIza{}", "B".repeat(35)),
        "hf_abcdefghijklmnopqrstuvwx".to_owned(),
        "gsk_abcdefghijklmnopqrstuvwx".to_owned(),
        "AKIAIOSFODNN7EXAMPLE".to_owned(),
    ];
    for key in &keys {
        let ledger = Ledger::in_memory(with_bodies()).unwrap();
        let mut run = retried(NOW);
        let text = format!("my key is {key}, keep it");
        run.request = Some(json!({"content": text}).to_string());
        run.calls[0].answer = Some(text.clone());
        run.calls[0].message = Some(text.clone());
        run.calls[0].violations[0].message = text.clone();
        run.calls[0].violations[0].path = format!("$.{key}");
        run.message = Some(text.clone());
        run.user = Some(key.clone());
        run.tags = vec![key.clone()];
        let id = run.id;
        ledger.record(run);
        ledger.flush_blocking().unwrap();
        let stored = serde_json::to_string(&ledger.run(id).unwrap().unwrap()).unwrap();
        assert!(!stored.contains(key.as_str()), "{stored}");
        assert!(stored.contains("my key is [redacted], keep it"), "{stored}");
    }
    let bytes = bytes_after(with_bodies(), r#"{"authorization": "Bearer abc.def-123456"}"#, "{}");
    assert!(!has(&bytes, "abc.def-123456"));
}

#[test]
fn bodies_are_kept_only_if_requested() {
    for bodies in [false, true] {
        let bytes = bytes_after(
            Settings { bodies, ..Settings::default() },
            "{\"a\": \"request-text\"}",
            "answer-text",
        );
        assert_eq!((has(&bytes, "request-text"), has(&bytes, "answer-text")), (bodies, bodies));
    }
}

#[test]
fn a_function_removes_texts_that_no_pattern_names() {
    let redaction = Redaction::default().with_function(|text| text.replace("Maria", "[redacted]"));
    let bytes = bytes_after(Settings { redaction, ..with_bodies() }, r#"{"a": "Maria"}"#, "Maria moved");
    assert!(!has(&bytes, "Maria") && has(&bytes, "moved"));
}

const IBAN: &str = "DE02120300000000202051";

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z ]{0,12}".prop_map(Value::from),
        Just(Value::from(format!("IBAN {IBAN}"))),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let name = prop::sample::select(vec!["a", "b", "email", "rows", "x y"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..4).prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_that_a_function_removes_is_stored(document in document()) {
        let redaction = Redaction::default().with_function(|text| text.replace(IBAN, "[redacted]"));
        let ledger = Ledger::in_memory(Settings { redaction, ..with_bodies() }).unwrap();
        let mut run = retried(Time(NOW.0));
        run.request = Some(document.to_string());
        run.calls[0].answer = Some(document.to_string());
        let id = run.id;
        ledger.record(run);
        ledger.flush_blocking().unwrap();
        let stored = ledger.run(id).unwrap().unwrap();
        let (request, answer) = (stored.request.unwrap(), stored.calls[0].answer.clone().unwrap());
        let expected = document.to_string().replace(IBAN, "[redacted]");
        prop_assert_eq!((&request, &answer), (&expected, &expected));
    }
}
