//! Bodies of responses into pieces of an answer.

use formwork::core::{Fault, FaultKind, Finish, Usage};
use formwork::wire::http::response::Parts;
use formwork::wire::lenient::{self, Count, Leaf, Object};
use formwork::wire::{
    Collector, Decoder, Deltas, Messages, Ndjson, Reader, RequestInfo, bad_wire, decoder as decoder_of,
    media_type, quoted,
};
use serde::Deserialize;

/// A document, a line of a stream or an error: each has some of these members. Leaf values accept any JSON.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Body<'a> {
    #[serde(borrow)]
    problem: Leaf<'a>,
    reply: Leaf<'a>,
    piece: Leaf<'a>,
    stopped: Leaf<'a>,
    tokens: Object<Tokens>,
    engine: Leaf<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tokens {
    read: Count,
    written: Count,
}

/// Returns the decoder of a successful response: of lines, or of one document.
pub(crate) fn decoder(request: RequestInfo, head: &Parts) -> Box<dyn Decoder> {
    let is_stream = media_type(head) == Some("application/x-ndjson");
    decoder_of::<Ndjson>(Answer(Collector::new(request)), is_stream)
}

/// Returns the words of an error response.
pub(crate) fn problem(body: &[u8]) -> Option<String> {
    lenient::from_slice::<Body<'_>>(body).ok()?.problem.into_text()
}

/// Reads both forms of an answer.
struct Answer(Collector);

impl Reader for Answer {
    fn document(&mut self, bytes: &[u8], out: &mut Deltas) -> Result<(), Fault> {
        let mut body = read(bytes)?;
        match body.reply.take() {
            Leaf::Text(reply) if body.stopped.as_str().is_some() => {
                self.0.answer(reply.into_owned(), out);
                self.end_of(&body, out);
                Ok(())
            }
            _ => Err(bad(bytes)),
        }
    }
}

impl Messages for Answer {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        let mut body = read(text.as_bytes())?;
        let is_end = body.stopped.as_str().is_some();
        if body.piece.as_str().is_none() && !is_end {
            return Err(bad(text.as_bytes()));
        }
        self.0.answer(body.piece.take().into_text().unwrap_or_default(), out);
        if is_end {
            self.end_of(&body, out);
        }
        Ok(())
    }
}

impl Answer {
    /// Adds the end of the answer: why it stopped, the tokens, and the model.
    fn end_of(&mut self, body: &Body<'_>, out: &mut Deltas) {
        self.0.stopped(match body.stopped.as_str().unwrap_or_default() {
            "limit" => Finish::Length,
            "declined" => Finish::Refused,
            "filtered" => Finish::Filtered,
            "end" => Finish::Stop,
            other => Finish::other(other),
        });
        let tokens = body.tokens.0.as_ref();
        self.0.usage = tokens.and_then(|tokens| Some(Usage::new(tokens.read.0?, tokens.written.0?)));
        self.0.answered_by(&body.engine);
        self.0.end(out);
    }
}

fn read(bytes: &[u8]) -> Result<Body<'_>, Fault> {
    let body: Body<'_> = lenient::from_slice(bytes).map_err(|_| bad(bytes))?;
    match body.problem.as_str() {
        Some(problem) => Err(Fault::new(FaultKind::Overloaded, quoted(problem))),
        None => Ok(body),
    }
}

/// Returns the fault of a body that is not Acme's protocol.
fn bad(bytes: &[u8]) -> Fault {
    bad_wire("this is no answer of Acme's API", bytes)
}
