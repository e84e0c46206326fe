//! The model's turns: which tools are called, and what is said, in the words of no protocol.

use formwork_wire::CallPieces;
use serde_json::{Value, json};

/// A turn of the model, as far as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) calls: Vec<Called>,
    pieces: CallPieces<(u64, u64)>,
    /// The texts of the answers, with the number of each.
    pub(crate) texts: Vec<(u64, String)>,
    /// Whether the token limit ended it, or the model refused: its calls, if any, are not meant to be carried out.
    pub(crate) is_unfinished: bool,
    /// The numbers of single answers that are unfinished.
    pub(super) unfinished: Vec<u64>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Called {
    /// The number of the answer that it is a part of.
    pub(crate) answer: u64,
    pub(crate) name: String,
    /// A JSON document, if the model wrote one.
    pub(crate) arguments: String,
}

impl Turn {
    /// Returns the turn of a response that cannot be read.
    pub(crate) fn unread() -> Self {
        Self { is_unfinished: true, ..Self::default() }
    }

    /// Returns the turn of one answer: its text, and the names and arguments of its calls.
    pub(crate) fn of<'c>(
        text: &str,
        calls: impl Iterator<Item = (&'c str, &'c str)>,
        is_whole: bool,
    ) -> Self {
        let called = |(name, arguments): (&str, &str)| Called {
            answer: 0,
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        };
        Self {
            calls: calls.map(called).collect(),
            pieces: CallPieces::default(),
            texts: vec![(0, text.to_owned())],
            is_unfinished: !is_whole,
            unfinished: Vec::new(),
        }
    }

    /// Returns whether there is text in it.
    pub(crate) fn has_text(&self) -> bool {
        self.texts.iter().any(|(_, text)| !text.is_empty())
    }

    /// Returns the numbers of the answers that are finished.
    pub(crate) fn answers(&self) -> impl Iterator<Item = u64> {
        let mut all: Vec<u64> = self.texts.iter().map(|(answer, _)| *answer).collect();
        all.extend(self.calls.iter().map(|call| call.answer));
        if all.is_empty() && self.unfinished.is_empty() {
            all.push(0);
        }
        all.sort_unstable();
        all.dedup();
        all.retain(|answer| !self.unfinished.contains(answer));
        all.into_iter()
    }

    /// Returns the turn as text, for people: its texts, and each call as `name(arguments)`; `None` if it has neither.
    pub(crate) fn written(&self) -> Option<String> {
        let texts = self.texts.iter().map(|(_, text)| text.clone()).filter(|text| !text.is_empty());
        let calls = self.calls.iter().map(|call| format!("{}({})", call.name, call.arguments));
        Some(texts.chain(calls).collect::<Vec<_>>().join("\n")).filter(|text| !text.is_empty())
    }

    /// Returns the text of an answer.
    pub(crate) fn text(&self, answer: u64) -> &str {
        self.texts.iter().find(|(number, _)| *number == answer).map_or("", |(_, text)| text)
    }

    /// Returns the call at a position of an answer, which is added if it is new.
    pub(super) fn called(&mut self, key: (u64, u64)) -> &mut Called {
        self.called_by(key, "", false)
    }

    /// Returns the call that a [piece](CallPieces) of an answer belongs to, which is added if it is new.
    pub(super) fn called_by(&mut self, key: (u64, u64), id: &str, is_named: bool) -> &mut Called {
        let nth = self.pieces.position(key, id, is_named);
        if nth == self.calls.len() {
            self.calls.push(Called { answer: key.0, name: String::new(), arguments: String::new() });
        }
        &mut self.calls[nth]
    }

    /// Adds a piece to the text of an answer: a text, or a list of parts, of which thoughts are no text.
    pub(super) fn push_text(&mut self, answer: u64, text: &Value) {
        for part in items(text).filter(|part| part["type"] != "thinking" && part["type"] != "reasoning") {
            self.push_text(answer, if part.is_string() { part } else { &part["text"] });
        }
        let Some(text) = text.as_str() else { return };
        match self.texts.iter_mut().find(|(number, _)| *number == answer) {
            Some((_, known)) => known.push_str(text),
            None => self.texts.push((answer, text.to_owned())),
        }
    }
}

/// Replaces the first part of a kind by a text, and removes the others.
pub(super) fn set_part(parts: &mut Value, kind: &str, text: &str) {
    let Some(parts) = parts.as_array_mut() else { return };
    if let Some(first) = parts.iter().position(|part| part["type"] == kind) {
        parts[first]["text"] = text.into();
        let mut nth = 0;
        parts.retain(|part| {
            nth += 1;
            nth <= first + 1 || part["type"] != kind
        });
    }
}

/// Adds a text to a text or to a list of parts.
pub(super) fn add_text(content: &mut Value, text: &str) {
    match content {
        Value::Array(parts) => parts.push(json!({"type": "text", "text": text})),
        Value::String(first) => *first = format!("{first}\n\n{text}"),
        content => *content = text.into(),
    }
}

/// Returns whether a reason for the end of an answer says that it is not whole. Servers have words of other protocols, too.
pub(super) fn is_unfinished(reason: &Value) -> bool {
    /// A turn that pauses goes on when the client sends it back.
    const LIMITS: [&str; 6] = [
        "length",
        "max_tokens",
        "max_output_tokens",
        "model_length",
        "model_context_window_exceeded",
        "pause_turn",
    ];
    const REFUSALS: [&str; 3] = ["content_filter", "safety", "refusal"];
    let known = |reason: &str| LIMITS.iter().chain(&REFUSALS).any(|known| known.eq_ignore_ascii_case(reason));
    reason.as_str().is_some_and(known)
}

pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
