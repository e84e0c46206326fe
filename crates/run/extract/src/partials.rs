//! Partial documents of an answer that is still arriving.

use std::sync::Arc;

use formwork_core::{Context, Fit, Lowered, Plan, Report, lift};
use formwork_json::{Level, Lexer, Position, Token, read};
use serde_json::Value;

/// The partial document of one answer, in the form of the original schema.
///
/// Each partial value is the value that the reader would return if the answer ended here. Each byte is read once as long as
/// the text consists of prose and one strict JSON document. For all other text (other quotes, comments, a second
/// document), the tolerant reader reads the text again as it grows.
pub(crate) struct Partials {
    plan: Arc<Plan>,
    lowered: Arc<Lowered>,
    text: String,
    /// The lexer; `None` if the text needs the tolerant reader.
    lexer: Option<Lexer>,
    /// The length of the text in bytes at the last partial value.
    value_at: usize,
    has_value: bool,
    /// The last value of the tolerant reader.
    last: Option<Value>,
}

/// The cost of a value is linear in the document. A value is created only when the text has grown by 1/256, so that all values
/// together cost linear time.
const STRICT_STEPS: usize = 256;

/// The same for the tolerant reader: reading the whole text costs more than copying the document.
const TOLERANT_STEPS: usize = 64;

impl Partials {
    pub(crate) fn new(plan: Arc<Plan>, lowered: Arc<Lowered>) -> Self {
        Self {
            plan,
            lowered,
            text: String::new(),
            lexer: Some(Lexer::new(Level::Clean)),
            value_at: 0,
            has_value: false,
            last: None,
        }
    }

    /// Adds text. Returns the new partial document, if one is due.
    pub(crate) fn push(&mut self, text: &str) -> Option<Value> {
        self.text.push_str(text);
        if let Some(lexer) = &mut self.lexer {
            let was_complete = lexer.document().is_some();
            let mut is_repaired = false;
            lexer.push(text.as_bytes(), |event| {
                use formwork_json::EditKind::{ByteOrderMark, Reasoning};
                is_repaired |=
                    matches!(event.token, Token::Edit(kind) if !matches!(kind, ByteOrderMark | Reasoning));
            });
            match (lexer.document(), lexer.position()) {
                _ if is_repaired => self.turn_tolerant(),
                // After a complete document, only another document or the end of reasoning changes the result.
                (Some(document), _) if !self.text.get(document.end..)?.contains(['{', '[', '<']) => {
                    return if was_complete { None } else { self.strict_value() };
                }
                (Some(_), _) | (None, Position::Stuck(_)) => self.turn_tolerant(),
                (None, Position::Outside) => return None,
                (None, _) => return if self.is_due(STRICT_STEPS) { self.strict_value() } else { None },
            }
        }
        if self.is_due(TOLERANT_STEPS) { self.tolerant_value(false) } else { None }
    }

    /// Ends the answer. Returns the final document, unless it was returned before. If no document was returned before, the
    /// type of its root does not have to match the schema.
    pub(crate) fn end(mut self) -> Option<Value> {
        if self.has_value && self.lexer.as_ref().is_some_and(|lexer| lexer.document().is_some()) {
            return None;
        }
        self.turn_tolerant();
        self.tolerant_value(!self.has_value)
    }

    /// Leaves the rest of the text to the tolerant reader, which goes on from the last value that was returned.
    fn turn_tolerant(&mut self) {
        if self.lexer.take().is_some() && self.has_value {
            let text = self.text.get(..self.value_at).unwrap_or_default();
            let mut lexer = Lexer::new(Level::Clean);
            lexer.push(text.as_bytes(), |_| {});
            self.last = lexer.snapshot(text).map(|value| self.lifted(value));
        }
    }

    fn is_due(&self, steps: usize) -> bool {
        self.text.len() - self.value_at > self.value_at / steps
    }

    fn strict_value(&mut self) -> Option<Value> {
        self.value_at = self.text.len();
        let value = self.lifted(self.lexer.as_ref()?.snapshot(&self.text)?);
        let value = Some(value).filter(|value| self.plan.contract().allows_type_of(value));
        self.has_value |= value.is_some();
        value
    }

    /// Returns the candidate that fits the schema best, unless it equals the last one. The type of its root must match the
    /// schema, unless `any_type`.
    fn tolerant_value(&mut self, any_type: bool) -> Option<Value> {
        self.value_at = self.text.len();
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
            // `max_by_key` returns the last of equal candidates, which the reader ranks highest.
            ranked.max_by_key(|(fit, _)| *fit)?.1
        };
        if self.last.as_ref() == Some(&value) {
            return None;
        }
        self.has_value = true;
        self.last = Some(value.clone());
        Some(value)
    }

    fn lifted(&self, value: Value) -> Value {
        lift(value, &self.lowered).0
    }
}
