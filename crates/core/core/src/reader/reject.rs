//! Carries the reason why a value is wrong to the document.

use formwork_json::{Event, Span};

use super::frame::{Dependent, Reason, path_of};
use super::node::name_of;
use super::{Outlook, Reader};
use crate::{Stage, Violation};

impl Reader {
    /// Ends what depends on a value that cannot be converted: an evaluation of its container, or the document.
    pub(super) fn lose(&mut self, outer: Option<u32>, mut reason: Reason, event: Event) {
        let Some(depth) = self.frames.len().checked_sub(1) else { return };
        reason.depth = Some(depth);
        match outer.zip(depth.checked_sub(1)) {
            Some((eval, around)) => {
                self.fail_from(vec![(around, eval as usize, reason)], event.at, event.span);
            }
            None => self.reject(depth, reason, event.at, event.span),
        }
    }

    /// Ends an evaluation of the innermost value without success, and all that depend on it.
    pub(super) fn fail(&mut self, eval: usize, reason: Reason, at: usize, span: Span) {
        let Some(depth) = self.frames.len().checked_sub(1) else { return };
        self.fail_from(vec![(depth, eval, reason)], at, span);
    }

    fn fail_from(&mut self, mut open: Vec<(usize, usize, Reason)>, at: usize, span: Span) {
        while let Some((depth, eval, reason)) = open.pop() {
            let Some(frame) = self.frames.get_mut(depth) else { continue };
            for (to, mut reason) in frame.fail(eval, reason) {
                match to {
                    Dependent::Outer(outer) => {
                        // The reason keeps the path of the value at which it arose.
                        reason.depth = Some(reason.depth.unwrap_or(depth));
                        open.extend(depth.checked_sub(1).map(|depth| (depth, outer as usize, reason)));
                    }
                    Dependent::Document if self.outlook == Outlook::Possible => {
                        self.reject(depth, reason, at, span);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Rejects the document because of a value of it.
    fn reject(&mut self, depth: usize, reason: Reason, at: usize, span: Span) {
        let depth = reason.depth.unwrap_or(depth);
        let mut path = path_of(self.frames.get(..depth).unwrap_or_default());
        reason.below.into_iter().for_each(|below| path.push(below));
        let found = match (reason.keyword, self.frames.get(depth)) {
            ("type", Some(value)) => name_of(value.kind),
            ("required" | "additionalProperties", _) => "",
            _ => span.of(&self.text),
        };
        let violation = Violation::new(path, reason.keyword, Stage::Schema)
            .with_expected(reason.expected)
            .with_found(found);
        self.impossible(at, span, violation);
    }

    pub(super) fn impossible(&mut self, at: usize, span: Span, violation: Violation) {
        let violation = Box::new(violation.with_span(Some(span)));
        self.outlook = Outlook::Impossible { at, violation };
    }
}
