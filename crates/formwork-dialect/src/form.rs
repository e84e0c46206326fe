use std::rc::Rc;

use serde_json::{Number, Value};

/// What a schema allows, as alternatives without references, `allOf` and overlapping keywords.
///
/// Every dialect is written from this: what JSON Schema can say in a hundred ways is said here in one.
#[derive(Debug, PartialEq)]
pub(crate) struct Form {
    pub(crate) alternatives: Vec<Alternative>,
    pub(crate) description: Option<String>,
}

/// A form that several places share.
pub(crate) type Shared = Rc<Form>;

#[derive(Debug, PartialEq)]
pub(crate) enum Alternative {
    /// Any value at all, at a JSON Pointer of the original schema.
    Any(String),
    /// One of these values.
    Literals(Vec<Value>),
    Null,
    Boolean,
    Number(NumberForm),
    String(StringForm),
    Array(ArrayForm),
    Object(ObjectForm),
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct NumberForm {
    pub(crate) integer: bool,
    pub(crate) min: Option<Bound>,
    pub(crate) max: Option<Bound>,
    pub(crate) multiple_of: Option<Number>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bound {
    pub(crate) at: f64,
    pub(crate) exclusive: bool,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct StringForm {
    /// Characters.
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    /// All of these match somewhere in the string. In the syntax that `regex-syntax` takes.
    pub(crate) patterns: Vec<String>,
    pub(crate) format: Option<String>,
    /// JSON Pointer into the original schema.
    pub(crate) origin: String,
}

#[derive(Debug, PartialEq)]
pub(crate) struct ArrayForm {
    pub(crate) prefix: Vec<Shared>,
    /// What the items after the prefix are; `None` if there are none.
    pub(crate) items: Option<Shared>,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    pub(crate) origin: String,
}

#[derive(Debug, PartialEq)]
pub(crate) struct ObjectForm {
    /// The recursive definition that this is.
    pub(crate) name: Option<String>,
    pub(crate) properties: Vec<Property>,
    /// Members of other names.
    pub(crate) extras: Vec<Extra>,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    pub(crate) origin: String,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) form: Shared,
    pub(crate) required: bool,
}

/// Members whose names the schema does not list.
#[derive(Debug, PartialEq)]
pub(crate) struct Extra {
    /// What their names match; `None` for every name.
    pub(crate) pattern: Option<String>,
    pub(crate) form: Shared,
}
