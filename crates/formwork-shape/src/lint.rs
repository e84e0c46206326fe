//! Shapes that say something else than was most likely meant.

use std::fmt;

use formwork_core::JsonPath;

use crate::names::TYPES;
use crate::{Kind, Node, Shape};

/// A place of a shape that is valid and most likely a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LintFinding {
    /// The place in values of the shape; an array's item is `[0]`.
    pub path: JsonPath,
    /// The meaning of the place as it stands, and how to write the other one.
    pub message: String,
}

impl fmt::Display for LintFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Names of types in other languages, which are only texts here.
const OTHER_TYPES: [&str; 6] = ["int", "float", "double", "bool", "str", "object"];

impl Shape {
    /// Returns the places that are valid and most likely mistakes: the name of a type in quotes, and a map that is written as
    /// if the name of its field were a type.
    ///
    /// ```
    /// let shape = formwork_shape::Shape::parse(r#"{"name": "string", "prices": {string: number}}"#)?;
    /// let found: Vec<String> = shape.lint().iter().map(|finding| finding.path.to_string()).collect();
    /// assert_eq!(found, ["$.name", "$.prices"]);
    /// # Ok::<(), formwork_shape::ShapeError>(())
    /// ```
    pub fn lint(&self) -> Vec<LintFinding> {
        let mut findings = Vec::new();
        lint(&self.root, &JsonPath::root(), &mut findings);
        findings
    }
}

fn lint(node: &Node, path: &JsonPath, findings: &mut Vec<LintFinding>) {
    let mut find = |message: String| findings.push(LintFinding { path: path.clone(), message });
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
                lint(&field.node, &path.key(field.name.as_str()), findings);
            }
        }
        Kind::Array(item) => lint(item, &path.index(0), findings),
        _ => {}
    }
}

fn is_type(text: &str) -> bool {
    TYPES.contains(&text) || OTHER_TYPES.contains(&text)
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
        ] {
            let findings = Shape::parse(shape).unwrap().lint();
            let paths: Vec<String> = findings.iter().map(|finding| finding.path.to_string()).collect();
            assert_eq!(paths, expected, "{shape}");
        }
    }
}
