//! The paths of rounded numbers in the original document, which the walk over the lowered document finds.

use std::collections::BTreeMap;

use formwork_json::{JsonPath, Rounded, Segment};
use serde_json::Value;

/// The rounded numbers of a lowered document.
pub(super) struct Numbers {
    /// The numbers with their paths in the lowered document.
    sent: Vec<Rounded>,
    /// The path of each in the original document, with the number of steps of the lowered path that the walk has mapped so far.
    /// The other steps are unchanged.
    mapped: Vec<(usize, JsonPath)>,
    /// Numbers of JSON that was written as a string, with their paths in the original document.
    parsed: Vec<Rounded>,
    /// The marks whose values lifting hides, by their index in `sent`: they have no path in the original document.
    hidden: Vec<usize>,
}

/// The rounded numbers within a value of the lowered document.
#[derive(Clone, Default)]
pub(super) struct Inside {
    indexes: Vec<usize>,
    /// The number of steps from the root to the value.
    depth: usize,
}

impl Numbers {
    pub(super) fn new(sent: Vec<Rounded>) -> Self {
        let mapped = sent.iter().map(|number| (0, number.path.clone())).collect();
        Self { sent, mapped, parsed: Vec::new(), hidden: Vec::new() }
    }

    /// Returns the numbers of the whole document.
    pub(super) fn inside(&self) -> Inside {
        Inside { indexes: (0..self.sent.len()).collect(), depth: 0 }
    }

    /// Returns the numbers within each member or item of a value.
    pub(super) fn by_step(&self, outer: &Inside) -> BTreeMap<Segment, Inside> {
        let mut inner: BTreeMap<Segment, Inside> = BTreeMap::new();
        for index in &outer.indexes {
            if let Some(step) = self.sent[*index].path.segments().get(outer.depth) {
                let inside = inner.entry(step.clone()).or_default();
                inside.depth = outer.depth + 1;
                inside.indexes.push(*index);
            }
        }
        inner
    }

    /// Notes the path of a value in the original document. References are followed first, and their paths stay.
    pub(super) fn place(&mut self, inside: &Inside, path: &JsonPath) {
        for index in &inside.indexes {
            let (steps, mapped) = &mut self.mapped[*index];
            if *steps < inside.depth {
                let rest = self.sent[*index].path.segments().get(inside.depth..).unwrap_or_default();
                (*steps, *mapped) = (inside.depth, path.join(rest));
            }
        }
    }

    /// Adds the numbers of JSON that was written as a string at `path`.
    pub(super) fn add(&mut self, path: &JsonPath, parsed: Vec<Rounded>) {
        let placed = |number: Rounded| Rounded { path: path.join(number.path.segments()), ..number };
        self.parsed.extend(parsed.into_iter().map(placed));
    }

    /// Notes that the values within a value cannot be followed into the original document.
    pub(super) fn hide(&mut self, inside: &Inside) {
        self.hidden.extend(&inside.indexes);
    }

    /// Removes the last `count` numbers, which mark values, and returns their paths in `value`, the original document; `None` for
    /// those that are hidden there.
    pub(super) fn take_marks(&mut self, count: usize, value: &Value) -> Vec<Option<JsonPath>> {
        let from = self.sent.len().saturating_sub(count);
        self.sent.truncate(from);
        let marks = self.mapped.split_off(from).into_iter().enumerate();
        let path = |(nth, (_, path)): (usize, (usize, JsonPath))| {
            (!self.hidden.contains(&(from + nth)) && path.get(value).is_some()).then_some(path)
        };
        marks.map(path).collect()
    }

    /// Returns the numbers with their paths in `value`, the original document. A number that lifting dropped is reported for the
    /// document as a whole.
    pub(super) fn lifted(self, value: &Value) -> Vec<Rounded> {
        let places = self.mapped.into_iter().map(|(_, path)| path);
        let sent = self.sent.into_iter().zip(places).map(|(number, path)| Rounded { path, ..number });
        let found = sent.chain(self.parsed).map(|number| match number.path.get(value) {
            Some(Value::Number(_) | Value::Null) => number,
            _ => Rounded { path: JsonPath::root(), ..number },
        });
        found.collect()
    }
}
