use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde_json::Value;

/// A JSON Schema with a name: what a model is asked to fill in.
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
    /// A short name: letters, digits, `_` and `-` are safe with every provider.
    fn name(&self) -> &str;

    /// The JSON Schema, draft 2020-12 unless `$schema` says otherwise.
    fn document(&self) -> &Value;
}

/// The schema of a Rust type, as schemars derives it.
pub struct Typed<T> {
    inline: Inline,
    of: PhantomData<fn() -> T>,
}

impl<T: JsonSchema> Typed<T> {
    /// The schema of `T`, with the type's name and its fields in the order of their declaration.
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

/// A schema given as a JSON document.
#[derive(Debug, Clone, PartialEq)]
pub struct Inline {
    name: String,
    document: Value,
}

impl Inline {
    /// The schema `document` under `name`.
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
