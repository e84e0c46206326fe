//! Generators of documents.

use proptest::prelude::*;
use serde_json::{Map, Number, Value};

/// Generates any JSON value, up to four levels deep.
pub(crate) fn document() -> impl Strategy<Value = Value> {
    of_texts(text())
}

/// Generates any JSON value with these texts and names, up to four levels deep.
pub(crate) fn of_texts(text: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = Value> {
    let text = text.boxed();
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |f| Number::from_f64(f).map(Value::Number)),
        text.clone().prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

/// Generates an object or array.
pub(crate) fn container() -> impl Strategy<Value = Value> {
    document().prop_map(|value| match value {
        value @ (Value::Object(_) | Value::Array(_)) => value,
        scalar => Value::Array(vec![scalar]),
    })
}

/// Generates text with everything that matters to a JSON reader.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ]{0,8}",
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        Just("\n".to_owned()),
        Just("{[,:]}".to_owned()),
        Just("```".to_owned()),
        Just("<think>".to_owned()),
        Just("ä🦀\u{2028}".to_owned()),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

/// Returns whether a value has brackets alone.
pub(crate) fn is_bare(value: &Value) -> bool {
    !value.to_string().contains(|c| !matches!(c, '[' | ']' | '{' | '}' | ','))
}
