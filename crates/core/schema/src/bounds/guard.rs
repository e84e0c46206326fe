//! Moves tags to the front, in schemas whose unions refer back to themselves.
//!
//! jsonschema validates the members of a value in their order. If the tag comes last, all other members are compared with
//! every variant, at every level: 8 variants and 10 levels take 4 s in a dev build. Each variant is therefore tested for
//! its tags first, and for the rest only if they fit.

use formwork_core::keywords::{definition_name, fits_type, keyword, map_parts};
use serde_json::{Map, Value, json};

/// The maximum number of references that are followed to find the tags of a variant.
const MAX_FOLLOWED: usize = 8;

/// Returns a normalised schema in which the tags of variants are tested first.
pub(crate) fn guarded(normal: &Value) -> Value {
    schema(normal, normal)
}

fn schema(normal: &Value, part: &Value) -> Value {
    let Value::Object(members) = part else { return part.clone() };
    let guarded = members.iter().map(|(name, value)| {
        let variant = |variant: &Value| {
            let rest = schema(normal, variant);
            let tags = tags(normal, variant);
            if tags.is_empty() { rest } else { json!({"if": tags, "then": rest, "else": false}) }
        };
        let value = match keyword(name) {
            Some(union) if matches!(union.name, "anyOf" | "oneOf") => map_parts(union, value, variant),
            Some(known) => map_parts(known, value, |inner| schema(normal, inner)),
            None => value.clone(),
        };
        (name.clone(), value)
    });
    Value::Object(guarded.collect())
}

/// Returns the tags of a variant: constants and types of members that a value must have for the variant to fit.
fn tags(normal: &Value, variant: &Value) -> Map<String, Value> {
    let mut tags = Map::new();
    let plain = plain(normal, variant);
    for keyword in ["type", "const", "enum", "required"] {
        if let Some(value) = plain.get(keyword) {
            tags.insert(keyword.to_owned(), value.clone());
        }
    }
    let properties = plain.get("properties").and_then(Value::as_object).into_iter().flatten();
    let constants = properties.filter_map(|(name, property)| {
        let (keyword, value) = ["const", "enum"].iter().find_map(|of| Some((*of, property.get(*of)?)))?;
        Some((name.clone(), json!({keyword: value})))
    });
    let constants: Map<String, Value> = constants.collect();
    if !constants.is_empty() {
        tags.insert("properties".to_owned(), constants.into());
    }
    tags
}

/// Returns the target of a variant that is only a reference, and otherwise the variant itself.
fn plain<'s>(normal: &'s Value, variant: &'s Value) -> &'s Value {
    let mut here = variant;
    for _ in 0..MAX_FOLLOWED {
        let only = here.as_object().is_some_and(|members| members.len() == 1);
        let next = definition_name(here).filter(|_| only).and_then(|name| normal.get("$defs")?.get(name));
        match next {
            Some(next) => here = next,
            None => break,
        }
    }
    here
}

/// Returns whether the tags of a value rule a variant out.
pub(crate) fn is_ruled_out(normal: &Value, variant: &Value, value: &Value) -> bool {
    let variant = plain(normal, variant);
    let typed = fits_type(variant, value) != Some(false);
    let allows = |schema: &Value, value: &Value| {
        schema.get("const").is_none_or(|constant| may_be_same(constant, value))
            && schema
                .get("enum")
                .and_then(Value::as_array)
                .is_none_or(|listed| listed.iter().any(|listed| may_be_same(listed, value)))
    };
    let Value::Object(members) = value else { return !(typed && allows(variant, value)) };
    let required = variant.get("required").and_then(Value::as_array).into_iter().flatten();
    let mut required = required.filter_map(Value::as_str);
    let mut properties = variant.get("properties").and_then(Value::as_object).into_iter().flatten();
    !(typed
        && allows(variant, value)
        && required.all(|name| members.contains_key(name))
        && properties.all(|(name, property)| members.get(name).is_none_or(|member| allows(property, member))))
}

/// Returns whether two values may be equal by JSON Schema, for which `1` equals `1.0`.
fn may_be_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => true,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::work::is_more_work;
    use crate::bounds::{bounded, shallow};
    use crate::build::{Formats, build};
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = Value> {
        let leaf =
            prop::sample::select(vec![json!(null), json!(1), json!(1.0), json!("a"), json!("b"), json!([])]);
        leaf.prop_recursive(4, 16, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                (inner.clone(), inner).prop_map(|(next, kind)| json!({"next": next, "kind": kind})),
            ]
        })
    }

    fn schemas() -> impl Strategy<Value = Value> {
        let tag = prop::sample::select(vec![
            json!({"const": 1}),
            json!({"enum": ["a", null]}),
            json!({"type": "string"}),
        ]);
        let part = prop_oneof![
            (0usize..4).prop_map(|number| json!({"$ref": format!("#/$defs/d{number}")})),
            prop::sample::select(vec![json!(true), json!(false), json!({"type": ["integer", "array"]})]),
            tag.clone(),
        ];
        let part = part.prop_recursive(3, 16, 4, move |inner| {
            prop_oneof![
                (
                    prop::sample::select(vec!["allOf", "anyOf", "oneOf"]),
                    prop::collection::vec(inner.clone(), 1..4)
                )
                    .prop_map(|(keyword, list)| json!({keyword: list})),
                (prop::sample::select(vec!["not", "items", "unevaluatedProperties"]), inner.clone())
                    .prop_map(|(keyword, inner)| json!({keyword: inner})),
                (inner, tag.clone(), any::<bool>()).prop_map(|(next, kind, typed)| {
                    let mut schema =
                        json!({"properties": {"next": next, "kind": kind}, "required": ["kind"]});
                    if typed {
                        schema["type"] = json!("object");
                    }
                    schema
                }),
            ]
        });
        prop::collection::vec(part, 4).prop_map(|parts| {
            let units: Map<String, Value> =
                parts.into_iter().enumerate().map(|(number, part)| (format!("d{number}"), part)).collect();
            json!({"$ref": "#/$defs/d0", "$defs": units})
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn guards_change_no_answer(schema in schemas(), values in prop::collection::vec(values(), 8)) {
            prop_assume!(shallow(&schema).is_ok() && bounded(&schema).is_ok());
            let normal = formwork_core::normalise(&schema);
            let plain = build(&schema, Formats::Assert).unwrap();
            let guarded = build(&guarded(&normal), Formats::Assert).unwrap();
            for value in values {
                prop_assert_eq!(plain.is_valid(&value), guarded.is_valid(&value), "{}", value);
                // Variants that their tags rule out cause no work.
                let at_all = |limit| is_more_work(&normal, &value, false, limit);
                let with_guards = |limit| is_more_work(&normal, &value, true, limit);
                prop_assert!((0..64).all(|limit| at_all(limit) || !with_guards(limit)));
            }
        }
    }
}
