use std::fmt;
use std::sync::OnceLock;

use formwork_json::JsonPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::{Enforcement, Lift, LiftOp, Size};

/// Translates schemas into the dialect of one kind of provider.
///
/// The result is *sound*: some answer that the lowered schema allows satisfies the original, and every answer that it
/// allows is mapped back by the lift operations to a value that the original validator can judge. The lowering report lists
/// everything that is not enforced.
///
/// ```
/// use formwork_core::{Enforcement, Lower, LowerRequest, Lowered, Refused, SchemaText, spaced};
///
/// /// Writes the schema into the prompt; nothing enforces it.
/// #[derive(Debug)]
/// struct InPrompt;
///
/// impl Lower for InPrompt {
///     fn name(&self) -> &str {
///         "in-prompt"
///     }
///     fn enforcement(&self) -> Enforcement {
///         Enforcement::None
///     }
///     fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused> {
///         Ok(Lowered::described(SchemaText::JsonSchema(spaced(request.schema))))
///     }
/// }
/// ```
pub trait Lower: Send + Sync + fmt::Debug {
    /// Returns the name of the dialect, such as `llguidance`, `openai` or `prompt`.
    fn name(&self) -> &str;

    /// Returns the degree to which a provider enforces the lowered schema.
    fn enforcement(&self) -> Enforcement;

    /// Lowers the schema of a whole document or of a patch.
    ///
    /// # Errors
    /// [`Refused`], if the dialect has no sound form of this schema.
    fn lower(&self, request: &LowerRequest<'_>) -> Result<Lowered, Refused>;
}

/// The parameters of [`Lower::lower`].
///
/// ```
/// use formwork_core::{LowerRequest, Tighten};
///
/// let schema = serde_json::json!({"type": "array", "items": {"type": "string"}});
/// let request = LowerRequest::new(&schema).with_tighten(Tighten::Bounded).with_max_tokens(Some(200));
/// assert!(request.dependencies.is_empty());
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
#[must_use]
pub struct LowerRequest<'a> {
    /// The schema.
    pub schema: &'a Value,
    /// The order of generation that rules require.
    pub dependencies: &'a [Dependency],
    /// The valid answers that lowering may exclude (default: [`Tighten::Closed`]).
    pub tighten: Tighten,
    /// The maximum number of tokens of the answer, which only [`Tighten::Bounded`] uses (default: `None`, the dialect's own
    /// estimate).
    pub max_tokens: Option<u32>,
    /// The lengths that the bounds of [`Tighten::Bounded`] allow in any case (default: 0).
    pub at_least: Size,
}

impl<'a> LowerRequest<'a> {
    /// Creates a request for a schema without dependencies and token limit, in [`Tighten::Closed`].
    pub const fn new(schema: &'a Value) -> Self {
        let at_least = Size { items: 0, text: 0, name: 0 };
        Self { schema, dependencies: &[], tighten: Tighten::Closed, max_tokens: None, at_least }
    }

    crate::setters! {
        /// Sets the order of generation that rules require (default: any order).
        pub const fn with_dependencies(dependencies: &'a [Dependency]);
        /// Sets which valid answers lowering may exclude (default: [`Tighten::Closed`]).
        pub const fn with_tighten(tighten: Tighten);
        /// Sets the maximum number of tokens of the answer, which only [`Tighten::Bounded`] uses (default: the dialect's own
        /// estimate).
        pub const fn with_max_tokens(max_tokens: Option<u32>);
        /// Sets the lengths that the bounds of [`Tighten::Bounded`] allow in any case (default: 0).
        pub const fn with_at_least(at_least: Size);
    }
}

/// The valid answers that lowering may exclude, each as a loss of the kind [`LossKind::Tightened`].
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Tighten {
    /// None.
    None,
    /// Further members of an object that names its members and has no `additionalProperties`.
    #[default]
    Closed,
    /// The same as [`Closed`](Self::Closed), and texts and lists that are longer than the token limit allows, which stops models that
    /// run away.
    Bounded,
}

/// A value that must be generated after others, because a rule computes its range from them.
///
/// ```
/// use formwork_core::Dependency;
///
/// // The total is generated after both of its parts.
/// let dependency = Dependency { first: vec!["$.net".parse()?, "$.tax".parse()?], then: "$.total".parse()? };
/// assert_eq!(dependency.then.to_string(), "$.total");
/// # Ok::<(), formwork_core::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// The paths of the values that are generated first.
    pub first: Vec<JsonPath>,
    /// The path of the value that is generated after all of them.
    pub then: JsonPath,
}

