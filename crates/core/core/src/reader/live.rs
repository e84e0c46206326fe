//! The document of an answer that is still arriving, and the items of its lists as they end.

use std::sync::Arc;

use formwork_json::{EditKind, JsonPath, Lexer, Position, Segment, Span, read, rounded};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::places::Places;
use super::{Ended, Outlook, Reader};
use crate::keywords::find;
use crate::lift::lift_exact;
use crate::rule::SourceIndex;
use crate::{Context, Fit, Lowered, Plan, Report, Stage, Violation, decode, lift};

/// A new part of an answer that is still arriving.
///
/// ```
/// use formwork_core::Progress;
///
/// /// Returns the number of items that the part completes.
/// fn completed(progress: &Progress) -> usize {
///     progress.items.len()
/// }
/// assert_eq!(completed(&Progress::default()), 0);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// The document so far; `None` as long as it has grown too little for another copy.
    pub snapshot: Option<Snapshot>,
    /// The list items that ended and are valid, in the order of the text.
    pub items: Vec<Item>,
}

/// An item of a list that is valid by itself: its schema and the rules about it alone accept it, after the permitted conversions. Items
/// of a list inside of another list's item are parts of that item.
///
/// ```
/// use formwork_core::Item;
/// use serde_json::json;
///
/// let item = Item { path: "$.sizes[0]".parse()?, value: json!(40) };
/// assert_eq!(item.decode::<u8>(), Some(40));
/// # Ok::<(), formwork_core::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The path in the document of the contract.
    pub path: JsonPath,
    /// The value in the form of the contract.
    pub value: Value,
}

impl Item {
    /// Returns the item as a `U`; `None` if it does not deserialise as one.
    pub fn decode<U: DeserializeOwned>(&self) -> Option<U> {
        decode(&self.value).ok()
    }
}

/// The document of an answer that is still arriving, in the form of the contract. Open strings end where the text ends, and open arrays
/// and objects are closed.
///
/// ```
/// use formwork_core::Snapshot;
///
/// fn title(snapshot: &Snapshot) -> Option<&str> {
///     let path = "$.title".parse().ok()?;
///     snapshot.ended(&path)?.as_str()
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    value: Value,
    open: Open,
    violation: Option<Box<Violation>>,
}

/// The values of a document that have not ended.
#[derive(Debug, Clone, PartialEq)]
enum Open {
    Nothing,
    /// The value at this path and the containers around it.
    At(JsonPath),
    /// The same, and every value inside of it.
    Within(JsonPath),
}

impl Snapshot {
    /// Returns the document so far.
    pub const fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the value at a path; `None` if there is none, or if it has not ended.
    pub fn ended(&self, path: &JsonPath) -> Option<&Value> {
        let is_open = match &self.open {
            Open::Nothing => false,
            Open::At(open) => open.is_within(path),
            Open::Within(open) => open.is_within(path) || path.is_within(open),
        };
        path.get(&self.value).filter(|_| !is_open)
    }

    /// Returns the reason why the document cannot become valid, if that is decided already.
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_deref()
    }
}

/// The state of the progress of one answer.
#[derive(Debug)]
pub(super) struct Live {
    lowered: Arc<Lowered>,
    pub(super) source: SourceIndex,
    /// Whether the schema of an item depends on its position.
    is_positional: bool,
    /// The items that ended since the last progress: the path of the list, the position, and the bytes.
    ended: Vec<(JsonPath, usize, Span)>,
    /// Whether the text needs the tolerant reader.
    is_tolerant: bool,
    /// The length of the text in bytes at the last snapshot.
    value_at: usize,
    /// The byte up to which the text after the first document is known to be prose.
    prose_until: usize,
    has_value: bool,
    is_complete: bool,
    /// The last value of the tolerant reader.
    last: Option<Value>,
}

/// The cost of a snapshot is linear in the document. A snapshot is created only when the text has grown by 1/256, so that all of them
/// together cost linear time.
const STRICT_STEPS: usize = 256;

/// The same for the tolerant reader: reading the whole text costs more than copying the document.
const TOLERANT_STEPS: usize = 64;

impl Live {
    pub(super) fn new(plan: &Plan, lowered: Arc<Lowered>) -> Self {
        let positional = |node: &Value| node.get("prefixItems").is_some() || node["items"].is_array();
        Self {
            lowered,
            source: SourceIndex::default(),
            is_positional: find(plan.contract().schema().document(), positional).is_some(),
            ended: Vec::new(),
            is_tolerant: false,
            value_at: 0,
            prose_until: 0,
            has_value: false,
            is_complete: false,
            last: None,
        }
    }

