//! The contract's hand-written validator, without a schema library.
//!
//! It reports all violations at once, in the words of the compiled schema, so that both give the same messages.

use std::sync::Arc;

use formwork_core::keywords::type_name;
use formwork_core::{Context, JsonPath, Report, Stage, Structure, Validator, Violation};
use formwork_schema::Compiled;
use serde_json::{Map, Value};

use crate::Example;
use crate::TaskKind;

/// Validates the contract's envelope.
pub(crate) struct Envelope {
    version: &'static str,
    data: Data,
}

/// The validator of `answer.data`.
pub(crate) enum Data {
    /// `data` is not allowed.
    None,
    /// The compiled schema of `data`.
    Compiled(Arc<Compiled>),
}

impl Envelope {
    pub(crate) const fn new(version: &'static str, data: Data) -> Self {
        Self { version, data }
    }
}

impl Validator for Envelope {
    fn validate(&self, value: &Value, cx: &Context<'_>, out: &mut Report) {
        let root = JsonPath::root();
        let Some(members) = object(value, &root, out) else { return };
        let mut whole = Members::new(members, &root, out);
        if let Some((task, at)) = whole.take("task") {
            self.task(task, &at, whole.out);
        }
        if let Some((answer, at)) = whole.take("answer") {
            self.answer(answer, &at, cx, whole.out);
        }
        if let Some((quality, at)) = whole.take("quality") {
            Self::quality(quality, &at, whole.out);
        }
        if let Some((debug, at)) = whole.take("debug") {
            self.debug(debug, &at, whole.out);
        }
        whole.close();
    }
}

impl Envelope {
    fn task(&self, value: &Value, at: &JsonPath, out: &mut Report) {
        let Some(members) = object(value, at, out) else { return };
        let mut task = Members::new(members, at, out);
        if let Some((kind, at)) = task.take("type")
            && !kind.as_str().is_some_and(|kind| TaskKind::NAMES.contains(&kind))
        {
            let names = TaskKind::NAMES.map(|name| format!("\"{name}\""));
            let [first @ .., last] = &names;
            let violation = wrong(&at, "enum").with_expected(format!("{} or {last}", first.join(", ")));
            task.out.push(violation.with_found(quoted(kind)));
        }
        if let Some((intent, at)) = task.take("user_intent") {
            string(intent, &at, task.out);
        }
        task.close();
    }

    fn answer(&self, value: &Value, at: &JsonPath, cx: &Context<'_>, out: &mut Report) {
        let Some(members) = object(value, at, out) else { return };
        let mut answer = Members::new(members, at, out);
        if let Some((text, at)) = answer.take("text") {
            string(text, &at, answer.out);
        }
        if let Data::Compiled(schema) = &self.data
            && let Some((data, at)) = answer.take("data")
        {
            below(schema.as_ref(), data, &at, cx, answer.out);
        }
        answer.close();
    }

    fn quality(value: &Value, at: &JsonPath, out: &mut Report) {
        let Some(members) = object(value, at, out) else { return };
        let mut quality = Members::new(members, at, out);
        if let Some((confidence, at)) = quality.take("confidence") {
            match confidence.as_f64() {
                None => quality.out.push(mismatch(confidence, &at, "number")),
                Some(number) => {
                    if number < 0.0 {
                        let violation = wrong(&at, "minimum").with_expected("at least 0.0");
                        quality.out.push(violation.with_found(quoted(confidence)));
                    }
                    if number > 1.0 {
                        let violation = wrong(&at, "maximum").with_expected("at most 1.0");
                        quality.out.push(violation.with_found(quoted(confidence)));
                    }
                }
            }
        }
        for name in ["assumptions", "risks"] {
            let Some((list, at)) = quality.take(name) else { continue };
            match list.as_array() {
                None => quality.out.push(mismatch(list, &at, "array")),
                Some(items) => {
                    for (index, item) in items.iter().enumerate() {
                        string(item, &at.index(index), quality.out);
                    }
                }
            }
        }
        quality.close();
    }

