//! The protocols: for each one our provider, the types of the bare client, and the responses of the server.

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

use formwork_core::SharedProvider;
use formwork_http::HttpTransport;
use formwork_wire::Auth;
use reqwest::RequestBuilder;
use serde_json::Value;

use crate::Failure;
use crate::oracle::ANSWER;

pub(crate) use chat::{events as chat_events, piece as chat_piece};

/// A protocol of a provider.
pub(crate) struct Wire {
    /// The name in arguments, and the first segment of the server's paths.
    pub(crate) name: &'static str,
    /// The rest of the base URL.
    pub(crate) base: &'static str,
    /// The paths below the base URL for a document and for a stream.
    pub(crate) paths: [&'static str; 2],
    /// The header with the key.
    pub(crate) auth: Auth,
    /// The other headers of the protocol.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// Returns our provider. The second argument says whether it streams.
    pub(crate) provider: fn(HttpTransport, bool) -> SharedProvider,
    /// Returns the bare client's side of the protocol, with the constant parts of a request of ours.
    pub(crate) bare: fn(&Value) -> Option<Box<dyn Bare>>,
    /// Returns the body of a response.
    pub(crate) document: fn() -> String,
    /// Returns the body of a streamed response in its events.
    pub(crate) events: fn() -> Vec<String>,
    /// The framing of streams.
    pub(crate) framing: Framing,
}

/// The framing of streams.
#[derive(Clone, Copy)]
pub(crate) enum Framing {
    /// Server-sent events.
    Sse,
    /// Lines of JSON.
    Lines,
}

impl Framing {
    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Lines => "application/x-ndjson",
        }
    }

    /// Returns the length of the first event without the bytes that end it, and with them.
    pub(crate) fn next(self, bytes: &[u8]) -> Option<(usize, usize)> {
        match self {
            Self::Sse => {
                let length = bytes.windows(2).position(|bytes| bytes == b"\n\n")?;
                Some((length, length + 2))
            }
            Self::Lines => {
                let length = bytes.iter().position(|byte| *byte == b'\n')?;
                Some((length, length + 1))
            }
        }
    }

    /// Returns the JSON of an event, which may have its name in a line before.
    pub(crate) fn data(self, event: &[u8]) -> Option<&[u8]> {
        match self {
            Self::Lines => Some(event),
            Self::Sse => event.strip_prefix(b"data: ").or_else(|| {
                let name = event.iter().position(|byte| *byte == b'\n')?;
                event[name + 1..].strip_prefix(b"data: ")
            }),
        }
    }
}

/// The bare client's side of a protocol: types for request and response, as a careful author writes them by hand.
pub(crate) trait Bare {
    /// Adds the body with this input to a request.
    fn with_body(&self, request: RequestBuilder, input: &str) -> RequestBuilder;

    /// Reads the completion of a document.
    fn text(&self, document: &[u8]) -> serde_json::Result<String>;

    /// Reads an event of a stream.
    fn piece(&self, event: &[u8]) -> serde_json::Result<Piece>;
}

/// A piece of a streamed completion.
#[derive(Default)]
pub(crate) struct Piece {
    pub(crate) text: Option<String>,
    pub(crate) is_last: bool,
}

const BEARER: Auth = Auth::BEARER;

/// All protocols.
pub(crate) const WIRES: [Wire; 5] =
    [chat::WIRE, responses::WIRE, anthropic::WIRE, gemini::WIRE, ollama::WIRE];

/// The protocol of the measurements that are not about protocols.
pub(crate) const CHAT: &Wire = &WIRES[0];

pub(crate) fn named(name: &str) -> Result<&'static Wire, Failure> {
    static ALL: [Wire; 5] = WIRES;
    ALL.iter().find(|wire| wire.name == name).ok_or_else(|| format!("there is no wire {name}").into())
}

/// The number of pieces of a streamed completion. With its beginning and its end, a stream of Chat Completions has 240 events.
const PIECES: usize = 236;

/// Returns the completion in pieces of two or three characters.
fn pieces() -> Vec<String> {
    let letters: Vec<char> = ANSWER.chars().collect();
    let at = |piece: usize| piece * letters.len() / PIECES;
    (0..PIECES).map(|piece| letters[at(piece)..at(piece + 1)].iter().collect()).collect()
}

/// Returns a server-sent event, with its `type` as the name.
fn named_event(data: &Value) -> String {
    let name = data["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}
