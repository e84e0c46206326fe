//! The body of a request: a JSON object, read once. Texts are borrowed, and schemas stay unread.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use axum::body::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Error, Map, Number, Value};

use crate::problem::{Kind, Problem};

/// The names of members whose values are schemas in one of the protocols. The schemas of a service are few, and most of the bytes of
/// a short request.
const SCHEMAS: [&str; 3] = ["schema", "parameters", "input_schema"];

/// The member of a body of Ollama's that is a schema.
const FORMAT: &str = "format";

/// The members of a body by which a server adds input of its own: what it has stored, or what its tools find.
const HIDDEN: [&str; 6] =
    ["previous_response_id", "conversation", "prompt", "mcp_servers", "plugins", "web_search_options"];

/// The members by which a server adds a document or sound of its own, or of the web.
const ADDRESSES: [&str; 4] = ["file_id", "file_url", "source.url", "audio.id"];

/// The beginnings of the types of tools that the client carries out, so that they add nothing to the input of the call.
const CLIENT_TOOLS: [&str; 10] = [
    "function",
    "custom",
    "namespace",
    "computer",
    "bash",
    "text_editor",
    "memory",
    "local_shell",
    "shell",
    "apply_patch",
];

/// The maximum number of members of a request.
const MAX_MEMBERS: usize = 1_000;

/// The members of Ollama's `options` that bound the cost of a request or that the service acts on.
const OPTIONS: [&str; 9] = [
    "frequency_penalty",
    "num_ctx",
    "num_predict",
    "presence_penalty",
    "seed",
    "stop",
    "temperature",
    "top_k",
    "top_p",
];

/// A member of an object: its name and its value.
pub(crate) type Member<'t> = (Cow<'t, str>, Node<'t>);

/// A JSON object and its text.
#[derive(Debug)]
pub(crate) struct Document<'t> {
    text: &'t str,
    /// In order. A name may be there twice; the last one counts.
    members: Vec<Member<'t>>,
    /// The JSON texts of the members that are replaced when the body is passed on.
    places: Places<'t>,
}

/// The JSON texts of members of a body.
#[derive(Debug, Default, Clone, Copy)]
struct Places<'t> {
    model: Option<&'t str>,
    stream_options: Option<&'t str>,
}

impl<'t> Document<'t> {
    /// Reads a body.
    ///
    /// # Errors
    /// The error of the parser, also for a body that is not an object.
    pub(crate) fn read(text: &'t str) -> Result<Self, Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let (members, places) = deserializer.deserialize_map(Body)?;
        deserializer.end()?;
        Ok(Self { text, members, places })
    }

