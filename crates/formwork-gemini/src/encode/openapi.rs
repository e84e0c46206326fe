//! A schema of the dialect `gemini-openapi` in the words of OpenAPI 3.0.
//!
//! Lowering has left nothing in the schema that these words could not say, so this is a change of spelling.

use serde_json::{Map, Value, json};

/// Writes `nullable` for a `null` among the alternatives, and the order of the members of objects, which is the alphabet's
/// otherwise. `additionalProperties` is left out: objects are closed, and some versions of the API do not know the word.
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
                // What is said of the place says more than what is said of the alternative.
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
            // A member may be called like a keyword.
            (
                json!({"type": "object", "properties": {"additionalProperties": {"type": "string"}, "anyOf": {"type": "null"}}}),
                json!({"type": "object", "properties": {"additionalProperties": {"type": "string"}, "anyOf": {"type": "null"}}, "propertyOrdering": ["additionalProperties", "anyOf"]}),
            ),
        ] {
            assert_eq!(written(&schema), expected, "{schema}");
        }
    }
}
