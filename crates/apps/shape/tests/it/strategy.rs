//! Generates shapes.

use formwork_shape::{Field, Kind, Node};
use proptest::prelude::*;
use serde_json::{Value, json};

pub(crate) fn node() -> impl Strategy<Value = Node> {
    let scalar = prop_oneof![
        Just(Kind::Any),
        Just(Kind::String),
        Just(Kind::Markdown),
        Just(Kind::Number),
        Just(Kind::Integer),
        Just(Kind::Boolean),
        Just(Kind::Date),
        literals(),
    ];
    let leaf = dressed(scalar.boxed());
    leaf.prop_recursive(5, 40, 6, |inner| {
        let array = inner.clone().prop_map(|item| Kind::Array(Box::new(item)));
        let object = prop::collection::vec((".{0,8}", any::<[bool; 2]>(), inner), 0..6).prop_map(|fields| {
            let mut known = std::collections::HashSet::new();
            let fields = fields.into_iter().filter(|(name, ..)| known.insert(name.clone()));
            let fields = fields.map(|(name, [optional, grounded], node)| {
                let field = Field::new(name, node);
                let field = if optional { field.optional() } else { field };
                if grounded { field.grounded() } else { field }
            });
            Kind::Object(fields.collect())
        });
        dressed(prop_oneof![array, object].boxed())
    })
}

/// Generates a type with or without `null` and a comment.
fn dressed(kind: BoxedStrategy<Kind>) -> BoxedStrategy<Node> {
    let about =
        prop_oneof![Just(String::new()), "[^\\p{C}]{0,20}", ".{0,20}", Just("/ */ // \" {".to_owned())];
    (kind, any::<bool>(), about)
        .prop_map(|(kind, nullable, about)| {
            let node = Node::new(kind);
            let node = if nullable { node.or_null() } else { node };
            node.with_description(&about)
        })
        .boxed()
}

fn literals() -> impl Strategy<Value = Kind> {
    let one = prop_oneof![
        ".{0,6}".prop_map(|text| json!(text)),
        any::<i64>().prop_map(|number| json!(number)),
        any::<f64>()
            .prop_filter("JSON has no such number", |n| n.is_finite())
            .prop_map(|number| json!(number)),
        any::<bool>().prop_map(|flag| json!(flag)),
        Just(Value::Null),
    ];
    prop::collection::vec(one, 1..5).prop_map(|values| {
        let mut once: Vec<Value> = Vec::new();
        for value in values {
            if !once.contains(&value) {
                once.push(value);
            }
        }
        Kind::OneOf(once)
    })
}