/// A schema in a provider's dialect, with the operations that map answers back and the lowering report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
#[must_use]
pub struct Lowered {
    /// The dialect of the schema; empty if unnamed. A provider whose API has a member for each of two dialects chooses the
    /// member by it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dialect: String,
    /// The schema that is sent to be enforced; `None` if none is.
    pub schema: Option<Value>,
    /// The degree of enforcement that is requested.
    pub enforcement: Enforcement,
    /// The schema as it is written into the prompt; `None` if the provider itself adds the schema to the prompt.
    #[serde(rename = "shown")]
    pub prompt_schema: Option<SchemaText>,
    /// The operations that map an answer back; see [`lift`](crate::lift). They are data, so that a stored run can resume.
    pub lift: Vec<LiftOp>,
    /// The bounds that [`Tighten::Bounded`] added. A value that fills one of them is incomplete, unless a value of the same answer
    /// is longer than its bound: then the server does not enforce them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<AddedBound>,
    /// The keywords that the dialect cannot express. The validator still checks them.
    pub losses: Vec<Loss>,
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) json: SchemaJson,
}

/// The schema as JSON text, written at its first use. A copy has none: its schema may be changed.
#[derive(Default)]
pub(crate) struct SchemaJson(OnceLock<Option<Box<RawValue>>>);

impl Clone for SchemaJson {
    fn clone(&self) -> Self {
        Self::default()
    }
}

// The text follows from the schema, which is compared itself.
crate::equal::always_equal!(SchemaJson);

crate::debug_fields!(SchemaJson {});

impl Lowered {
    /// Creates a schema that the provider enforces and adds to the prompt itself, without lift operations and losses.
    /// `schema` may be `None`.
    ///
    /// ```
    /// use formwork_core::{Enforcement, Loss, LossKind, Lowered};
    ///
    /// let lowered = Lowered::new(Enforcement::Schema, serde_json::json!({"type": "string"}))
    ///     .with_dialect("plain")
    ///     .with_losses(vec![Loss::new("", "pattern", LossKind::Unenforced)]);
    /// assert_eq!(lowered.losses[0].to_string(), "#: `pattern` is not enforced, only checked");
    /// ```
    pub fn new(enforcement: Enforcement, schema: impl Into<Option<Value>>) -> Self {
        Self { schema: schema.into(), enforcement, ..Self::default() }
    }

    /// Creates a schema that is written into the prompt and not enforced.
    pub fn described(schema: SchemaText) -> Self {
        Self { prompt_schema: Some(schema), ..Self::default() }
    }

