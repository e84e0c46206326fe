//! Members without a value: `--may-be-absent`, `absent` of contracts, and the class `not_stated`.

use formwork_testkit::server::Server;
use serde_json::{Value, json};

use super::config::{chat, of};
use super::{Ran, against_schema, formwork, refused, temporary};

const SCHEMA: &str = r#"{"type": "object", "properties": {"name": {"type": "string"}, "birth": {"type": "string"},
    "nick": {"type": "string"}}, "required": ["name", "birth"]}"#;

const TEXT: &str = "Maria lives in Lisbon.";

fn extract(server: &Server, args: &[&str]) -> Ran {
    let config = temporary(&format!("absence-{}.toml", server.address().port()), of(server));
    formwork(&[&["extract", "--config", &config], args].concat(), "")
}

#[test]
fn a_flag_marks_all_required_members_or_those_at_paths_and_takes_no_text() {
    let null = r#"{"name": "Maria", "birth": null}"#;
    for flags in [
        vec!["--may-be-absent"],
        vec!["--may-be-absent=$.birth"],
        vec!["--may-be-absent=$.name", "--may-be-absent=$.birth"],
        vec!["--may-be-absent=all"],
    ] {
        let server = chat(&[null]);
        // The text follows the flag at once.
        let ran = extract(&server, &[&["--schema", SCHEMA], &flags[..], &[TEXT]].concat());
        assert_eq!((ran.code, ran.stdout.trim()), (0, null), "{flags:?}: {}", ran.stderr);
        let sent: Value = serde_json::from_slice(&server.received()[0].body).unwrap();
        assert!(sent["messages"].to_string().contains(TEXT), "{sent}");
        assert!(!sent.to_string().contains("x-formwork-absent"), "{sent}");
        let ran = extract(
            &chat(&[r#"{"name": "Maria"}"#]),
            &[&["--json", "--schema", SCHEMA], &flags[..], &[TEXT]].concat(),
        );
        let output: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(
            (&output["value"]["birth"], &output["not_stated"]),
            (&Value::Null, &json!(["$.birth"])),
            "{output}"
        );
        assert_eq!(against_schema("extract-output.json", &output), Vec::<String>::new());
    }
    let ran = extract(&chat(&[null]), &["--schema", SCHEMA, "--may-be-absent=$.brith", TEXT]);
    refused(&ran, 2, "#/x-formwork-absent/0: ");
    assert!(ran.stderr.contains("$.birth"), "{}", ran.stderr);
    let ran = extract(&chat(&[null]), &["--schema", SCHEMA, "--may-be-absent=birth", TEXT]);
    refused(&ran, 2, "birth");
}

#[test]
fn a_contract_names_the_members_that_a_text_may_lack() {
    let contract = format!("schema: {}\nabsent: [\"$.birth\"]\n", SCHEMA.replace('\n', " "));
    let contract = temporary("absence.yaml", contract);
    let server = chat(&[r#"{"name": "Maria", "birth": null}"#]);
    let ran = extract(&server, &["--json", "--contract", &contract, TEXT]);
    let output: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &output["not_stated"]), (0, &json!(["$.birth"])), "{}", ran.stderr);
}

#[test]
fn a_required_value_that_the_text_does_not_state_ends_with_its_own_class_after_two_calls() {
    let server = chat(&[r#"{"name": "Maria", "birth": null}"#]);
    let ran = extract(&server, &["--json", "--schema", SCHEMA, TEXT]);
    let output: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, server.received().len()), (1, 2), "{}", ran.stderr);
    assert_eq!(
        (&output["error"]["class"], &output["not_stated"]),
        (&json!("not_stated"), &json!(["$.birth"])),
        "{output}"
    );
    assert_eq!(against_schema("extract-output.json", &output), Vec::<String>::new());
    assert!(ran.stderr.contains("$.birth"), "{}", ran.stderr);
}

#[test]
fn null_in_an_optional_member_is_a_warning_and_no_member_of_the_value() {
    let server = chat(&[r#"{"name": "Maria", "birth": "1990", "nick": null}"#]);
    let ran = extract(&server, &["--schema", SCHEMA, TEXT]);
    assert_eq!((ran.code, server.received().len()), (0, 1), "{}", ran.stderr);
    assert_eq!(ran.stdout.trim(), r#"{"name": "Maria", "birth": "1990"}"#);
    assert!(ran.stderr.contains("null_as_absent at $.nick"), "{}", ran.stderr);
}

/// A file is checked as it is: `null` counts as a value, except in members that the schema marks.
#[test]
fn check_judges_a_file_as_it_is() {
    let mut marked: Value = serde_json::from_str(SCHEMA).unwrap();
    marked["properties"]["birth"]["x-formwork-absent"] = json!(true);
    let marked = temporary("marked.schema.json", marked.to_string());
    for (name, value, code) in [
        ("stated", json!({"name": "M", "birth": "1990"}), 0),
        ("not-stated", json!({"name": "M", "birth": null}), 0),
        ("missing", json!({"name": "M"}), 1),
        ("optional", json!({"name": "M", "birth": null, "nick": null}), 1),
    ] {
        let file = temporary(&format!("absence-{name}.json"), value.to_string());
        let ran = formwork(&["check", "--schema", &marked, &file], "");
        assert_eq!(ran.code, code, "{name}: {}{}", ran.stdout, ran.stderr);
    }
}
