//! The rest of an answer that ended before its document did: the valid beginning is kept, and the values that it lacks are requested.

use std::sync::Arc;

use formwork_json::{
    EditKind, Event, JsonPath, Kind, Level, Lexer, Position, Segment, Token, rounded, unquoted,
};
use serde_json::Value;

use super::closed::Closed;
use super::drafts::Draft;
use super::patch::{MAX_PATCHED, max_items, wrong_values};
use super::places::{Places as Parts, is_rest, others};
use super::question::Question;
use crate::keywords::{member_names, target};
use crate::lift::{Lifted, lift_begun, remove_last};
use crate::{Ask, Completion, Follower, Plan, Provenance, Source, Stage, Violation, spaced};

/// The document of an answer up to its last value that has ended.
pub(super) struct Beginning {
    /// The document, with its open objects and lists closed.
    pub(super) text: String,
    /// The number of bytes of the text that the model wrote.
    written: usize,
    pub(super) value: Value,
    /// The objects and lists that were open, outermost first.
    pub(super) open: Vec<JsonPath>,
}

/// Returns the document of an answer that was stopped in a loop, with the looping value, and all that is open around it, ended after
/// the first round of the loop; `None` if no value of it has ended.
pub(super) fn without_loop(text: &str, reason: &Violation, level: Level) -> Option<String> {
    let end = text.floor_char_boundary(reason.span?.start);
    let mut lexer = Lexer::new(level);
    let mut kept = text.get(..end)?.to_owned();
    lexer.push(kept.as_bytes(), |_| {});
    let is_text = matches!(lexer.position(), Position::Text(_));
    kept.truncate(kept.trim_end().len());
    // A number ends only at the byte after it.
    kept.push(if is_text { '"' } else { ' ' });
    Beginning::of(&kept, level, usize::MAX).map(|beginning| beginning.text)
}

impl Beginning {
    /// Reads the first document of a text, with the values that end before this byte; `None` if the document has an end, if no value
    /// of it has ended, or if it is not JSON.
    pub(super) fn of(text: &str, level: Level, until: usize) -> Option<Self> {
        let mut reader = Reader { text, until, open: Vec::new(), kept: None, is_ended: false };
        let mut lexer = Lexer::new(level);
        lexer.push(text.as_bytes(), |event| reader.event(event));
        let Kept { start, end, open } = reader.kept.filter(|_| !reader.is_ended)?;
        let mut closed = text.get(start..end)?.to_owned();
        let written = closed.len();
        closed.extend(open.iter().rev().map(|frame| if frame.is_object { '}' } else { ']' }));
        let value = serde_json::from_str(&closed).ok()?;
        let mut path = JsonPath::root();
        let open = open.iter().map(|frame| {
            frame.step.iter().for_each(|step| path.push(step.clone()));
            path.clone()
        });
        let open = open.collect();
        Some(Self { text: closed, written, value, open })
    }
}

/// An open object or list, and the step to it from the one around it.
#[derive(Debug, Clone)]
struct Frame {
    is_object: bool,
    start: usize,
    step: Option<Segment>,
    /// The step to the next value in it.
    next: Segment,
}

struct Kept {
    start: usize,
    end: usize,
    open: Vec<Frame>,
}

struct Reader<'t> {
    text: &'t str,
    until: usize,
    open: Vec<Frame>,
    kept: Option<Kept>,
    is_ended: bool,
}