    /// Returns the text.
    pub(crate) const fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the members.
    pub(crate) fn into_members(self) -> Vec<Member<'t>> {
        self.members
    }

    /// Returns the value at a path of names; `None` if it is missing.
    pub(crate) fn get<const LENGTH: usize>(&self, path: [&str; LENGTH]) -> Option<&Node<'t>> {
        let mut members = Some(&self.members);
        let mut found = None;
        for name in path {
            found = Some(&members?.iter().rfind(|(member, _)| member == name)?.1);
            members = match found {
                Some(Node::Object(members)) => Some(members),
                _ => None,
            };
        }
        found
    }

    /// Returns whether the value at a path is missing, `null`, or an empty list or text.
    pub(crate) fn is_empty<const LENGTH: usize>(&self, path: [&str; LENGTH]) -> bool {
        self.get(path).is_none_or(|value| match value {
            Node::Object(_) => false,
            Node::List(items) => items.is_empty(),
            Node::Text(text) => text.is_empty(),
            Node::Null => true,
            Node::Flag(_) | Node::Number(_) => false,
            Node::Unread(text) => matches!(*text, "null" | "\"\"" | "[]"),
        })
    }

    /// Returns the text at a path; `None` if there is no text.
    pub(crate) fn word<const LENGTH: usize>(&self, path: [&str; LENGTH]) -> Option<&str> {
        match self.get(path)? {
            Node::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text with another name of the model, and with a request for the usage at the end of a stream.
    ///
    /// # Errors
    /// The error of the parser for a body that has to be rewritten, because a member is there twice and servers differ in which
    /// one they read, or because it names no model.
    pub(crate) fn with_model(&self, model: &str, with_usage: bool) -> Result<Bytes, Error> {
        let model = serde_json::to_string(model)?;
        let mut names: Vec<&str> = self.members.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        let is_unique = names.windows(2).all(|pair| pair.first() != pair.last());
        let Some((before, after)) =
            self.places.model.filter(|_| is_unique).and_then(|name| self.around(name))
        else {
            // The last of two equal names counts. The texts of the values stay, with the digits of their numbers.
            let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(self.text)?;
            let options = if with_usage { Some(to_raw_value(&self.with_usage()?)?) } else { None };
            members.insert("model".to_owned(), serde_json::from_str(&model)?);
            members.extend(options.as_deref().map(|options| ("stream_options".to_owned(), options)));
            return serde_json::to_vec(&members).map(Bytes::from);
        };
        if !with_usage {
            return Ok([before, &model, after].concat().into());
        }
        let options = self.with_usage()?.to_string();
        let Some(place) = self.places.stream_options else {
            return Ok([before, &model, ",\"stream_options\":", &options, after].concat().into());
        };
        // The options stand either before or after the model.
        let split = |part: &'t str| {
            let at = (place.as_ptr() as usize).checked_sub(part.as_ptr() as usize)?;
            Some((part.get(..at)?, part.get(at..)?.strip_prefix(place)?))
        };
        let written = match (split(before), split(after)) {
            (Some((first, second)), _) => [first, &options, second, &model, after].concat(),
            (_, Some((first, second))) => [before, &model, first, &options, second].concat(),
            _ => [before, &model, after].concat(),
        };
        Ok(written.into())
    }

    /// Returns the options of a stream that ends with the usage.
    fn with_usage(&self) -> Result<Value, Error> {
        let given = self.get(["stream_options"]).map(Node::value).transpose()?;
        let mut options = given.filter(Value::is_object).unwrap_or_else(|| Value::Object(Map::new()));
        options["include_usage"] = true.into();
        Ok(options)
    }

    /// Returns whether the member at a path is `true`.
    pub(crate) fn is_true<const LENGTH: usize>(&self, path: [&str; LENGTH]) -> bool {
        self.get(path) == Some(&Node::Flag(true))
    }

    /// Returns the highest number of tokens or answers at these paths; `None` if none has one, or if one has a number below 1, which
    /// servers take for no limit.
    ///
    /// # Errors
    /// [`Problem`] of a value that is neither a number nor `null`, of which nobody knows what a server makes of it.
    pub(crate) fn count(&self, paths: &[&[&str]]) -> Result<Option<u32>, Problem> {
        let (mut most, mut is_unlimited) = (None, false);
        for path in paths {
            let found = match **path {
                [name] => self.get([name]),
                [first, second] => self.get([first, second]),
                _ => None,
            };
            match found.filter(|node| !node.is_null()) {
                None => {}
                Some(Node::Number(value)) => {
                    let number = value.as_f64().filter(|number| *number >= 1.0).map(|number| number as u32);
                    most = most.max(number);
                    is_unlimited |= number.is_none();
                }
                Some(other) => return Err(wrong(&path.join("."), "a number", other)),
            }
        }
        Ok(most.filter(|_| !is_unlimited))
    }

    /// Refuses a member of the body that differs by case alone from one of these names of its protocol, and such a member of its `options`:
    /// servers in Go match names without case, and the last member counts, so that they would read another model or limit.
    ///
    /// # Errors
    /// [`Problem`] that names the member.
    pub(crate) fn check_case(&self, names: &[&str]) -> Result<(), Problem> {
        // Go folds the long s and the sign of the kelvin, too.
        let folded = |name: &str| name.to_uppercase().to_lowercase();
        let check = |at: &str, members: &[Member<'_>], names: &[&str]| {
            for (name, _) in members.iter().filter(|(name, _)| !names.contains(&&**name)) {
                if let Some(meant) = names.iter().find(|known| folded(known) == folded(name)) {
                    let message = format!("unknown field `{at}{name}`: did you mean `{at}{meant}`?");
                    return Err(Problem::invalid(format!("{at}{name}"), message));
                }
            }
            Ok(())
        };
        if let Some(Node::Object(options)) = self.get(["options"]) {
            check("options.", options, &OPTIONS)?;
        }
        // Each is compared with all names, more than once.
        if self.members.len() > MAX_MEMBERS {
            let message = format!("a request has at most {MAX_MEMBERS} members");
            return Err(Problem::new(Kind::TooLarge, message));
        }
        check("", &self.members, names)
    }

    /// Returns the extent of the prompt.
    pub(crate) fn extent(&self) -> Extent {
        let mut extent = Extent::default();
        for (name, value) in &self.members {
            extent.is_cached |= name == "cache_control" && !value.is_null();
            if !matches!(&**name, "model" | "metadata" | "user") {
                value.measure(name, &mut extent);
            }
        }
        let is_given = |name: &&&str| match self.get([**name]) {
            // Of Ollama's and of older APIs it is the text itself.
            Some(value) if **name == "prompt" => matches!(value, Node::Object(_)),
            Some(value) => !value.is_null() && !matches!(value, Node::List(items) if items.is_empty()),
            None => false,
        };
        extent.hidden = HIDDEN.iter().find(is_given).copied().or(extent.hidden);
        extent
    }

    /// Returns the text before and after a part that was borrowed from it.
    fn around(&self, part: &str) -> Option<(&'t str, &'t str)> {
        let start = (part.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize)?;
        Some((self.text.get(..start)?, self.text.get(start + part.len()..)?))
    }
}

