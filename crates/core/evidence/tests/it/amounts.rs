//! Signs, groups and percentages of numbers.

use formwork_evidence::{Compare, Index, Status};
use serde_json::{Value, json};

/// Returns the text of the place of a value in a text; empty if it is not found.
fn place(text: &str, value: &Value) -> String {
    let index = Index::new(text);
    let evidence = index.evidence(&json!({ "value": value }), None).remove(0);
    let is_found = evidence.status != Status::NotFound;
    assert_eq!(index.states(value, 1), is_found, "grounded: {value} in {text:?}");
    let slice = |start: usize, end: usize| text.chars().skip(start).take(end - start).collect();
    evidence.spans.first().map_or_else(String::new, |span| slice(span.start, span.end))
}

#[test]
fn a_negative_amount_has_its_sign_before_or_after_the_number_or_the_currency() {
    for (text, value, expected) in [
        ("1.00-", 1.0, "1.00-"),
        ("Fee 50,00- EUR", 50.0, "50,00-"),
        ("1,250.00-\n", 1250.0, "1,250.00-"),
        ("1,250.00-  3.00", 1250.0, "1,250.00-"),
        ("Total $-45.10", 45.1, "-45.10"),
        ("€-9,00", 9.0, "-9,00"),
        ("£-50", 50.0, "-50"),
        ("-EUR 50.00", 50.0, "-EUR 50.00"),
        ("Refund: –45,10 €", 45.1, "–45,10"),
        ("-€ 8,00", 8.0, "-€ 8,00"),
        ("-$2.5 million", 2_500_000.0, "-$2.5 million"),
        ("-3.5%", 0.035, "-3.5"),
    ] {
        assert_eq!(place(text, &json!(-value)), expected, "-{value} in {text:?}");
        assert_eq!(place(text, &json!(value)), "", "{value} in {text:?}");
        assert_eq!(place(text, &json!(format!("{value:.2}"))), "", "the text {value:.2} in {text:?}");
    }
}

#[test]
fn parentheses_and_a_minus_apart_from_the_number_may_be_a_sign() {
    for (text, value, expected) in [
        ("Loss ($45.10)", 45.1, "($45.10)"),
        ("Net loss ($1,250)", 1250.0, "($1,250)"),
        ("Net (45.10 EUR)", 45.1, "(45.10 EUR)"),
        ("(€1,250.00)", 1250.0, "(€1,250.00)"),
        ("(USD 1,250.00)", 1250.0, "(USD 1,250.00)"),
        ("- 45,10 €", 45.1, "- 45,10"),
        ("Items:\n- 45,10 €\n", 45.1, "- 45,10"),
        ("Saldo - 45,10 €", 45.1, "- 45,10"),
        ("1.00- 2.00", 1.0, "1.00-"),
    ] {
        assert_eq!(place(text, &json!(-value)), expected, "-{value} in {text:?}");
        assert_ne!(place(text, &json!(value)), "", "{value} in {text:?}");
        assert_ne!(place(text, &json!(format!("-{value:.2}"))), "", "the text -{value:.2} in {text:?}");
    }
}

#[test]
fn a_hyphen_or_a_dash_is_no_sign() {
    for (text, value) in [
        ("10 - 45,10 €", 45.1),
        ("10 € – 45,10 €", 45.1),
        ("5–10 €", 10.0),
        ("2019 –2021", 2021.0),
        ("10 $-45 $", 45.0),
        ("a 10-day trip", 10.0),
        ("2- und 3-Zimmer", 2.0),
        ("A-12", 12.0),
        ("list\n- 5 apples", 5.0),
        ("2024-05-\n", 5.0),
    ] {
        assert_eq!(place(text, &json!(-value)), "", "-{value} in {text:?}");
        assert_ne!(place(text, &json!(value)), "", "{value} in {text:?}");
    }
}

#[test]
fn comparisons_read_the_signs_of_amounts() {
    for (text, value) in [
        ("($1,234.00)", -1234.0),
        ("(€1,234.00)", -1234.0),
        ("(1,234.00 EUR)", -1234.0),
        ("(USD 1,234.00)", -1234.0),
        ("1,234.00-", -1234.0),
        ("1,234.00- EUR", -1234.0),
        ("$-45.10", -45.1),
        ("-EUR 50.00", -50.0),
        ("–45,10 €", -45.1),
        ("- 45,10 €", -45.1),
        ("- 45", -45.0),
        ("+45", 45.0),
        ("$.50", 0.5),
        ("1.234,50", 1234.5),
    ] {
        for (other, is_equal) in [(value, true), (-value, false)] {
            assert_eq!(Compare::NUMBER.is_equal(&json!(other), &json!(text)), is_equal, "{other} and {text}");
        }
    }
}

#[test]
fn a_group_of_a_number_is_no_number() {
    for (text, value, expected) in [
        ("3\u{202f}456,00 €", json!(3456), "3\u{202f}456,00"),
        ("3\u{a0}456,00 €", json!(3456), "3\u{a0}456,00"),
        ("1\u{2009}234\u{2009}567", json!(1_234_567), "1\u{2009}234\u{2009}567"),
        ("3\u{202f}456,00 €", json!(456), ""),
        ("3\u{202f}456,00 €", json!("456,00"), ""),
        ("3\u{a0}456,00 €", json!("3"), ""),
        ("Salaire 52 000,00 €", json!(52000), "52 000,00"),
        ("Salaire 52 000,00 €", json!(0), ""),
        ("Salaire 52 000,00 €", json!("000,00"), ""),
        // No groups of one number.
        ("05.01.2024\u{a0}123,45", json!(123.45), "123,45"),
        ("5.50\u{a0}100,00", json!(100), "100,00"),
        ("Qty 3 456,00 €", json!(456), "456,00"),
    ] {
        assert_eq!(place(text, &value), expected, "{value} in {text:?}");
    }
}

#[test]
fn a_percentage_is_divided_with_its_decimals_and_after_the_number_itself() {
    for (text, value, expected) in [
        ("Tax (8.875%) 88.75", 88.75, "88.75"),
        ("Rate 8.875% only", 88.75, ""),
        ("Rate 8.875% only", 0.08875, "8.875"),
        ("Rate 1,250 %", 12.5, ""),
        ("Rate 5 %, as 0.05", 0.05, "0.05"),
        ("Rate 5 %", 0.05, "5"),
    ] {
        assert_eq!(place(text, &json!(value)), expected, "{value} in {text:?}");
    }
}