impl Reader<'_> {
    fn event(&mut self, Event { token, span, .. }: Event) {
        if self.is_ended {
            return;
        }
        match token {
            Token::Edit(EditKind::Prose) => (self.open, self.kept) = (Vec::new(), None),
            Token::Edit(_) => {}
            Token::Key => {
                if let Some(frame) = self.open.last_mut() {
                    frame.next = Segment::Key(unquoted(span.of(self.text)).into_owned());
                }
            }
            Token::Begin(kind @ (Kind::Object | Kind::Array)) => {
                let step = self.open.last().map(|frame| frame.next.clone());
                let (is_object, next) = (kind == Kind::Object, Segment::Index(0));
                self.open.push(Frame { is_object, start: span.start, step, next });
            }
            Token::Begin(_) => {}
            Token::End(kind) => {
                if matches!(kind, Kind::Object | Kind::Array) {
                    self.open.pop();
                }
                let Some(frame) = self.open.last_mut() else {
                    self.is_ended = true;
                    return;
                };
                if let Segment::Index(index) = &mut frame.next {
                    *index += 1;
                }
                let start = self.open.first().map_or(0, |frame| frame.start);
                match &mut self.kept {
                    _ if span.end > self.until => {}
                    // The same containers are open as before, as for most values.
                    Some(kept) if kept.open.len() == self.open.len() && kept.is_in(&self.open) => {
                        kept.end = span.end
                    }
                    _ => self.kept = Some(Kept { start, end: span.end, open: self.open.clone() }),
                }
            }
        }
    }
}

impl Kept {
    fn is_in(&self, open: &[Frame]) -> bool {
        self.open.last().map(|frame| frame.start) == open.last().map(|frame| frame.start)
    }
}

