//! Decides while an answer arrives whether it is worth its rest.

use std::sync::Arc;

use formwork_json::Level;
use serde_json::json;

use super::live::Live;
use super::places::Places;
use super::{Outline, Outlook, Progress, Reader};
use crate::rule::SourceIndex;
use crate::{Ask, Call, Context, Enforcement, Plan, Violation, Watch};

/// Follows the answer to one call with the [`Reader`] of the contract, for the driver of a run.
///
/// ```
/// use formwork_core::{Ask, Call, Follower, Plan};
///
/// /// Returns the number of chunks that are worth reading.
/// fn worth(plan: &Plan, call: &Call, chunks: &[&str]) -> usize {
///     let mut follower = Follower::new(plan, call, &Ask::Whole);
///     chunks.iter().take_while(|chunk| follower.push(chunk).is_none()).count()
/// }
/// ```
#[derive(Debug)]
pub struct Follower {
    /// The outline of the answer; of any document if its form is another than that of the contract's documents.
    outline: Arc<Outline>,
    is_known: bool,
    places: Places,
    reader: Reader,
    stops: bool,
    patches: bool,
    live: Option<Live>,
    /// Text that the reader has not read yet.
    unread: String,
}

/// The number of bytes that are read at once, because most tokens have few and decide nothing.
const STEP: usize = 32;

/// The number of bytes up to which a wrong document is stopped although a patch can correct it. The whole document is requested
/// again after a stop; a patch costs a request with the whole draft and one with the wrong values.
const EARLY: usize = 256;

impl Follower {
    /// Creates a follower of the answer to a call that requests this part of the document.
    pub fn new(plan: &Plan, call: &Call, ask: &Ask) -> Self {
        let places = Places::of(&call.lowered);
        let outline = match ask {
            Ask::Whole => plan.outline(call, &places),
            // A patch with a wrong value is read to its end, because its other values are kept.
            Ask::Patch(_) => {
                let object = || Arc::new(Outline::new(&json!({"type": "object"}), None));
                places.undecided().map(|_| object())
            }
        };
        Self {
            is_known: outline.is_some(),
            outline: outline.unwrap_or_else(|| Arc::new(Outline::any())),
            places,
            reader: Reader::new(plan.level()),
            // A model that writes prose around the document may correct itself in another one.
            stops: plan.policy.stops() && call.enforcement() != Enforcement::None,
            patches: plan.policy.patches(),
            live: None,
            unread: String::new(),
        }
    }

    /// Creates a follower that also returns the [`Progress`] of the document, if the call requests the whole document.
    pub fn with_progress(plan: &Plan, call: &Call, ask: &Ask) -> Self {
        let live = (*ask == Ask::Whole).then(|| Live::new(plan, Arc::clone(&call.lowered)));
        Self { live, ..Self::new(plan, call, ask) }
    }

    /// Uses an index of the text that others share.
    pub(crate) fn with_source(mut self, source: &SourceIndex) -> Self {
        self.live.iter_mut().for_each(|live| live.source = source.clone());
        self
    }

    /// Returns the progress of the document since the last call. `cx` has the text and the data for the rules.
    pub fn progress(&mut self, plan: &Plan, cx: &Context<'_>) -> Progress {
        let Some(live) = &mut self.live else { return Progress::default() };
        let items = live.items(&self.reader, &self.places, plan, cx);
        Progress { items, snapshot: live.snapshot(&self.reader, &self.places, plan) }
    }

    /// Returns the progress of the document at the end of the answer.
    pub fn last_progress(&mut self, plan: &Plan, cx: &Context<'_>) -> Progress {
        let Some(live) = &mut self.live else { return Progress::default() };
        let items = live.items(&self.reader, &self.places, plan, cx);
        Progress { items, snapshot: live.last(&self.reader, &self.places, plan) }
    }

    /// Reads the next chunk. Returns the reason to stop the call after it, if there is one: the document cannot become valid, it is
    /// all of the text so far, and a new answer costs less than the rest of this one and a patch.
    ///
    /// Without [`with_progress`](Self::with_progress), short chunks are read together, up to 32 bytes and the chunk that exceeds
    /// them, and a first chunk below [`Watch::MIN_BYTES`] with the second one: an answer in one chunk has no rest to save.
    pub fn push(&mut self, chunk: &str) -> Option<Violation> {
        if self.live.is_none() {
            let is_first = self.unread.is_empty() && self.reader.text().is_empty();
            let enough = if is_first { Watch::MIN_BYTES } else { STEP };
            self.unread.push_str(if self.is_known { chunk } else { "" });
            if chunk.is_empty() || self.unread.len() < enough {
                return None;
            }
        }
        let live = &mut self.live;
        let chunk = if live.is_some() { chunk } else { &self.unread };
        let outlook = self.reader.push(&self.outline, chunk, |ended| {
            live.iter_mut().for_each(|live| live.note(&ended));
        });
        self.unread.clear();
        let Outlook::Impossible { at, violation } = outlook else { return None };
        if !self.is_known {
            return None;
        }
        let (at, mut violation) = (*at, Violation::clone(violation));
        violation.path = self.places.lifted(&violation.path);
        let is_early = at.saturating_sub(self.reader.valid_prefix().start) < EARLY;
        let is_open = self.reader.is_inside() && self.reader.is_bare();
        // The tolerant reader may find a document inside of one that is not JSON.
        let is_final = violation.rule != "json" || self.reader.lexer().level() == Level::Strict;
        let is_stopped = self.stops && is_open && is_final && (is_early || !self.can_patch(&violation));
        is_stopped.then_some(violation)
    }

    /// Reads the whole text of an answer. Returns the end of the last value that ended while the document could become valid, and the
    /// reason why it cannot any more; `None` if it can, or if that is unknown.
    pub(crate) fn read(mut self, text: &str) -> Option<(usize, Violation)> {
        let outlook = self.reader.push(&self.outline, text, |_| {});
        let Outlook::Impossible { violation, .. } = outlook else { return None };
        let mut violation = Violation::clone(violation);
        violation.path = self.places.lifted(&violation.path);
        self.is_known.then(|| (self.reader.valid_prefix().end, violation))
    }

    /// Returns the byte up to which the contract allows the answer: the maximum while no byte is known to decide against it.
    pub const fn possible_until(&self) -> usize {
        match self.reader.outlook() {
            Outlook::Impossible { at, .. } if self.is_known => *at,
            _ => usize::MAX,
        }
    }

    /// Returns whether a patch can correct a value once the document is complete.
    fn can_patch(&self, violation: &Violation) -> bool {
        self.patches && violation.wrong_value().is_some_and(|path| !path.is_root())
    }
}
