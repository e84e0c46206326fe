use serde_json::Value;

use crate::{JsonPath, Segment, Span, locate};

/// Returns a JSON text with `value` at `path` and every other byte unchanged.
///
/// An existing value is replaced. A new member is added at the end of its object, and a new item, whose index is the length
/// of the array, at the end of the array. `None` if the path does not exist in the text and cannot be added.
///
/// ```
/// use formwork_json::splice;
///
/// let text = r#"{ "age":  34 , "tags": [] }"#;
/// let text = splice(text, &"$.age".parse()?, &35.into()).unwrap();
/// let text = splice(&text, &"$.tags[0]".parse()?, &"new".into()).unwrap();
/// let text = splice(&text, &"$.name".parse()?, &"Ada".into()).unwrap();
/// assert_eq!(text, r#"{ "age":  35 , "tags": ["new"], "name": "Ada" }"#);
/// # Ok::<(), formwork_json::PathError>(())
/// ```
pub fn splice(text: &str, path: &JsonPath, value: &Value) -> Option<String> {
    if let Some(span) = locate(text, path) {
        return Some(replace(text, span, &value.to_string()));
    }
    let container = locate(text, &path.parent()?)?;
    let inside = container.of(text);
    let (closer, item) = match path.last()? {
        Segment::Key(name) => ('}', format!("{}: {value}", Value::from(name.as_str()))),
        Segment::Index(_) => (']', value.to_string()),
    };
    let body = inside.strip_suffix(closer)?.trim_end();
    if let Segment::Index(index) = path.last()? {
        let items: Vec<serde::de::IgnoredAny> = serde_json::from_str(inside).ok()?;
        if items.len() != *index {
            return None;
        }
    }
    let separator = if body.len() == 1 { "" } else { ", " };
    Some(replace(text, Span::at(container.start + body.len()), &format!("{separator}{item}")))
}

fn replace(text: &str, span: Span, with: &str) -> String {
    let before = text.get(..span.start).unwrap_or_default();
    let after = text.get(span.end..).unwrap_or_default();
    [before, with, after].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spliced(text: &str, path: &str, value: Value) -> Option<String> {
        splice(text, &path.parse().unwrap(), &value)
    }

    #[test]
    fn a_path_that_leads_nowhere_changes_nothing() {
        for path in ["$.a.b", "$.list[2]", "$.list.a", "$[0]", "$.b.c"] {
            assert_eq!(spliced(r#"{"a": 1, "list": [1]}"#, path, 2.into()), None, "{path}");
        }
    }

    #[test]
    fn the_root_is_replaced_whole() {
        assert_eq!(spliced(" 1 ", "$", 2.into()).as_deref(), Some(" 2 "));
    }

    #[test]
    fn members_are_added_to_empty_and_full_objects() {
        assert_eq!(spliced("{ }", "$.a", 1.into()).as_deref(), Some(r#"{"a": 1 }"#));
        assert_eq!(spliced("{\"b\": 2\n}", "$.a", 1.into()).as_deref(), Some("{\"b\": 2, \"a\": 1\n}"));
        assert_eq!(spliced("[1]", "$[1]", 2.into()).as_deref(), Some("[1, 2]"));
    }
}
