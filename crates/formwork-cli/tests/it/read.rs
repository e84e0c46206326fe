use serde_json::json;

use crate::{against_schema, example, formwork, refused};

#[test]
fn the_document_is_printed_and_the_edits_on_request() {
    let text = "Sure:\n```json\n{\"age\": 34,}\n```\n";
    let ran = formwork(&["read"], text);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "{\n  \"age\": 34\n}\n", ""));
    let ran = formwork(&["read", "-v"], text);
    assert!(ran.stderr.contains("standard input: trailing comma at bytes 24..25"), "{}", ran.stderr);
    let ran = formwork(&["read", "--json"], text);
    let row = ran.rows().remove(0);
    assert_eq!((&row["ok"], &row["value"]), (&json!(true), &json!({"age": 34})));
    assert_eq!(
        row["edits"][2],
        json!({"kind": "trailing_comma", "span": {"start": 24, "end": 25}, "with": ""})
    );
}

#[test]
fn the_level_decides() {
    for (level, code) in [("strict", 1), ("clean", 1), ("lenient", 0)] {
        let ran = formwork(&["read", "--level", level], "{'age': 34}");
        assert_eq!(ran.code, code, "{}", ran.stderr);
    }
    let ran = formwork(&["read", "--level", "clean"], "{'age': 34}");
    assert!(
        ran.stderr.starts_with(
            "error: standard input: not JSON at byte 1: other quotes around a string (read at level lenient)"
        ),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_schema_chooses_among_candidates() {
    let schema = example("person.schema.json");
    let text = r#"Draft: {"name": "A", "age": 1, "note": "much longer"}. Final: {"name": "B", "age": 2, "city": "C"}."#;
    let ran = formwork(&["read", "--json", "--schema", &schema], text);
    assert_eq!(ran.rows()[0]["value"]["name"], "B");
    let ran = formwork(&["read", "--schema", &schema], r#"{"name": "B"}"#);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("Missing required field at path $.age") && ran.stdout.is_empty(),
        "{}",
        ran.stderr
    );
}

#[test]
fn rows_are_answered_one_by_one() {
    let rows = [
        json!({"id": 1, "input": "{\"a\": 1}"}).to_string(),
        json!({"id": 2, "input": "I'm sorry."}).to_string(),
        json!({"id": 3, "input": "[1] or [\"x\"]", "schema": {"items": {"type": "string"}}}).to_string(),
        json!({"id": 4, "input": "[1]", "schema": {"items": {"type": "string"}}}).to_string(),
        json!({"id": 5, "input": "[1]", "schema": 7}).to_string(),
    ];
    let ran = formwork(&["read", "--jsonl"], rows.join("\n"));
    let answers = ran.rows();
    assert_eq!((ran.code, answers.len()), (1, 5));
    for answer in &answers {
        assert_eq!(against_schema("read-output.json", answer), Vec::<String>::new(), "{answer}");
    }
    assert_eq!(answers[0], json!({"id": 1, "ok": true, "value": {"a": 1}, "edits": []}));
    assert_eq!(
        answers[1],
        json!({"id": 2, "ok": false, "error": {
            "class": "unreadable", "message": "no JSON object or array in the text", "reason": {"kind": "not_found"},
        }})
    );
    assert_eq!((&answers[2]["ok"], &answers[2]["value"]), (&json!(true), &json!(["x"])));
    assert_eq!((&answers[3]["ok"], &answers[3]["error"]["class"]), (&json!(false), &json!("invalid")));
    assert_eq!(answers[4]["error"]["class"], "schema");
}

#[test]
fn bad_input_is_one_message_and_the_right_exit_code() {
    for (stdin, says) in [
        (b"".to_vec(), "the text is empty"),
        (b"hello".to_vec(), "no JSON object or array in the text"),
        (b"{\"a\": \"\xFF\"}".to_vec(), "not UTF-8 at byte 7"),
        ("[".repeat(10_000_000).into_bytes(), "nested deeper than 127 levels"),
        (b"<think>{}".to_vec(), "ends inside its reasoning"),
    ] {
        let ran = formwork(&["read"], stdin);
        assert!(
            ran.code == 1 && ran.stderr.contains(says) && ran.stderr.lines().count() == 1,
            "{says}: {} {}",
            ran.code,
            ran.stderr
        );
    }
    let ran = formwork(&["read", "--level", "loose"], "{}");
    assert_eq!(ran.code, 2);
    refused(&formwork(&["read", "--schema", "-"], "{}"), 2, "standard input can be only one of the inputs");
    let ran = formwork(&["read", "nowhere.txt"], "");
    assert_eq!((ran.code, ran.stderr.starts_with("error: cannot read nowhere.txt: ")), (2, true));
}
