use std::fmt;

use formwork_json::JsonPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Enforcement, LiftOp};

/// Writes a schema in the dialect that one kind of provider takes.
///
/// The result is *sound*: some answer that the provider may give satisfies the original, and every answer it may
/// give is mapped back by the lift operations to one that the original validator can judge. What got lost is said.
pub trait Lower: Send + Sync + fmt::Debug {
    /// The dialect's name: `llguidance`, `openai`, `prompt`.
    fn name(&self) -> &str;

    /// How far a provider enforces what comes out.
    fn enforcement(&self) -> Enforcement;

    /// Lowers a whole schema or the schema of a patch.
    ///
    /// # Errors
    /// [`Refused`], if there is no sound form of this schema in the dialect.
    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused>;
}

/// The question that [`Lower::lower`] answers.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct LowerRequest<'a> {
    /// The schema.
    pub schema: &'a Value,
    /// Which values must be generated before which others.
    pub dependencies: &'a [Dependency],
    /// Which valid answers lowering may exclude. Default: [`Tighten::Closed`].
    pub tighten: Tighten,
    /// The most tokens that the answer may have; only [`Tighten::Bounded`] looks at it. Default: `None`, the dialect's own
    /// estimate.
    pub max_tokens: Option<u32>,
}

impl<'a> LowerRequest<'a> {
    /// A request for a schema without dependencies and without a limit of tokens, tightened as [`Tighten::Closed`].
    pub const fn new(schema: &'a Value) -> Self {
        Self { schema, dependencies: &[], tighten: Tighten::Closed, max_tokens: None }
    }

    /// Sets which values must be generated before which others (default: any order).
    #[must_use]
    pub const fn with_dependencies(mut self, dependencies: &'a [Dependency]) -> Self {
        self.dependencies = dependencies;
        self
    }

    /// Sets which valid answers lowering may exclude (default: [`Tighten::Closed`]).
    #[must_use]
    pub const fn with_tighten(mut self, tighten: Tighten) -> Self {
        self.tighten = tighten;
        self
    }

    /// Sets the most tokens that the answer may have (default: the dialect's own estimate); only [`Tighten::Bounded`] looks at
    /// it.
    #[must_use]
    pub const fn with_max_tokens(mut self, tokens: Option<u32>) -> Self {
        self.max_tokens = tokens;
        self
    }
}

/// Which valid answers lowering may exclude. Every act is listed in [`Lowered::losses`] as [`LossKind::Tightened`].
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Tighten {
    /// None: an object without `additionalProperties` may have any further members.
    None,
    /// Further members of an object that names its members where `additionalProperties` is absent.
    #[default]
    Closed,
    /// As [`Closed`](Self::Closed), and strings, lists and maps that are longer than fits into the tokens of the answer,
    /// never below the bounds of the schema itself. A remedy for models that run away: an answer that is full at such a
    /// bound is not complete.
    Bounded,
}

/// A value that must be generated after others, because a rule computes what it may be from them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// The members that come first.
    pub first: Vec<JsonPath>,
    /// The member that comes after all of them.
    pub then: JsonPath,
}

/// A schema in a provider's dialect, with the way back and the lowering report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Lowered {
    /// The dialect that the schema is written in; empty where none was named. A provider whose server takes schemas in two
    /// members of the request, in a dialect each, picks the member by it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dialect: String,
    /// The schema that is sent to be enforced; `None` if nothing is.
    pub schema: Option<Value>,
    /// How the provider is asked to enforce it.
    pub enforcement: Enforcement,
    /// The schema as it is written into the prompt; `None` where the provider shows the schema to the model itself.
    pub shown: Option<SchemaText>,
    /// How an answer is mapped back; see [`lift`](crate::lift). Data, so that a stored run can go on.
    pub lift: Vec<LiftOp>,
    /// The bounds that [`Tighten::Bounded`] added. A value that is full at one of them is not complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<AddedBound>,
    /// The keywords that the dialect cannot say; the validator still checks them.
    pub losses: Vec<Loss>,
}

impl Lowered {
    /// A schema, if there is one, that a provider enforces and shows to the model itself, with nothing to map back and nothing
    /// lost.
    pub fn new(enforcement: Enforcement, schema: impl Into<Option<Value>>) -> Self {
        Self { schema: schema.into(), enforcement, ..Self::default() }
    }

