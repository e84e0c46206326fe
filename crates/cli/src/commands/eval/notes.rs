//! Remarks on the files of an evaluation.

use crate::stderr::say;

/// The maximum number of notes on standard error, and in the result.
const SHOWN_NOTES: usize = 10;
const MAX_NOTES: usize = 1000;

/// Remarks on the files, with their lines.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) all: Vec<String>,
    count: usize,
    /// The number of rows that are not scored.
    pub(super) failures: usize,
}

impl Notes {
    pub(super) fn add(&mut self, note: String) {
        self.count += 1;
        if self.count <= SHOWN_NOTES {
            say!("warning: {note}");
        }
        if self.all.len() < MAX_NOTES {
            self.all.push(note);
        }
    }

    pub(super) fn failed(&mut self, note: String) {
        self.failures += 1;
        self.add(note);
    }

    pub(super) fn finish(mut self) -> Vec<String> {
        if self.count > SHOWN_NOTES {
            say!("warning: {} more notes, in `notes` of --json", self.count - SHOWN_NOTES);
        }
        if self.count > self.all.len() {
            self.all.push(format!("{} more notes", self.count - self.all.len()));
        }
        self.all
    }
}