/// The extent of a prompt, from which its tokens are estimated.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The bytes of texts and schemas.
    bytes: u64,
    /// The tokens of pictures and documents, and of the marks between messages.
    tokens: u64,
    /// The member by which the server adds input that the request does not have, so that only the context of the model limits it.
    hidden: Option<&'static str>,
    /// Whether the request asks for the prompt to be written to a cache.
    is_cached: bool,
}

impl Extent {
    /// Adds a text of so many bytes.
    pub(crate) const fn add(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Returns the number of tokens that the prompt never exceeds: a token has at least one byte.
    pub(crate) const fn most(self) -> u64 {
        self.bytes.saturating_add(self.tokens)
    }

    /// Returns the member by which the server adds input that the request does not have.
    pub(crate) const fn hidden(self) -> Option<&'static str> {
        self.hidden
    }

    /// Returns whether the request asks for the prompt to be written to a cache.
    pub(crate) const fn is_cached(self) -> bool {
        self.is_cached
    }

    /// Returns an estimate that is seldom too low: a token of a prompt has three bytes or more.
    pub(crate) const fn estimate(self) -> u64 {
        self.bytes.div_ceil(3).saturating_add(self.tokens)
    }
}

/// A value within a body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node<'t> {
    Object(Vec<Member<'t>>),
    List(Vec<Self>),
    Text(Cow<'t, str>),
    Null,
    Flag(bool),
    Number(Number),
    /// The JSON text of a schema. Its syntax was checked; escapes, the range of numbers and the depth were not.
    Unread(&'t str),
}

impl Node<'_> {
    /// Adds the value of a member to the extent of a prompt.
    fn measure(&self, name: &str, extent: &mut Extent) {
        /// The most tokens that a picture costs with the vendors of the four protocols.
        const PICTURE: u64 = 1_600;
        /// The bytes of the shortest text that is a picture or a document and not the address of one.
        const DATA: usize = 256;

        match self {
            Self::Object(members) => {
                extent.tokens += u64::from(matches!(name, "messages" | "input")) * 4;
                let kind = members.iter().rev().find_map(|(inner, value)| match value {
                    Self::Text(kind) if inner == "type" => Some(&**kind),
                    _ => None,
                });
                match kind {
                    Some("item_reference") => extent.hidden = Some("item_reference"),
                    Some(kind)
                        if name == "tools" && !CLIENT_TOOLS.iter().any(|own| kind.starts_with(own)) =>
                    {
                        extent.hidden = Some("tools");
                    }
                    _ => {}
                }
                for (inner, value) in members {
                    value.measure(
                        match (name, &**inner) {
                            (_, "source") if kind == Some("image") => "picture",
                            ("image_url" | "picture", "url") | ("picture", "file_id") => "image_url",
                            (_, "file_id") if kind == Some("input_image") => "image_url",
                            // Documents of Anthropic's, and earlier sound of Chat Completions.
                            ("source", "url") => "source.url",
                            ("audio", "id") => "audio.id",
                            (_, "cache_control") => {
                                extent.is_cached |= !value.is_null();
                                inner
                            }
                            (_, inner) => inner,
                        },
                        extent,
                    );
                }
            }
            Self::List(items) => items.iter().for_each(|item| item.measure(name, extent)),
            Self::Text(text) if matches!(name, "data" | "file_data" | "images" | "image_url") => {
                let is_document = text.starts_with("data:application") || text.starts_with("JVBER");
                extent.tokens += match text.len() {
                    length if length < DATA => PICTURE * u64::from(name != "data"),
                    // A page of a PDF has a thousand tokens, and a few kilobytes.
                    length if is_document || name == "file_data" => (length as u64).div_ceil(4).max(PICTURE),
                    _ => PICTURE,
                };
            }
            Self::Text(_) if matches!(name, "role" | "type") => {}
            Self::Text(text) => match ADDRESSES.iter().find(|known| **known == name) {
                Some(known) => extent.hidden = Some(known),
                None => extent.bytes += text.len() as u64,
            },
            Self::Unread(text) => extent.bytes += text.len() as u64,
            // Prompts may be lists of tokens.
            Self::Number(_) if matches!(name, "input" | "prompt" | "context") => extent.tokens += 1,
            Self::Null | Self::Flag(_) | Self::Number(_) => {}
        }
    }

    /// Returns whether it is `null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null | Self::Unread("null"))
    }

    /// Returns the value as a tree.
    ///
    /// # Errors
    /// The error of the parser for a schema within it.
    pub(crate) fn value(&self) -> Result<Value, Error> {
        Ok(match self {
            Self::Object(members) => {
                let value = |(name, value): &Member<'_>| Ok((name.as_ref().to_owned(), value.value()?));
                Value::Object(members.iter().map(value).collect::<Result<_, Error>>()?)
            }
            Self::List(items) => Value::Array(items.iter().map(Node::value).collect::<Result<_, _>>()?),
            Self::Text(text) => Value::String(text.as_ref().to_owned()),
            Self::Null => Value::Null,
            Self::Flag(flag) => Value::Bool(*flag),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Unread(text) => serde_json::from_str(text)?,
        })
    }
}

