use serde_json::Value;

/// One place of a shape: what may stand there, and what is said about it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Node {
    /// The kind of value that may stand there.
    pub kind: Kind,
    /// `null` may stand there too. Never set for [`Kind::Any`] and [`Kind::OneOf`], which say it themselves.
    pub nullable: bool,
    /// The comment beside it, on one line; the `description` of a JSON Schema.
    pub description: Option<String>,
}

/// The kind of value that may stand in one place.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `any`: any JSON.
    Any,
    /// `string`.
    String,
    /// `markdown`: a string of Markdown.
    Markdown,
    /// `number`.
    Number,
    /// `integer`: a number without a fraction.
    Integer,
    /// `boolean`.
    Boolean,
    /// `"low" | "high"`: one of these strings, numbers, booleans and `null`; at least one, none twice.
    OneOf(Vec<Value>),
    /// `[string]`: any number of these.
    Array(Box<Node>),
    /// `{"name": string}`: these fields, and whatever else the answer has.
    Object(Vec<Field>),
}

/// A field of an object.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Field {
    /// Its name.
    pub name: String,
    /// `"name"?`: it may be left out.
    pub optional: bool,
    /// Its value.
    pub node: Node,
}

impl Node {
    /// A place for this, without `null` and without a comment.
    pub const fn new(kind: Kind) -> Self {
        Self { kind, nullable: false, description: None }
    }

    /// Allows `null` as well (default: not).
    #[must_use]
    pub fn or_null(mut self) -> Self {
        match &mut self.kind {
            Kind::Any => {}
            Kind::OneOf(values) if values.contains(&Value::Null) => {}
            Kind::OneOf(values) => values.push(Value::Null),
            _ => self.nullable = true,
        }
        self
    }

    /// Sets the comment (default: none); its white space becomes single spaces, and an empty one is none.
    #[must_use]
    pub fn with_description(mut self, text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        self.description = (!words.is_empty()).then(|| words.join(" "));
        self
    }
}

impl Field {
    /// A field that has to be there.
    pub fn new(name: impl Into<String>, node: Node) -> Self {
        Self { name: name.into(), optional: false, node }
    }

    /// As one that may be left out.
    #[must_use]
    pub const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }
}
