use serde_json::Value;

/// The type of one place in a JSON value, with its description.
///
/// ```
/// use formwork_shape::{Field, Kind, Node, Shape};
///
/// let note = Node::new(Kind::Markdown).or_null().with_description("For the reader.");
/// let title = Node::new(Kind::String);
/// let fields = vec![Field::new("title", title), Field::new("note", note).optional()];
/// let shape = Shape::new(Node::new(Kind::Object(fields)));
/// let text = "{\n  \"title\": string,\n  \"note\"?: markdown | null  // For the reader.\n}";
/// assert_eq!(Shape::parse(text)?, shape);
/// # Ok::<(), formwork_shape::ShapeError>(())
/// ```
#[must_use]
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Node {
    /// The kind of value.
    pub kind: Kind,
    /// Whether `null` is allowed too. Always `false` for [`Kind::Any`] and [`Kind::OneOf`], which cover `null`
    /// themselves.
    pub nullable: bool,
    /// The comment, on one line; the `description` in JSON Schema.
    pub description: Option<String>,
}

/// The kind of a value.
///
/// ```
/// use formwork_shape::{Kind, Shape};
///
/// assert_eq!(Shape::parse("1 | 2")?.root().kind, Kind::OneOf(vec![1.into(), 2.into()]));
/// # Ok::<(), formwork_shape::ShapeError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `any`: any JSON value.
    Any,
    /// `string`.
    String,
    /// `markdown`: a string that holds Markdown.
    Markdown,
    /// `number`.
    Number,
    /// `integer`: a number without a fraction.
    Integer,
    /// `boolean`.
    Boolean,
    /// `date`: a string with a date of RFC 3339, such as `2026-11-30`.
    Date,
    /// `"low" | "high"`: one of these strings, numbers, booleans or `null`; at least one, without duplicates.
    OneOf(Vec<Value>),
    /// `[string]`: an array of any length.
    Array(Box<Node>),
    /// `{"name": string}`: an object with these fields, and possibly others.
    Object(Vec<Field>),
}

/// A field of an object.
///
/// ```
/// use formwork_shape::{Field, Kind, Node};
///
/// let field = Field::new("tags", Node::new(Kind::String)).optional();
/// assert!(field.optional && field.name == "tags");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[must_use]
pub struct Field {
    /// The name.
    pub name: String,
    /// Whether the field may be left out, written `"name"?`.
    pub optional: bool,
    /// Whether the value stands in the input (the rule `grounded`), written `"name"~`.
    pub grounded: bool,
    /// The type of the value.
    pub node: Node,
}

impl Node {
    /// Creates a node without `null` and without a description.
    pub const fn new(kind: Kind) -> Self {
        Self { kind, nullable: false, description: None }
    }

    /// Allows `null` as well (default: not allowed).
    pub fn or_null(mut self) -> Self {
        match &mut self.kind {
            Kind::Any => {}
            Kind::OneOf(values) if values.contains(&Value::Null) => {}
            Kind::OneOf(values) => values.push(Value::Null),
            _ => self.nullable = true,
        }
        self
    }

    /// Sets the description (default: none). White space becomes single spaces; an empty text removes the description.
    pub fn with_description(mut self, text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        self.description = (!words.is_empty()).then(|| words.join(" "));
        self
    }
}

impl Field {
    /// Creates a required field.
    pub fn new(name: impl Into<String>, node: Node) -> Self {
        Self { name: name.into(), optional: false, grounded: false, node }
    }

    formwork_core::setters! {
        /// Makes the field optional.
        pub const fn optional(optional = true);
        /// Requires the value to stand in the input (default: it may be any value).
        pub const fn grounded(grounded = true);
    }
}
