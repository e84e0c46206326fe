//! Whether an answer proves that the server ignored the schema that it had promised to enforce.
//!
//! Only what the promise makes impossible is proof, and only in an answer that the model ended itself: what ran into a
//! limit, what was stopped or closed from outside, and what was put into the text around the answer proves nothing.

mod structure;

use std::borrow::Cow;

use formwork_json::{Candidate, EditKind, ReadError};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::violation::write_place;
use crate::{Call, Completion, Enforcement, Finish, Stage, Violation};
use structure::{BrokenKeyword, broken_keyword, is_structural};

/// Whether this answer was promised to keep to the schema that was sent, from its first byte to its last.
pub(in crate::run) fn is_armed(call: &Call, completion: &Completion) -> bool {
    call.enforcement() == Enforcement::Schema
        && call.schema().is_some()
        && completion.finish == Finish::Stop
        && completion.closed_at.is_none()
}

/// The proof in an answer that could not be read.
pub(in crate::run) fn unread(completion: &Completion, error: &ReadError) -> Option<String> {
    match error {
        ReadError::NotFound | ReadError::Syntax { .. } => not_json(&completion.text),
        // Nothing, reasoning alone, and what is only too large: none of it is an answer that breaks the schema.
        _ => None,
    }
}

/// The proof in an answer that was read. `value` is the candidate's own value where it is still there.
pub(in crate::run) fn read(
    call: &Call,
    completion: &Completion,
    candidate: &Candidate,
    value: Option<&Value>,
    violations: &[Violation],
) -> Option<String> {
    if !candidate.is_exact() {
        let around =
            |kind| matches!(kind, EditKind::Reasoning | EditKind::Escaped | EditKind::ControlCharacter);
        let doubtful = candidate.all_edits().iter().any(|edit| around(edit.kind));
        return if doubtful { None } else { not_json(&completion.text) };
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
    Some(proof)
}

/// Says so if a text neither begins with a JSON document nor could be the beginning of one.
///
/// Text after a document is let be: servers are known to leave their own end marks there. A text that begins with
/// an angle bracket is a mark of another kind, or a web page.
fn not_json(text: &str) -> Option<String> {
    let text = text.trim_start_matches('\u{FEFF}').trim_start();
    if text.starts_with('<') {
        return None;
    }
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let error = documents.next()?.err().filter(|error| !error.is_eof())?;
    let line = text.split('\n').nth(error.line().checked_sub(1)?)?;
    let near = error.column().saturating_sub(1);
    let near = line.as_bytes().get(near.saturating_sub(1)..line.len().min(near + 2)).unwrap_or_default();
    // Escapes and raw control characters are where decoders and readers do differ. A line ends in one, too.
    let in_doubt = near.iter().any(|byte| *byte < 0x20 || *byte == b'\\') || error.column() == 0;
    if in_doubt { None } else { Some("the answer is not JSON".to_owned()) }
}
