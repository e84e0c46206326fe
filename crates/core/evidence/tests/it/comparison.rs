//! Equal and different values of each comparison.

use formwork_evidence::{Compare, subschema};
use formwork_json::Segment;
use serde_json::json;

#[test]
fn each_comparison_has_equal_and_different_values() {
    for (how, one, other, equal) in [
        (json!("exact"), json!("A"), json!("a"), false),
        (json!("exact"), json!(1), json!(1.0), true),
        (json!("number"), json!(1), json!(1.000_000_1), true),
        (json!("number"), json!("1.234,50"), json!(1234.5), true),
        (json!("number"), json!(1), json!(1.1), false),
        (json!({"as": "number", "tolerance": 0.01}), json!(10.0), json!(10.01), true),
        (json!({"as": "number", "tolerance": 0.01}), json!(10.0), json!(10.02), false),
        (json!("date"), json!("2024-03-05"), json!("5. März 2024"), true),
        (json!("date"), json!("2024-03-05"), json!("03/05/2024"), true),
        (json!("date"), json!("2024-03-05"), json!("6 March 2024"), false),
        (json!("date"), json!("2024-03-05T10:00"), json!("2024-03-05T11:00"), false),
        (json!("text"), json!("Acme, Inc."), json!("ACME INC"), true),
        (json!("text"), json!("Cafe\u{301}"), json!("Café"), true),
        (json!("text"), json!("Acme"), json!("Acne"), false),
        (json!("text"), json!("straße"), json!("STRASSE"), true),
        (json!("text"), json!("12.50"), json!("1250"), false),
        (json!("text"), json!("12.50"), json!("12,5"), true),
        (json!("text"), json!("EUR 1,250.00"), json!("eur 1.250,00"), true),
        (json!("text"), json!("1,250"), json!("1250"), true),
        (json!("text"), json!("05.03.2024"), json!("05/03/2024"), true),
        (json!("text"), json!("v1.2.3"), json!("v123"), true),
        (json!("text"), json!("EUR12.50"), json!("EUR 12.50"), true),
        (json!("text"), json!("EUR12.50"), json!("EUR1250"), false),
        (json!("text"), json!("金额12.50元"), json!("金额1250元"), false),
        (json!("text"), json!("1.50-2.00"), json!("1.50 - 2.00"), true),
        (json!("text"), json!("1.50-2.00"), json!("150-2"), false),
        (json!("text"), json!("4.5/5"), json!("45/5"), false),
        (json!("text"), json!("(555)-123-4567"), json!("(555) 123-4567"), true),
        (json!("text"), json!("10%-20%"), json!("10% - 20%"), true),
        (json!("text"), json!("10€-20€"), json!("10€ - 20€"), true),
        (json!("text"), json!("-$5"), json!("$5"), false),
        (json!("text"), json!("-$100"), json!("$-100"), true),
        (json!("text"), json!(".5"), json!("5"), false),
        (json!("text"), json!(".5"), json!("0.50"), true),
        (json!("text"), json!("40.7128"), json!("407128"), false),
        (json!("text"), json!("0.125"), json!("0125"), false),
        (json!("text"), json!("05.2024"), json!("05/2024"), true),
        (json!("text"), json!("نعم، شكرا"), json!("نعم شكرا"), true),
        (json!("date-time"), json!("March 5, 2024 10:00 AM"), json!("March 5, 2024, 10:00 am"), true),
        (json!("date-time"), json!("2024-02-30T10:00Z"), json!("2024-03-01T10:00Z"), false),
        (json!("text"), json!("-5"), json!("5"), false),
        (json!("text"), json!("(-5 %)"), json!("\u{2212}5%"), true),
        (json!("text"), json!("A-12"), json!("A12"), true),
        (json!("text"), json!("<5"), json!(">5"), false),
        (json!("text"), json!("€5"), json!("$5"), false),
        (json!("text"), json!("C++"), json!("C"), false),
        (json!("text"), json!("\u{1f44d}"), json!("\u{1f44e}"), false),
        (json!("text"), json!("«Wort» – „Satz“…"), json!("wort satz"), true),
        (json!("text"), json!("合計：「千円」"), json!("合計千円"), true),
        (json!("date-time"), json!("2024-03-05T10:00:00Z"), json!("2024-03-05T10:00:00+00:00"), true),
        (json!("date-time"), json!("2024-03-05T10:00:00Z"), json!("2024-03-05 12:00:00.000+02:00"), true),
        (json!("date-time"), json!("2024-03-01T00:30+01:00"), json!("2024-02-29T23:30Z"), true),
        (json!("date-time"), json!("2024-03-05T10:00:00Z"), json!("2024-03-05T10:00"), true),
        (json!("date-time"), json!("2024-03-05T10:00:00Z"), json!("2024-03-05T10:00:01Z"), false),
        (json!("date-time"), json!("2024-03-05T10:00:00Z"), json!("2024-03-05"), false),
        (json!("date-time"), json!("2024-03-05"), json!("5 March 2024"), true),
        (json!("date-time"), json!("10:00"), json!("10:00"), true),
        (json!("set"), json!(["a", "b", "a"]), json!(["B", "a"]), true),
        (json!("set"), json!(["a", "b"]), json!(["a"]), false),
        (json!("list"), json!(["a", "b"]), json!(["b", "a"]), false),
    ] {
        let compare = Compare::parse(&how).unwrap();
        assert_eq!(compare.is_equal(&one, &other), equal, "{how}: {one} and {other}");
        assert_eq!(compare.is_equal(&other, &one), equal, "{how}: {other} and {one}");
    }
}

#[test]
fn an_unknown_comparison_is_an_error_with_the_valid_ones() {
    for wrong in [
        json!("same"),
        json!({"as": "number", "tolerance": -1}),
        json!({"as": "text", "tolerance": 1}),
        json!({"as": "number", "tol": 1}),
        json!(1),
    ] {
        let error = Compare::parse(&wrong).unwrap_err();
        assert!(error.contains("expected exact, number, date, date-time, text, set or list"), "{error}");
    }
}

/// A schema states the comparison in any place that describes the value.
#[test]
fn the_comparison_is_found_through_references_variants_and_maps() {
    let date = json!({"type": "string", "format": "date"});
    for schema in [
        json!({"properties": {"a": date}}),
        json!({"properties": {"a": {"anyOf": [date, {"type": "null"}]}}}),
        json!({"properties": {"a": {"oneOf": [{"type": "null"}, {"allOf": [date]}]}}}),
        json!({"properties": {"a": {"$ref": "#/$defs/day"}}, "$defs": {"day": {"anyOf": [{"type": "null"}, date]}}}),
        json!({"additionalProperties": date}),
        json!({"allOf": [{"additionalProperties": {"enum": ["x"]}}, {"properties": {"a": date}}]}),
    ] {
        let member = subschema(&schema, &schema, &Segment::Key("a".to_owned())).unwrap();
        assert_eq!(Compare::of_schema(&schema, member), Ok(Some(Compare::Date)), "{schema}");
    }
    let choice = json!({"anyOf": [{"enum": ["A"]}, {"type": "null"}]});
    assert_eq!(Compare::of_schema(&choice, &choice), Ok(Some(Compare::Exact)));
    for open in [
        json!({"anyOf": [{"type": "string"}, {"const": null}]}),
        json!({"anyOf": [{"enum": ["A"]}, {"type": "string"}]}),
    ] {
        assert_eq!(Compare::of_schema(&open, &open), Ok(None), "{open}");
    }
    let endless = json!({"$ref": "#"});
    assert_eq!(Compare::of_schema(&endless, &endless), Ok(None));
}
