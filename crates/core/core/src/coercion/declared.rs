//! The declaration of what may be done with a value that does not fit its schema.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error as _, IntoDeserializer as _, value};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::keywords::{find, parts_mut};
use crate::{JsonPath, PathPattern};

/// The keyword that sets the [`Coercion`] of a member and of everything inside of it, beside its schema (`"drop"`), or of several
/// places, in the root of the schema (`"fix"`, or `{"$.items[*].note": "drop"}`).
pub const KEYWORD: &str = "x-formwork-coerce";

/// The treatment of a value that does not fit its schema.
///
/// ```
/// use formwork_core::Coercion;
///
/// assert_eq!("drop".parse(), Ok(Coercion::Drop));
/// assert_eq!("fixed".parse::<Coercion>().unwrap_err(), "expected strict, ask, fix, drop, default or guess, found `fixed`");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Coercion {
    /// The model is asked again, also for an optional member that is `null`.
    Strict,
    /// The model is asked again.
    #[default]
    Ask,
    /// A conversion that loses nothing and has one result is made: `"34"` for an integer, `34` for a text, one value for a list, a value
    /// of an `enum` in other case or with other spaces, JSON in a text. Otherwise the model is asked again.
    Fix,
    /// Like [`Fix`](Self::Fix), and an optional member that still does not fit is left out; also an item of a list, if it is set for the items.
    Drop,
    /// Like [`Fix`](Self::Fix), and a member that still does not fit, or is missing, gets the `default` of its schema.
    Default,
    /// Like [`Fix`](Self::Fix), and conversions are made that may be wrong: `"12,111"` for a number, `"yes"` for a boolean, the value of
    /// an `enum` that a sentence names, other spellings of names (`x-alias`).
    Guess,
}

impl Coercion {
    /// Returns whether values may be converted.
    pub(crate) const fn converts(self) -> bool {
        !matches!(self, Self::Strict | Self::Ask)
    }
}

impl FromStr for Coercion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::deserialize(text.into_deserializer()).map_err(|_: value::Error| {
            format!("expected strict, ask, fix, drop, default or guess, found `{}`", crate::cut(text, 40))
        })
    }
}

impl fmt::Display for Coercion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The [`Coercion`] of places: of the whole document (`$`) and of parts of it. The longest path decides.
///
/// Its JSON form is one name (`"fix"`) or an object of paths and names (`{"$": "ask", "$.items[*].note": "drop"}`).
///
/// ```
/// use formwork_core::Coerce;
///
/// let mut schema = serde_json::json!({"properties": {"note": {"type": "string"}}});
/// "$.note=drop".parse::<Coerce>()?.declare(&mut schema);
/// "fix".parse::<Coerce>()?.declare(&mut schema);
/// assert_eq!(schema["x-formwork-coerce"], serde_json::json!({"$.note": "drop", "$": "fix"}));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coerce(pub(super) Vec<(PathPattern, Coercion)>);

impl Coerce {
    /// Adds the places to those that the root of a schema lists; a place that it lists already is replaced. A schema that is `true` or
    /// `false` has no members.
    pub fn declare(&self, schema: &mut Value) {
        let mut places = Self::of(schema).and_then(Result::ok).map_or_else(Vec::new, |known| known.0);
        let Some(keywords) = schema.as_object_mut() else { return };
        for (path, coercion) in &self.0 {
            match places.iter_mut().find(|(known, _)| known == path) {
                Some((_, known)) => *known = *coercion,
                None => places.push((path.clone(), *coercion)),
            }
        }
        keywords.insert(KEYWORD.to_owned(), Self(places).to_json());
    }

    /// Returns the places that the root of a schema lists; `None` if it lists none.
    ///
    /// # Errors
    /// A description of the expected value, if the root has something else there.
    pub fn of(schema: &Value) -> Option<Result<Self, String>> {
        Some(Self::deserialize(schema.get(KEYWORD)?).map_err(|error| error.to_string()))
    }

    /// Returns the paths of the places.
    pub fn paths(&self) -> impl Iterator<Item = &PathPattern> {
        self.0.iter().map(|(path, _)| path)
    }

    fn to_json(&self) -> Value {
        match self.0.as_slice() {
            [(path, coercion)] if path.steps().is_empty() => Value::from(coercion.to_string()),
            places => {
                let members = places.iter().map(|(path, one)| (path.to_string(), one.to_string().into()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

impl From<Coercion> for Coerce {
    fn from(coercion: Coercion) -> Self {
        Self(vec![(JsonPath::root().into(), coercion)])
    }
}

impl Serialize for Coerce {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Coerce {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(name) => name.parse::<Coercion>().map(Self::from).map_err(D::Error::custom),
            Value::Object(places) => {
                let place = |(path, name): (String, Value)| {
                    let path = path.parse().map_err(|error| D::Error::custom(format!("{path}: {error}")))?;
                    let name = name.as_str().unwrap_or_default();
                    Ok((path, name.parse().map_err(D::Error::custom)?))
                };
                places.into_iter().map(place).collect::<Result<_, _>>().map(Self)
            }
            _ => Err(D::Error::custom(
                "expected a name such as \"fix\" or an object such as {\"$.note\": \"drop\"}",
            )),
        }
    }
}

/// Reads a name (`fix`), or a path and a name (`$.note=drop`).
impl FromStr for Coerce {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.rsplit_once('=') {
            None => text.parse::<Coercion>().map(Self::from),
            Some((path, name)) => {
                let path = path.parse().map_err(|error: crate::PathError| error.to_string())?;
                Ok(Self(vec![(path, name.parse()?)]))
            }
        }
    }
}

/// Returns whether a schema sets what is done with values that do not fit it.
pub fn declares_coercion(schema: &Value) -> bool {
    find(schema, |node| node.get(KEYWORD).is_some()).is_some()
}

/// Removes the keyword from a schema and everything inside of it.
pub(crate) fn strip(schema: &mut Value) {
    if let Some(keywords) = schema.as_object_mut() {
        keywords.shift_remove(KEYWORD);
    }
    parts_mut(schema).for_each(strip);
}

/// Returns the first mistake in the use of [`KEYWORD`] in a schema: its JSON Pointer and a message.
///
/// ```
/// let schema = serde_json::json!({"properties": {"note": {"x-formwork-coerce": "skip"}}});
/// let (pointer, message) = formwork_core::coercion_mistake(&schema).unwrap();
/// assert_eq!(pointer, "/properties/note/x-formwork-coerce");
/// assert_eq!(message, "expected strict, ask, fix, drop, default or guess, found `skip`");
/// ```
pub fn coercion_mistake(schema: &Value) -> Option<(String, String)> {
    if let Some(Err(message)) = Coerce::of(schema) {
        return Some((format!("/{KEYWORD}"), message));
    }
    let mut at_root = schema.get(KEYWORD).is_some();
    let mut message = None;
    let pointer = find(schema, |node| {
        let Some(mark) = node.get(KEYWORD).filter(|_| !std::mem::take(&mut at_root)) else { return false };
        message = match mark.as_str().map(str::parse::<Coercion>) {
            Some(Ok(_)) => None,
            Some(Err(message)) => Some(message),
            None => {
                Some("expected a name such as \"drop\": paths stand in the root of the schema".to_owned())
            }
        };
        message.is_some()
    })?;
    Some((format!("{pointer}/{KEYWORD}"), message?))
}
