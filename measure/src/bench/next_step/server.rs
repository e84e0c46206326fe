//! A server that answers as a model would, over the protocols of all providers, and counts bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use serde_json::Value;
use tokio::net::TcpListener;

use super::model::{Damage, invoice, perfect};
use crate::Failure;
use crate::bench::http::canned::Completion;
use crate::bench::http::wires::WIRES;

/// The bytes of the requests and of the texts of the answers of one extraction.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) calls: usize,
    pub(super) sent: usize,
    pub(super) answered: usize,
    /// Whether the extraction ended with a value.
    pub(super) is_done: bool,
}

/// The counts of each extraction, by the first segments of the paths of its requests: a name, and the damage of the first answer.
#[derive(Clone, Default)]
pub(super) struct Counted(Arc<Mutex<HashMap<(String, String), Counts>>>);

impl Counted {
    /// Notes that an extraction ended with a value. `taken` is the length of the texts that it read, if it may have stopped answers.
    pub(super) fn done(&self, name: &str, damage: &str, taken: Option<usize>) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = counts.entry((name.to_owned(), damage.to_owned())).or_default();
        (counts.is_done, counts.answered) = (true, taken.unwrap_or(counts.answered));
    }

    /// Returns the counts of an extraction that ended with a value.
    pub(super) fn of(&self, name: &str, damage: &str) -> Option<Counts> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&(name.to_owned(), damage.to_owned())).copied().filter(|counts| counts.is_done)
    }
}

/// Starts a server; returns its address.
pub(super) async fn start() -> Result<(String, Counted), Failure> {
    let counted = Counted::default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    let router = axum::Router::new().fallback(any(answer)).with_state(counted.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok((address, counted))
}

async fn answer(State(counted): State<Counted>, uri: Uri, body: Bytes) -> Response {
    let path = uri.path();
    let mut parts = path.split('/').skip(1).map(str::to_owned);
    let (name, damage) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    // The peers say so when they have a value.
    if parts.next().as_deref() == Some("done") {
        counted.done(&name, &damage, None);
        return ().into_response();
    }
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let asked =
        ["messages", "input", "contents"].iter().find_map(|member| request[*member].as_array()?.last());
    let mut counts = counted.0.lock().unwrap_or_else(PoisonError::into_inner);
    let counts = counts.entry((name, damage.clone())).or_default();
    let known = Damage::ALL.iter().find(|(name, _)| *name == damage).map(|(_, damage)| *damage);
    let damage = known.filter(|_| counts.calls == 0).unwrap_or(Damage::None);
    let text = match counts.calls {
        0 => damage.answer(&invoice()),
        _ => perfect(&asked.map(words).unwrap_or_default(), &invoice()),
    };
    counts.calls += 1;
    counts.sent += body.len();
    counts.answered += text.len();
    let target = uri.path_and_query().map_or("", |target| target.as_str());
    let wire = WIRES.iter().find(|wire| wire.paths.iter().any(|path| target.ends_with(path)));
    let Some(wire) = wire else { return StatusCode::NOT_FOUND.into_response() };
    let is_cut = matches!(damage, Damage::Cut(_));
    let canned = (wire.canned)(&Completion { pieces: pieces(&text), is_cut, tokens: [2000, 2000] });
    // Gemini has a path of its own for streams.
    let (media_type, body) = if request["stream"] == true || target.ends_with("alt=sse") {
        (wire.framing.media_type(), canned.events.concat())
    } else {
        ("application/json", canned.document)
    };
    ([(header::CONTENT_TYPE, media_type)], body).into_response()
}

/// Returns the text of a message.
fn words(message: &Value) -> String {
    let parts = [&message["content"], &message["parts"]];
    let whole = message["content"].as_str().map(str::to_owned);
    whole.unwrap_or_else(|| {
        parts
            .iter()
            .filter_map(|parts| parts.as_array())
            .flatten()
            .filter_map(|part| part["text"].as_str())
            .collect()
    })
}

/// Returns a text in pieces of about 40 bytes.
fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(40.min(rest.len())));
        pieces.push(piece);
        rest = after;
    }
    pieces
}