    /// Returns the name of the member in which an answer holds the document, if answers are objects around the document.
    ///
    /// ```
    /// use formwork_core::{Lift, LiftOp, Lowered};
    ///
    /// let lift = vec![LiftOp { at: String::new(), lift: Lift::Unwrap("value".into()) }];
    /// assert_eq!(Lowered::default().with_lift(lift).wrapper(), Some("value"));
    /// ```
    pub fn wrapper(&self) -> Option<&str> {
        self.lift.iter().filter(|op| op.at.is_empty()).find_map(|op| match &op.lift {
            Lift::Unwrap(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Returns the schema as JSON text, for requests; `None` if no schema is sent. It is written at the first call of this
    /// method, so that the requests of all runs share one text: change [`schema`](Self::schema) before it.
    pub fn schema_json(&self) -> Option<&RawValue> {
        let write = || to_raw_value(self.schema.as_ref()?).ok();
        self.json.0.get_or_init(write).as_deref()
    }

    crate::setters! {
        /// Sets the dialect of the schema (default: unnamed).
        pub fn with_dialect(dialect: impl Into<String>);
        /// Sets the schema as it is written into the prompt (default: none).
        pub fn with_prompt_schema(prompt_schema: Option<SchemaText>);
        /// Sets the operations that map an answer back (default: none, the answer is used unchanged).
        pub fn with_lift(lift: Vec<LiftOp>);
        /// Sets the bounds that [`Tighten::Bounded`] added (default: none).
        pub fn with_bounds(bounds: Vec<AddedBound>);
        /// Sets the keywords that the dialect cannot express (default: none).
        pub fn with_losses(losses: Vec<Loss>);
    }
}

/// A bound on a length that lowering added to a schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AddedBound {
    /// RFC 6901 JSON Pointer of the node in [`Lowered::schema`].
    pub at: String,
    /// The maximum number of characters of a string, items of an array or members of an object there.
    pub max: u64,
}

impl AddedBound {
    /// Creates a bound of `max` characters, items or members on the schema node at a JSON Pointer (RFC 6901).
    ///
    /// ```
    /// use formwork_core::{AddedBound, Enforcement, Lowered};
    ///
    /// let sent = serde_json::json!({"properties": {"note": {"type": "string", "maxLength": 80}}});
    /// let lowered = Lowered::new(Enforcement::Schema, sent)
    ///     .with_bounds(vec![AddedBound::new("/properties/note", 80)]);
    /// assert_eq!(lowered.bounds[0].max, 80);
    /// ```
    pub fn new(at: impl Into<String>, max: u64) -> Self {
        Self { at: at.into(), max }
    }
}

/// A schema as text for a prompt.
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
    /// Returns the text as it is written into the prompt.
    ///
    /// ```
    /// use formwork_core::SchemaText;
    ///
    /// assert_eq!(SchemaText::Outline("{\"age\": integer}".to_owned()).text(), "{\"age\": integer}");
    /// ```
    pub fn text(&self) -> &str {
        match self {
            Self::JsonSchema(text) | Self::Outline(text) => text,
        }
    }
}

/// A keyword of a schema that a dialect cannot express.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Loss {
    /// RFC 6901 JSON Pointer into the original schema.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// The effect of lowering on the keyword.
    pub kind: LossKind,
}

/// The effect of lowering on a keyword that a dialect cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LossKind {
    /// Dropped: only the validator checks it.
    Unenforced,
    /// Loosened: the provider enforces a weaker form, and the validator checks the rest.
    Loosened,
    /// Tightened: the provider enforces a stricter form, so that some valid answers are excluded.
    Tightened,
}

impl Loss {
    /// Creates a loss of one keyword of the schema at a JSON Pointer.
    ///
    /// ```
    /// use formwork_core::{Loss, LossKind};
    ///
    /// let loss = Loss::new("/properties/id", "pattern", LossKind::Loosened);
    /// assert_eq!(loss.to_string(), "#/properties/id: `pattern` is enforced loosely and checked");
    /// ```
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

/// The error of a schema that a dialect cannot express.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("the schema cannot be used with {dialect}: #{pointer}: {message}")]
#[non_exhaustive]
pub struct Refused {
    /// The dialect.
    pub dialect: String,
    /// RFC 6901 JSON Pointer into the original schema.
    pub pointer: String,
    /// The reason, and a form of the schema that the dialect accepts.
    pub message: String,
}

impl Refused {
    /// Creates an error at the root of a schema. `message` states the reason and a form that the dialect accepts.
    ///
    /// ```
    /// use formwork_core::Refused;
    ///
    /// let refused = Refused::new("openai", "the root must be an object: wrap it in one").with_pointer("/anyOf/1");
    /// assert_eq!(
    ///     refused.to_string(),
    ///     "the schema cannot be used with openai: #/anyOf/1: the root must be an object: wrap it in one",
    /// );
    /// ```
    pub fn new(dialect: impl Into<String>, message: impl Into<String>) -> Self {
        Self { dialect: dialect.into(), pointer: String::new(), message: message.into() }
    }

    /// Sets the JSON Pointer into the original schema (default: the root).
    #[must_use]
    pub fn with_pointer(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = pointer.into();
        self
    }
}
