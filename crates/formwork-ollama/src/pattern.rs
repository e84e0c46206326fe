//! The patterns of a schema, which are what Ollama dies of.

use serde_json::Value;

/// Whether a schema has a `pattern`, anywhere but in values.
pub(crate) fn has_pattern(schema: &Value) -> bool {
    any(schema, &mut |_| true)
}

/// The first `pattern` with a look-around or another group that Ollama's grammars do not know. Such a one has killed
/// the whole server (0.17.4: `^(?=a)a$`, SIGSEGV).
pub(crate) fn deadly(schema: &Value) -> Option<&str> {
    let mut found = None;
    any(schema, &mut |pattern| {
        if has_special_group(pattern) {
            found = Some(pattern);
        }
        found.is_some()
    });
    found
}

fn any<'s>(schema: &'s Value, is_it: &mut impl FnMut(&'s str) -> bool) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, value)| match (key.as_str(), value) {
            // What a document may hold, not a schema.
            ("const" | "enum" | "default" | "examples", Value::Array(_) | Value::String(_)) => false,
            ("const" | "default", _) => false,
            // A property that is called `pattern` is an object.
            ("pattern", Value::String(pattern)) => is_it(pattern),
            ("patternProperties", Value::Object(schemas)) => {
                schemas.iter().any(|(pattern, schema)| is_it(pattern) || any(schema, is_it))
            }
            _ => any(value, is_it),
        }),
        Value::Array(items) => items.iter().any(|item| any(item, is_it)),
        _ => false,
    }
}

/// Whether a pattern (ECMA-262) has a group that begins with `(?`, other than the plain `(?:`.
fn has_special_group(pattern: &str) -> bool {
    let mut in_class = false;
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                rest.next();
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                let mut ahead = rest.clone();
                if ahead.next() == Some('?') && ahead.next() != Some(':') {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_groups_beyond_the_plain_ones_are_deadly() {
        for pattern in ["^(?=a)a$", "(?!x)y", "(?<=a)b", "(?<!a)b", "(?<name>a)", r"\\(?=a)", "[)](?=a)"] {
            assert!(has_special_group(pattern), "{pattern}");
        }
        for pattern in ["^a(b|c)?$", "(?:a)+", r"\(?=", "[(?=]", "", "(", r"\"] {
            assert!(!has_special_group(pattern), "{pattern}");
        }
    }

    #[test]
    fn patterns_are_found_where_schemas_are() {
        let nested = json!({"properties": {"a": {"items": {"anyOf": [{"pattern": "^(?=a)"}]}}}});
        assert_eq!(deadly(&nested), Some("^(?=a)"));
        assert_eq!(deadly(&json!({"patternProperties": {"^(?!x)": {}}})), Some("^(?!x)"));
        assert!(has_pattern(&json!({"pattern": "^a$"})));
        assert_eq!(deadly(&json!({"pattern": "^a$"})), None);
    }

    #[test]
    fn values_and_properties_of_that_name_are_no_patterns() {
        let schema = json!({
            "properties": {"pattern": {"type": "string"}},
            "const": {"pattern": "(?=a)"},
            "enum": [{"pattern": "(?=a)"}],
            "examples": [{"pattern": "(?=a)"}],
        });
        assert!(!has_pattern(&schema));
    }
}
