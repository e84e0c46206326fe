//! Recorded exchanges with a server, which tests replay without a network.
//!
//! A [`Recorder`] is a [`Transport`](crate::Transport) that writes a [`Cassette`], a [`Player`] is one that replays it, and a
//! [`Mutation`] turns a recorded response into an unusual one.

mod chunk;
mod mutation;
mod player;
mod recorder;
mod request;

use std::collections::BTreeMap;

use formwork_core::Fault;
use serde::{Deserialize, Serialize};

pub use chunk::Chunk;
pub use mutation::Mutation;
pub use player::Player;
pub use recorder::Recorder;
pub use request::Recorded;

/// The version of the format that this build reads and writes.
const VERSION: u32 = 1;

/// A recording of HTTP exchanges, in order: a JSON file that can be read, compared and committed.
///
/// It contains no key, because requests are recorded before the [`Transport`](crate::Transport) adds one. Only response headers
/// that a codec reads are recorded.
///
/// ```
/// use formwork_wire::cassette::Cassette;
///
/// let file = r#"{"formwork_cassette": 1, "exchanges": [{
///     "request": {"method": "GET", "path": "/models", "body": null},
///     "response": {"status": 200},
///     "chunks": [{"text": "[]"}]
/// }]}"#;
/// assert_eq!(Cassette::from_json(file)?.exchanges[0].chunks[0].bytes(), b"[]");
/// assert!(Cassette::from_json(r#"{"formwork_cassette": 9, "exchanges": []}"#).is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cassette {
    /// The version of this format, 1.
    #[serde(rename = "formwork_cassette")]
    version: u32,
    /// The exchanges, one for each request.
    pub exchanges: Vec<Exchange>,
}

impl Default for Cassette {
    fn default() -> Self {
        Self { version: VERSION, exchanges: Vec::new() }
    }
}

impl Cassette {
    /// Parses a cassette.
    ///
    /// # Errors
    /// A message with line and column if the text is not a cassette of this version.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let cassette: Self =
            serde_json::from_str(text).map_err(|error| format!("not a cassette: {error}"))?;
        if cassette.version != VERSION {
            return Err(format!("a cassette of version {}; this build reads {VERSION}", cassette.version));
        }
        Ok(cassette)
    }

    /// Returns the cassette as JSON with one line for each value, so that a diff shows what changed.
    pub fn to_json(&self) -> String {
        // Strings and numbers can always be serialized.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Changes the exchange at `index` (default: as recorded). Without an exchange at `index` nothing changes.
    #[must_use]
    pub fn with_mutation(mut self, index: usize, mutation: &Mutation) -> Self {
        if let Some(exchange) = self.exchanges.get_mut(index) {
            mutation.apply(exchange);
        }
        self
    }
}

/// A request and its response.
///
/// ```
/// use formwork_wire::cassette::Cassette;
///
/// fn statuses(cassette: &Cassette) -> Vec<Option<u16>> {
///     cassette.exchanges.iter().map(|exchange| exchange.response.as_ref().map(|head| head.status)).collect()
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// The request.
    pub request: Recorded,
    /// The head of the response. `None`: there was no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Head>,
    /// The body, in the chunks in which it arrived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<Chunk>,
    /// The fault that ended the exchange, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// Whether the server ignored the schema: the exchange then matches requests with any schema or none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schema_dropped: bool,
}

impl Exchange {
    /// Removes secrets from the body, also those that several chunks share. The chunks keep their times; the text of a secret
    /// is replaced in the chunk in which it begins.
    fn redact(&mut self, redact: impl Fn(&str) -> String) {
        let body: Vec<u8> = self.chunks.iter().flat_map(|chunk| chunk.bytes().to_vec()).collect();
        let text = String::from_utf8_lossy(&body);
        let clean = redact(&text);
        if clean == text {
            return;
        }
        let same = |pairs: &mut dyn Iterator<Item = (u8, u8)>| pairs.take_while(|(a, b)| a == b).count();
        // The part that differs has the same bytes before it and after it.
        let before = same(&mut text.bytes().zip(clean.bytes()));
        let rest = text.len().min(clean.len()) - before;
        let after = same(&mut text.bytes().rev().zip(clean.bytes().rev())).min(rest);
        let (end, clean) = (text.len() - after, clean.as_bytes());
        let mut at = 0;
        for (number, chunk) in self.chunks.iter_mut().enumerate() {
            let (start, stop) = (at, at + chunk.bytes().len());
            at = stop;
            let bytes = if text.len() == body.len() {
                let kept = |from: usize, to: usize| text.as_bytes().get(from..to).unwrap_or_default();
                let replaced = clean.get(before..clean.len() - after).unwrap_or_default();
                let is_first = (start..stop).contains(&before);
                let head = kept(start, stop.min(before).max(start));
                let tail = kept(start.max(end).min(stop), stop);
                [head, if is_first { replaced } else { &[] }, tail].concat()
            } else {
                // Bytes that are no text: everything moves into the first chunk.
                let all = if number == 0 { clean } else { &[] };
                all.to_vec()
            };
            *chunk = Chunk::new(chunk.after_ms, &bytes);
        }
    }
}

/// The head of a recorded response.
///
/// ```
/// use formwork_wire::cassette::Head;
///
/// let head: Head = serde_json::from_str(r#"{"status": 429, "headers": {"retry-after": "7"}}"#)?;
/// assert_eq!((head.status, head.headers["retry-after"].as_str()), (429, "7"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The HTTP status.
    pub status: u16,
    /// The values of the headers by lower-case name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}
