//! Each partial value of a stream equals the value that the reader would return for the text so far.

use std::sync::Arc;

use formwork_core::{Finish, Level, Outcome};
use formwork_extract::{Extractor, Update};
use formwork_testkit::{Reply, Scripted};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::support::*;

/// Returns all partial values of an answer that is streamed in chunks of a number of characters, and its result.
fn streamed(
    schema: Value,
    text: &str,
    sizes: &[usize],
    level: Level,
) -> (Vec<Value>, Option<Outcome<Value>>) {
    let mut sizes = sizes.iter().chain(sizes.last().into_iter().cycle());
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let size = *sizes.next().unwrap();
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at);
        pieces.push(rest[..end].to_owned());
        rest = &rest[end..];
    }
    let model = Arc::new(Scripted::new([Reply::pieces(pieces)]));
    let builder = Extractor::for_document("document", schema).with_target(backend(&model));
    let extractor = builder.with_level(level).with_max_attempts(1).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (mut updates, mut partial, mut done) = (extractor.stream(TEXT), Vec::new(), None);
        while let Some(update) = updates.next().await {
            match update {
                Ok(Update::Partial(value)) => partial.push(value.value().clone()),
                Ok(Update::Done(outcome)) => done = Some(outcome),
                _ => {}
            }
        }
        (partial, done)
    })
}

fn document() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-zé ,:{}\\[\\]]{0,12}".prop_map(Value::from),
    ];
    let value = scalar.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(("[a-z]{1,8}", inner), 0..5)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    });
    prop::collection::vec(("[a-z]{1,8}", value), 1..6)
        .prop_map(|members| Value::Object(Map::from_iter(members)))
}

/// Returns a document in the notation of other languages: single quotes, other literals, trailing commas.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => format!("'{text}'"),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(|item| format!("{}, ", python(item))).collect::<String>())
        }
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("'{name}': {}, ", python(value)));
            format!("{{{}}}", members.collect::<String>())
        }
        number => number.to_string(),
    }
}

fn commented(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap().replacen('{', "{ // what it is\n /* a: [1] */", 1)
}

/// Text that models write around and into documents.
fn wrapped(kind: usize, value: &Value) -> String {
    let pretty = serde_json::to_string_pretty(value).unwrap();
    match kind {
        0 => pretty,
        1 => format!("Sure, here it is: {value}"),
        2 => format!("As in [1], with {{x}} left out:\n{pretty}\nThat is all [2]."),
        3 => format!("```json\n{pretty}\n```\nAnything else?"),
        4 => format!("<think>Perhaps {{\"a\": [1, 2]}}?</think>\n{value}"),
        5 => format!("{{\"draft\": true}} was my first thought.</think>{value}"),
        6 => python(value),
        7 => format!("Here:\n```python\n{}\n```", python(value)),
        8 => commented(value),
        9 => format!("Draft: {{\"draft\": true}}. Final: {value}"),
        _ => format!("[THINK]{{}}[/THINK]{value} and not []"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_last_partial_value_is_the_accepted_value(
        value in document(), kind in 0usize..11, sizes in prop::collection::vec(1usize..40, 1..20),
    ) {
        let text = wrapped(kind, &value);
        let (partial, done) = streamed(json!({"type": "object"}), &text, &sizes, Level::Lenient);
        let done = done.map(|outcome| outcome.value);
        prop_assert_eq!(partial.last(), done.as_ref(), "{}", text);
        prop_assert!(partial.iter().all(Value::is_object), "{:?}", partial);
        if !matches!(kind, 6..=8) {
            prop_assert_eq!(done, Some(value), "{}", text);
        }
    }
}

#[test]
fn they_continue_after_text_that_is_not_strict_json() {
    let rows: Vec<Value> = (0..50).map(|n| json!({"n": n, "name": format!("row {n}")})).collect();
    let value = json!({"rows": rows});
    for kind in 0..11 {
        let text = wrapped(kind, &value);
        let (partial, done) = streamed(json!({"type": "object"}), &text, &[5], Level::Lenient);
        assert_eq!(done.unwrap().value, value, "{text}");
        let mut lengths: Vec<usize> =
            partial.iter().filter_map(|partial| Some(partial["rows"].as_array()?.len())).collect();
        lengths.dedup();
        assert!(lengths.len() > 25 && lengths[0] <= 1 && lengths.is_sorted(), "{kind}: {lengths:?}");
    }
}

#[test]
fn what_the_level_does_not_read_is_not_shown() {
    let (partial, done) =
        streamed(json!({"type": "object"}), "{\"a\": 1, 'b': 2, 'c': 3}", &[1], Level::Clean);
    assert_eq!((partial.last(), done.is_none()), (Some(&json!({"a": 1})), true));
}

#[test]
fn values_of_another_type_than_the_root_are_not_shown() {
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let (partial, done) = streamed(list, "In {a} see {\"b\": 1}: [1, 2]", &[3], Level::Clean);
    assert_eq!(done.unwrap().value, json!([1, 2]));
    assert!(partial.iter().all(Value::is_array) && partial.last() == Some(&json!([1, 2])), "{partial:?}");
    let (partial, done) = streamed(json!({"type": "integer"}), "```\n42\n```", &[1], Level::Clean);
    assert_eq!((partial, done.unwrap().value), (vec![json!(42)], json!(42)));
}

#[test]
fn what_is_read_of_an_answer_that_was_cut_is_the_last_of_them() {
    let model = Arc::new(Scripted::new([Reply::truncated(r#"{"name": "Maria", "age": 34"#)]));
    let extractor = persons(&model).0.with_max_attempts(1).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (partial, error) = runtime.block_on(async {
        let (mut updates, mut partial) = (extractor.stream(TEXT), Vec::new());
        loop {
            match updates.next().await.unwrap() {
                Ok(Update::Partial(value)) => partial.push(value.value().clone()),
                Ok(_) => {}
                Err(error) => return (partial, error),
            }
        }
    });
    assert_eq!(error.calls()[0].finish, Some(Finish::Length));
    assert_eq!(partial.last(), Some(&error.best().unwrap().value));
}

#[test]
fn reading_again_stays_linear() {
    let items = |n: usize| (0..n).map(|n| format!("'{n}', ")).collect::<String>();
    let schema = json!({"type": "array", "items": {"type": "string"}});
    let counts = [4_000, 16_000].map(|n| {
        let (partial, done) = streamed(schema.clone(), &format!("[{}]", items(n)), &[8], Level::Lenient);
        assert_eq!(done.unwrap().value.as_array().unwrap().len(), n);
        partial.len()
    });
    // The number of values grows with the logarithm of the text: four times the text adds the values of two doublings.
    assert!(counts[1] - counts[0] < 2 * 64, "{counts:?}");
}
