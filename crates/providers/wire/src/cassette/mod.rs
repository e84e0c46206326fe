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