    fn debug(&self, value: &Value, at: &JsonPath, out: &mut Report) {
        let Some(members) = object(value, at, out) else { return };
        let mut debug = Members::new(members, at, out);
        if let Some((version, at)) = debug.take("schema_version")
            && version.as_str() != Some(self.version)
        {
            let violation = wrong(&at, "const").with_expected(format!("\"{}\"", self.version));
            debug.out.push(violation.with_found(quoted(version)));
        }
        if let Some((model, at)) = debug.take("model") {
            string(model, &at, debug.out);
        }
        debug.close();
    }
}

/// The members of a closed object, all of them required.
struct Members<'v, 'r> {
    members: &'v Map<String, Value>,
    at: &'r JsonPath,
    known: Vec<&'static str>,
    out: &'r mut Report,
}

impl<'v, 'r> Members<'v, 'r> {
    const fn new(members: &'v Map<String, Value>, at: &'r JsonPath, out: &'r mut Report) -> Self {
        Self { members, at, known: Vec::new(), out }
    }

    /// Returns a member with its path; reports a violation if it is missing.
    fn take(&mut self, name: &'static str) -> Option<(&'v Value, JsonPath)> {
        self.known.push(name);
        let at = self.at.key(name);
        let member = self.members.get(name);
        if member.is_none() {
            self.out.push(wrong(&at, "required"));
        }
        member.map(|member| (member, at))
    }

    /// Reports every member that was not taken as unknown.
    fn close(self) {
        for name in self.members.keys().filter(|name| !self.known.contains(&name.as_str())) {
            self.out.push(wrong(&self.at.key(name.as_str()), "additionalProperties"));
        }
    }
}

/// Validates a part of the document with a validator of its own.
pub(crate) fn below(
    validator: &dyn Validator,
    part: &Value,
    at: &JsonPath,
    cx: &Context<'_>,
    out: &mut Report,
) {
    let mut report = Report::default();
    validator.validate(part, cx, &mut report);
    let moved = report.violations().iter().cloned().map(|violation| {
        let path = at.segments().iter().chain(violation.path.segments()).cloned().collect();
        Violation { path, ..violation }
    });
    out.extend(moved);
}

fn wrong(at: &JsonPath, rule: &str) -> Violation {
    Violation::new(at.clone(), rule, Stage::Schema)
}

fn object<'v>(value: &'v Value, at: &JsonPath, out: &mut Report) -> Option<&'v Map<String, Value>> {
    if !value.is_object() {
        out.push(mismatch(value, at, "object"));
    }
    value.as_object()
}

fn string(value: &Value, at: &JsonPath, out: &mut Report) {
    if !value.is_string() {
        out.push(mismatch(value, at, "string"));
    }
}

fn mismatch(value: &Value, at: &JsonPath, expected: &str) -> Violation {
    wrong(at, "type").with_expected(expected).with_found(type_name(value))
}

/// Returns a value for a message: scalars as JSON, containers as their type.
fn quoted(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => type_name(value).to_owned(),
        scalar => scalar.to_string(),
    }
}

/// Validates by the compiled schema instead of the hand-written validator.
pub(crate) struct BySchema(pub(crate) Arc<Compiled>);

impl Validator for BySchema {
    fn validate(&self, value: &Value, cx: &Context<'_>, out: &mut Report) {
        self.0.validate(value, cx, out);
    }
}

/// The contract's structure: JSON that is not an object counts as invalid JSON; the validator checks objects.
pub(crate) struct TopLevel {
    pub(crate) judge: Arc<dyn Validator>,
    /// The example in the prompt.
    pub(crate) example: Option<Example>,
}

impl Validator for TopLevel {
    fn validate(&self, value: &Value, cx: &Context<'_>, out: &mut Report) {
        if value.is_object() {
            self.judge.validate(value, cx, out);
            copied(value, cx, self.example, out);
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
