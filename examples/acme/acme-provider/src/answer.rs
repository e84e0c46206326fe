//! Bodies of responses into pieces of an answer.

use formwork::core::{Completion, Delta, Fault, FaultKind, Finish, Usage};
use formwork::wire::http::response::Parts;
use formwork::wire::{Decoder, Deltas, Framed, Messages, Ndjson, Whole, media_type, quoted};
use serde::Deserialize;

/// A document, a line of a stream or an error: each has some of these members.
#[derive(Debug, Deserialize)]
struct Body {
    problem: Option<String>,
    reply: Option<String>,
    piece: Option<String>,
    stopped: Option<String>,
    tokens: Option<Tokens>,
    engine: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Tokens {
    read: u64,
    written: u64,
}

/// Returns the decoder of a successful response: of lines, or of one document.
pub(crate) fn decoder(head: &Parts) -> Box<dyn Decoder> {
    if media_type(head) == Some("application/x-ndjson") {
        Box::new(Framed::<Ndjson, _>::new(Lines))
    } else {
        Box::new(Whole::new(|body: &[u8], out: &mut Deltas| {
            out.extend(document(body)?.into_deltas());
            Ok(())
        }))
    }
}

/// Returns the words of an error response.
pub(crate) fn problem(body: &[u8]) -> Option<String> {
    serde_json::from_slice::<Body>(body).ok()?.problem
}

fn document(bytes: &[u8]) -> Result<Completion, Fault> {
    let body = read(bytes)?;
    let (finish, usage) = end(&body).ok_or_else(|| bad(bytes))?;
    let text = body.reply.ok_or_else(|| bad(bytes))?;
    Ok(Completion::new(text).with_finish(finish).with_usage(usage).with_model(body.engine))
}

struct Lines;

impl Messages for Lines {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        let body = read(text.as_bytes())?;
        let end = end(&body);
        if body.piece.is_none() && end.is_none() {
            return Err(bad(text.as_bytes()));
        }
        out.extend(body.piece.map(Delta::Text));
        out.extend(end.map(|(finish, usage)| Delta::End {
            finish,
            usage,
            closed_at: None,
            restrained: false,
            model: body.engine,
        }));
        Ok(())
    }
}

fn read(bytes: &[u8]) -> Result<Body, Fault> {
    let body: Body = serde_json::from_slice(bytes).map_err(|_| bad(bytes))?;
    match body.problem {
        Some(problem) => Err(Fault::new(FaultKind::Overloaded, quoted(&problem))),
        None => Ok(body),
    }
}

fn end(body: &Body) -> Option<(Finish, Usage)> {
    let finish = match body.stopped.as_deref()? {
        "limit" => Finish::Length,
        "declined" => Finish::Refused,
        "filtered" => Finish::Filtered,
        _ => Finish::Stop,
    };
    let usage = match &body.tokens {
        Some(Tokens { read, written }) => Usage::new(*read, *written),
        None => Usage::default().with_estimated(true),
    };
    Some((finish, usage))
}

/// Returns the fault of a body that is not Acme's protocol.
fn bad(bytes: &[u8]) -> Fault {
    let body_text = quoted(&String::from_utf8_lossy(bytes));
    Fault::new(FaultKind::BadWire, format!("this is no answer of Acme's API: {body_text}"))
}
