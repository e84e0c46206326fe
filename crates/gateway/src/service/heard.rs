//! Runs for a target of the protocol of their request: the target gets the request as the client wrote it, but for the schema, and
//! the client gets the response as the target wrote it, but for a value that was corrected.

use std::sync::{Mutex, PoisonError};

use formwork_core::{Ask, Delta, Usage};
use formwork_extract::{Observer, RunId, Started};
use serde_json::{Value, json};

use crate::document::Extent;
use crate::meter::{Meter, add_counts};
use crate::protocol::events::{document, split, without_usage};
use crate::protocol::turn::Turn;
use crate::protocol::{LINES, Protocol, written};
use crate::reply::{Content, Finish, Meta, Reply};

/// The longest response that is kept, in bytes. A longer one is written anew.
const MAX_KEPT: usize = 16 << 20;

/// The members of our own responses with the tokens and the extension, in all protocols.
const COUNTS: [&str; 4] = ["usage", "prompt_eval_count", "eval_count", "formwork"];

/// The response to the last call for a whole answer, as its target wrote it.
#[derive(Default)]
pub(super) struct Heard(Mutex<Body>);

#[derive(Default)]
struct Body {
    /// Whether the call is one for a whole answer, and not for a patch.
    is_open: bool,
    bytes: Vec<u8>,
}

impl Observer for Heard {
    fn call_started(&self, _: RunId, started: &Started<'_>) {
        let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        body.is_open = *started.ask == Ask::Whole;
        if body.is_open {
            body.bytes.clear();
        }
    }

    fn delta(&self, _: RunId, delta: &Delta) {
        if let Delta::Body(bytes) = delta {
            let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if body.is_open && body.bytes.len() <= MAX_KEPT {
                body.bytes.extend_from_slice(bytes);
            }
        }
    }
}

impl Heard {
    fn take(&self) -> Option<Vec<u8>> {
        let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = std::mem::take(&mut body.bytes);
        (1..=MAX_KEPT).contains(&bytes.len()).then_some(bytes)
    }

    /// Returns the response of the target, as it is if nothing in it is another; else with the value of the reply, the tokens of all calls
    /// and the extension. `None` if the answer is another one's.
    pub(super) fn whole(
        &self,
        protocol: &Protocol,
        (reply, meta): (&Reply, &Meta),
        own: impl FnOnce() -> Vec<u8>,
    ) -> Option<Vec<u8>> {
        let bytes = self.take()?;
        let turn = protocol.turn_of(&bytes, false);
        let text = replaced(&turn, reply)?;
        if text.is_none() && reply.calls == 1 && !has_more(reply) {
            return Some(bytes);
        }
        let mut body = serde_json::from_slice::<Value>(&bytes).ok().filter(Value::is_object)?;
        if let Some(text) = text {
            (protocol.set_text)(&mut body, 0, text);
            let mut written = Turn::default();
            (protocol.read_whole)(&mut written, &body);
            if written.text(0) != text {
                return None;
            }
        }
        let mut added = Added::new((reply, meta), &bytes);
        added.add_to(&mut body);
        if added.extension.is_some() {
            // The target has told no counts.
            let mut own = serde_json::from_slice::<Value>(&own()).ok()?;
            for name in COUNTS {
                own.get_mut(name).into_iter().for_each(|own| body[name] = own.take());
            }
        }
        serde_json::to_vec(&body).ok()
    }

    /// Returns the events of the target in the same way; `None` as well if there is no place for a part of the answer.
    pub(super) fn events(
        &self,
        protocol: &Protocol,
        (reply, meta): (&Reply, &Meta),
        hides_usage: bool,
    ) -> Option<Vec<u8>> {
        let mut bytes = self.take()?;
        if protocol.stream_type != LINES && bytes.trim_ascii_start().starts_with(b"{") {
            // The target answered with a document.
            return None;
        }
        let turn = protocol.turn_of(&bytes, true);
        let text = replaced(&turn, reply)?;
        if text.is_none() && reply.calls == 1 && !hides_usage && !has_more(reply) {
            return Some(bytes);
        }
        let mut added = Added::new((reply, meta), &bytes);
        if let Some(text) = text {
            // The last event of an answer that was cut says so.
            let is_whole = !turn.is_unfinished && turn.answers().next().is_some();
            bytes = edited(protocol, &bytes, text).filter(|_| is_whole)?;
        }
        let bytes = changed(protocol, &bytes, hides_usage, |event| added.add_to(event));
        (added.extension.is_none() || hides_usage || !has_more(reply)).then_some(bytes)
    }
}

