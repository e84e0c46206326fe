//! Finds valid shapes that are probably mistakes.

use std::fmt;

use formwork_core::JsonPath;

use crate::names::{alone, named};
use crate::{Kind, Node, Shape};

/// A part of a shape that is valid and probably a mistake, from [`Shape::lint`].
///
/// ```
/// let shape = formwork_shape::Shape::parse(r#"{"age": "integer"}"#)?;
/// let warning = &shape.lint()[0];
/// assert_eq!(warning.path.to_string(), "$.age");
/// assert!(warning.message.starts_with("the value is the text \"integer\" itself"));
/// # Ok::<(), formwork_shape::ShapeError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShapeWarning {
    /// The path in values of the shape; an array's item is `[0]`.
    pub path: JsonPath,
    /// The meaning of the shape as it is, and the notation for the probable intention.
    pub message: String,
}

impl fmt::Display for ShapeWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Type names of other languages, which are plain texts in a shape.
const OTHER_TYPES: [&str; 2] = ["double", "object"];

impl Shape {
    /// Returns the parts that are valid and probably mistakes: a type name in quotes, and a map whose field name is a
    /// type name.
    ///
    /// ```
    /// let shape = formwork_shape::Shape::parse(r#"{"name": "string", "prices": {string: number}}"#)?;
    /// let found: Vec<String> = shape.lint().iter().map(|warning| warning.path.to_string()).collect();
    /// assert_eq!(found, ["$.name", "$.prices"]);
    /// # Ok::<(), formwork_shape::ShapeError>(())
    /// ```
    pub fn lint(&self) -> Vec<ShapeWarning> {
        let mut warnings = Vec::new();
        lint(&self.root, &JsonPath::root(), &mut warnings);
        warnings
    }
}

fn lint(node: &Node, path: &JsonPath, warnings: &mut Vec<ShapeWarning>) {
    let mut find = |message: String| warnings.push(ShapeWarning { path: path.clone(), message });
    match &node.kind {
        Kind::OneOf(values) => {
            let quoted = values.iter().filter_map(|value| value.as_str()).find(|text| is_type(text));
            if let Some(text) = quoted {
                find(format!(
                    "the value is the text \"{text}\" itself: the name of a type is written without quotes, as in `string`"
                ));
            }
        }
        Kind::Object(fields) => {
            if let [field] = fields.as_slice()
                && is_type(&field.name)
            {
                find(format!(
                    "the object has one field, whose name is `{}`: a map has no shape of its own, so write `any` and say in \
                     a comment what its keys and values are",
                    field.name
                ));
            }
            for field in fields {
                lint(&field.node, &path.key(field.name.as_str()), warnings);
            }
        }
        Kind::Array(item) => lint(item, &path.index(0), warnings),
        _ => {}
    }
}

fn is_type(text: &str) -> bool {
    named(text).is_some() && alone(text).is_none() || OTHER_TYPES.contains(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traps_are_found_wherever_they_are_and_nothing_else_is() {
        for (shape, expected) in [
            (r#"{"name": "string"}"#, vec!["$.name"]),
            (r#"{"name": "int" | "float"}"#, vec!["$.name"]),
            (r#"{"prices": {string: number}}"#, vec!["$.prices"]),
            (r#"{string: "number"}"#, vec!["$", "$.string"]),
            (r#"[{"a": [{"b": "boolean"}]}]"#, vec!["$[0].a[0].b"]),
            (r#"{"name": string, "stage"?: "draft" | "final" | null}"#, vec![]),
            (r#"{"string": number, "integer": number}"#, vec![]),
            (r#"{"text": string, "kind": "text" | "number-like"}"#, vec![]),
            ("string", vec![]),
            ("{date}", vec![]),
        ] {
            let warnings = Shape::parse(shape).unwrap().lint();
            let paths: Vec<String> = warnings.iter().map(|warning| warning.path.to_string()).collect();
            assert_eq!(paths, expected, "{shape}");
        }
    }
}
