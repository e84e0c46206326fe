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
        (json!("text"), json!("2024-1-17"), json!("2024-11-7"), false),
        (json!("text"), json!("1/12/2024"), json!("11/2/2024"), false),
        (json!("text"), json!("2024-01-05"), json!("20240105"), true),
        (json!("text"), json!("2024-1-17 a"), json!("2024-11-7a"), true),
        (json!("text"), json!("v1.2.3"), json!("v123"), true),
        (json!("text"), json!("1:30"), json!("130"), false),
        (json!("text"), json!("1:30 h"), json!("1 : 30 h"), true),
        (json!("text"), json!("5/6"), json!("56"), false),
        (json!("text"), json!("12.50/13.50"), json!("12.5/13.5"), true),
        (json!("text"), json!("1.234.567"), json!("1234567"), true),
        (json!("text"), json!("05-03-2024"), json!("05/03/2024"), true),
        (json!("text"), json!("555-1234"), json!("5551234"), true),
        (json!("text"), json!("DE89 3704 0044"), json!("DE8937040044"), true),
        (json!("text"), json!("10%"), json!("10"), false),
        (json!("text"), json!("10‰"), json!("10%"), false),
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
        (json!("text"), json!("120x80x60"), json!("120×80×60"), true),
        (json!("text"), json!("120x80x60"), json!("120 × 80 × 60"), true),
        (json!("text"), json!("120x80x60"), json!("120×8060"), false),
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

/// Models and people write amounts with their currency.
#[test]
fn numbers_are_equal_beside_a_currency_unless_it_is_another_one() {
    for (one, other, equal) in [
        (json!(1234), json!("$1,234.00"), true),
        (json!(1234), json!("1234 EUR"), true),
        (json!("1.234,00 €"), json!("EUR 1,234.00"), true),
        (json!(-1234.5), json!("-$1,234.50"), true),
        (json!(-5), json!("-5 €"), true),
        (json!(5), json!("-$5"), false),
        (json!(5), json!("5%"), true),
        (json!("$1,234.00"), json!("1234 EUR"), false),
        (json!("5%"), json!("$5"), false),
        (json!(1234), json!("$1,235.00"), false),
        (json!(5), json!("5 kg"), false),
    ] {
        assert_eq!(Compare::NUMBER.is_equal(&one, &other), equal, "{one} and {other}");
        assert_eq!(Compare::NUMBER.is_equal(&other, &one), equal, "{other} and {one}");
    }
}

#[test]
fn small_numbers_are_compared_relative_to_their_size() {
    let absolute = Compare::parse(&json!({"as": "number", "tolerance": 1e-6})).unwrap();
    for (how, one, other, equal) in [
        (Compare::NUMBER, 2.5e-7, 9.1e-7, false),
        (Compare::NUMBER, 2.5e-7, 0.0, false),
        (Compare::NUMBER, 2.5e-7, 2.500_000_1e-7, true),
        (Compare::NUMBER, 1e9, 1e9 + 0.001, false),
        (Compare::NUMBER, 0.0, -0.0, true),
        (Compare::Text, 2.5e-7, 9.1e-7, false),
        (absolute, 2.5e-7, 9.1e-7, true),
    ] {
        assert_eq!(how.is_equal(&json!(one), &json!(other)), equal, "{how:?}: {one} and {other}");
    }
}

#[test]
fn instants_are_equal_in_every_notation_of_dates_and_times() {
    let compare = Compare::DateTime;
    for (one, other, equal) in [
        ("2024-03-05T10:00:00", "March 5, 2024 10:00 AM", true),
        ("2024-03-05T10:30:00Z", "20240305T103000Z", true),
        ("2024-03-05T10:30:00Z", "20240305T1030Z", true),
        ("2024-03-05T10:30:00.5Z", "20240305T103000.500Z", true),
        ("2024-03-05T22:00:00+01:00", "5. März 2024, 22:00 CET", true),
        ("2024-03-05T22:00", "05/03/2024 at 10:00 pm", true),
        ("2024-03-06T01:30:00Z", "5 Mar 2024 20:30 -0500", true),
        ("2024-03-05T24:00", "2024-03-06T00:00", true),
        ("2024-03-05T10:30:00.123Z", "2024-03-05T10:30:00.456Z", false),
        ("2024-03-05T10:00:00", "March 5, 2024 10:00 PM", false),
        ("2024-03-05T10:00:00", "March 6, 2024 10:00 AM", false),
        ("2024-03-05T10:30:00Z", "20240305T103001Z", false),
        ("2024-03-05T10:30:00Z", "20240305", false),
        ("March 5, 2024 10:00 a.m.", "March 5, 2024, 10:00 AM", true),
    ] {
        assert_eq!(compare.is_equal(&json!(one), &json!(other)), equal, "{one} and {other}");
        assert_eq!(compare.is_equal(&json!(other), &json!(one)), equal, "{other} and {one}");
    }
}

#[test]
fn comparisons_are_taken_from_all_parts_of_a_schema_and_an_invalid_one_is_located() {
    let item = |how: &str| json!({"type": "string", "x-formwork-compare": how});
    let mut schema = json!({
        "properties": {"a": item("date"), "x-formwork-compare": {"anyOf": [item("text"), {"type": "null"}]}},
        "$defs": {"b": {"items": item("exact")}},
        "x-formwork-compare": {"as": "number", "tolerance": 1},
    });
    Compare::take(&mut schema).unwrap();
    let plain = json!({"type": "string"});
    let expected = json!({
        "properties": {"a": plain, "x-formwork-compare": {"anyOf": [plain, {"type": "null"}]}},
        "$defs": {"b": {"items": plain}},
    });
    assert_eq!(schema, expected);
    let error = Compare::take(&mut json!({"properties": {"a": item("nmber")}})).unwrap_err();
    assert!(
        error.starts_with("#/properties/a/x-formwork-compare: `x-formwork-compare` is \"nmber\": expected"),
        "{error}"
    );
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
        json!({"patternProperties": {"^b": {"enum": ["x"]}, "^a$": date}, "additionalProperties": false}),
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
