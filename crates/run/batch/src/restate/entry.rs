//! Entries of the journal of a row: the result of one step each.

use formwork_core::{CallRecord, ErrorKind, Run, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::message::RunEnd;
use crate::row::RunError;

/// The maximum size of an entry in bytes (4 MiB). Restate keeps every entry in memory while it writes it.
pub(super) const MAX_ENTRY: usize = 4 << 20;

/// The number of characters of an answer that are kept if its entry is too large.
const BEGINNING: usize = 1000;

/// The result of one step of a run: a call and its outcome, or the note before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entry {
    /// An execution of the row is about to make a call. The newest entry was another one's, or there was none.
    Begun { by: String },
    /// The run continues: the run without its input and without the calls that earlier entries have. The execution that made the call
    /// makes the next one without a note.
    Going {
        run: Value,
        stored: Time,
        #[serde(default)]
        by: String,
    },
    /// The run has ended.
    Ended(RunEnd),
}

impl Entry {
    /// Returns the entry of a step that took a run from one state to another.
    pub(super) fn going(before: &Run, after: &Run, stored: Time, by: String) -> Self {
        let mut run = serde_json::to_value(after).unwrap_or_default();
        if let Some(run) = run.as_object_mut() {
            run.shift_remove("input");
            if let Some(calls) = run.get_mut("ledger").and_then(Value::as_array_mut) {
                calls.drain(..before.ledger().len().min(calls.len()));
            }
        }
        let all = || after.ledger().to_vec();
        bounded(Self::Going { run, stored, by }, all)
    }

    /// Returns the entry of a step that ended a run.
    pub(super) fn ended(end: RunEnd) -> Self {
        let calls = end.calls().to_vec();
        bounded(Self::Ended(end), || calls)
    }
}

/// Returns the run after a step, from the run before it and the entry of the step.
///
/// # Errors
/// The message of serde, if the entry is one of another version.
pub(super) fn resume(before: &Run, mut entry: Value) -> Result<Run, serde_json::Error> {
    let Value::Object(mut whole) = serde_json::to_value(before)? else {
        return serde_json::from_value(entry);
    };
    if let Some(after) = entry.as_object_mut() {
        after.insert("input".to_owned(), whole.shift_remove("input").unwrap_or_default());
        if let (Some(Value::Array(mut calls)), Some(Value::Array(fresh))) =
            (whole.shift_remove("ledger"), after.get_mut("ledger"))
        {
            calls.append(fresh);
            *fresh = calls;
        }
    }
    serde_json::from_value(entry)
}

/// Returns an entry that is not too large: a row with such an answer is rejected, with the beginning of its answers.
fn bounded(entry: Entry, calls: impl FnOnce() -> Vec<CallRecord>) -> Entry {
    let size = |entry: &Entry| serde_json::to_vec(entry).map_or(0, |bytes| bytes.len());
    if size(&entry) <= MAX_ENTRY {
        return entry;
    }
    let mut calls = calls();
    for call in &mut calls {
        call.text = call.text.chars().take(BEGINNING).collect::<String>().into();
        call.edits.clear();
        call.closed.clear();
    }
    let message =
        format!("the answers of the row are longer than the {MAX_ENTRY} bytes that a step may keep");
    let failed = |calls| {
        let (kind, message) = (ErrorKind::Rejected, message.clone());
        Entry::Ended(RunEnd::Failed(RunError { kind, message, calls, best: None, not_stated: Vec::new() }))
    };
    let entry = failed(calls);
    if size(&entry) <= MAX_ENTRY { entry } else { failed(Vec::new()) }
}
