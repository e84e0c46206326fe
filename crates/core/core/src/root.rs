//! Determines the JSON types that the root of a schema describes.

use serde_json::{Value, json};

use crate::keywords::{fits_type, keyword, target};

/// The maximum number of references that are followed: a schema may refer to itself.
const MAX_JUMPS: usize = 32;

/// Returns whether a schema describes values of this type, whatever the value contains.
///
/// JSON Schema accepts every array where a schema has `properties` and no `type`. The author of that schema means objects,
/// so a schema whose keywords all concern objects, or all concern arrays, is taken to describe that type.
pub(crate) fn allows_type_of(schema: &Value, value: &Value) -> bool {
    allows(schema, schema, value, 0)
}

/// Returns the characters that every document of a schema begins with, if the next character of the document tells a continuation of
/// them from a repetition: `{` for objects, `[` for arrays of objects, texts or numbers.
pub(crate) fn opening(schema: &Value) -> Option<&'static str> {
    let samples = [json!({}), json!([]), json!(""), json!(0), json!(true), json!(null)];
    let types = |node: &Value| samples.each_ref().map(|sample| allows(schema, node, sample, 0));
    match types(schema) {
        [true, false, false, false, false, false] => Some("{"),
        [false, true, false, false, false, false] => {
            let [_, has_arrays, .., has_booleans, has_nulls] = types(schema.get("items")?);
            let is_clear = !has_arrays && !has_booleans && !has_nulls && schema.get("prefixItems").is_none();
            is_clear.then_some("[")
        }
        _ => None,
    }
}

fn allows(root: &Value, node: &Value, value: &Value, jumps: usize) -> bool {
    let Value::Object(keywords) = node else { return node.as_bool().unwrap_or(true) };
    let inner = |node: &Value| jumps >= MAX_JUMPS || allows(root, node, value, jumps + 1);
    let lists =
        |keyword: &str| keywords.get(keyword).and_then(Value::as_array).filter(|list| !list.is_empty());
    if target(root, node).is_some_and(|target| !inner(target)) {
        return false;
    }
    let all_of = lists("allOf").is_none_or(|parts| parts.iter().all(inner));
    let variants = ["anyOf", "oneOf"].into_iter().filter_map(lists);
    if !all_of || !variants.into_iter().all(|variants| variants.iter().any(inner)) {
        return false;
    }
    let is_like = |one: &Value| std::mem::discriminant(one) == std::mem::discriminant(value);
    if keywords.get("const").is_some_and(|constant| !is_like(constant))
        || lists("enum").is_some_and(|list| !list.iter().any(is_like))
    {
        return false;
    }
    if keywords.contains_key("type") {
        return fits_type(node, value) != Some(false);
    }
    let about =
        |kind: &str| keywords.keys().any(|name| keyword(name).is_some_and(|known| known.about == Some(kind)));
    match (about("object"), about("array")) {
        (true, false) => value.is_object(),
        (false, true) => value.is_array(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_is_the_one_that_all_documents_share() {
        let closed = json!({"type": "object", "properties": {}});
        for (schema, expected) in [
            (closed.clone(), Some("{")),
            (json!({"anyOf": [closed, {"properties": {"a": {}}}]}), Some("{")),
            (json!({"$ref": "#/$defs/p", "$defs": {"p": closed}}), Some("{")),
            (json!({"type": ["object", "null"]}), None),
            (json!({"type": "array", "items": closed}), Some("[")),
            (json!({"type": "array", "items": {"$ref": "#/$defs/p"}, "$defs": {"p": closed}}), Some("[")),
            (json!({"type": "array", "items": {"enum": ["a", 1]}}), Some("[")),
            // A `[` after the `[` may be the first item, and `true` the word of a sentence.
            (json!({"type": "array", "items": {"type": "array"}}), None),
            (json!({"type": "array", "items": {"type": "boolean"}}), None),
            (json!({"type": "array", "prefixItems": [{"type": "array"}], "items": closed}), None),
            (json!({"type": "array"}), None),
            (json!({"type": "string"}), None),
            (json!(true), None),
            (json!(false), None),
        ] {
            assert_eq!(opening(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn the_type_is_the_one_that_the_author_means() {
        let object = json!({"type": "object"});
        let anyhow = json!({"title": "anything"});
        for (schema, types) in [
            (json!(true), "oasnbz"),
            (json!(false), ""),
            (anyhow.clone(), "oasnbz"),
            (object.clone(), "o"),
            (json!({"type": ["array", "null"]}), "az"),
            (json!({"type": "integer"}), "n"),
            (json!({"properties": {"a": {}}, "required": ["a"]}), "o"),
            (json!({"items": {"type": "string"}}), "a"),
            (json!({"items": {}, "properties": {}}), "oasnbz"),
            (json!({"enum": [{"a": 1}, "x"]}), "os"),
            (json!({"const": [1]}), "a"),
            (json!({"$ref": "#/$defs/p", "$defs": {"p": object}}), "o"),
            (json!({"$ref": "https://example.com/p"}), "oasnbz"),
            (json!({"$ref": "#"}), "oasnbz"),
            (json!({"anyOf": [object, {"type": "string"}]}), "os"),
            (json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}), "o"),
            (json!({"allOf": [{"type": ["object", "array"]}, {"type": ["object", "string"]}]}), "o"),
            (json!({"anyOf": [object, anyhow], "type": ["object", "array"]}), "oa"),
        ] {
            let values = [
                ("o", json!({"b": 1})),
                ("a", json!([1])),
                ("s", json!("x")),
                ("n", json!(1)),
                ("b", json!(true)),
                ("z", json!(null)),
            ];
            let allowed =
                values.iter().filter(|(_, value)| allows_type_of(&schema, value)).map(|(name, _)| *name);
            assert_eq!(allowed.collect::<String>(), types, "{schema}");
        }
    }
}
