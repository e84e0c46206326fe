use std::rc::Rc;

use formwork_core::Lift;
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

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Alternative {
    /// Any value at all, at a JSON Pointer of the original schema.
    Any(String),
    /// One of these values.
    Literals(Literals),
    Null,
    Boolean,
    Number(NumberForm),
    String(StringForm),
    Array(ArrayForm),
    Object(ObjectForm),
    /// What is sent instead of something else, and how it is mapped back.
    Mapped(Box<Alternative>, Vec<Lift>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Literals {
    pub(crate) values: Vec<Value>,
    /// JSON Pointer into the original schema.
    pub(crate) origin: String,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct NumberForm {
    pub(crate) integer: bool,
    pub(crate) min: Option<Bound>,
    pub(crate) max: Option<Bound>,
    pub(crate) multiple_of: Option<Number>,
    /// JSON Pointer into the original schema.
    pub(crate) origin: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bound {
    pub(crate) at: f64,
    pub(crate) exclusive: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StringForm {
    /// Characters.
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    /// All of these match somewhere in the string.
    pub(crate) patterns: Vec<Pattern>,
    pub(crate) format: Option<String>,
    /// JSON Pointer into the original schema.
    pub(crate) origin: String,
    /// What it stands for, where that is no plain string.
    pub(crate) role: Role,
    /// The outline of the JSON that it holds.
    pub(crate) holds: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Role {
    #[default]
    Text,
    /// The name of a member. Its length is ours, so a dialect that cannot say it loses nothing.
    Name,
    /// Any JSON, as text. As with names.
    Json,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pattern {
    /// As the schema has it (ECMA-262).
    pub(crate) source: String,
    /// In the syntax that `regex-syntax` takes.
    pub(crate) translated: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ArrayForm {
    pub(crate) prefix: Vec<Shared>,
    /// What the items after the prefix are; `None` if there are none.
    pub(crate) items: Option<Shared>,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    pub(crate) origin: String,
}

#[derive(Debug, Clone, PartialEq)]
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

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) form: Shared,
    pub(crate) required: bool,
}

/// Members whose names the schema does not list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Extra {
    /// What their names match; `None` for every name.
    pub(crate) pattern: Option<Pattern>,
    pub(crate) form: Shared,
}
