//! `formwork evidence`: rows, one document, and errors.

use serde_json::json;

use crate::{against_schema, example, formwork, temporary};

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

#[test]
fn a_page_marks_the_chosen_place_and_escapes_the_text() {
    let text = &temporary("page.txt", "Subtotal 12.00 <script>alert(1)</script>\nTotal 12.00\n");
    let page = &temporary("page.html", "");
    let ran = formwork(&["evidence", "--input", text, "--html", page, "-"], r#"{"total": 12, "by": "<b>"}"#);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let written = std::fs::read_to_string(page).unwrap();
    let mark = "\nTotal <mark id=\"v0\" class=\"normalised\" title=\"$.total\">12.00</mark>";
    assert!(written.contains(mark) && written.contains("12.00 &lt;script&gt;"), "{written}");
    assert!(
        written.contains("&lt;b&gt;") && !written.contains("<script") && !written.contains("<b>"),
        "{written}"
    );
    let ran = formwork(&["evidence", "--input", text, "--html", "/no/such/folder/a.html", "-"], "{}");
    assert!(ran.code == 2 && ran.stderr.contains("cannot write /no/such/folder/a.html"), "{}", ran.stderr);
}
