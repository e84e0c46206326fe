use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde_json::Value;

/// A named JSON Schema that describes the answer of a model.
///
/// [`Typed`] derives one from a Rust type; [`Inline`] holds a JSON document.
///
/// ```
/// use formwork_core::{Inline, Schema, Typed};
///
/// #[derive(schemars::JsonSchema)]
/// struct Person {
///     age: u8,
/// }
///
/// assert_eq!(Typed::<Person>::new().name(), "Person");
/// let same = Inline::new("Person", serde_json::json!({"type": "object"}));
/// assert_eq!(same.document()["type"], "object");
/// ```
pub trait Schema: Send + Sync {
    /// Returns a short name: every provider accepts letters, digits, `_` and `-`.
    fn name(&self) -> &str;

    /// Returns the JSON Schema, of draft 2020-12 unless its `$schema` names another.
    fn document(&self) -> &Value;
}

/// The JSON Schema that schemars derives from a Rust type.
///
/// ```
/// use formwork_core::{Schema, Typed};
///
/// let schema = Typed::<Vec<String>>::new();
/// assert_eq!(schema.document()["items"]["type"], "string");
/// ```
pub struct Typed<T> {
    inline: Inline,
    of: PhantomData<fn() -> T>,
}

impl<T: JsonSchema> Typed<T> {
    /// Derives the schema of `T`, with the type's name and its fields in the order of their declaration.
    pub fn new() -> Self {
        let document = schemars::SchemaGenerator::default().into_root_schema_for::<T>().to_value();
        Self { inline: Inline::new(T::schema_name(), document), of: PhantomData }
    }
}

impl<T: JsonSchema> Default for Typed<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Schema for Typed<T> {
    fn name(&self) -> &str {
        self.inline.name()
    }

    fn document(&self) -> &Value {
        self.inline.document()
    }
}

impl<T> fmt::Debug for Typed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Typed").field(&self.inline.name).finish()
    }
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
}

impl Schema for Inline {
    fn name(&self) -> &str {
        &self.name
    }

    fn document(&self) -> &Value {
        &self.document
    }
}
