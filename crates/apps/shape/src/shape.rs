use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use formwork_core::{Context, Contract, Report, Schema, Validator as _, Violation};
use formwork_schema::SchemaError;
use serde_json::Value;

use crate::{Field, Kind, Node, ShapeError, Unsaid, from_schema, grounded, parse, to_schema, write};

/// The form of JSON values, in a notation close to the values themselves. A shape is a [`Schema`].
///
/// The [grammar](crate#grammar) is in the crate's documentation. `Display` writes one field per line, which is also the
/// text in prompts; parsing that text returns an equal shape.
///
/// ```
/// use formwork_core::Schema;
/// use formwork_shape::Shape;
///
/// let shape = Shape::parse(r#"{
///   "name": string,            // as on the passport
///   "mood"?: "calm" | "cross",
///   "risks": [string]
/// }"#)?;
/// assert_eq!(shape.document()["required"], serde_json::json!(["name", "risks"]));
/// let wrong: Vec<_> = shape.validate(&serde_json::json!({"risks": [123]})).iter().map(ToString::to_string).collect();
/// assert_eq!(wrong, [
///     "Missing required field at path $.name",
///     "Type mismatch at $.risks[0]: expected string, found number",
/// ]);
/// # Ok::<(), formwork_shape::ShapeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Shape {
    name: String,
    pub(crate) root: Node,
    /// The JSON Schema, computed on first use.
    document: OnceLock<Value>,
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.root == other.root
    }
}

impl Shape {
    /// Parses the text of a shape.
    ///
    /// # Errors
    /// [`ShapeError`] with line and column, if the text is not a shape.
    pub fn parse(text: &str) -> Result<Self, ShapeError> {
        parse::parse(text, false).map(Self::new)
    }

    /// Parses a list of fields, as people type it: an object without its brackets, with one field per line or commas
    /// between fields.
    ///
    /// # Errors
    /// [`ShapeError`] with line and column, if the text is not a list of fields.
    ///
    /// ```
    /// use formwork_shape::Shape;
    ///
    /// let shape = Shape::parse_fields("vendor, items: [{name, qty: int}], due?: date  # as printed")?;
    /// assert_eq!(shape, Shape::parse(
    ///     "{vendor: string, items: [{name: string, qty: integer}], due?: date  // as printed\n}")?);
    /// # Ok::<(), formwork_shape::ShapeError>(())
    /// ```
    pub fn parse_fields(text: &str) -> Result<Self, ShapeError> {
        parse::parse(text, true).map(Self::new)
    }

    /// Creates a shape with the root node `root`. The caller guarantees the invariants of the kinds: [`Kind::OneOf`] contains
    /// scalars without duplicates.
    pub fn new(root: Node) -> Self {
        Self { name: "shape".to_owned(), root, document: OnceLock::new() }
    }

    /// Sets the name of the schema, made of letters, digits, `_` and `-` (default: `shape`).
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Converts a JSON Schema, and returns the keywords that shapes cannot express: bounds, patterns, closed objects,
    /// unions of types. References are resolved. The keywords of a schema without `type` imply its type; otherwise the
    /// shape is never stricter than the schema.
    ///
    /// # Errors
    /// [`SchemaError`] if the document is not a JSON Schema, or has more than 20 000 places.
    ///
    /// ```
    /// use formwork_shape::Shape;
    ///
    /// let schema = serde_json::json!({"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}});
    /// let (shape, unsaid) = Shape::from_schema(&schema)?;
    /// assert_eq!(shape.to_string(), "{\n  \"age\"?: integer\n}");
    /// assert_eq!(unsaid[0].to_string(), "#/properties/age: a shape cannot say `minimum`: it is left out");
    /// # Ok::<(), formwork_schema::SchemaError>(())
    /// ```
    pub fn from_schema(document: &Value) -> Result<(Self, Vec<Unsaid>), SchemaError> {
        let (root, unsaid) = from_schema::shape(document)?;
        Ok((Self::new(root), unsaid))
    }

    /// Returns the root node.
    pub const fn root(&self) -> &Node {
        &self.root
    }

    /// Returns the contract of values of this shape.
    ///
    /// # Errors
    /// [`SchemaError`] for a hand-built shape that breaks the invariants of its kinds.
    pub fn contract(&self) -> Result<Contract, SchemaError> {
        formwork_schema::contract_for(Arc::new(self.clone()))
    }

    /// Returns all violations of a value; none if it has this shape.
    pub fn validate(&self, value: &Value) -> Vec<Violation> {
        let mut report = Report::default();
        match formwork_schema::compile(self.document()) {
            Ok(compiled) => compiled.validate(value, &Context::EMPTY, &mut report),
            Err(error) => report.push(
                Violation::new(formwork_core::JsonPath::root(), "falseSchema", formwork_core::Stage::Schema)
                    .with_expected(error.to_string()),
            ),
        }
        report.violations().to_vec()
    }

    /// Returns whether any field is optional.
    pub(crate) fn has_optional_fields(&self) -> bool {
        any_field(&self.root, &|field| field.optional)
    }

    /// Returns whether the value of any field stands in the input.
    pub(crate) fn has_grounded_fields(&self) -> bool {
        any_field(&self.root, &|field| field.grounded)
    }

    /// Returns whether any field holds Markdown.
    pub(crate) fn has_markdown(&self) -> bool {
        self.root.kind == Kind::Markdown || any_field(&self.root, &|field| is_markdown(&field.node))
    }
}

fn is_markdown(node: &Node) -> bool {
    match &node.kind {
        Kind::Array(item) => is_markdown(item),
        kind => *kind == Kind::Markdown,
    }
}

fn any_field(node: &Node, is_wanted: &dyn Fn(&Field) -> bool) -> bool {
    match &node.kind {
        Kind::Array(item) => any_field(item, is_wanted),
        Kind::Object(fields) => {
            fields.iter().any(|field| is_wanted(field) || any_field(&field.node, is_wanted))
        }
        _ => false,
    }
}

impl Schema for Shape {
    fn name(&self) -> &str {
        &self.name
    }

    fn document(&self) -> &Value {
        self.document.get_or_init(|| {
            let (mut document, rules) = (to_schema::schema(&self.root), grounded::rules(&self.root));
            if !rules.is_empty() {
                document[formwork_core::RULES] = serde_json::json!(rules);
            }
            document
        })
    }
}

impl FromStr for Shape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Self, ShapeError> {
        Self::parse(text)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write::write(&self.root, f)
    }
}