    /// Notes a value that has ended, if it is an item of an outermost list.
    pub(super) fn note(&mut self, ended: &Ended<'_>) {
        if let Some((list, index)) = ended.item() {
            self.ended.push((list, index, ended.span));
        }
    }

    /// Returns the items that ended since the last call and are valid.
    pub(super) fn items(
        &mut self,
        reader: &Reader,
        places: &Places,
        plan: &Plan,
        cx: &Context<'_>,
    ) -> Vec<Item> {
        let ended = std::mem::take(&mut self.ended);
        if self.is_positional {
            return Vec::new();
        }
        let lists = ended.chunk_by(|(one, ..), (other, ..)| one == other);
        lists.flat_map(|items| self.judged(items, reader.text(), places, plan, cx)).collect()
    }

    /// Judges items of one list that ended together, in a document that has nothing else.
    fn judged(
        &self,
        items: &[(JsonPath, usize, Span)],
        text: &str,
        places: &Places,
        plan: &Plan,
        cx: &Context<'_>,
    ) -> Vec<Item> {
        let Some((list, ..)) = items.first().filter(|(list, ..)| !places.moves(list)) else {
            return Vec::new();
        };
        let read = items.iter().filter_map(|(_, index, span)| {
            let text = span.of(text);
            let value: Value = serde_json::from_str(text).ok()?;
            rounded(text).is_empty().then_some((*index, value))
        });
        let (indices, values): (Vec<usize>, Vec<Value>) = read.unzip();
        let mut document = Value::Array(values);
        for step in list.segments().iter().rev() {
            let Segment::Key(name) = step else { return Vec::new() };
            document = Value::Object(Map::from_iter([(name.clone(), document)]));
        }
        let lifted = lift_exact(document, Vec::new(), &self.lowered);
        let settled = plan.contract().settle_with(lifted.value, None, cx, &self.source);
        let list = places.lifted(list);
        let found = || lifted.problems.iter().chain(&settled.judgement.violations);
        if settled.judgement.left_out > 0 || found().any(|violation| concerns_items_of(&list, violation)) {
            return Vec::new();
        }
        let values =
            list.get(&settled.value).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let wrong: Vec<Option<usize>> = found().map(|violation| position(&list, &violation.path)).collect();
        if values.len() != indices.len() {
            return Vec::new();
        }
        let judged = values.iter().zip(indices).enumerate();
        let valid = judged.filter(|(at, _)| !wrong.contains(&Some(*at)));
        valid.map(|(_, (value, index))| Item { path: list.index(index), value: value.clone() }).collect()
    }

    /// Returns the document so far, if it is due.
    pub(super) fn snapshot(&mut self, reader: &Reader, places: &Places, plan: &Plan) -> Option<Snapshot> {
        let text = reader.text();
        if !self.is_tolerant {
            match (reader.lexer().document(), reader.lexer().position()) {
                // After a complete document, only another document or the end of reasoning changes the result.
                (Some(document), _) if !self.goes_on(text, document.end) => {
                    if std::mem::replace(&mut self.is_complete, true) {
                        return None;
                    }
                    return self.strict(reader, places, plan);
                }
                (Some(_), _) | (None, Position::Stuck(_)) => self.turn_tolerant(reader),
                (None, Position::Outside) => return None,
                (None, _) if reader.is_word() => return None,
                (None, _) => {
                    return if self.is_due(text, STRICT_STEPS) {
                        self.strict(reader, places, plan)
                    } else {
                        None
                    };
                }
            }
        }
        if self.is_due(text, TOLERANT_STEPS) { self.tolerant(text, places, plan, false) } else { None }
    }

    /// Returns the document at the end of the answer, unless it was returned before. If no document was returned before, the type of its
    /// root does not have to match the schema.
    pub(super) fn last(&mut self, reader: &Reader, places: &Places, plan: &Plan) -> Option<Snapshot> {
        if self.has_value && self.is_complete && !self.is_tolerant {
            return None;
        }
        self.turn_tolerant(reader);
        self.tolerant(reader.text(), places, plan, !self.has_value)
    }

    /// Returns whether the text after the first document may have another one.
    fn goes_on(&mut self, text: &str, end: usize) -> bool {
        let from = std::mem::replace(&mut self.prose_until, text.len()).max(end);
        text.get(from..).is_some_and(|rest| rest.contains(['{', '[', '<']))
    }

    /// Leaves the rest of the text to the tolerant reader, which goes on from the last value that was returned.
    fn turn_tolerant(&mut self, reader: &Reader) {
        if !std::mem::replace(&mut self.is_tolerant, true) && self.has_value {
            let text = reader.text().get(..self.value_at).unwrap_or_default();
            let mut lexer = Lexer::new(reader.lexer().level());
            lexer.push(text.as_bytes(), |_| {});
            self.last = lexer.snapshot(text).map(|value| lift(value, &self.lowered).0);
        }
    }

