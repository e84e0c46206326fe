use std::collections::HashMap;

use serde_json::Value;

/// The most that one step into a document is taken to cost, so that sums of it stay far from overflowing.
const MOST: usize = 1 << 20;

/// What a pattern, a format or a number is taken to need, in bytes.
const SCALAR: usize = 64;

/// How often references are followed: how deep they may be nested before the bound becomes too low.
const ROUNDS: usize = 8;

/// An upper bound, in bytes and so in tokens, on what completing a document grows by when one thing is begun in it: a
/// container, a member, an item or a scalar.
///
/// It is the size of the largest value among the *smallest* ones that some part of the schema takes. It decides how
/// often a dry run is needed, so it may be far too high, and where it is too low the dry run before the last tokens
/// still finds a way out that fits.
pub(crate) fn growth(schema: &Value) -> usize {
    let mut references: HashMap<&str, (&Value, usize)> = HashMap::new();
    visit(schema, &mut |part| {
        if let Some(uri) = part["$ref"].as_str()
            && let Some(target) = uri.strip_prefix('#').and_then(|pointer| schema.pointer(pointer))
        {
            references.insert(uri, (target, SCALAR));
        }
    });
    // References may refer to each other, so their sizes are found together, round by round; following each one where
    // it stands would take forever where many alternatives lead back.
    for _ in 0..ROUNDS {
        let sizes =
            references.iter().map(|(uri, (target, _))| (*uri, (*target, smallest(target, &references))));
        references = sizes.collect();
    }
    let mut most = 16;
    // The whole is begun once, and the way out that is found before the first token covers that.
    let inner = schema.as_object().into_iter().flat_map(|members| members.values());
    inner.for_each(|part| visit(part, &mut |part| most = most.max(smallest(part, &references))));
    (most + longest_key(schema) + 8).min(MOST)
}

/// The smallest value of a part of a schema, in bytes; of alternatives the largest, because the model may take any.
fn smallest(part: &Value, references: &HashMap<&str, (&Value, usize)>) -> usize {
    let inner = |part: &Value| smallest(part, references);
    let number = |key: &str| part[key].as_u64().map_or(0, |number| usize::try_from(number).unwrap_or(MOST));
    let sum = |sizes: &mut dyn Iterator<Item = usize>| sizes.fold(2, usize::saturating_add);
    let schemas = |key: &str| part[key].as_array().into_iter().flatten();

    let mut size = scalar(part);
    for value in part.get("const").into_iter().chain(schemas("enum")) {
        // An escape like `\u0000` takes six bytes.
        size = size.max(value.to_string().len() * if value.is_string() { 6 } else { 2 });
    }
    let members = schemas("required").filter_map(Value::as_str);
    let members = members.map(|name| name.len() + 6 + part["properties"].get(name).map_or(SCALAR, inner));
    let items = part.get("items").map_or(SCALAR, inner).saturating_add(2);
    size = size
        .max(number("minLength").saturating_mul(6))
        .max(sum(&mut { members }))
        .max(number("minItems").saturating_mul(items))
        .max(sum(&mut schemas("prefixItems").map(|part| inner(part).saturating_add(2))))
        .max(number("minProperties").saturating_mul(2 * SCALAR))
        .max(schemas("anyOf").chain(schemas("oneOf")).map(inner).max().unwrap_or(0))
        .max(sum(&mut schemas("allOf").map(inner)));
    if let Some((_, referred)) = part["$ref"].as_str().and_then(|uri| references.get(uri)) {
        size = size.max(*referred);
    }
    size.min(MOST)
}

/// The smallest value of a part of a schema that has no inner parts.
fn scalar(part: &Value) -> usize {
    let has = |key: &str| part.get(key).is_some();
    let is_plain = match part["type"].as_str() {
        Some("string") => !has("pattern") && !has("format"),
        Some("integer" | "number") => !has("multipleOf"),
        Some("object" | "array" | "boolean" | "null") => true,
        _ => false,
    };
    let bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
    let longest = bounds.iter().filter_map(|key| part.get(*key)).map(|bound| bound.to_string().len()).max();
    if is_plain { 8 + longest.unwrap_or(0) } else { SCALAR + longest.unwrap_or(0) }
}

/// Calls `each` for every schema in a schema, and for some values that are none, which does no harm.
fn visit<'v>(value: &'v Value, each: &mut impl FnMut(&'v Value)) {
    match value {
        Value::Object(members) => {
            each(value);
            members.values().for_each(|member| visit(member, each));
        }
        Value::Array(items) => items.iter().for_each(|item| visit(item, each)),
        _ => {}
    }
}

fn longest_key(schema: &Value) -> usize {
    let mut longest = 0;
    visit(schema, &mut |part| {
        let keys = part["properties"].as_object().into_iter().flat_map(|members| members.keys());
        longest = longest.max(keys.map(String::len).max().unwrap_or(0));
    });
    longest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_bound_covers_the_smallest_values() {
        let inner = json!({"type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "string", "minLength": 100}, "b": {"enum": ["x", "a rather long constant"]},
        }});
        let schema = json!({"type": "array", "items": inner, "minItems": 2});
        assert!(growth(&schema) >= 100 + 24, "{}", growth(&schema));
        assert!(growth(&json!({})) >= 16);
    }

    #[test]
    fn recursion_ends() {
        let schema = json!({"$ref": "#/$defs/n", "$defs": {"n": {
            "type": "object", "required": ["n", "m"],
            "properties": {"n": {"$ref": "#/$defs/n"}, "m": {"$ref": "#/$defs/n"}},
        }}});
        assert!(growth(&schema) <= MOST + 8);
        assert!(growth(&json!({"minItems": u64::MAX, "items": {"minLength": u64::MAX}})) <= MOST);
    }
}
