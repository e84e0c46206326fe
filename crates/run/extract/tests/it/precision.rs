//! Numbers are exact: a number of an answer is kept digit by digit, rounded with a warning, or refused at its path.

use std::sync::{Arc, LazyLock};

use formwork_core::*;
use formwork_dialect::{Dialects, lower_value};
use formwork_extract::{Backend, Extractor, ExtractorBuilder};
use formwork_testkit::Scripted;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::*;

/// The number that stands for the number under test. It occurs nowhere else.
const PLACEHOLDER: &str = "424242";

/// Documents with a placeholder, their schemas, and the path of the placeholder.
fn documents() -> Vec<(Value, Value, &'static str)> {
    let object = |properties: Value| json!({"type": "object", "properties": properties, "required": []});
    let number = json!({"type": "number"});
    let n = 424_242;
    let node = json!({"type": "object", "properties": {"n": number, "next": {"$ref": "#/$defs/node"}}, "required": ["n"]});
    let variant = |tag: &str, more: &str| {
        let properties = json!({"kind": {"const": tag}, more: number});
        json!({"type": "object", "properties": properties, "required": ["kind", more], "additionalProperties": false})
    };
    let tuple =
        json!({"type": "array", "prefixItems": [{"type": "string"}, number], "items": false, "minItems": 2});
    let recursive = json!({"$ref": "#/$defs/node", "$defs": {"node": node}});
    vec![
        (json!(n), number.clone(), "$"),
        (json!({"a": n}), object(json!({"a": number})), "$.a"),
        (json!({"a": n, "b": null}), object(json!({"a": number, "b": {"type": ["string", "null"]}})), "$.a"),
        (json!([1, n]), json!({"type": "array", "items": number}), "$[1]"),
        (
            json!({"of": [{"a": {"b c": n}}]}),
            object(
                json!({"of": {"type": "array", "items": object(json!({"a": object(json!({"b c": number}))}))}}),
            ),
            "$.of[0].a['b c']",
        ),
        (json!({"x": 1, "y": n}), json!({"type": "object", "additionalProperties": number}), "$.y"),
        (
            json!({"a": 1, "m": {"x": {"deep": n}}}),
            object(json!({
                "a": number,
                "m": {"type": "object", "additionalProperties": object(json!({"deep": number}))},
            })),
            "$.m.x.deep",
        ),
        (json!({"a": 1, "extra": n}), object(json!({"a": number})), "$.extra"),
        (json!({"t": ["x", n]}), object(json!({"t": tuple})), "$.t[1]"),
        (json!({"kind": "b", "y": n}), json!({"oneOf": [variant("a", "x"), variant("b", "y")]}), "$.y"),
        (json!({"v": [{"a": n}]}), object(json!({"v": {}})), "$.v[0].a"),
        (json!({"n": 1, "next": {"n": 2, "next": {"n": n}}}), recursive, "$.next.next.n"),
    ]
}

/// A document with [`PLACEHOLDER`] for a number, its schema, the path of the number, a dialect, and the document as its answer.
type Written = (Value, Value, JsonPath, Arc<dyn Lower>, String);

/// The answer to each document in each dialect that has a place for the number.
static ANSWERS: LazyLock<Vec<Written>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for (document, schema, path) in documents() {
        for dialect in Dialects::builtin().iter() {
            let Ok(mut lowered) = dialect.lower(&LowerRequest::new(&schema)) else { continue };
            lowered.schema.get_or_insert(true.into());
            let answer = lower_value(&document, &lowered).map(|answer| answer.to_string());
            // A closed dialect has no place for the members that the schema does not name.
            if let Some(answer) = answer.filter(|answer| answer.contains(PLACEHOLDER)) {
                let dialect = Arc::clone(dialect) as Arc<dyn Lower>;
                all.push((document.clone(), schema.clone(), path.parse().unwrap(), dialect, answer));
            }
        }
    }
    all
});

