//! Schema enforcement violations: answers that prove that the server ignored a schema which it promised to enforce.
//!
//! An answer is proof only if the promise rules it out and the model ended it by itself. Answers that reached a limit or
//! were stopped or closed from outside prove nothing, and neither does text around the document.

mod structure;

use std::borrow::Cow;

use formwork_json::{Candidate, EditKind, ReadError};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::violation::write_place;
use crate::{Call, Completion, Enforcement, Finish, Stage, Violation};
use structure::{BrokenKeyword, broken_keyword, is_structural};

/// The proof that a server did not enforce a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::run) enum Proof {
    /// The answer is prose, or a document in prose. A model that declines to answer may write it past the enforcement.
    Prose(String),
    /// The document breaks a keyword that enforcement keeps.
    Impossible(String),
}

/// Returns whether the provider promised that the whole answer, from its first to its last byte, follows the schema.
pub(in crate::run) fn is_armed(call: &Call, completion: &Completion) -> bool {
    call.enforcement() == Enforcement::Schema
        && call.schema().is_some()
        && completion.finish == Finish::Stop
        && completion.closed_at.is_none()
}

/// Returns the proof in an answer that could not be read, if any.
pub(in crate::run) fn unread(completion: &Completion, error: &ReadError) -> Option<Proof> {
    match error {
        ReadError::NotFound | ReadError::Syntax { .. } => not_json(&completion.text),
        // An empty answer, an answer of reasoning alone and a document that is too large do not violate the schema.
        _ => None,
    }
}

/// Returns the proof in an answer that was read, if any. `value` is the candidate's value, unless it was moved.
pub(in crate::run) fn read(
    call: &Call,
    completion: &Completion,
    candidate: &Candidate,
    value: Option<&Value>,
    violations: &[Violation],
) -> Option<Proof> {
    if !candidate.is_exact() {
        let around =
            |kind| matches!(kind, EditKind::Reasoning | EditKind::Escaped | EditKind::ControlCharacter);
        let doubtful = candidate.all_edits().iter().any(|edit| around(edit.kind));
        return if doubtful { None } else { not_json(&completion.text) };
    }
    if candidate.rounded.iter().any(|number| number.kept().is_none()) {
        // Numbers beyond the range of a double are valid, and have no value here.
        return None;
    }
    if !violations.iter().any(|found| found.stage == Stage::Schema && is_structural(&found.rule)) {
        return None;
    }
    let value = match value {
        Some(value) => Cow::Borrowed(value),
        None => Cow::Owned(serde_json::from_str(candidate.span.of(&completion.text)).ok()?),
    };
    let BrokenKeyword { path, keyword } = broken_keyword(&value, &call.lowered)?;
    let mut proof = format!("the answer breaks `{keyword}` at ");
    write_place(&path, &mut proof);
    Some(Proof::Impossible(proof))
}

/// Returns a message if a text neither begins with a JSON document nor is the beginning of one.
///
/// Text after a document is ignored, because some servers leave their end-of-turn marks there. A text that begins with an
/// angle bracket is such a mark, or an HTML page.
fn not_json(text: &str) -> Option<Proof> {
    let text = text.trim_start_matches('\u{FEFF}').trim_start();
    if text.starts_with('<') {
        return None;
    }
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let error = documents.next()?.err().filter(|error| !error.is_eof())?;
    let line = text.split('\n').nth(error.line().checked_sub(1)?)?;
    let near = error.column().saturating_sub(1);
    let near = line.as_bytes().get(near.saturating_sub(1)..line.len().min(near + 2)).unwrap_or_default();
    // Decoders and readers disagree about escapes and raw control characters, and a line ends in such a character.
    let in_doubt = near.iter().any(|byte| *byte < 0x20 || *byte == b'\\') || error.column() == 0;
    if in_doubt { None } else { Some(Proof::Prose("the answer is not JSON".to_owned())) }
}
