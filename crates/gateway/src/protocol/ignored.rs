//! The members of a request that the service does not act on.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::document::Node;

/// The places of the members that were not read. Clones share the collection.
#[derive(Debug, Clone, Default)]
pub(super) struct Ignored(Rc<RefCell<BTreeSet<String>>>);

impl Ignored {
    /// Adds a member, unless its value asks for nothing.
    pub(super) fn note(&self, at: &str, name: &str, value: &Node<'_>) {
        let at = without_numbers(at);
        // A schema that cannot be read is not empty.
        if !value.value().is_ok_and(|value| asks_for_nothing(&at, name, &value)) {
            let place = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
            self.0.borrow_mut().insert(place);
        }
    }

    /// Adds an object that was left out as a whole.
    pub(super) fn skipped(&self, at: &str, kind: &str) {
        self.0.borrow_mut().insert(format!("{} ({kind})", without_numbers(at)));
    }

    /// Returns the places, sorted, each once.
    pub(super) fn places(&self) -> Vec<String> {
        self.0.borrow().iter().cloned().collect()
    }
}

/// Returns whether a member changes nothing about the answer: it is empty, or says what holds anyway.
pub(super) fn asks_for_nothing(at: &str, name: &str, value: &Value) -> bool {
    let is_empty = match value {
        Value::Null => true,
        // Models that reason by default go on to.
        Value::Bool(false) => !matches!(name, "parallel_tool_calls" | "think"),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    is_empty
        || match name {
            // Every call is validated.
            "strict" => true,
            "parallel_tool_calls" => *value == json!(true),
            // Clients send these members of earlier answers back.
            "id" | "status" | "annotations" | "index" => !at.is_empty(),
            "logprobs" => at.contains(".content"),
            "type" => *value == json!("function"),
            "frequency_penalty" | "presence_penalty" | "top_logprobs" => value.as_f64() == Some(0.0),
            "repeat_penalty" => value.as_f64() == Some(1.0),
            "modalities" => *value == json!(["text"]),
            "service_tier" => *value == json!("auto") || *value == json!("default"),
            "truncation" => *value == json!("disabled"),
            _ => false,
        }
}

/// Returns a place without the positions in lists: `messages[2].content[0]` is `messages[].content[]`.
fn without_numbers(at: &str) -> String {
    let mut is_inside = false;
    let is_kept = |letter: &char| {
        match letter {
            '[' => is_inside = true,
            ']' => is_inside = false,
            _ => return !is_inside,
        }
        true
    };
    at.chars().filter(is_kept).collect()
}