/// The part of the usage of a reply that a target does not know.
struct Added {
    /// The tokens of the calls beside that of the response.
    others: Usage,
    /// The extension, until it has a place.
    extension: Option<Value>,
}

impl Added {
    /// Returns what is added to the response of a target to one call.
    fn new((reply, meta): (&Reply, &Meta), bytes: &[u8]) -> Self {
        let mut others = Usage::default();
        if reply.calls > 1 {
            let mut meter = Meter::default();
            meter.see(bytes);
            let (all, own) = (reply.usage, meter.usage(Extent::default(), true));
            others.input_tokens = all.input_tokens.saturating_sub(own.input_tokens);
            others.output_tokens = all.output_tokens.saturating_sub(own.output_tokens);
            others.cached_tokens = all.cached_tokens.saturating_sub(own.cached_tokens);
            others.written_tokens = all.written_tokens.saturating_sub(own.written_tokens);
            others.written_hour_tokens = all.written_hour_tokens.saturating_sub(own.written_hour_tokens);
            others.reasoning_tokens = all.reasoning_tokens.saturating_sub(own.reasoning_tokens);
            others.micro_usd = all.micro_usd.zip(own.micro_usd).map(|(all, own)| all.saturating_sub(own));
        }
        Self { others, extension: Some(json!(reply.extension(meta))) }
    }

    /// Adds it to a response or an event, where that has a usage. Returns whether it changed.
    fn add_to(&mut self, document: &mut Value) -> bool {
        let is_changed = add_counts(document, self.others);
        let at = match document["done"] == true {
            true => "",
            false if document["usage"].is_object() => "/usage",
            false => "/response/usage",
        };
        let place = document.pointer_mut(at).and_then(Value::as_object_mut);
        let Some((place, extension)) = place.and_then(|place| Some((place, self.extension.take()?))) else {
            return is_changed;
        };
        place.insert("formwork".to_owned(), extension);
        true
    }
}

/// Returns the events of a stream with a text in place of theirs; `None` if they have no place for it.
pub(super) fn edited(protocol: &Protocol, bytes: &[u8], text: &str) -> Option<Vec<u8>> {
    let mut given = Vec::new();
    let edited = changed(protocol, bytes, false, |event| protocol.set_piece(event, text, &mut given));
    (!given.is_empty()).then_some(edited)
}

/// Returns the events of a stream, those that `change` changes written anew.
fn changed(
    protocol: &Protocol,
    bytes: &[u8],
    hides_usage: bool,
    mut change: impl FnMut(&mut Value) -> bool,
) -> Vec<u8> {
    let media_type = protocol.stream_type;
    let events = split(bytes, media_type == LINES).into_iter();
    let one = |event: Vec<u8>| {
        let mut data = document(&event);
        if change(&mut data) { written(&[data], media_type) } else { event }
    };
    events
        .filter_map(|event| if hides_usage { without_usage(event) } else { Some(event) })
        .flat_map(one)
        .collect()
}

/// Returns the text that takes the place of that of a turn, if there is one; `None` if the turn is not the origin of the reply.
fn replaced<'r>(turn: &Turn, reply: &'r Reply) -> Option<Option<&'r str>> {
    let [choice] = reply.choices.as_slice() else { return None };
    if !turn.calls.is_empty() {
        return None;
    }
    match (&choice.content, choice.finish) {
        (Content::Text(text), Finish::Stop) => {
            let is_same = serde_json::from_str::<Value>(turn.text(0))
                .is_ok_and(|own| serde_json::from_str(text).is_ok_and(|value: Value| value == own));
            Some((!is_same).then_some(text.as_str()))
        }
        // A refusal, or an answer that was cut, is the target's own, unless it is that of a patch.
        _ => (turn.answers().next().is_none() || turn.is_unfinished).then_some(None),
    }
}

/// Returns whether the usage of a reply has what no target knows.
const fn has_more(reply: &Reply) -> bool {
    reply.support.is_some() || !reply.not_stated.is_empty()
}
