//! `formwork evidence`: rows, one document, and errors.

use serde_json::json;

use crate::{against_schema, example, formwork};

#[test]
fn each_row_has_the_place_of_each_leaf() {
    let rows = "{\"id\": 7, \"input\": \"Größe: 5\\u000cTotal: 5\", \"value\": {\"total\": 5, \"by\": null}}\nno row\n";
    let ran = formwork(&["evidence", "--jsonl"], rows);
    assert_eq!(ran.code, 1);
    let against = against_schema("evidence-output.json", &ran.rows()[0]);
    assert!(against.is_empty(), "{against:?}");
    let found = json!({"path": "$.total", "status": "exact", "spans": [{"start": 16, "end": 17, "page": 2}, {"start": 7, "end": 8, "page": 1}]});
    let none = json!({"path": "$.by", "status": "not_found", "spans": []});
    assert_eq!(ran.rows()[0], json!({"id": 7, "evidence": [found, none]}));
    assert_eq!(ran.rows()[1]["error"]["class"], "row");
}

#[test]
fn a_document_has_a_table_or_json() {
    let (letter, schema) = (example("letter.txt"), example("person.schema.json"));
    let value = r#"{"name": "Maria Lindqvist", "age": 34, "city": "Oslo"}"#;
    let ran = formwork(&["evidence", "--input", &letter, "--schema", &schema, "-"], value);
    assert!(ran.code == 0 && ran.stdout.contains("line 3: Maria Lindqvist"), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("not_found"), "{}", ran.stdout);
    let ran = formwork(&["evidence", "--input", &letter, "--json"], value);
    assert_eq!(ran.rows()[0]["evidence"][1]["path"], "$.age");
    assert_eq!(formwork(&["evidence", "--input", "missing.txt", "-"], value).code, 2);
}