    /// A schema that is written into the prompt and enforced by nobody.
    pub fn told(schema: SchemaText) -> Self {
        Self { shown: Some(schema), ..Self::default() }
    }

    /// Sets the dialect that the schema is written in (default: none is named).
    #[must_use]
    pub fn with_dialect(mut self, dialect: impl Into<String>) -> Self {
        self.dialect = dialect.into();
        self
    }

    /// Sets the schema as it is written into the prompt (default: none).
    #[must_use]
    pub fn with_shown(mut self, shown: Option<SchemaText>) -> Self {
        self.shown = shown;
        self
    }

    /// Sets how an answer is mapped back (default: it is taken as it stands).
    #[must_use]
    pub fn with_lift(mut self, lift: Vec<LiftOp>) -> Self {
        self.lift = lift;
        self
    }

    /// Sets the bounds that [`Tighten::Bounded`] added (default: none).
    #[must_use]
    pub fn with_bounds(mut self, bounds: Vec<AddedBound>) -> Self {
        self.bounds = bounds;
        self
    }

    /// Sets the keywords that the dialect cannot say (default: none).
    #[must_use]
    pub fn with_losses(mut self, losses: Vec<Loss>) -> Self {
        self.losses = losses;
        self
    }
}

/// A bound that lowering added to what a schema leaves longer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AddedBound {
    /// RFC 6901 JSON Pointer of the node in [`Lowered::schema`].
    pub at: String,
    /// The largest number of characters of a string, items of an array or members of an object there.
    pub max: u64,
}

impl AddedBound {
    /// The bound of the node at a JSON Pointer.
    pub fn new(at: impl Into<String>, max: u64) -> Self {
        Self { at: at.into(), max }
    }
}

/// A schema as text for a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "as", content = "text", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SchemaText {
    /// JSON Schema, with a space after each comma and colon.
    JsonSchema(String),
    /// A compact, type-like outline: `{"age": integer}`.
    Outline(String),
}

impl SchemaText {
    /// Returns the text as it stands in the prompt.
    pub fn text(&self) -> &str {
        match self {
            Self::JsonSchema(text) | Self::Outline(text) => text,
        }
    }
}

/// One thing that a dialect cannot say about a schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Loss {
    /// RFC 6901 JSON Pointer into the original schema.
    pub pointer: String,
    /// The keyword that is not enforced as it stands.
    pub keyword: String,
    /// The fate of that keyword.
    pub kind: LossKind,
}

/// The fate of a keyword that a dialect cannot say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LossKind {
    /// It is not enforced; the validator checks it.
    Unenforced,
    /// It is enforced more loosely than it stands.
    Loosened,
    /// It is enforced more tightly, so that some valid answers cannot be given.
    Tightened,
}

impl Loss {
    /// The fate of one keyword of the schema at a JSON Pointer.
    pub fn new(pointer: impl Into<String>, keyword: impl Into<String>, kind: LossKind) -> Self {
        Self { pointer: pointer.into(), keyword: keyword.into(), kind }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, keyword, kind } = self;
        let what = match kind {
            LossKind::Unenforced => "is not enforced, only checked",
            LossKind::Loosened => "is enforced loosely and checked",
            LossKind::Tightened => "is enforced more tightly than it stands",
        };
        write!(f, "#{pointer}: `{keyword}` {what}")
    }
}

/// A schema that a dialect cannot take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("the schema cannot be used with {dialect}: #{pointer}: {message}")]
#[non_exhaustive]
pub struct Refused {
    /// The dialect.
    pub dialect: String,
    /// RFC 6901 JSON Pointer into the original schema.
    pub pointer: String,
    /// Why, and what to write instead.
    pub message: String,
}

impl Refused {
    /// The root of a schema that a dialect cannot take: why, and what to write instead.
    pub fn new(dialect: impl Into<String>, message: impl Into<String>) -> Self {
        Self { dialect: dialect.into(), pointer: String::new(), message: message.into() }
    }

    /// Sets the place in the original schema as a JSON Pointer (default: the root).
    #[must_use]
    pub fn with_pointer(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = pointer.into();
        self
    }
}
