//! The documents that were not accepted yet, and what is wrong with each.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::closed::Closed;
use crate::contract::Decoded;
use crate::{Attempt, Best, Provenance, Violation};

/// A document that is not accepted yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Draft {
    /// It as JSON text: what patches are spliced into.
    pub(super) text: String,
    pub(super) value: Value,
    pub(super) provenance: Vec<Provenance>,
    pub(super) warnings: Vec<Violation>,
    /// The values that are incomplete.
    pub(super) closed: Closed,
    /// The entry of the ledger that says what is wrong with it.
    pub(super) entry: usize,
    /// The value as the contract's type, if nothing is wrong with it.
    #[serde(skip)]
    pub(super) decoded: Decoded,
}

/// The draft in hand and the best one before it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Drafts {
    /// The text of the last answer: with `wrong`, all that a re-ask may know.
    previous: String,
    /// The entry of the ledger that says what was wrong with it.
    wrong: Option<usize>,
    current: Option<Draft>,
    /// Of the drafts before, the one that came nearest to the contract.
    best: Option<Draft>,
}

impl Drafts {
    pub(super) fn previous(&self) -> &str {
        &self.previous
    }

    pub(super) const fn current(&self) -> Option<&Draft> {
        self.current.as_ref()
    }

    /// Returns what was wrong with the last answer.
    pub(super) fn violations<'l>(&self, ledger: &'l [Attempt]) -> &'l [Violation] {
        self.wrong.and_then(|entry| found_at(ledger, entry)).unwrap_or_default()
    }

    /// The entry of the ledger that says what was wrong with the last answer.
    pub(super) fn wrong<'l>(&self, ledger: &'l [Attempt]) -> Option<&'l Attempt> {
        ledger.get(self.wrong?)
    }

    /// Takes a new draft in hand; the one before is kept if it came nearest so far.
    pub(super) fn replace(&mut self, draft: Draft, ledger: &[Attempt]) {
        self.retire(ledger);
        self.current = Some(draft);
    }

    /// Notes the text of an answer that was not accepted, and the entry of the ledger that says why; without an entry it is the
    /// one before.
    pub(super) fn reject(&mut self, text: String, entry: Option<usize>) {
        self.previous = text;
        self.wrong = entry.or(self.wrong);
    }

    /// Notes that the draft in hand was not accepted.
    pub(super) fn reject_current(&mut self, entry: Option<usize>) {
        let text = self.current.as_ref().map(|draft| draft.text.clone()).unwrap_or_default();
        self.reject(text, entry);
    }

    /// Adds what was found in the draft in hand that does not reject it.
    pub(super) fn warn(&mut self, warnings: Vec<Violation>) {
        if let Some(draft) = &mut self.current {
            draft.warnings.extend(warnings);
        }
    }

    /// Hands the draft out that was accepted.
    pub(super) const fn accept(&mut self) -> Option<Draft> {
        self.current.take()
    }

    /// Hands the draft out that came nearest, the one in hand included.
    pub(super) fn nearest(&mut self, ledger: &[Attempt]) -> Option<Best> {
        self.retire(ledger);
        let draft = self.best.take()?;
        let violations = found_at(ledger, draft.entry)?.to_vec();
        Some(Best { value: draft.value, violations })
    }

    fn retire(&mut self, ledger: &[Attempt]) {
        let Some(draft) = self.current.take() else { return };
        let found = |draft: &Draft| found_at(ledger, draft.entry).map(<[_]>::len);
        // One that nothing was found wrong with was not rejected, only left behind.
        let Some(count) = found(&draft) else { return };
        if self.best.as_ref().and_then(found).is_none_or(|least| count <= least) {
            self.best = Some(draft);
        }
    }
}

/// Returns what an entry of the ledger says was wrong; `None` if nothing was.
pub(super) fn found_at(ledger: &[Attempt], entry: usize) -> Option<&[Violation]> {
    Some(ledger.get(entry)?.verdict.failure()?.violations())
}
