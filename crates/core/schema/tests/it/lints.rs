use formwork_schema::lint;
use serde_json::{Value, json};

fn lints(schema: Value) -> Vec<String> {
    lint(&schema).iter().map(ToString::to_string).collect()
}

#[test]
fn misspelled_keywords_and_names_are_found() {
    assert_eq!(
        lints(json!({"properties": {"a": {"mininum": 1}}, "requird": []})),
        [
            "warning: #/properties/a/mininum: unknown keyword: did you mean `minimum`?",
            "warning: #/requird: unknown keyword: did you mean `required`?"
        ]
    );
    assert_eq!(
        lints(json!({"properties": {"reasoning": {}}, "required": ["reasonning"]})),
        [
            "warning: #/required/0: `reasonning` is required and no property has that name: did you mean `reasoning`?"
        ]
    );
    assert!(
        lints(json!({"x-own": 1, "faker": "name", "properties": {"requird": {}}, "required": ["other"]}))
            .is_empty()
    );
}

#[test]
fn what_nothing_satisfies_is_found() {
    assert_eq!(lints(json!({"type": "integer", "minimum": 5, "maximum": 1})).len(), 1);
    let findings = lints(
        json!({"type": "object", "properties": {"a": {"type": "string", "enum": [1]}}, "required": ["a"]}),
    );
    assert!(findings.iter().any(|finding| finding.starts_with("error: #:")), "{findings:?}");
    let findings = lints(json!({"properties": {"a": {"type": "string", "const": 1}}}));
    assert!(
        findings.iter().all(|finding| finding.starts_with("warning: #/properties/a: no value satisfies")),
        "{findings:?}"
    );
    assert!(lints(json!({"properties": {"a": false}})).is_empty(), "`false` is written on purpose");
}

#[test]
fn what_cannot_be_compiled_is_an_error() {
    let findings = lints(json!({"properties": {"a": {"$ref": "other.json"}}}));
    assert!(
        findings[0].starts_with("error: #/properties/a/$ref: `$ref` to another document"),
        "{findings:?}"
    );
}

#[test]
fn a_good_schema_has_no_findings() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "b": {"$ref": "#/$defs/b"}},
        "required": ["a"],
        "$defs": {"b": {"type": "array", "items": {"$ref": "#/$defs/b"}}},
    });
    assert!(lints(schema.clone()).is_empty(), "{:?}", lints(schema));
}
