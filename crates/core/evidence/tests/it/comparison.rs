//! Equal and different values of each comparison.

use formwork_evidence::Compare;
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
        json!(1),
    ] {
        let error = Compare::parse(&wrong).unwrap_err();
        assert!(error.contains("expected exact, number, date, text, set or list"), "{error}");
    }
}
