//! The documents that are not accepted yet, with their violations.

use std::sync::Arc;

use formwork_json::{JsonPath, Rounded};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::closed::Closed;
use crate::judgement::Decoded;
use crate::{Best, CallRecord, Failure, Provenance, Violation, Warning};

/// A document that is not accepted yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Draft {
    /// The JSON text of the document, which patches are spliced into.
    pub(super) text: Arc<str>,
    /// Shared with the steps for validators and the fallback.
    pub(super) value: Arc<Value>,
    pub(super) provenance: Vec<Provenance>,
    pub(super) warnings: Vec<Warning>,
    /// The numbers that the value does not hold exactly.
    #[serde(default)]
    pub(super) rounded: Vec<Rounded>,
    /// The incomplete values.
    pub(super) closed: Closed,
    /// The index of the ledger entry with its violations.
    pub(super) entry: usize,
    /// The value as the contract's type, if nothing is wrong with it.
    #[serde(skip)]
    pub(super) decoded: Decoded,
    /// If the answer ended before its document did: the paths of the values that would complete it.
    #[serde(default)]
    pub(super) rest: Vec<JsonPath>,
    /// The text of the answer up to its last value that has ended, if the answer has the form of the document.
    pub(super) prefix: Option<Arc<str>>,
    /// The violations of the values that an unfinished document has.
    #[serde(default)]
    pub(super) wrong: Vec<Violation>,
}

/// The current draft and the best one before it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Drafts {
    /// The text of the last answer.
    previous: Arc<str>,
    /// The index of the ledger entry with the violations of the last answer.
    wrong: Option<usize>,
    current: Option<Draft>,
    /// The earlier draft that came nearest to the contract.
    best: Option<Draft>,
}

impl Drafts {
    pub(super) const fn previous(&self) -> &Arc<str> {
        &self.previous
    }

    pub(super) const fn current(&self) -> Option<&Draft> {
        self.current.as_ref()
    }

    /// Returns the violations of the last answer.
    pub(super) fn violations<'l>(&self, ledger: &'l [CallRecord]) -> &'l [Violation] {
        self.failure(ledger).map(Failure::violations).unwrap_or_default()
    }

    /// Returns the failure of the last answer, with its violations.
    pub(super) fn failure<'l>(&self, ledger: &'l [CallRecord]) -> Option<&'l Failure> {
        self.wrong(ledger)?.verdict.failure()
    }

    /// Returns the ledger entry with the violations of the last answer.
    pub(super) fn wrong<'l>(&self, ledger: &'l [CallRecord]) -> Option<&'l CallRecord> {
        ledger.get(self.wrong?)
    }

    /// Replaces the current draft; the one before is kept if it came nearest so far.
    pub(super) fn replace(&mut self, draft: Draft, ledger: &[CallRecord]) {
        self.retire(ledger);
        self.current = Some(draft);
    }

    /// Records the text of an answer that was not accepted, and the index of the ledger entry with its violations; without
    /// an index, the last entry stays.
    pub(super) fn reject(&mut self, text: Arc<str>, entry: Option<usize>) {
        self.previous = text;
        self.wrong = entry.or(self.wrong);
    }

    /// Returns whether a draft comes from the last answer that was rejected.
    pub(super) fn is_rejected(&self, draft: &Draft) -> bool {
        self.wrong == Some(draft.entry)
    }

    /// Records that the current draft was not accepted.
    pub(super) fn reject_current(&mut self, entry: Option<usize>) {
        let text = self.current.as_ref().map(|draft| Arc::clone(&draft.text)).unwrap_or_default();
        self.reject(text, entry);
    }

    /// Adds warnings to the current draft.
    pub(super) fn warn(&mut self, warnings: impl IntoIterator<Item = Warning>) {
        if let Some(draft) = &mut self.current {
            draft.warnings.extend(warnings);
        }
    }

    /// Takes the current draft, which is accepted.
    pub(super) const fn accept(&mut self) -> Option<Draft> {
        self.current.take()
    }

    /// Takes the draft that came nearest to the contract, the current one included.
    pub(super) fn nearest(&mut self, ledger: &[CallRecord]) -> Option<Best> {
        self.retire(ledger);
        let draft = self.best.take()?;
        let violations = failure_at(ledger, draft.entry)?.violations().to_vec();
        Some(Best { value: Arc::unwrap_or_clone(draft.value), violations })
    }

    fn retire(&mut self, ledger: &[CallRecord]) {
        let Some(draft) = self.current.take() else { return };
        let found = |draft: &Draft| failure_at(ledger, draft.entry).map(Failure::total);
        // A draft without violations was not rejected; a better draft replaced it.
        let Some(count) = found(&draft) else { return };
        let is_beginning =
            |best: &Draft| best.entry == draft.entry && best.rest.is_empty() && !draft.rest.is_empty();
        if self.best.as_ref().is_some_and(is_beginning) {
            return;
        }
        if self.best.as_ref().and_then(found).is_none_or(|fewest| count <= fewest) {
            self.best = Some(draft);
        }
    }
}

/// Returns the failure of a ledger entry; `None` for a call that was accepted.
fn failure_at(ledger: &[CallRecord], entry: usize) -> Option<&Failure> {
    ledger.get(entry)?.verdict.failure()
}
