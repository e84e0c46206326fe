//! Recorded exchanges with a server, which tests replay without it.

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
/// It contains no key: it is recorded above the [`Transport`](crate::Transport) that adds one, and only those response
/// headers are kept that a codec reads.
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
    /// The reason why the text is not a cassette of this version, with line and column.
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
        // Strings and numbers can always be serialised.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Returns the cassette with one exchange changed (default: as recorded). It is unchanged if the index does not exist.
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
    /// The head of the response; `None` if there was none.
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

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The HTTP status.
    pub status: u16,
    /// The headers, by their names in lower case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}
