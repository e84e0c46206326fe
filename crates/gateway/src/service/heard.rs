//! Runs for a target of the protocol of their request: the target gets the request as the client wrote it, but for the schema, and
//! the client gets the response as the target wrote it, but for a value that was corrected.

use std::sync::{Mutex, PoisonError};

use formwork_core::{Ask, Delta};
use formwork_extract::{Observer, RunId, Started};
use serde_json::Value;

use crate::protocol::Protocol;
use crate::protocol::events::Events;
use crate::protocol::turn::Turn;
use crate::reply::{Content, Finish, Reply};

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

    /// Returns the response of the target, as it is if nothing in it is another; else with the value of the reply and the counts of our
    /// own response. `None` if the answer is another one's.
    pub(super) fn whole(
        &self,
        protocol: &dyn Protocol,
        reply: &Reply,
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
            protocol.set_text(&mut body, 0, text);
            let mut written = Turn::default();
            protocol.read_whole(&mut written, &body);
            if written.text(0) != text {
                return None;
            }
        }
        let mut own = serde_json::from_slice::<Value>(&own()).ok()?;
        for name in COUNTS {
            // The counts of one call are the target's own.
            let is_own = reply.calls == 1 && name != "formwork";
            match (body.get_mut(name), own.get_mut(name).map(Value::take)) {
                (Some(Value::Object(members)), Some(Value::Object(mut more))) => {
                    more.retain(|name, _| !is_own || name == "formwork");
                    members.extend(more);
                }
                (Some(_), _) if is_own => {}
                (_, Some(value)) => body[name] = value,
                _ => {}
            }
        }
        serde_json::to_vec(&body).ok()
    }

    /// Returns the events of the target, if they have the value of the reply as it is and nothing has to be added.
    pub(super) fn events(
        &self,
        protocol: &dyn Protocol,
        reply: &Reply,
        hides_usage: bool,
    ) -> Option<Vec<u8>> {
        let bytes = self.take()?;
        let turn = protocol.turn_of(&bytes, true);
        if replaced(&turn, reply)?.is_some() || has_more(reply) {
            return None;
        }
        if !hides_usage {
            return Some(bytes);
        }
        let mut events = Events::default();
        let mut kept = events.without_usage(&bytes);
        kept.extend(events.rest());
        Some(kept)
    }
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
