//! The patterns of a schema, some of which crash Ollama.

use formwork_core::Lowered;
use formwork_core::keywords::find;

/// Returns whether a schema has a `pattern` keyword.
pub(crate) fn has_pattern(lowered: &Lowered) -> bool {
    first(lowered, |_| true).is_some()
}

/// Returns the first `pattern` with a look-around or another group that Ollama's grammars do not support. Such a pattern
/// crashed the whole server (0.17.4: `^(?=a)a$`, SIGSEGV).
pub(crate) fn deadly(lowered: &Lowered) -> Option<&str> {
    first(lowered, has_special_group)
}

fn first(lowered: &Lowered, is_it: impl Fn(&str) -> bool) -> Option<&str> {
    // Few schemas have patterns, and a search of the text is much faster than a walk over the schema.
    if !lowered.schema_json()?.get().contains("\"pattern") {
        return None;
    }
    let schema = lowered.schema.as_ref()?;
    let mut found = None;
    find(schema, |part| {
        let names =
            part["patternProperties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        found = part["pattern"].as_str().into_iter().chain(names).find(|pattern| is_it(pattern));
        found.is_some()
    });
    found
}

/// Returns whether a pattern (ECMA-262) has a group that begins with `(?`, other than the plain `(?:`.
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
    use formwork_core::Enforcement;
    use serde_json::{Value, json};

    use super::*;

    fn lowered(schema: Value) -> Lowered {
        Lowered::new(Enforcement::Schema, schema)
    }

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
        let nested = lowered(json!({"properties": {"a": {"items": {"anyOf": [{"pattern": "^(?=a)"}]}}}}));
        assert_eq!(deadly(&nested), Some("^(?=a)"));
        assert_eq!(deadly(&lowered(json!({"patternProperties": {"^(?!x)": {}}}))), Some("^(?!x)"));
        assert!(has_pattern(&lowered(json!({"pattern": "^a$"}))));
        assert_eq!(deadly(&lowered(json!({"pattern": "^a$"}))), None);
    }

    #[test]
    fn values_and_properties_of_that_name_are_no_patterns() {
        let schema = lowered(json!({
            "properties": {"pattern": {"type": "string"}},
            "const": {"pattern": "(?=a)"},
            "enum": [{"pattern": "(?=a)"}],
            "examples": [{"pattern": "(?=a)"}],
        }));
        assert!(!has_pattern(&schema));
        let named =
            lowered(json!({"properties": {"default": {"pattern": "(?=a)"}, "examples": {"pattern": "b"}}}));
        assert_eq!(deadly(&named), Some("(?=a)"));
    }
}