impl Question<'_> {
    /// Returns the draft of the document that an unfinished answer began or continued, with the paths of what it lacks; `None` if it
    /// cannot be continued by a patch. Values that no patch can correct, and all after them, are left out.
    pub(super) fn begun(&self, completion: &Completion) -> Option<Draft> {
        if !self.plan.policy.resumes() {
            return None;
        }
        let (text, level) = (completion.written(), self.plan.options.level);
        let draft = |beginning, wrong: Option<&Violation>| match self.ask {
            Ask::Whole => self.begun_whole(beginning, wrong),
            Ask::Patch(paths) => self.begun_patch(paths, beginning),
        };
        let beginning = Beginning::of(text, level, usize::MAX)?;
        let Some((valid, wrong)) = Follower::new(self.plan, self.call, self.ask).read(text) else {
            return draft(beginning, None);
        };
        draft(beginning, Some(&wrong)).or_else(|| draft(Beginning::of(text, level, valid)?, None))
    }

    /// Returns the draft of the document that an answer began. `wrong` is the reason why its text cannot become valid.
    fn begun_whole(&self, beginning: Beginning, wrong: Option<&Violation>) -> Option<Draft> {
        let lowered = &self.call.lowered;
        // A schema with added bounds is for a model that runs away, whose text is no beginning of an answer.
        if self.plan.policy.accepts_incomplete() || !lowered.bounds.is_empty() {
            return None;
        }
        let Beginning { text, written, value, open } = beginning;
        let is_untouched = lowered.lift.is_empty();
        let numbers = rounded(&text);
        let (Lifted { value, rounded, .. }, open) = lift_begun(value, numbers, open, lowered)?;
        let is_container = value.as_object().is_some_and(|members| !members.is_empty())
            || value.as_array().is_some_and(|items| !items.is_empty());
        if !is_container
            || open
                .iter()
                .any(|path| repeats(path, &value) || wrong.is_some_and(|wrong| is_about(wrong, path)))
        {
            return None;
        }
        let provenance =
            vec![Provenance { path: JsonPath::root(), source: Source::Native, attempt: self.attempt }];
        let prefix = text.get(..written).filter(|_| is_untouched).map(Arc::from);
        let draft = Draft {
            text: if is_untouched { text.into() } else { spaced(&value).into() },
            value: value.into(),
            provenance,
            warnings: Vec::new(),
            rounded,
            closed: Closed::unfinished(),
            entry: self.entry,
            decoded: crate::judgement::Decoded::default(),
            rest: Vec::new(),
            prefix,
            wrong: Vec::new(),
        };
        self.unfinished(draft, open, Vec::new())
    }

    /// Returns the draft with the values that an unfinished patch has given. The rest stays to be requested.
    fn begun_patch(&self, paths: &[JsonPath], mut begun: Beginning) -> Option<Draft> {
        let before = self.draft?;
        let numbers = rounded(&begun.text);
        let (lifted, open) = lift_begun(begun.value, numbers, begun.open, &self.call.lowered)?;
        (begun.value, begun.open) = (lifted.value, open);
        let (draft, _) = self.patched(before, paths, &begun.value, &lifted.rounded, &Closed::default());
        let (open, missing) = open_in(paths, &before.value, &begun);
        self.unfinished(draft, open, missing)
    }

    /// Returns a draft with the paths of what it lacks: wrong values, missing members and items of the containers that are open, and
    /// `more`, which was requested and not given.
    pub(super) fn unfinished(
        &self,
        mut draft: Draft,
        mut open: Vec<JsonPath>,
        more: Vec<JsonPath>,
    ) -> Option<Draft> {
        let mut value = Value::clone(&draft.value);
        // A list has no items beyond its maximum, whatever the model wrote there and after it.
        for (at, list) in open.iter().enumerate() {
            let max = max_items(self.plan, list, &value).unwrap_or(usize::MAX);
            let Some(items) = list.get_mut(&mut value).and_then(Value::as_array_mut) else { continue };
            if items.len() > max {
                items.truncate(max);
                let is_left = |path: &JsonPath| path.get(&value).is_some();
                draft.rounded.retain(|number| is_left(&number.path));
                draft.provenance.retain(|part| is_left(&part.path));
                draft.prefix = None;
                open.truncate(at + 1);
                break;
            }
        }
        let (containers, mut lacks) = (open.clone(), Vec::new());
        while let Some(path) = open.last() {
            match lacking(self.plan, path, &value) {
                Some(paths) => {
                    lacks.extend(paths);
                    let outer = open.pop();
                    if lacks.len() > MAX_PATCHED || outer.is_none() {
                        return None;
                    }
                }
                // Its members cannot be listed: it is requested as a whole, with what comes after it.
                None => {
                    if !lacks.is_empty() || !remove_last(&mut value, path) {
                        return None;
                    }
                    let dropped = open.pop().unwrap_or_default();
                    draft.rounded.retain(|number| !number.path.is_within(&dropped));
                }
            }
        }
        for path in more {
            if !lacks.iter().any(|other| path.is_within(other)) {
                lacks.push(path);
            }
        }
        if lacks.is_empty() {
            lacks.extend(last_value(&value));
        }
        let judged = self
            .plan
            .contract
            .settle_with(value.clone(), None, &self.context, self.source)
            .judgement
            .violations;
        // More members and items do not correct this.
        let is_final = |violation: &Violation| {
            ["maxProperties", "additionalProperties", "propertyNames"].contains(&violation.rule.as_str())
                && containers.iter().any(|path| is_about(violation, path))
        };
        if judged.iter().any(is_final) {
            return None;
        }
        let is_lacking = |violation: &Violation| {
            lacks.iter().any(|path| violation.path.is_within(path) || path.is_within(&violation.path))
        };
        let wrong: Vec<Violation> = judged
            .into_iter()
            .filter(|violation| violation.stage == Stage::Schema && !is_lacking(violation))
            .collect();
        let mut rest = wrong_values(self.plan, &value, &wrong)?;
        rest.retain(|path| !lacks.iter().any(|lacking| lacking.is_within(path)));
        rest.extend(lacks);
        if rest.is_empty() || rest.len() > MAX_PATCHED {
            return None;
        }
        if *draft.value != value {
            draft.text = spaced(&value).into();
            draft.value = value.into();
        }
        (draft.rest, draft.wrong, draft.closed) = (rest, wrong, Closed::unfinished());
        Some(draft)
    }
}

/// Returns whether a violation can only be corrected by another value of an open container.
fn is_about(violation: &Violation, container: &JsonPath) -> bool {
    violation.wrong_value().is_some_and(|wrong| container.is_within(&wrong))
}

