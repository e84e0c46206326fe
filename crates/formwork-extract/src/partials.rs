//! The document of an answer while it arrives.

use std::sync::Arc;

use formwork_core::{Context, Fit, Lowered, Plan, Report, lift};
use formwork_json::{Incremental, Progress, read};
use serde_json::Value;

/// The document of one answer as far as it has arrived, in the original schema's form.
///
/// Each partial value is a view of what the reader would read if the answer ended here. As long as the text is prose and
/// one strict JSON document, each byte is read once. Text of any other kind (other quotes, comments, a second document)
/// is read again by the tolerant reader as it grows.
pub(crate) struct Partials {
    plan: Arc<Plan>,
    lowered: Arc<Lowered>,
    text: String,
    /// `None` once the text needs the tolerant reader.
    strict: Option<Incremental>,
    /// How many bytes the text had when a value was last made of it.
    shown: usize,
    has_shown: bool,
    /// The last value of the tolerant reader.
    last: Option<Value>,
}

/// A value costs as much as the document is long. It is made only when the text has grown by a 256th, so that all values
/// together stay linear in the text.
const STRICT_STEPS: usize = 256;

/// Reading all of the text again costs more than a copy of the document.
const TOLERANT_STEPS: usize = 64;

impl Partials {
    pub(crate) fn new(plan: Arc<Plan>, lowered: Arc<Lowered>) -> Self {
        Self {
            plan,
            lowered,
            text: String::new(),
            strict: Some(Incremental::new()),
            shown: 0,
            has_shown: false,
            last: None,
        }
    }

    /// Takes more text; the document after it, if that is worth showing.
    pub(crate) fn push(&mut self, text: &str) -> Option<Value> {
        self.text.push_str(text);
        if let Some(reader) = &mut self.strict {
            let was_complete = matches!(reader.progress(), Progress::Complete { .. });
            match reader.push(text, |_| {}) {
                Progress::Before => return None,
                Progress::Inside => {
                    return if self.is_due(STRICT_STEPS) { self.strict_value() } else { None };
                }
                // Only another document, or the end of reasoning, can change what is read.
                Progress::Complete { end } if !self.text.get(end..)?.contains(['{', '[', '<']) => {
                    return if was_complete { None } else { self.strict_value() };
                }
                Progress::Complete { .. } | Progress::Stuck { .. } => self.turn_tolerant(),
            }
        }
        if self.is_due(TOLERANT_STEPS) { self.tolerant_value(false) } else { None }
    }

    /// Takes the end of the answer. Returns the document as it is read then, unless it was shown; if none was shown, one
    /// of another type than the schema asks for too.
    pub(crate) fn end(mut self) -> Option<Value> {
        let progress = self.strict.as_ref().map(Incremental::progress);
        if self.has_shown && matches!(progress, Some(Progress::Complete { .. })) {
            return None;
        }
        self.turn_tolerant();
        self.tolerant_value(!self.has_shown)
    }

    fn turn_tolerant(&mut self) {
        if let Some(reader) = self.strict.take().filter(|_| self.has_shown) {
            self.last = reader.snapshot().map(|value| self.lifted(value));
        }
    }

    fn is_due(&self, steps: usize) -> bool {
        self.text.len() - self.shown > self.shown / steps
    }

    fn strict_value(&mut self) -> Option<Value> {
        self.shown = self.text.len();
        let value = self.lifted(self.strict.as_ref()?.snapshot()?);
        let value = Some(value).filter(|value| self.plan.contract().allows_type_of(value));
        self.has_shown |= value.is_some();
        value
    }

    /// The candidate that fits the schema best, of the type that it asks for unless `any_type`; nothing if the last one
    /// was the same.
    fn tolerant_value(&mut self, any_type: bool) -> Option<Value> {
        self.shown = self.text.len();
        let contract = self.plan.contract();
        let candidates = read(&self.text, self.plan.level()).ok()?.into_candidates();
        let mut fitting: Vec<_> = candidates
            .into_iter()
            .map(|mut candidate| {
                let value = self.lifted(std::mem::take(&mut candidate.value));
                (candidate, value)
            })
            .filter(|(_, value)| any_type || contract.allows_type_of(value))
            .collect();
        let value = if fitting.len() < 2 {
            fitting.pop()?.1
        } else {
            let ranked = fitting.into_iter().rev().map(|(candidate, value)| {
                let mut report = Report::default();
                contract.structure().validate(&value, &Context::EMPTY, &mut report);
                (Fit::new(contract.schema().document(), &candidate, &value, report.violations()), value)
            });
            // Of equals the last one is taken, which is the reader's best guess.
            ranked.max_by_key(|(fit, _)| *fit)?.1
        };
        if self.last.as_ref() == Some(&value) {
            return None;
        }
        self.has_shown = true;
        self.last = Some(value.clone());
        Some(value)
    }

    fn lifted(&self, value: Value) -> Value {
        lift(value, &self.lowered).0
    }
}
