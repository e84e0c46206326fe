//! Members that a text may lack: their marks in a schema, and `null` or nothing in their place in an answer.
//!
//! A member is marked by [`KEYWORD`] in its schema. [`normalise`](crate::normalise()) makes a marked member required and nullable,
//! and describes that to the model, so validation, every dialect and every prompt treat it alike.

mod mark;
mod settle;
mod widen;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::keywords::find;
use crate::{PathError, PathPattern, normalise};

pub use settle::{Member, Settled};

pub(crate) use mark::marked;
pub(crate) use settle::is_unstated;
pub(crate) use widen::{is_directive, widen};

/// The keyword that marks a member which a text may lack (`true` in the schema of the member), or several of them (in the root of
/// the schema: `"all"`, or a list of paths).
pub const KEYWORD: &str = "x-formwork-absent";

/// The value of [`KEYWORD`] in a normalised schema whose own keywords stand in the first branch of an added `anyOf`.
const WRAPPED: &str = "wrapped";

/// The members that a text may lack, although the schema requires them.
///
/// An answer gives `null` for such a member, or leaves it out; the accepted value has `null` there, and
/// [`Outcome::not_stated`](crate::Outcome::not_stated) lists it. The JSON form is `"all"` or a list of paths.
///
/// ```
/// use formwork_core::{Absent, Inline, Schema};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"birth": {"type": "string"}}, "required": ["birth"]});
/// let schema = Inline::new("person", schema).with_absent(&"$.birth".parse()?);
/// assert_eq!(schema.document()["x-formwork-absent"], json!(["$.birth"]));
/// assert_eq!(formwork_core::normalise(schema.document())["properties"]["birth"]["type"], json!(["string", "null"]));
/// # Ok::<(), formwork_core::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absent {
    /// Every member that the schema names and requires, except members with only one possible value.
    All,
    /// The members at these paths; `[*]` stands for every item of a list.
    Paths(Vec<PathPattern>),
}

impl Absent {
    /// Adds the members to those that the root of a schema lists. A schema that is `true` or `false` has no members.
    pub fn declare(&self, schema: &mut Value) {
        let known = Self::of(schema).and_then(Result::ok);
        let Some(keywords) = schema.as_object_mut() else { return };
        let all = match (known, self) {
            (Some(Self::All), _) | (_, Self::All) => Self::All,
            (None, Self::Paths(paths)) => Self::Paths(paths.clone()),
            (Some(Self::Paths(mut known)), Self::Paths(paths)) => {
                known.extend(paths.iter().cloned());
                Self::Paths(known)
            }
        };
        keywords.insert(KEYWORD.to_owned(), all.to_json());
    }

    /// Returns the members that the root of a schema lists; `None` if it lists none.
    ///
    /// # Errors
    /// A description of the expected value, if the root has something else there.
    pub fn of(schema: &Value) -> Option<Result<Self, String>> {
        let listed = schema.get(KEYWORD)?;
        Some(Self::deserialize(listed).map_err(|error| error.to_string()))
    }

    fn to_json(&self) -> Value {
        match self {
            Self::All => json!("all"),
            Self::Paths(paths) => paths.iter().map(|path| json!(path)).collect(),
        }
    }
}

impl Serialize for Absent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Absent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(word) if word == "all" => Ok(Self::All),
            Value::Array(paths) => {
                let paths = paths.into_iter().map(|path| PathPattern::deserialize(path));
                paths.collect::<Result<_, _>>().map(Self::Paths).map_err(D::Error::custom)
            }
            _ => Err(D::Error::custom("expected \"all\" or a list of paths such as [\"$.items[*].note\"]")),
        }
    }
}

/// Reads `all` or one path.
impl FromStr for Absent {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Ok(if text == "all" { Self::All } else { Self::Paths(vec![text.parse()?]) })
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Paths(paths) => {
                let paths: Vec<_> = paths.iter().map(ToString::to_string).collect();
                f.write_str(&paths.join(", "))
            }
        }
    }
}

/// Returns whether a schema marks members that a text may lack.
pub fn declares_absence(schema: &Value) -> bool {
    find(schema, |node| node.get(KEYWORD).is_some_and(|mark| *mark != false)).is_some()
}

/// Returns the first mistake in the marks of a schema: its JSON Pointer and a message.
///
/// ```
/// use formwork_core::absence_mistake;
/// use serde_json::json;
///
/// let schema = json!({"properties": {"birth": {}}, "x-formwork-absent": ["$.brith"]});
/// let (pointer, message) = absence_mistake(&schema).unwrap();
/// assert_eq!(pointer, "/x-formwork-absent/0");
/// assert_eq!(message, "the schema names no member at `$.brith`");
/// ```
pub fn absence_mistake(schema: &Value) -> Option<(String, String)> {
    let root = match Absent::of(schema) {
        None => false,
        Some(Ok(Absent::All)) => true,
        Some(Ok(Absent::Paths(paths))) => {
            let unnamed = mark::unnamed(schema, &paths);
            if let Some((nth, path)) = paths.iter().enumerate().find(|(nth, _)| unnamed.contains(nth)) {
                let message = format!("the schema names no member at `{path}`");
                return Some((format!("/{KEYWORD}/{nth}"), message));
            }
            true
        }
        Some(Err(message)) => return Some((format!("/{KEYWORD}"), message)),
    };
    let is_wrong =
        |node: &Value| node.get(KEYWORD).is_some_and(|mark| !mark.is_boolean() && *mark != WRAPPED);
    let mut at_root = root;
    let pointer = find(schema, |node| is_wrong(node) && !std::mem::take(&mut at_root))?;
    Some((
        format!("{pointer}/{KEYWORD}"),
        "expected true: `all` and paths stand in the root of the schema".to_owned(),
    ))
}

/// Returns a schema as a prompt shows it: marked members are required, nullable and described, and the marks are left out.
pub fn without_marks(schema: &Value) -> Cow<'_, Value> {
    if !declares_absence(schema) {
        return Cow::Borrowed(schema);
    }
    let mut normal = normalise(schema);
    widen::strip(&mut normal);
    Cow::Owned(normal)
}

/// Returns whether an `anyOf` in a normalised schema was added for a marked member, whose own keywords are its first branch.
pub fn is_wrapped(schema: &Value) -> bool {
    schema.get(KEYWORD).is_some_and(|mark| *mark == WRAPPED)
}

/// Returns whether the schema of a member has a mark.
pub fn is_marked(schema: &Value) -> bool {
    schema.get(KEYWORD).is_some_and(|mark| *mark == true || *mark == WRAPPED)
}
