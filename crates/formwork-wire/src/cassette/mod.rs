//! Exchanges with a server, kept to be played again without it.

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

/// The version of the format that this build writes and reads.
const VERSION: u32 = 1;

/// The exchanges on the wire, in order: JSON for a file that is read, compared and committed.
///
/// It holds no key: it is recorded above the [`Transport`](crate::Transport) that adds one, and of the headers of
/// responses only those are kept that a codec reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cassette {
    /// The version of this format, 1.
    #[serde(rename = "formwork_cassette")]
    version: u32,
    /// One for each request.
    pub exchanges: Vec<Exchange>,
}

impl Default for Cassette {
    fn default() -> Self {
        Self { version: VERSION, exchanges: Vec::new() }
    }
}

impl Cassette {
    /// Reads a cassette.
    ///
    /// # Errors
    /// Why it is none, with line and column.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let cassette: Self =
            serde_json::from_str(text).map_err(|error| format!("not a cassette: {error}"))?;
        if cassette.version != VERSION {
            return Err(format!("a cassette of version {}; this build reads {VERSION}", cassette.version));
        }
        Ok(cassette)
    }

    /// Writes it, one line for each value, so that a diff shows what changed.
    pub fn to_json(&self) -> String {
        // Strings and numbers only: serialising them cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Returns the same cassette with one exchange changed (default: as recorded); unchanged if there is none at this index.
    #[must_use]
    pub fn with_mutation(mut self, index: usize, mutation: &Mutation) -> Self {
        if let Some(exchange) = self.exchanges.get_mut(index) {
            mutation.apply(exchange);
        }
        self
    }
}

/// One request and what came back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// The request.
    pub request: Recorded,
    /// The head of what came back; `None` if nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Head>,
    /// The body as it came in: where chunks ended is part of the truth.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<Chunk>,
    /// The fault that broke it off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// The server has not seen the schema: a request is the same with another schema, or without one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schema_dropped: bool,
}

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// HTTP status.
    pub status: u16,
    /// Headers by their names in lower case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}
