use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One step of a [`JsonPath`]: a member name or an array index.
///
/// ```
/// use formwork_json::{JsonPath, Segment};
///
/// let path: JsonPath = [Segment::Key("risks".to_owned()), Segment::Index(0)].into_iter().collect();
/// assert_eq!(path.to_string(), "$.risks[0]");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// The name of an object's member.
    Key(String),
    /// A zero-based array index.
    Index(usize),
}

/// The path of one value in a JSON document, in the notation of RFC 9535: `$`, `$.risks[0]`, `$['odd name']`.
///
/// Only singular queries of RFC 9535 (names and non-negative indexes) are paths, so a path names at most one value.
/// [`JsonPath::pointer`] returns the same place as an RFC 6901 JSON Pointer; [`PathPattern`](crate::PathPattern) has
/// wildcards.
///
/// ```
/// use formwork_json::JsonPath;
///
/// let path: JsonPath = "$.components[1]['api text']".parse()?;
/// assert_eq!(path.to_string(), "$.components[1]['api text']");
/// assert_eq!(path.pointer(), "/components/1/api text");
/// assert_eq!(path.get(&serde_json::json!({"components": [0, {"api text": 7}]})), Some(&7.into()));
/// # Ok::<(), formwork_json::PathError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[must_use]
pub struct JsonPath(Vec<Segment>);

impl JsonPath {
    /// Returns the path of the whole document, `$`.
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// Returns whether this is the path of the whole document.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the steps from the root, outermost first.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    /// Returns this path extended by a member name.
    pub fn key(&self, name: impl Into<String>) -> Self {
        self.child(Segment::Key(name.into()))
    }

    /// Returns this path extended by an array index.
    pub fn index(&self, index: usize) -> Self {
        self.child(Segment::Index(index))
    }

    /// Returns this path extended by one step.
    pub fn child(&self, segment: Segment) -> Self {
        let mut path = self.clone();
        path.0.push(segment);
        path
    }

    /// Returns this path extended by several steps.
    pub fn join(&self, steps: &[Segment]) -> Self {
        self.0.iter().chain(steps).cloned().collect()
    }

    /// Adds one step to this path.
    pub fn push(&mut self, segment: Segment) {
        self.0.push(segment);
    }

    /// Returns the path of the containing value; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        let (_, rest) = self.0.split_last()?;
        Some(Self(rest.to_vec()))
    }

    /// Returns the innermost step; `None` for the root.
    pub fn last(&self) -> Option<&Segment> {
        self.0.last()
    }

    /// Returns whether `self` is `other` or a place inside it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Returns the value at this path, if the document has one there.
    pub fn get<'v>(&self, document: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(document, |value, segment| match segment {
            Segment::Key(name) => value.as_object()?.get(name),
            Segment::Index(index) => value.as_array()?.get(*index),
        })
    }

    /// Returns the value at this path for changing it in place.
    pub fn get_mut<'v>(&self, document: &'v mut Value) -> Option<&'v mut Value> {
        self.0.iter().try_fold(document, |value, segment| match segment {
            Segment::Key(name) => value.as_object_mut()?.get_mut(name),
            Segment::Index(index) => value.as_array_mut()?.get_mut(*index),
        })
    }

    /// Returns the same place as an RFC 6901 JSON Pointer: `/risks/0`, and the empty string for the root.
    pub fn pointer(&self) -> String {
        let mut out = String::new();
        for segment in &self.0 {
            out.push('/');
            match segment {
                Segment::Key(name) => out.push_str(&escape(name)),
                Segment::Index(index) => out.push_str(&index.to_string()),
            }
        }
        out
    }

    /// Writes the same text as [`Display`](fmt::Display), without the overhead of a formatter.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn write_to(&self, out: &mut impl fmt::Write) -> fmt::Result {
        out.write_char('$')?;
        self.0.iter().try_for_each(|segment| write_segment(segment, out))
    }
}

/// Writes one step in the notation of RFC 9535.
pub(crate) fn write_segment(segment: &Segment, out: &mut impl fmt::Write) -> fmt::Result {
    match segment {
        Segment::Key(name) if is_shorthand(name) => {
            out.write_char('.')?;
            out.write_str(name)
        }
        Segment::Key(name) => {
            write!(out, "['{}']", name.replace('\\', "\\\\").replace('\'', "\\'"))
        }
        Segment::Index(index) => write!(out, "[{index}]"),
    }
}

impl FromIterator<Segment> for JsonPath {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        Self(segments.into_iter().collect())
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_to(f)
    }
}