/// Writes what the value is, for an error.
impl fmt::Display for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(_) => f.write_str("a list"),
            Self::Object(_) => f.write_str("an object"),
            Self::Text(_) => f.write_str("a string"),
            Self::Null => f.write_str("null"),
            Self::Flag(flag) => flag.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Unread(text) => f.write_str(match text.as_bytes().first() {
                Some(b'[') => "a list",
                Some(b'{') => "an object",
                Some(b'"') => "a string",
                _ => text,
            }),
        }
    }
}

/// The name of a member, which is borrowed unless it has escapes.
#[derive(Deserialize)]
struct Name<'t>(#[serde(borrow)] Cow<'t, str>);

/// Reads the members of a body, and the texts of those that may be replaced.
struct Body;

impl<'de> Visitor<'de> for Body {
    type Value = (Vec<Member<'de>>, Places<'de>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut members, mut places) = (Vec::with_capacity(8), Places::default());
        while let Some(Name(name)) = map.next_key()? {
            let value = match name.as_ref() {
                FORMAT => Node::Unread(map.next_value::<&RawValue>()?.get()),
                "model" | "stream_options" => {
                    let text = map.next_value::<&RawValue>()?.get();
                    let is_model = name == "model";
                    *(if is_model { &mut places.model } else { &mut places.stream_options }) = Some(text);
                    serde_json::from_str(text).map_err(A::Error::custom)?
                }
                _ => map.next_value()?,
            };
            members.push((name, value));
        }
        Ok((members, places))
    }
}

impl<'de> Deserialize<'de> for Node<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Inner)
    }
}

/// Reads a value within a body.
struct Inner;

impl<'de> Visitor<'de> for Inner {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            let value = match SCHEMAS.contains(&name.as_ref()) {
                true => Node::Unread(map.next_value::<&RawValue>()?.get()),
                false => map.next_value()?,
            };
            members.push((name, value));
        }
        Ok(Node::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Node::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Node::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(Node::Flag(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Node::Number(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Node::Number(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Self::Value, E> {
        let number = Number::from_f64(number).ok_or_else(|| E::custom("the number is too large"))?;
        Ok(Node::Number(number))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Node::Null)
    }
}

/// Returns the problem of a value of the wrong type or range.
pub(crate) fn wrong(at: &str, what: &str, found: &Node<'_>) -> Problem {
    let place = if at.is_empty() { "the body" } else { at };
    Problem::invalid(at, format!("`{place}`: expected {what}, found {found}"))
}

#[cfg(test)]
mod tests;
