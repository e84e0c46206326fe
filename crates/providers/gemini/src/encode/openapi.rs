//! Rewrites a schema of the dialect `gemini-openapi` with the keywords of OpenAPI 3.0.
//!
//! The lowered schema contains only keywords that have an equivalent in OpenAPI 3.0, so nothing is lost.

use serde_json::{Map, Value, json};

/// Returns the schema as OpenAPI 3.0: `nullable` in place of a `null` alternative, and `propertyOrdering` with the order of
/// `properties`, which the API would sort by name. `additionalProperties` is dropped: objects are closed by default, and some
/// versions of the API refuse the keyword.
pub(super) fn written(schema: &Value) -> Value {
    let Value::Object(keywords) = schema else { return schema.clone() };
    let mut out = Map::new();
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            ("additionalProperties", _) => {}
            ("properties", Value::Object(named)) => {
                let order: Vec<&String> = named.keys().collect();
                let order = json!(order);
                let named = named.iter().map(|(name, schema)| (name.clone(), written(schema)));
                out.insert(keyword.clone(), Value::Object(named.collect()));
                out.insert("propertyOrdering".to_owned(), order);
            }
            ("items", schema) => _ = out.insert(keyword.clone(), written(schema)),
            ("anyOf", Value::Array(alternatives)) => union(alternatives, &mut out),
            _ => _ = out.insert(keyword.clone(), value.clone()),
        }
    }
    Value::Object(out)
}

fn union(alternatives: &[Value], out: &mut Map<String, Value>) {
    let mut others: Vec<Value> =
        alternatives.iter().filter(|schema| schema["type"] != "null").map(written).collect();
    if others.len() < alternatives.len() && !others.is_empty() {
        out.insert("nullable".to_owned(), json!(true));
    }
    match others.as_mut_slice() {
        [] => _ = out.insert("type".to_owned(), json!("null")),
        [Value::Object(only)] => {
            for (keyword, value) in std::mem::take(only) {
                // A keyword beside `anyOf` (such as `description`) is more specific than the one of the alternative.
                out.entry(keyword).or_insert(value);
            }
        }
        _ => _ = out.insert("anyOf".to_owned(), Value::Array(others)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::written;

    #[test]
    fn every_keyword_has_its_spelling() {
        for (schema, expected) in [
            (json!({"type": "string", "enum": ["a"]}), json!({"type": "string", "enum": ["a"]})),
            (
                json!({"anyOf": [{"type": "string", "description": "x"}, {"type": "null"}], "description": "y"}),
                json!({"nullable": true, "type": "string", "description": "y"}),
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}),
                json!({"nullable": true, "anyOf": [{"type": "string"}, {"type": "integer"}]}),
            ),
            (json!({"anyOf": [{"type": "null"}, {"type": "null"}]}), json!({"type": "null"})),
            (
                json!({"type": "object", "properties": {"z": {"anyOf": [{"type": "null"}, {"type": "integer"}]}, "a": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "boolean"}}, "required": [], "additionalProperties": false}}}, "required": ["z"], "additionalProperties": false}),
                json!({"type": "object", "properties": {"z": {"nullable": true, "type": "integer"}, "a": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "boolean"}}, "propertyOrdering": ["b"], "required": []}}}, "propertyOrdering": ["z", "a"], "required": ["z"]}),
            ),
            // A property may have the name of a keyword.
            (
                json!({"type": "object", "properties": {"additionalProperties": {"type": "string"}, "anyOf": {"type": "null"}}}),
                json!({"type": "object", "properties": {"additionalProperties": {"type": "string"}, "anyOf": {"type": "null"}}, "propertyOrdering": ["additionalProperties", "anyOf"]}),
            ),
        ] {
            assert_eq!(written(&schema), expected, "{schema}");
        }
    }
}
