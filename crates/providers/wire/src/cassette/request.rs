use bytes::Bytes;
use formwork_core::escape;
use http::Request;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The properties of request bodies that contain a schema, in all protocols.
const SCHEMA_MEMBERS: &[&str] =
    &["response_format", "format", "json_schema", "grammar", "tools", "tool_choice"];

/// A recorded request, without headers and key.
///
/// ```
/// use formwork_wire::cassette::Recorded;
///
/// let request: Recorded = serde_json::from_str(r#"{"method": "GET", "path": "/models"}"#)?;
/// assert_eq!((request.path.as_str(), request.body.is_null()), ("/models", true));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The HTTP method: `GET`, `POST`.
    pub method: String,
    /// The path relative to the server's base URL.
    pub path: String,
    /// The body: the JSON document, or a string with the text of any other body, or `null` without a body.
    #[serde(default)]
    pub body: Value,
}

impl Recorded {
    /// Creates the recorded form of a request, with secrets removed from its body by `redact`.
    pub(super) fn new(request: &Request<Bytes>, redact: impl Fn(&str) -> String) -> Self {
        let text = redact(&String::from_utf8_lossy(request.body()));
        let body = match serde_json::from_str(&text) {
            Ok(document) => document,
            Err(_) if text.is_empty() => Value::Null,
            Err(_) => Value::String(text),
        };
        Self { method: request.method().to_string(), path: redact(&request.uri().to_string()), body }
    }

    /// Returns the request without its schema.
    pub(super) fn without_schema(&self) -> Self {
        let mut request = self.clone();
        if let Value::Object(members) = &mut request.body {
            members.retain(|name, _| !SCHEMA_MEMBERS.contains(&name.as_str()));
        }
        request
    }

    /// Returns a description of the first difference, or `None` for equal requests.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        if self.method != other.method || self.path != other.path {
            let (a, b) =
                (format!("{} {}", self.method, self.path), format!("{} {}", other.method, other.path));
            return Some(format!("recorded {a}, sent {b}"));
        }
        difference(&self.body, &other.body, &mut String::new())
    }

    /// Returns the similarity of two requests; more similar requests have a larger number.
    pub(super) fn likeness(&self, other: &Self) -> usize {
        let same_place = usize::from(self.method == other.method && self.path == other.path);
        let (a, b) = (self.body.to_string(), other.body.to_string());
        same_place * 1_000_000 + a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
    }
}

fn difference(recorded: &Value, sent: &Value, pointer: &mut String) -> Option<String> {
    let below = |key: &str, a: &Value, b: &Value, pointer: &mut String| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&escape(key));
        let found = difference(a, b, pointer);
        pointer.truncate(length);
        found
    };
    match (recorded, sent) {
        (Value::Object(a), Value::Object(b)) => {
            // The order of properties counts, because a model generates them in the order of the schema.
            let names = |object: &serde_json::Map<String, Value>| object.keys().cloned().collect::<Vec<_>>();
            let inside = a
                .iter()
                .find_map(|(key, value)| below(key, value, b.get(key).unwrap_or(&Value::Null), pointer));
            inside.or_else(|| {
                (names(a) != names(b)).then(|| {
                    format!("{}: recorded properties {:?}, sent {:?}", at(pointer), names(a), names(b))
                })
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(index, (a, b))| below(&index.to_string(), a, b, pointer))
        }
        (a, b) if a == b => None,
        (a, b) => Some(format!("{}: recorded {}, sent {}", at(pointer), short(a), short(b))),
    }
}

fn at(pointer: &str) -> &str {
    if pointer.is_empty() { "the body" } else { pointer }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    }
}
