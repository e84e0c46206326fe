//! Streams of Ollama's APIs.

use serde_json::{Value, json};

use super::reply::{end, error, message_of, think, timestamp};
use crate::ask::{Ask, Want};
use crate::problem::Problem;
use crate::protocol::base::Frames;
use crate::reply::{Choice, Content, Meta, Reply};

/// Returns the writer of a stream.
pub(super) fn frames(is_chat: bool, ask: &Ask, meta: &Meta) -> Box<dyn Frames> {
    let is_call = matches!(ask.want, Want::Call(_));
    Box::new(Lines { meta: meta.clone(), is_chat, is_call, sent: false })
}

/// The lines of a stream.
struct Lines {
    meta: Meta,
    is_chat: bool,
    /// Whether a tool is called: its arguments are an object, which cannot come in pieces.
    is_call: bool,
    sent: bool,
}

impl Lines {
    fn line(&self, content: &Content) -> Value {
        let mut out = json!({"model": self.meta.model, "created_at": timestamp(self.meta.created)});
        if self.is_chat {
            out["message"] = message_of(content);
        } else {
            out["response"] = content.text().into();
        }
        out["done"] = false.into();
        out
    }
}

impl Frames for Lines {
    /// Returns a line without text: the protocol has no comments, and its clients read every line as JSON.
    fn keep_alive(&self) -> Option<Value> {
        Some(self.line(&Content::Text(String::new())))
    }

    fn thinking(&mut self, text: &str) -> Vec<Value> {
        let mut line = self.line(&Content::Text(String::new()));
        think(self.is_chat, &mut line, text);
        vec![line]
    }

    fn text(&mut self, text: &str) -> Vec<Value> {
        if self.is_call {
            return Vec::new();
        }
        self.sent = true;
        vec![self.line(&Content::Text(text.to_owned()))]
    }

    fn close(&mut self, choice: &Choice, reply: &Reply) -> Vec<Value> {
        let whole = match &choice.content {
            content if !self.sent => Some(self.line(content)),
            // The text was sent before.
            Content::Calls { calls, .. } => {
                let calls = Content::Calls { text: String::new(), calls: calls.clone() };
                Some(self.line(&calls))
            }
            _ => None,
        };
        let mut last = self.line(&Content::Text(String::new()));
        end(&mut last, reply, &self.meta);
        whole.into_iter().chain([last]).collect()
    }

    fn fail(&mut self, problem: &Problem) -> Vec<Value> {
        vec![error(problem)]
    }
}
