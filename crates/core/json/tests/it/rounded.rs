//! No number changes silently: it is kept by value, or reported with its path and its text.

use formwork_json::{Candidate, JsonPath, Level, Rounded, read, rounded};
use proptest::prelude::*;
use serde_json::{Value, json};

const LEVELS: [Level; 3] = [Level::Strict, Level::Clean, Level::Lenient];

fn best(text: &str, level: Level) -> Candidate {
    let reading = read(text, level).unwrap_or_else(|error| panic!("{text}: {error}"));
    reading.into_candidates().swap_remove(0)
}

fn found(numbers: &[Rounded]) -> Vec<(String, &str)> {
    numbers.iter().map(|number| (number.path.to_string(), number.text.as_str())).collect()
}

/// Texts with a number at a place: `#` is the number, and the path is that of the number.
const PLACES: [(&str, &str); 7] = [
    ("#", "$"),
    (r#"{"a": #}"#, "$.a"),
    (r#"{"a": 1.5, "b": {"c d": [0.25, #]}}"#, "$.b['c d'][1]"),
    (r#"[{"x": "0.12345678901234567890"}, [[#]], 2]"#, "$[1][0][0]"),
    (r#"{"map": {"eins": 1, "zwei": #, "drei": 3e2}}"#, "$.map.zwei"),
    (r#"{"a": 98765432109876543210.5, "a": #}"#, "$.a"),
    (r#"{"a": {"b": 98765432109876543210.5}, "a": {"c": [#]}}"#, "$.a.c[0]"),
];

proptest! {
    #[test]
    fn a_number_keeps_its_digits_or_is_reported_with_them(
        number in "-?(0|[1-9][0-9]{0,39})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?",
        is_integer in any::<bool>(),
        place in prop::sample::select(&PLACES),
        level in prop::sample::select(&LEVELS),
        repaired in any::<bool>(),
    ) {
        let number = if is_integer { number.split(['.', 'e', 'E']).next().unwrap() } else { &number };
        let (text, path) = place;
        let mut text = text.replace('#', number);
        let is_infinite = number.parse::<f64>().unwrap().is_infinite();
        if level == Level::Strict && is_infinite {
            prop_assert!(read(&text, level).is_err());
            return Ok(());
        }
        if repaired && level > Level::Strict && text.ends_with(['}', ']']) {
            text.insert(text.len() - 1, ',');
        }
        let candidate = best(&text, level);
        let path: JsonPath = path.parse().unwrap();
        let kept = path.get(&candidate.value).unwrap().to_string();
        let is_integral = |text: &str| !text.contains(['.', 'e', 'E']);
        match &candidate.rounded[..] {
            [] if is_integral(number) && is_integral(&kept) => {
                prop_assert!(kept == number || number == "-0", "{number}")
            }
            // The text of the value, read with another parser, is the double of the number.
            [] => prop_assert_eq!(kept.parse::<f64>().unwrap(), number.parse::<f64>().unwrap()),
            [one] => {
                prop_assert_eq!((&one.path, one.text.as_str()), (&path, number));
                prop_assert_eq!(one.kept().is_none(), is_infinite);
                prop_assert_eq!(path.get(&candidate.value).unwrap().is_null(), is_infinite);
                prop_assert!(!is_integral(number) || !one.is_tolerable());
            }
            more => prop_assert!(false, "{more:?}"),
        }
        if !is_infinite && !text.contains(",]") && !text.contains(",}") {
            prop_assert_eq!(rounded(&text), candidate.rounded);
        }
    }

    /// More than 17 digits never survive in a double, whatever the digits are.
    #[test]
    fn integers_beyond_64_bits_are_always_reported(number in "[1-9][0-9]{19,38}[1-9]") {
        let reported = rounded(&format!("[{number}]"));
        prop_assert_eq!(found(&reported), [("$[0]".to_owned(), number.as_str())]);
    }
}

#[test]
fn repaired_texts_report_changed_numbers() {
    let long = "12345678901234567.89";
    for (text, paths) in [
        (format!("{{'a': +{long}}}"), vec!["$.a"]),
        (format!("{{a: 1 b: {long}}}"), vec!["$.b"]),
        (format!("{{\"a\": Number({long})}}"), vec!["$.a"]),
        (format!("{{\"a\": f({long} x) }}"), vec![]),
        (format!("{{\"a\": [{long}, {long}"), vec!["$.a[0]", "$.a[1]"]),
        (format!("Sure: ```json\n{{\"a\": {{\"b\": {long}}}}}\n```"), vec!["$.a.b"]),
        (format!("{{\"a\": {long}}}\n{{\"a\": 1}}\n[{long}]"), vec!["$[0].a", "$[2][0]"]),
        (format!("{{\\\"a\\\": {long}}}"), vec!["$.a"]),
        (format!("\"{{\\\"a\\\": {long}}}\""), vec!["$.a"]),
        (format!("<think>{long}</think> {long}"), vec!["$"]),
        (format!("{{\"a\": \"{long}\", \"b\": 1.5}}"), vec![]),
    ] {
        let candidate = best(&text, Level::Lenient);
        let found: Vec<_> = candidate.rounded.iter().map(|number| number.path.to_string()).collect();
        assert_eq!(found, paths, "{text}");
    }
}

/// A number beyond the range of a double has no value, and is no text either.
#[test]
fn numbers_beyond_the_range_are_null_and_reported() {
    for number in ["1e400", "-1e999999999", "1E+99999999999999999999", &"9".repeat(400)] {
        for (text, path, expected) in [
            ("#", "$", json!(null)),
            ("<think>0</think>\n# ", "$", json!(null)),
            ("```json\n#\n```", "$", json!(null)),
            ("[#]", "$[0]", json!([null])),
            ("{\"a\": #, \"b\": {\"c\": 1}}", "$.a", json!({"a": null, "b": {"c": 1}})),
        ] {
            let text = text.replace('#', number);
            assert!(read(&text, Level::Strict).is_err(), "{text}");
            for level in [Level::Clean, Level::Lenient] {
                let candidate = best(&text, level);
                assert_eq!(candidate.value, expected, "{text}");
                assert_eq!(found(&candidate.rounded), [(path.to_owned(), number)], "{text}");
                assert!(!candidate.rounded[0].is_tolerable(), "{text}");
            }
        }
        for level in LEVELS {
            assert!(read(&format!("about {number}"), level).is_err(), "{number}");
        }
    }
}

/// serde_json's own representation of exact numbers is an ordinary object here.
#[test]
fn an_object_in_the_form_of_a_private_number_stays_an_object() {
    let text = r#"{"$serde_json::private::Number": "1"}"#;
    for level in LEVELS {
        let candidate = best(text, level);
        assert_eq!(candidate.value.as_object().map(|members| members.len()), Some(1));
        assert_eq!(candidate.value["$serde_json::private::Number"], "1");
    }
    assert_eq!(serde_json::from_str::<Value>("1.50").unwrap().to_string(), "1.5");
}