/// Returns whether a name is an RFC 9535 `member-name-shorthand`: a letter, `_` or non-ASCII character, followed by such
/// characters and digits.
fn is_shorthand(name: &str) -> bool {
    let is_part = |c: char| match c.is_ascii() {
        true => c.is_ascii_alphanumeric() || c == '_',
        false => !c.is_control() && !c.is_whitespace(),
    };
    name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(is_part)
}

/// The error of a text that is not a [`JsonPath`] or [`PathPattern`](crate::PathPattern).
///
/// ```
/// use formwork_json::JsonPath;
///
/// let error = "$.risks[x]".parse::<JsonPath>().unwrap_err();
/// assert_eq!(error.at, 7);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathError {
    /// The text.
    pub text: String,
    /// The byte offset of the first character that is not part of a path.
    pub at: usize,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, at } = self;
        write!(f, "not a JSON path at byte {at}: `{text}` (write it like `$.risks[0]` or `$['odd name']`)")
    }
}

impl std::error::Error for PathError {}

impl FromStr for JsonPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        steps(text, segment).map(Self)
    }
}

/// Reads the steps of a path behind its `$`. `step` returns the first step and the text behind it.
pub(crate) fn steps<S>(text: &str, step: impl Fn(&str) -> Option<(S, &str)>) -> Result<Vec<S>, PathError> {
    let fail = |rest: &str| PathError { text: text.to_owned(), at: text.len() - rest.len() };
    let mut rest = text.strip_prefix('$').ok_or_else(|| fail(text))?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, tail) = step(rest).ok_or_else(|| fail(rest))?;
        steps.push(step);
        rest = tail;
    }
    Ok(steps)
}

/// Splits the first step off the rest of a path.
pub(crate) fn segment(rest: &str) -> Option<(Segment, &str)> {
    if let Some(after) = rest.strip_prefix('.') {
        let end = after.find(['.', '[']).unwrap_or(after.len());
        let (name, tail) = after.split_at(end);
        return is_shorthand(name).then(|| (Segment::Key(name.to_owned()), tail));
    }
    let inside = rest.strip_prefix('[')?;
    let Some(quote) = inside.chars().next().filter(|c| matches!(c, '\'' | '"')) else {
        let (digits, tail) = inside.split_once(']')?;
        return Some((Segment::Index(digits.parse().ok()?), tail));
    };
    let mut name = String::new();
    let mut chars = inside.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.push(chars.next()?.1),
            c if c == quote => return Some((Segment::Key(name), inside.get(at + 1..)?.strip_prefix(']')?)),
            c => name.push(c),
        }
    }
    None
}

impl Serialize for JsonPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for JsonPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schemars")]
impl schemars::JsonSchema for JsonPath {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "JsonPath".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "description": "RFC 9535 path, e.g. $.risks[0]"})
    }
}

/// Returns a name as a step of a JSON Pointer (RFC 6901): `a~1b` for `a/b`.
///
/// ```
/// assert_eq!(format!("/properties/{}", formwork_json::escape("a/b")), "/properties/a~1b");
/// ```
pub fn escape(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) { name.replace('~', "~0").replace('/', "~1").into() } else { name.into() }
}

/// Returns the name that a step of a JSON Pointer encodes: the inverse of [`escape`].
///
/// ```
/// assert_eq!(formwork_json::unescape("a~1b"), "a/b");
/// ```
pub fn unescape(step: &str) -> Cow<'_, str> {
    if step.contains('~') { step.replace("~1", "/").replace("~0", "~").into() } else { step.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_need_brackets_get_them() {
        let path = JsonPath::root().key("risk-factors").index(2).key("it's\\").key("größe").key("");
        assert_eq!(path.to_string(), r"$['risk-factors'][2]['it\'s\\'].größe['']");
        assert_eq!(path.to_string().parse(), Ok(path.clone()));
        assert_eq!(path.pointer(), r"/risk-factors/2/it's\/größe/");
    }

    #[test]
    fn pointer_escapes_tilde_and_slash() {
        assert_eq!(JsonPath::root().key("a/b").key("m~n").pointer(), "/a~1b/m~0n");
        for name in ["", "a/b", "~1", "~/~01", "plain"] {
            assert_eq!(unescape(&escape(name)), name);
        }
    }

    #[test]
    fn a_bad_path_names_the_byte() {
        for (text, at) in
            [("", 0), ("a", 0), ("$.", 1), ("$.a b", 1), ("$[", 1), ("$[-1]", 1), ("$['a'", 1), ("$.a[x]", 3)]
        {
            let error = text.parse::<JsonPath>().unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
        }
    }

    #[test]
    fn containment_is_by_step_not_by_text() {
        let a = JsonPath::root().key("a");
        assert!(a.key("b").is_within(&a) && a.is_within(&a));
        assert!(!JsonPath::root().key("ab").is_within(&a));
    }
}
