//! Values that do not fit the schema: `--coerce` of `extract`, `check` and `read`, and `coerce` of contracts.

use formwork_testkit::server::Server;
use serde_json::{Value, json};

use super::config::{chat, of};
use super::{Ran, formwork, refused, temporary};

const SCHEMA: &str = r#"{"type": "object", "properties": {"age": {"type": "integer"}, "note": {"type": "string"}}, "required": ["age"]}"#;

fn extract(server: &Server, args: &[&str]) -> Ran {
    let config = temporary(&format!("coercion-{}.toml", server.address().port()), of(server));
    formwork(&[&["extract", "--json", "--config", &config], args].concat(), "")
}

fn value(ran: &Ran) -> Value {
    serde_json::from_str::<Value>(&ran.stdout).unwrap()["value"].clone()
}

#[test]
fn an_extraction_fixes_by_default_and_asks_or_drops_where_it_is_told_to() {
    let answers = [r#"{"age": "34", "note": [1, 2]}"#, r#"{"age": 35, "note": "x"}"#];
    for (flags, expected, calls) in [
        (vec!["--coerce", "$.note=drop"], json!({"age": 34}), 1),
        (vec!["--coerce", "ask"], json!({"age": 35, "note": "x"}), 2),
        (vec!["--coerce", "ask", "--coerce", "$.age=fix", "--coerce", "$.note=drop"], json!({"age": 34}), 1),
    ] {
        let server = chat(&answers);
        let ran = extract(&server, &[&["--schema", SCHEMA], &flags[..], &["Maria, 34"]].concat());
        assert_eq!((value(&ran), server.received().len()), (expected, calls), "{flags:?}: {}", ran.stderr);
        let sent = String::from_utf8_lossy(&server.received()[0].body).into_owned();
        assert!(!sent.contains("x-formwork-coerce"), "{sent}");
    }
    let contract = temporary("coercion.yaml", format!("schema: {}\ncoerce: {{$.note: drop}}\n", SCHEMA));
    let ran = extract(&chat(&answers), &["--contract", &contract, "Maria, 34"]);
    assert_eq!(value(&ran), json!({"age": 34}), "{}", ran.stderr);
    assert!(ran.stdout.contains("coerced"), "{}", ran.stdout);
}

#[test]
fn a_wrong_place_or_name_is_refused() {
    let ran = extract(&chat(&[""]), &["--schema", SCHEMA, "--coerce", "$.note2=drop", "Maria"]);
    refused(&ran, 2, "#/x-formwork-coerce: ");
    let ran = extract(&chat(&[""]), &["--schema", SCHEMA, "--coerce", "fixed", "Maria"]);
    assert!(ran.code == 2 && ran.stderr.contains("expected strict, ask, fix, drop"), "{}", ran.stderr);
}

#[test]
fn check_and_read_convert_only_where_they_are_told_to() {
    let schema = temporary("coercion.schema.json", SCHEMA);
    let document = temporary("coercion.json", r#"{"age": "34", "note": 1.50}"#);
    let check = |flags: &[&str]| formwork(&[&["check", "--schema", &schema, &document], flags].concat(), "");
    assert_eq!(check(&[]).code, 1);
    let ran = check(&["--coerce", "fix"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stderr.contains(r#"coerced at $.age: "34" was read as 34"#), "{}", ran.stderr);
    let read = |flags: &[&str], text: &str| {
        formwork(&[&["read", "--json", "--schema", &schema], flags].concat(), text)
    };
    assert_eq!(read(&[], r#"{"age": "34"}"#).code, 1);
    let ran = read(&["--coerce", "fix"], r#"Sure: {"age": "34", "note": 1.50}"#);
    assert_eq!((ran.code, value(&ran)), (0, json!({"age": 34, "note": "1.50"})), "{}", ran.stderr);
    // The keyword of a schema decides as well, without a flag.
    for mark in [json!("fix"), json!({"$.age": "fix"})] {
        let mut marked: Value = serde_json::from_str(SCHEMA).unwrap();
        marked["x-formwork-coerce"] = mark;
        let row = |age: Value| {
            json!({"id": 1, "input": json!({"age": age}).to_string(), "schema": marked}).to_string()
        };
        for (age, value) in [(json!("34"), json!({"age": 34})), (json!("old"), json!({"age": "old"}))] {
            let is_ok = value["age"] == 34;
            let read = formwork(&["read", "--jsonl", "--allow-failures"], row(age.clone()));
            assert_eq!(
                (&read.rows()[0]["value"], &read.rows()[0]["ok"]),
                (&value, &json!(is_ok)),
                "{}",
                read.stdout
            );
            let ran = formwork(&["read", "--progress", "--jsonl"], row(age));
            assert_eq!(ran.rows()[0]["impossible_at"].is_null(), is_ok, "{}", ran.stdout);
        }
        let schema = temporary("coercion.marked.json", marked.to_string());
        assert_eq!(formwork(&["read", "--schema", &schema], r#"{"age": "34"}"#).code, 0);
        assert_eq!(
            formwork(&["check", "--schema", &schema, &document], "").code,
            i32::from(marked["x-formwork-coerce"] != "fix")
        );
    }
    let listed = temporary("coercion.list.json", r#"{"enum": ["ONE", "TWO"]}"#);
    let ran = formwork(&["read", "--json", "--schema", &listed, "--coerce", "guess"], "The answer is two.");
    assert_eq!((ran.code, value(&ran)), (0, json!("TWO")), "{}", ran.stderr);
}
