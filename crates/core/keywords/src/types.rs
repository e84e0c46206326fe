use serde_json::Value;

/// Returns the name of a value's type in JSON Schema; `number` for every number, whole or not.
///
/// ```
/// assert_eq!(formwork_keywords::type_name(&serde_json::json!([1])), "array");
/// ```
pub const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns whether a value has the type of this name; `None` if JSON Schema has no such type. A number without a fraction
/// (`2.0`) is an integer.
///
/// ```
/// use formwork_keywords::is_type;
///
/// let two = serde_json::json!(2.0);
/// assert_eq!((is_type(&two, "integer"), is_type(&two, "string"), is_type(&two, "float")), (Some(true), Some(false), None));
/// ```
pub fn is_type(value: &Value, name: &str) -> Option<bool> {
    match name {
        "integer" => Some(
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        ),
        "null" | "boolean" | "number" | "string" | "array" | "object" => Some(type_name(value) == name),
        _ => None,
    }
}

/// Returns whether a value has a type that the keyword `type` of a schema allows; `None` if the schema has no `type`, or if
/// its list contains an unknown type and no type that fits.
///
/// ```
/// use formwork_keywords::fits_type;
/// use serde_json::json;
///
/// assert_eq!(fits_type(&json!({"type": ["string", "null"]}), &json!(null)), Some(true));
/// assert_eq!(fits_type(&json!({"minimum": 3}), &json!(5)), None);
/// ```
pub fn fits_type(schema: &Value, value: &Value) -> Option<bool> {
    let named = |name: &Value| is_type(value, name.as_str()?);
    match schema.get("type")? {
        Value::Array(names) => {
            let mut fits = Some(false);
            for name in names {
                match named(name) {
                    Some(true) => return Some(true),
                    Some(false) => {}
                    None => fits = None,
                }
            }
            fits
        }
        name => named(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_type_is_reported_where_the_schema_names_types_that_exist() {
        for (schema, value, fits) in [
            (json!({"type": "integer"}), json!(2.0), Some(true)),
            (json!({"type": "integer"}), json!(2.5), Some(false)),
            (json!({"type": "integer"}), json!(u64::MAX), Some(true)),
            (json!({"type": "number"}), json!(2), Some(true)),
            (json!({"type": ["string", "null"]}), json!(null), Some(true)),
            (json!({"type": ["string", "null"]}), json!([]), Some(false)),
            (json!({"type": ["text", "null"]}), json!(null), Some(true)),
            (json!({"type": ["text", "null"]}), json!([]), None),
            (json!({"type": "text"}), json!("a"), None),
            (json!({"type": []}), json!("a"), Some(false)),
            (json!({}), json!("a"), None),
            (json!(true), json!("a"), None),
        ] {
            assert_eq!(fits_type(&schema, &value), fits, "{schema} {value}");
        }
    }
}
