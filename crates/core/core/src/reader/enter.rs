//! Finds the schemas of a value when it begins, and of a member when its name ends.

use formwork_json::{Event, Kind, Span, unquoted};
use serde_json::Value;

use super::check::Check;
use super::frame::{Frame, Known, Reason};
use super::node::{Limit, ROOT};
use super::outline::{Outline, UNDECIDED};
use super::{Reader, Seed, Tracked};

impl Reader {
    pub(super) fn begin(&mut self, outline: &Outline, kind: Kind, event: Event) {
        let start = event.span.start;
        let mut frame = self.spare.pop().unwrap_or_else(|| Frame::new(kind, start));
        frame.reset(kind, start);
        let mut known = Known::default();
        let mut failed = Vec::new();
        match self.frames.last_mut() {
            None => {
                self.valid = Span::new(start, start);
                frame.take(outline, &mut known, ROOT, None);
            }
            Some(outer) => {
                let (is_array, index) = (outer.kind == Kind::Array, outer.count);
                let mut is_absent = false;
                if is_array {
                    for (at, eval) in outer.evals.iter().enumerate().filter(|(_, eval)| eval.alive) {
                        let node = outline.node(eval.node);
                        if let Some(item) = node.prefix.get(index).copied().or(node.items) {
                            frame.take(outline, &mut known, item, Some(at as u32));
                        }
                    }
                }
                for seed in self.members.drain(..) {
                    if kind == Kind::Null && seed.optional && !outline.takes(seed.node, kind, 0) {
                        is_absent = true;
                    } else {
                        frame.take(outline, &mut known, seed.node, Some(seed.outer));
                    }
                }
                if !is_array && outer.key.as_ref().is_some_and(|key| outline.undecided.contains(key)) {
                    is_absent = true;
                }
                outer.has_absent |= is_absent;
                outer.absent += usize::from(is_absent);
                outer.count += 1;
                let present = outer.count - outer.absent;
                let limit = if is_array { Limit::MaxItems } else { Limit::MaxProperties };
                for (at, eval) in outer.evals.iter().enumerate().filter(|(_, eval)| eval.alive) {
                    let max = outline.node(eval.node).limit(limit).filter(|max| present as f64 > *max);
                    failed.extend(max.map(|max| {
                        let what = if is_array { "items" } else { "fields" };
                        (at, Reason::new(limit.keyword()).expected(format!("at most {max} {what}")))
                    }));
                }
            }
        }
        for (at, reason) in failed {
            self.fail(at, reason, event.at, event.span);
        }
        let mut wrong: Vec<(usize, Reason)> =
            frame.empty_unions().into_iter().map(|(at, union)| (at, Reason::new(union))).collect();
        for (at, eval) in frame.evals.iter().enumerate() {
            let node = outline.node(eval.node);
            if !node.allows(kind) {
                let keyword = match () {
                    () if node.is_never() => "falseSchema",
                    () if node.values.is_some() => "enum",
                    () => "type",
                };
                wrong.push((at, Reason::new(keyword).expected(node.types())));
            }
        }
        frame.has_absent |=
            kind == Kind::Object && frame.evals.iter().any(|eval| outline.node(eval.node).is_open);
        let tracks = kind == Kind::String && frame.evals.iter().any(|eval| outline.node(eval.node).tracks_text())
            // A value of an enumeration may be spelled otherwise.
            && !(outline.converts && frame.evals.iter().any(|eval| outline.node(eval.node).values.is_some()));
        self.tracked = tracks.then(|| Tracked { end: start + 1, ..Tracked::default() });
        self.frames.push(frame);
        for (at, reason) in wrong {
            self.fail(at, reason, event.at, event.span);
        }
    }

    pub(super) fn key(&mut self, outline: &Outline, event: Event) {
        let Some(frame) = self.frames.last_mut() else { return };
        let name = unquoted(event.span.of(&self.text));
        self.members.clear();
        let mut failed = Vec::new();
        let mut value = None;
        let is_undecided = outline.undecided.contains(&*name);
        for (at, eval) in frame.evals.iter_mut().enumerate().filter(|(_, eval)| eval.alive) {
            let node = outline.node(eval.node);
            let member = node.members.get(&*name).copied().unwrap_or_default();
            let mut seed = |node, optional| self.members.push(Seed { node, outer: at as u32, optional });
            if is_undecided {
                seed(UNDECIDED, false);
                continue;
            }
            if let Some(number) = member.required {
                eval.see(number);
            }
            if let Some(schema) = member.schema {
                seed(schema, member.required.is_none());
            }
            let mut is_named = member.schema.is_some();
            let mut judge = |check: &Check| {
                check.accepts(&outline.judge, value.get_or_insert_with(|| Value::from(name.to_string())))
            };
            for (pattern, schema) in &node.patterns {
                match judge(pattern) {
                    Some(true) => seed(*schema, false),
                    Some(false) => continue,
                    None => eval.unsure = true,
                }
                is_named = true;
            }
            if let Some(rest) = node.additional.filter(|_| !is_named) {
                if outline.node(rest).is_never() {
                    failed.push((at, Reason::new("additionalProperties").below(&name)));
                } else {
                    seed(rest, false);
                }
            }
            match node.names.as_ref().map(judge) {
                Some(Some(false)) => failed.push((at, Reason::new("propertyNames").below(&name))),
                Some(None) => eval.unsure = true,
                _ => {}
            }
        }
        frame.name(&name);
        for (at, reason) in failed {
            self.fail(at, reason, event.at, event.span);
        }
    }
}
