//! The warnings of an answer that was read and judged.

use std::collections::BTreeMap;

use formwork_json::{Candidate, Edit, EditKind, Level};

use super::closed::Closed;
use crate::log_prob::LogProbs;
use crate::violation::{MAX_NAME, cut};
use crate::warning::MAX_OF_A_KIND;
use crate::{Completion, Fit, JsonPath, Warning, WarningKind};

/// A document of an answer with its rank.
pub(super) struct Ranked {
    pub(super) fit: Fit,
    pub(super) starts_at: usize,
    /// Whether a reader may take it for the answer: it satisfies the contract, or it is a document of the required type without
    /// doubtful repairs.
    pub(super) is_plausible: bool,
}

impl Ranked {
    pub(super) fn new(fit: Fit, candidate: &Candidate) -> Self {
        let is_doubtful = candidate.edits.iter().any(|edit| edit.kind.level() == Level::Lenient);
        let is_plausible =
            !candidate.is_sequence() && (fit.is_valid() || fit.has_root_type() && !is_doubtful);
        Self { fit, starts_at: candidate.span.start, is_plausible }
    }
}

/// Returns the warning that an answer holds several documents, one of which was chosen; `None` if the others are asides.
pub(super) fn of_documents(chosen: &Candidate, fit: &Fit, all: &[Ranked]) -> Option<Warning> {
    let is_other = |other: &&Ranked| other.is_plausible && !chosen.span.range().contains(&other.starts_at);
    let others: Vec<&Ranked> = all.iter().filter(is_other).collect();
    let next = others.iter().max_by_key(|other| other.fit)?;
    let message = format!(
        "the answer holds {} documents; the one at byte {} was used, because {}",
        others.len() + 1,
        chosen.span.start,
        fit.reason_against(&next.fit)
    );
    Some(Warning::new(WarningKind::Documents, message))
}

/// Returns the warnings of reading one document, and of the call that brought it.
pub(super) fn of_answer(completion: &Completion, within: &[&Edit]) -> Vec<Warning> {
    let (doubled, repairs): (Vec<&Edit>, Vec<&Edit>) = within
        .iter()
        .filter(|edit| edit.kind != EditKind::Closed)
        .partition(|edit| edit.kind == EditKind::DuplicateKey);
    let doubled = doubled.iter().take(MAX_OF_A_KIND).map(|edit| {
        let name = cut(&edit.with, MAX_NAME);
        let message = format!(
            "the name `{name}` occurs twice in one object; the last value was used, not the one at byte {}",
            edit.span.start
        );
        Warning::new(WarningKind::DuplicateKey, message)
    });
    let notes = completion.notes.iter().map(|note| Warning::new(WarningKind::Note, note));
    let restrained = completion
        .restrained
        .then(|| Warning::new(WarningKind::Restrained, "values were ended that the schema allows to go on"));
    let log_probs = LogProbs(completion.log_probs.as_slice().into());
    let unlike = !completion.log_probs.is_empty() && log_probs.aligned(&completion.text).is_none();
    let unlike = unlike.then(|| {
        Warning::new(
            WarningKind::Note,
            "the tokens of the log probabilities are not those of the answer: they are not used",
        )
    });
    doubled.chain(of_repairs(&repairs)).chain(restrained).chain(notes).chain(unlike).collect()
}

/// Returns one warning for all repairs, with the number of each kind.
fn of_repairs(edits: &[&Edit]) -> Option<Warning> {
    let mut kinds: BTreeMap<EditKind, usize> = BTreeMap::new();
    edits.iter().for_each(|edit| *kinds.entry(edit.kind).or_default() += 1);
    let listed: Vec<String> = kinds
        .iter()
        .map(|(kind, times)| if *times == 1 { kind.to_string() } else { format!("{kind} ({times} times)") })
        .collect();
    let message = format!("the text was repaired to read it: {}", listed.join(", "));
    (!listed.is_empty()).then(|| Warning::new(WarningKind::Repaired, message))
}

/// Returns the warnings of an accepted value that is incomplete.
pub(super) fn of_incomplete(closed: &Closed) -> impl Iterator<Item = Warning> {
    let warning = |path: &JsonPath| {
        let message =
            "the answer ended before this value was complete; the rest was not written by the model";
        Warning::new(WarningKind::Incomplete, message).at(path.clone())
    };
    closed.paths().take(MAX_OF_A_KIND).map(warning)
}
