use schemars::JsonSchema;
use serde_json::Value;

use crate::Absent;

/// A named JSON Schema that describes the answer of a model.
///
/// [`Inline`] holds a JSON document, given or derived from a Rust type.
///
/// ```
/// use formwork_core::{Inline, Schema};
///
/// #[derive(schemars::JsonSchema)]
/// struct Person {
///     age: u8,
/// }
///
/// assert_eq!(Inline::of::<Person>().name(), "Person");
/// let same = Inline::new("Person", serde_json::json!({"type": "object"}));
/// assert_eq!(same.document()["type"], "object");
/// ```
pub trait Schema: Send + Sync {
    /// Returns a short name: every provider accepts letters, digits, `_` and `-`.
    fn name(&self) -> &str;

    /// Returns the JSON Schema, of draft 2020-12 unless its `$schema` names another.
    fn document(&self) -> &Value;
}

/// A JSON Schema given as a JSON document.
///
/// ```
/// use formwork_core::{Inline, Schema};
///
/// let schema = Inline::new("age", serde_json::json!({"type": "integer", "minimum": 0}));
/// assert_eq!(schema.name(), "age");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Inline {
    name: String,
    document: Value,
}

impl Inline {
    /// Creates a schema from a name and a JSON document.
    pub fn new(name: impl Into<String>, document: Value) -> Self {
        Self { name: name.into(), document }
    }

    /// Derives the schema of a Rust type, with the type's name and its fields in the order of their declaration.
    ///
    /// ```
    /// use formwork_core::{Inline, Schema};
    ///
    /// let schema = Inline::of::<Vec<String>>();
    /// assert_eq!(schema.document()["items"]["type"], "string");
    /// ```
    pub fn of<T: JsonSchema>() -> Self {
        let document = schemars::SchemaGenerator::default().into_root_schema_for::<T>().to_value();
        Self::new(T::schema_name(), document)
    }

    /// Marks members that a text may lack (default: none but those that the document marks itself).
    #[must_use]
    pub fn with_absent(mut self, absent: &Absent) -> Self {
        absent.declare(&mut self.document);
        self
    }
}

impl Schema for Inline {
    fn name(&self) -> &str {
        &self.name
    }

    fn document(&self) -> &Value {
        &self.document
    }
}
