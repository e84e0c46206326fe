//! Decodes responses into deltas.

mod content;
mod reader;
pub(crate) mod shape;

use formwork_core::Fault;
use formwork_wire::http::response::Parts;
use formwork_wire::{Bytes, Decoder, Deltas, RequestInfo, Sse, is_event_stream};

use crate::{Api, responses};
use reader::ChatReader;

/// Returns the decoder of a successful response: an event stream or one JSON document. The first bytes override the media type,
/// because servers declare error documents as streams, and streams as `application/json` or `text/plain`.
pub(crate) fn decoder(request: RequestInfo, head: &Parts) -> Box<dyn Decoder> {
    let declared = if is_event_stream(head) { Kind::Stream } else { Kind::Document };
    Box::new(Undecided { declared, beginning: Vec::new(), request: Some(request), decided: None })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stream,
    Document,
}

impl Kind {
    fn decoder(self, request: RequestInfo) -> Box<dyn Decoder> {
        let is_stream = self == Self::Stream;
        if request.protocol == Api::Responses.protocol() {
            formwork_wire::decoder::<Sse>(responses::ResponsesReader::new(request), is_stream)
        } else {
            formwork_wire::decoder::<Sse>(ChatReader::new(request), is_stream)
        }
    }

    /// Returns the kind of a body with this beginning, or `None` if more bytes are needed to decide.
    fn of(beginning: &[u8], declared: Self) -> Option<Self> {
        let bytes = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start();
        let is = |field: &&[u8]| bytes.starts_with(field);
        let may_be = |field: &&[u8]| field.starts_with(bytes);
        match bytes.first() {
            None => None,
            Some(b'{') => Some(Self::Document),
            _ if FIELDS.iter().any(is) => Some(Self::Stream),
            _ if FIELDS.iter().any(may_be) => None,
            _ => Some(declared),
        }
    }
}

/// The beginnings of the lines of an event stream.
const FIELDS: &[&[u8]] = &[b"data:", b"event:", b"id:", b"retry:", b":"];

/// A decoder that buffers the beginning of a body until its kind is known.
struct Undecided {
    declared: Kind,
    beginning: Vec<u8>,
    request: Option<RequestInfo>,
    decided: Option<Box<dyn Decoder>>,
}

impl Undecided {
    fn decide(&mut self, kind: Kind, out: &mut Deltas) -> Result<(), Fault> {
        let Some(request) = self.request.take() else { return Ok(()) };
        let decoder = self.decided.insert(kind.decoder(request));
        let beginning = std::mem::take(&mut self.beginning);
        if beginning.is_empty() { Ok(()) } else { decoder.push(&beginning, out) }
    }
}

impl Decoder for Undecided {
    fn push(&mut self, chunk: &[u8], out: &mut Deltas) -> Result<(), Fault> {
        if let Some(decoder) = &mut self.decided {
            return decoder.push(chunk, out);
        }
        self.beginning.extend_from_slice(chunk);
        match Kind::of(&self.beginning, self.declared) {
            Some(kind) => self.decide(kind, out),
            None => Ok(()),
        }
    }

    fn push_bytes(&mut self, chunk: Bytes, out: &mut Deltas) -> Result<(), Fault> {
        // The first chunk is almost always enough, so it is not copied.
        if self.decided.is_none() && self.beginning.is_empty() {
            match Kind::of(&chunk, self.declared) {
                Some(kind) => self.decide(kind, out)?,
                None => return self.push(&chunk, out),
            }
        }
        match &mut self.decided {
            Some(decoder) => decoder.push_bytes(chunk, out),
            None => self.push(&chunk, out),
        }
    }

    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault> {
        self.decide(self.declared, out)?;
        match &mut self.decided {
            Some(decoder) => decoder.end(out),
            None => Ok(()),
        }
    }
}