    const fn is_due(&self, text: &str, steps: usize) -> bool {
        text.len() - self.value_at > self.value_at / steps
    }

    fn strict(&mut self, reader: &Reader, places: &Places, plan: &Plan) -> Option<Snapshot> {
        let Some(value) = reader.snapshot() else {
            // The text has been repaired.
            self.turn_tolerant(reader);
            return self.tolerant(reader.text(), places, plan, false);
        };
        self.value_at = reader.text().len();
        let value = lift(value, &self.lowered).0;
        if !plan.contract().allows_type_of(&value) {
            return None;
        }
        self.has_value = true;
        let open = reader.lexer().document().is_none().then(|| reader.open_value());
        let violation = match reader.outlook() {
            Outlook::Impossible { violation, .. } => {
                let mut violation = violation.clone();
                violation.path = places.lifted(&violation.path);
                Some(violation)
            }
            _ => None,
        };
        Some(Snapshot { value, open: Open::of(open, places), violation })
    }

    /// Returns the candidate that fits the schema best, unless it equals the last one. The type of its root must match the schema, unless
    /// `any_type`.
    fn tolerant(&mut self, text: &str, places: &Places, plan: &Plan, any_type: bool) -> Option<Snapshot> {
        self.value_at = text.len();
        let contract = plan.contract();
        let candidates = read(text, plan.level()).ok()?.into_candidates();
        let mut fitting: Vec<_> = candidates
            .into_iter()
            .map(|mut candidate| {
                let value = std::mem::take(&mut candidate.value);
                let is_open = candidate.edits.iter().any(|edit| edit.kind == EditKind::Closed);
                let open = is_open.then(|| last_of(&value));
                (candidate, open, lift(value, &self.lowered).0)
            })
            .filter(|(.., value)| any_type || contract.allows_type_of(value))
            .collect();
        let (_, open, value) = if fitting.len() < 2 {
            fitting.pop()?
        } else {
            let ranked = fitting.into_iter().rev().map(|(candidate, open, value)| {
                let mut report = Report::default();
                contract.structure().validate(&value, &Context::EMPTY, &mut report);
                let fit = Fit::new(contract.schema().document(), &candidate, &value, report.violations());
                (fit, open, value)
            });
            // `max_by_key` returns the last of equal candidates, which the reader ranks highest.
            let (_, open, value) = ranked.max_by_key(|(fit, ..)| *fit)?;
            return self.changed(value, Open::of(open, places));
        };
        self.changed(value, Open::of(open, places))
    }

    /// Returns a value of the tolerant reader, unless it equals the last one.
    fn changed(&mut self, value: Value, open: Open) -> Option<Snapshot> {
        if self.last.as_ref() == Some(&value) {
            return None;
        }
        self.has_value = true;
        self.last = Some(value.clone());
        Some(Snapshot { value, open, violation: None })
    }
}

impl Open {
    /// Returns the open values, given the path of the innermost one in the answer.
    fn of(innermost: Option<JsonPath>, places: &Places) -> Self {
        match innermost {
            None => Self::Nothing,
            Some(path) if places.moves(&path) => Self::Within(places.lifted(&path)),
            Some(path) => Self::At(places.lifted(&path)),
        }
    }
}

/// Returns the path of the last value of a document, which is open if the document is.
fn last_of(document: &Value) -> JsonPath {
    let (mut path, mut value) = (JsonPath::root(), document);
    loop {
        let last = match value {
            Value::Object(members) => {
                members.iter().next_back().map(|(name, inner)| (Segment::Key(name.clone()), inner))
            }
            Value::Array(items) => {
                items.split_last().map(|(inner, rest)| (Segment::Index(rest.len()), inner))
            }
            _ => None,
        };
        let Some((step, inner)) = last else { return path };
        path.push(step);
        value = inner;
    }
}

/// Returns the position of the item of a list that has the value at `path`.
fn position(list: &JsonPath, path: &JsonPath) -> Option<usize> {
    match path.segments().strip_prefix(list.segments())? {
        [Segment::Index(index), ..] => Some(*index),
        _ => None,
    }
}

/// Returns whether a violation at a list or around it may be about its items: the variants of a union, for example, are judged as a
/// whole. That parts are missing or that there are few items is no violation of the items.
fn concerns_items_of(list: &JsonPath, violation: &Violation) -> bool {
    const ABOUT_THE_REST: [&str; 7] = [
        "required",
        "minItems",
        "minProperties",
        "contains",
        "minContains",
        "dependentRequired",
        "uniqueItems",
    ];
    violation.stage == Stage::Schema
        && list.is_within(&violation.path)
        && !ABOUT_THE_REST.contains(&violation.rule.as_str())
}
