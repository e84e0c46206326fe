//! The protocols: for each one our provider, the places of the bare client's texts, and the responses of the server.

use std::sync::Arc;

use formwork_anthropic::{API_KEY, Anthropic};
use formwork_core::SharedProvider;
use formwork_gemini::Gemini;
use formwork_http::HttpTransport;
use formwork_ollama::Ollama;
use formwork_openai::{Api, OpenAi};
use formwork_wire::{Auth, Http};

use super::canned::{self, Canned, Completion};
use crate::Failure;
use crate::bench::oracle::MODEL;

/// The names of members from the root of a document; `*` stands for every item of a list.
pub(super) type Path = &'static [&'static str];

/// A protocol of a provider.
pub(in crate::bench) struct Wire {
    /// The name in arguments, and the first segment of the server's paths.
    pub(in crate::bench) name: &'static str,
    /// The rest of the base URL.
    pub(in crate::bench) base: &'static str,
    /// The paths below the base URL for a document and for a stream.
    pub(in crate::bench) paths: [&'static str; 2],
    /// The header with the key.
    pub(in crate::bench) auth: Auth,
    /// The other headers of the protocol.
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// Returns our provider. The second argument says whether it streams.
    pub(in crate::bench) provider: fn(HttpTransport, bool) -> SharedProvider,
    /// The place of the input in a request, as a JSON pointer.
    pub(super) input: &'static str,
    /// The texts of a document.
    pub(super) document: Path,
    /// The texts of an event.
    pub(super) event: Path,
    /// The place of the mark of the last event, and the text of that mark if there are others. Without a place, the event itself is it.
    pub(super) last: (Path, Option<&'static str>),
    /// The framing of streams.
    pub(in crate::bench) framing: Framing,
    /// Returns the responses of the servers.
    pub(in crate::bench) canned: fn(&Completion<'_>) -> Canned,
}

fn over(transport: HttpTransport, codec: impl formwork_wire::Wire + 'static) -> SharedProvider {
    Arc::new(Http::new(codec, Arc::new(transport)))
}

/// All protocols.
pub(in crate::bench) static WIRES: [Wire; 5] = [
    Wire {
        name: "chat",
        base: "/v1",
        paths: ["/chat/completions"; 2],
        auth: Auth::BEARER,
        headers: &[],
        provider: |transport, stream| over(transport, OpenAi::new(MODEL).with_stream(stream)),
        input: "/messages/1/content",
        document: &["choices", "*", "message", "content"],
        event: &["choices", "*", "delta", "content"],
        last: (&[], Some("[DONE]")),
        framing: Framing::Sse,
        canned: canned::chat,
    },
    Wire {
        name: "responses",
        base: "/v1",
        paths: ["/responses"; 2],
        auth: Auth::BEARER,
        headers: &[],
        provider: |transport, stream| {
            over(transport, OpenAi::new(MODEL).with_stream(stream).with_api(Api::Responses))
        },
        input: "/input/0/content/0/text",
        document: &["output", "*", "content", "*", "text"],
        event: &["delta"],
        last: (&["type"], Some("response.completed")),
        framing: Framing::Sse,
        canned: canned::responses,
    },
    Wire {
        name: "anthropic",
        base: "",
        paths: ["/v1/messages"; 2],
        auth: API_KEY,
        headers: &[("anthropic-version", "2023-06-01")],
        provider: |transport, stream| {
            over(transport, Anthropic::new("claude-sonnet-4-6").with_stream(stream))
        },
        input: "/messages/0/content/0/text",
        document: &["content", "*", "text"],
        event: &["delta", "text"],
        last: (&["type"], Some("message_stop")),
        framing: Framing::Sse,
        canned: canned::anthropic,
    },
    Wire {
        name: "gemini",
        base: "",
        paths: [
            "/v1beta/models/gemini-2.5-flash:generateContent",
            "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
        ],
        auth: Gemini::AUTH,
        headers: &[],
        provider: |transport, stream| over(transport, Gemini::new("gemini-2.5-flash").with_stream(stream)),
        input: "/contents/0/parts/0/text",
        document: &["candidates", "*", "content", "parts", "*", "text"],
        event: &["candidates", "*", "content", "parts", "*", "text"],
        last: (&["candidates", "*", "finishReason"], None),
        framing: Framing::Sse,
        canned: canned::gemini,
    },
    Wire {
        name: "ollama",
        base: "",
        paths: ["/api/chat"; 2],
        auth: Auth::BEARER,
        headers: &[],
        provider: |transport, stream| over(transport, Ollama::new("qwen3:8b").with_stream(stream)),
        input: "/messages/1/content",
        document: &["message", "content"],
        event: &["message", "content"],
        last: (&["done"], None),
        framing: Framing::Lines,
        canned: canned::ollama,
    },
];

/// The protocol of the measurements that are not about protocols.
pub(super) const CHAT: &Wire = &WIRES[0];

pub(super) fn named(name: &str) -> Result<&'static Wire, Failure> {
    WIRES.iter().find(|wire| wire.name == name).ok_or_else(|| format!("there is no wire {name}").into())
}

/// The framing of streams.
#[derive(Clone, Copy)]
pub(in crate::bench) enum Framing {
    /// Server-sent events.
    Sse,
    /// Lines of JSON.
    Lines,
}

impl Framing {
    pub(in crate::bench) const fn media_type(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Lines => "application/x-ndjson",
        }
    }

    /// Returns the length of the first event without the bytes that end it, and with them.
    pub(super) fn next(self, bytes: &[u8]) -> Option<(usize, usize)> {
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
    pub(super) fn data(self, event: &[u8]) -> Option<&[u8]> {
        match self {
            Self::Lines => Some(event),
            Self::Sse => event.strip_prefix(b"data: ").or_else(|| {
                let name = event.iter().position(|byte| *byte == b'\n')?;
                event[name + 1..].strip_prefix(b"data: ")
            }),
        }
    }
}
