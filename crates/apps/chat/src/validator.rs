//! The contract's hand-written validator, without a schema library.
//!
//! It reports all violations at once, in the words of the compiled schema, so that both give the same messages.

use std::sync::Arc;

use formwork_core::keywords::type_name;
use formwork_core::{Context, JsonPath, Report, Stage, Structure, Validator, Violation};
use formwork_schema::Compiled;
use serde_json::Value;

use crate::Example;
use crate::TaskKind;

/// A part of the contract's envelope.
pub(crate) enum Part {
    Text,
    Texts,
    /// A number from 0 to 1.
    Share,
    /// Exactly this text.
    Is(&'static str),
    OneOf(&'static [&'static str]),
    /// A value of the payload's type.
    Valid(Arc<Compiled>),
    /// A closed object, all of whose members are required.
    Object(Vec<(&'static str, Part)>),
}

impl Part {
    /// Returns the whole envelope. Without a schema of `data`, `answer.data` is not allowed.
    pub(crate) fn envelope(version: &'static str, data: Option<Arc<Compiled>>) -> Self {
        let task = vec![("type", Self::OneOf(&TaskKind::NAMES)), ("user_intent", Self::Text)];
        let data = data.map(|schema| ("data", Self::Valid(schema)));
        let answer = [("text", Self::Text)].into_iter().chain(data).collect();
        let quality = vec![("confidence", Self::Share), ("assumptions", Self::Texts), ("risks", Self::Texts)];
        let debug = vec![("schema_version", Self::Is(version)), ("model", Self::Text)];
        let parts = [("task", task), ("answer", answer), ("quality", quality), ("debug", debug)];
        Self::Object(parts.into_iter().map(|(name, parts)| (name, Self::Object(parts))).collect())
    }

    fn check(&self, value: &Value, at: &JsonPath, cx: &Context<'_>, out: &mut Report) {
        match (self, value) {
            (Self::Text, Value::String(_)) => {}
            (Self::Text, _) => out.push(mismatch(value, at, "string")),
            (Self::Texts, Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    Self::Text.check(item, &at.index(index), cx, out);
                }
            }
            (Self::Texts, _) => out.push(mismatch(value, at, "array")),
            (Self::Share, _) => match value.as_f64() {
                None => out.push(mismatch(value, at, "number")),
                Some(..0.0) => out.push(unlike(value, at, "minimum", "at least 0.0")),
                Some(0.0..=1.0) => {}
                Some(_) => out.push(unlike(value, at, "maximum", "at most 1.0")),
            },
            (Self::Is(text), _) if value == text => {}
            (Self::Is(text), _) => out.push(unlike(value, at, "const", format!("\"{text}\""))),
            (Self::OneOf(texts), _) => {
                let quoted: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
                if let (false, [first @ .., last]) = (texts.iter().any(|text| value == text), &quoted[..]) {
                    out.push(unlike(value, at, "enum", format!("{} or {last}", first.join(", "))));
                }
            }
            (Self::Valid(schema), _) => {
                let mut report = Report::default();
                schema.validate(value, cx, &mut report);
                out.extend_at(at, report.violations().iter().cloned(), report.left_out());
            }
            (Self::Object(parts), Value::Object(members)) => {
                for (name, part) in parts {
                    match members.get(*name) {
                        Some(member) => part.check(member, &at.key(*name), cx, out),
                        None => out.push(wrong(&at.key(*name), "required")),
                    }
                }
                for name in members.keys().filter(|name| parts.iter().all(|(known, _)| known != name)) {
                    out.push(wrong(&at.key(name.as_str()), "additionalProperties"));
                }
            }
            (Self::Object(_), _) => out.push(mismatch(value, at, "object")),
        }
    }
}

impl Validator for Part {
    fn validate(&self, value: &Value, cx: &Context<'_>, out: &mut Report) {
        self.check(value, &JsonPath::root(), cx, out);
    }
}

fn wrong(at: &JsonPath, rule: &str) -> Violation {
    Violation::new(at.clone(), rule, Stage::Schema)
}

fn mismatch(value: &Value, at: &JsonPath, expected: &str) -> Violation {
    wrong(at, "type").with_expected(expected).with_found(type_name(value))
}

/// Returns a violation with the value: scalars as JSON, containers as their type.
fn unlike(value: &Value, at: &JsonPath, rule: &str, expected: impl Into<String>) -> Violation {
    let is_container = value.is_array() || value.is_object();
    let found = if is_container { type_name(value).to_owned() } else { value.to_string() };
    wrong(at, rule).with_expected(expected).with_found(found)
}

/// The contract's structure: JSON that is not an object counts as invalid JSON; the validator checks objects.
pub(crate) struct TopLevel {
    pub(crate) judge: Arc<dyn Validator>,
    /// The example in the prompt.
    pub(crate) example: Option<Example>,
    /// Whether answers that are copied out of the prompt are rejected.
    pub(crate) rejects_copies: bool,
}

impl Validator for TopLevel {
    fn validate(&self, value: &Value, cx: &Context<'_>, out: &mut Report) {
        if value.is_object() {
            self.judge.validate(value, cx, out);
            if self.rejects_copies {
                copied(value, cx, self.example, out);
            }
        } else {
            let violation = Violation::new(JsonPath::root(), "json", Stage::Read);
            out.push(violation.with_expected("one JSON object").with_found(type_name(value)));
        }
    }
}

/// Rejects an answer that a very small model copied from the prompt: the contract's own word in place of every text, or
/// the example's text in answer to a question about something else.
fn copied(value: &Value, cx: &Context<'_>, example: Option<Example>, out: &mut Report) {
    /// The contract's word in place of every text.
    const WORD: &str = "string";

    let text = |value: &Value, pointer: &str| -> String {
        value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().trim().to_owned()
    };
    let answer = text(value, "/answer/text");
    // The word alone may be a real answer; a second occurrence in another place shows that it was copied.
    let is_word = |value: &Value| value.as_str().is_some_and(|text| text.trim() == WORD);
    let elsewhere = ["/task/user_intent", "/debug/model", "/quality/assumptions/0", "/quality/risks/0"];
    let of_contract =
        answer == WORD && elsewhere.iter().any(|pointer| value.pointer(pointer).is_some_and(is_word));
    let source = cx.source.to_lowercase();
    let of_example = example.is_some_and(|example| {
        let example_answer: Value = serde_json::from_str(example.answer).unwrap_or_default();
        answer.starts_with(&text(&example_answer, "/answer/text"))
            && !example.subjects.iter().any(|subject| source.contains(subject))
    });
    if of_contract || of_example {
        let found = if of_contract { "the contract's own word" } else { "the example's answer" };
        let path = JsonPath::root().key("answer").key("text");
        let violation = Violation::new(path, "placeholder", Stage::Check);
        out.push(violation.with_expected("an answer to the question").with_found(found));
    }
}

impl Structure for TopLevel {
    /// Answers are always requested whole, so no part needs a schema.
    fn subschema(&self, _: &JsonPath, _: &Value) -> Option<Value> {
        None
    }
}