/// Returns the paths of what an open object or list may lack; `None` if its schema does not list it.
fn lacking(plan: &Plan, path: &JsonPath, document: &Value) -> Option<Vec<JsonPath>> {
    let structure = plan.contract.structure();
    match path.get(document)? {
        Value::Object(members) => {
            let schema = structure.subschema(path, document)?;
            let own = target(&schema, &schema).unwrap_or(&schema);
            let names = member_names(&schema, own);
            if others(own).is_some() {
                return Some(vec![path.index(members.len())]);
            }
            if names.is_empty() {
                return None;
            }
            let missing =
                names.into_iter().filter(|name| !members.contains_key(*name)).map(|name| path.key(name));
            Some(missing.filter(|path| structure.subschema(path, document).is_some()).collect())
        }
        Value::Array(items) => {
            let next = path.index(items.len());
            let schema = structure.subschema(path, document)?;
            let own = target(&schema, &schema).unwrap_or(&schema);
            // The schema of an item depends on its position.
            if own.get("prefixItems").is_some() || own["items"].is_array() {
                return None;
            }
            structure.subschema(&next, document)?;
            let is_full = max_items(plan, path, document) == Some(items.len());
            Some(if is_full { Vec::new() } else { vec![next] })
        }
        _ => None,
    }
}

/// Returns whether a list ends with the same item many times, as the answer of a model that repeats itself does. A few equal neighbours
/// are ordinary in lists of numbers, marks and words.
fn repeats(list: &JsonPath, document: &Value) -> bool {
    let items = list.get(document).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let end = items.len().checked_sub(MANY).and_then(|from| items.get(from..)).unwrap_or_default();
    end.first().is_some_and(|first| end.iter().all(|item| item == first))
}

/// The number of equal items at the end of a list that count as a repetition.
const MANY: usize = 8;

/// Returns the place of the last value, for a document in which nothing but brackets is missing: the model confirms its end.
fn last_value(value: &Value) -> Option<JsonPath> {
    let (mut path, mut value) = (JsonPath::root(), value);
    loop {
        match value {
            Value::Object(members) => {
                let (name, inner) = members.iter().next_back()?;
                (path, value) = (path.key(name.as_str()), inner);
            }
            Value::Array(items) => return Some(path.index(items.len())),
            _ => return Some(path),
        }
    }
}

/// Returns the lists and maps of which the rest was requested and nothing was given, not even that it is empty.
pub(super) fn unended(asked: &[JsonPath], given: &[JsonPath], document: &Value) -> Vec<JsonPath> {
    asked.iter().filter(|path| is_rest(path, document) && !given.contains(path)).cloned().collect()
}

/// Returns the paths of the document that were open in the answer to a patch, outermost first, and the paths that it does not
/// give.
pub(super) fn open_in(
    asked: &[JsonPath],
    before: &Value,
    answer: &Beginning,
) -> (Vec<JsonPath>, Vec<JsonPath>) {
    let parts = Parts::new(asked, before);
    let (mut open, mut missing) = (Vec::new(), Vec::new());
    for part in parts.iter() {
        let place = part.in_answer();
        if place.get(&answer.value).is_none() {
            missing.push(part.path.clone());
        }
        for path in answer.open.iter().filter(|path| path.is_within(&place)) {
            let inner = path.segments().get(place.segments().len()..).unwrap_or_default();
            open.push(match (part.is_rest, inner) {
                (true, []) => part.path.parent().unwrap_or_default(),
                (true, inner @ [Segment::Key(_), ..]) => part.path.parent().unwrap_or_default().join(inner),
                (true, [Segment::Index(index), inner @ ..]) => {
                    let (list, from) = (part.path.parent().unwrap_or_default(), part.path.last());
                    let from = if let Some(Segment::Index(from)) = from { *from } else { 0 };
                    list.index(from + index).join(inner)
                }
                _ => part.path.join(inner),
            });
        }
    }
    (open, missing)
}