fn numbers(model: &Arc<Scripted>, schema: &Value, dialect: Arc<dyn Lower>) -> ExtractorBuilder<Value> {
    let backend = Backend::from(Arc::clone(model)).with_mode(dialect);
    Extractor::for_document("numbers", schema.clone()).with_target(backend).with_max_attempts(1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// In every dialect, also where lifting moves the number or the number is in a string that holds JSON.
    #[test]
    fn numbers_are_kept_or_named_at_their_place_in_every_dialect(
        digits in "-?[1-9][0-9]{0,39}",
        fraction in prop::option::of("[0-9]{1,24}"),
    ) {
        let number = fraction.map_or(digits.clone(), |fraction| format!("{digits}.{fraction}"));
        prop_assert!(ANSWERS.len() > 80, "{}", ANSWERS.len());
        for (document, schema, path, dialect, answer) in ANSWERS.iter() {
            let model = Arc::new(Scripted::new([answer.replace(PLACEHOLDER, &number).as_str()]));
            let extractor = numbers(&model, schema, Arc::clone(dialect)).build().unwrap();
            let place = format!("{} {number} in {document} as {answer}", dialect.name());
            let rounded = formwork_json::rounded(&number);
            match (extractor.extract_blocking(TEXT), rounded.as_slice()) {
                (Ok(outcome), kept) => {
                    let value = path.get(&outcome.value).unwrap().to_string();
                    prop_assert_eq!(value.parse::<f64>().unwrap(), number.parse::<f64>().unwrap(), "{}", &place);
                    prop_assert!(value == number || number.contains('.'), "{value}: {place}");
                    prop_assert!(kept.iter().all(|number| number.is_tolerable()), "{place}");
                    let rounded = outcome.warnings.iter().filter(|it| it.kind == WarningKind::Rounded);
                    let rounded: Vec<_> = rounded.map(|warning| warning.path.clone()).collect();
                    prop_assert_eq!(rounded, vec![Some(path.clone()); kept.len()], "{}", place);
                }
                (Err(error), [refused]) => {
                    prop_assert!(!refused.is_tolerable(), "{error}: {place}");
                    let violations = &error.best().unwrap().violations;
                    let named = violations.iter().find(|violation| violation.rule == "precision").unwrap();
                    prop_assert_eq!((&named.path, &named.found), (path, &number), "{}", place);
                }
                (Err(error), _) => prop_assert!(false, "{error}: {place}"),
            }
        }
    }
}

#[test]
fn an_integer_that_cannot_be_kept_is_requested_again_alone() {
    let schema = json!({"type": "object", "required": ["id", "share"], "properties": {
        "id": {"type": "integer"}, "share": {"type": "number"},
    }});
    let wrong = r#"{"id": 123456789012345678901, "share": 0.1234567890123456789}"#;
    let model = Arc::new(Scripted::new([wrong, r#"{"id": 12345}"#]));
    let extractor = Extractor::for_document("numbers", schema).with_target(backend(&model)).build().unwrap();
    let outcome = extractor.extract_blocking(TEXT).unwrap();
    assert_eq!(outcome.value, json!({"id": 12345, "share": 0.123_456_789_012_345_68}));
    assert_eq!(outcome.calls[1].patched, ["$.id".parse().unwrap()]);
    // The warning of the value that the patch leaves unchanged stays.
    let warnings: Vec<_> = outcome.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["rounded at $.share: the number 0.1234567890123456789 was rounded to 0.12345678901234568"]
    );
    let request = model.calls()[1].messages.last().unwrap().text();
    assert!(
        request.contains(
            "an integer from -9223372036854775808 to 18446744073709551615, without fraction and exponent, found 123456789012345678901"
        ),
        "{request}"
    );
}

#[test]
fn numbers_of_a_patch_are_exact_as_well() {
    let schema = json!({"type": "object", "required": ["of"], "properties": {
        "of": {"type": "array", "items": {"type": "number"}}, "name": {"type": "string"},
    }});
    let extract = |patch: &str| {
        let model = Arc::new(Scripted::new([r#"{"of": "x", "name": "y"}"#, patch]));
        let extractor = Extractor::for_document("numbers", schema.clone()).with_target(backend(&model));
        extractor.with_max_attempts(2).build().unwrap().extract_blocking(TEXT)
    };
    let outcome = extract(r#"{"of": [1, 0.1234567890123456789]}"#).unwrap();
    assert_eq!(outcome.value, json!({"of": [1, 0.123_456_789_012_345_68], "name": "y"}));
    assert_eq!(outcome.warnings[0].path, Some("$.of[1]".parse().unwrap()));
    for number in ["12345678901234567890", "123456789012345678901", "1e999"] {
        let result = extract(&format!(r#"{{"of": [1, 2, 3, {number}]}}"#));
        let Err(error) = result else {
            assert_eq!(number.parse::<u64>().unwrap().to_string(), number);
            continue;
        };
        let found = error.calls()[1].verdict.failure().unwrap().violations();
        assert_eq!(
            (found.len(), found[0].path.to_string(), found[0].found.as_str()),
            (1, "$.of[3]".to_owned(), number)
        );
    }
}

/// Numbers beyond the range of a double end the examination at once: no digit is counted up to an exponent.
#[test]
fn numbers_beyond_the_range_are_refused_and_prove_nothing_about_the_server() {
    for number in ["1e400", "-1e999999999", "1e99999999999999999999"] {
        let model = Arc::new(Scripted::new([format!("{{\"name\": \"Maria\", \"age\": {number}}}").as_str()]));
        let extractor = persons(&model).0.with_max_attempts(1).build().unwrap();
        let error = extractor.extract_blocking(TEXT).unwrap_err();
        let violations: Vec<_> = error.best().unwrap().violations.iter().map(ToString::to_string).collect();
        assert_eq!(
            violations,
            [format!(
                "Number not exact at $.age: expected a number of at most 1.7976931348623157e308, found {number}"
            )]
        );
        assert_eq!(error.calls()[0].observation, None);
    }
}

/// The validator agrees: of 40 digits, no number is accepted that exact arithmetic refuses.
#[test]
fn forty_digits_are_never_accepted_by_a_bound_that_excludes_them() {
    let digits = "1234567890123456789012345678901234567890";
    for schema in [
        json!({"type": "integer", "maximum": 100}),
        json!({"const": 1.234_567_890_123_456_8e39}),
        json!({"enum": [1.234_567_890_123_456_8e39]}),
        json!({"type": "integer", "multipleOf": 7}),
        json!({"type": "integer"}),
        json!({"type": "number", "maximum": 1e300}),
        json!({"type": "string"}),
    ] {
        let model = Arc::new(Scripted::new([digits]));
        let extractor = numbers(&model, &schema, Arc::new(AsIs)).build().unwrap();
        let error = extractor.extract_blocking(TEXT).unwrap_err();
        // A digit of a value of another type stops the answer.
        let is_stopped = matches!(error.calls()[0].verdict.failure(), Some(Failure::Stopped { .. }));
        let is_inexact = |best: &Best| best.violations.iter().any(|violation| violation.rule == "precision");
        assert!(is_stopped || error.best().is_some_and(is_inexact), "{schema}");
    }
    let model = Arc::new(Scripted::new([format!("\"{digits}\"").as_str()]));
    let extractor = numbers(&model, &json!({"type": "string"}), Arc::new(AsIs)).build().unwrap();
    assert_eq!(extractor.extract_blocking(TEXT).unwrap().value, digits);
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Tagged {
    Price { amount: f64 },
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    Count { count: u64 },
    Price { amount: f64 },
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Flattened {
    name: String,
    #[serde(flatten)]
    price: Price,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Price {
    amount: f64,
    count: u64,
}

fn extracted<T: Answerable>(answer: &str) -> T {
    let model = Arc::new(Scripted::new([answer]));
    let extractor =
        Extractor::<T>::builder().with_target(backend(&model)).with_max_attempts(1).build().unwrap();
    extractor.extract_blocking(TEXT).unwrap().value
}

trait Answerable: serde::de::DeserializeOwned + JsonSchema + Send + Sync + 'static {}
impl<T: serde::de::DeserializeOwned + JsonSchema + Send + Sync + 'static> Answerable for T {}

#[test]
fn decimals_and_integers_reach_tagged_untagged_and_flattened_types() {
    assert_eq!(extracted::<Tagged>(r#"{"kind": "price", "amount": 12.50}"#), Tagged::Price { amount: 12.5 });
    assert_eq!(extracted::<Untagged>(r#"{"amount": 12.50}"#), Untagged::Price { amount: 12.5 });
    let count = u64::MAX;
    assert_eq!(extracted::<Untagged>(&format!("{{\"count\": {count}}}")), Untagged::Count { count });
    let answer = format!(r#"{{"name": "x", "amount": 12.50, "count": {count}}}"#);
    let price = Price { amount: 12.5, count };
    assert_eq!(extracted::<Flattened>(&answer), Flattened { name: "x".to_owned(), price });
    // An integral fraction is an integer.
    assert_eq!(extracted::<Untagged>(r#"{"count": 612.0}"#), Untagged::Count { count: 612 });
}

#[test]
fn an_object_with_the_name_of_a_private_number_stays_an_object() {
    let text = r#"{"$serde_json::private::Number": "1"}"#;
    let model = Arc::new(Scripted::new([text]));
    let extractor = numbers(&model, &json!({"type": "object"}), Arc::new(AsIs)).build().unwrap();
    assert_eq!(extractor.extract_blocking(TEXT).unwrap().value.to_string(), text.replace(": ", ":"));
}
