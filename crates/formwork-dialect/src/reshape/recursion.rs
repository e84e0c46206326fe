//! Definitions that contain themselves, for dialects that take none.

use std::collections::{HashMap, HashSet};

use crate::form::{Form, FormId, Forms, Shape};

/// How often a definition stands inside of itself as it is; the next one is JSON in a string.
const LEVELS: usize = 2;

/// Writes definitions that contain themselves out to [`LEVELS`]. Returns the forms behind them, which are to be written as
/// JSON in a string.
pub(super) fn unroll(forms: &mut Forms) -> HashSet<FormId> {
    let back = back_edges(forms);
    let mut copies =
        Copies { forms, back, known: HashMap::new(), unwritten: Vec::new(), texts: HashMap::new() };
    if copies.back.is_empty() {
        return HashSet::new();
    }
    let root = copies.at(copies.forms.root, 0);
    copies.forms.root = root;
    while let Some((id, level)) = copies.unwritten.pop() {
        let mut form = copies.forms[id].clone();
        for alternative in &mut form.alternatives {
            alternative.shape.each_inner_mut(|inner| *inner = copies.edge(id, *inner, level));
        }
        let copy = copies.at(id, level);
        copies.forms.set(copy, form);
    }
    copies.texts.into_values().collect()
}

struct Copies<'f> {
    forms: &'f mut Forms,
    /// Edges that lead back to a form around them.
    back: HashSet<(FormId, FormId)>,
    /// The copy of a form at each level.
    known: HashMap<(FormId, usize), FormId>,
    unwritten: Vec<(FormId, usize)>,
    /// For each form that is JSON in a string somewhere, the form that says so.
    texts: HashMap<FormId, FormId>,
}

impl Copies<'_> {
    /// The copy of a form at a level.
    fn at(&mut self, id: FormId, level: usize) -> FormId {
        if let Some(known) = self.known.get(&(id, level)) {
            return *known;
        }
        let copy = self.forms.reserve();
        self.known.insert((id, level), copy);
        self.unwritten.push((id, level));
        copy
    }

    /// The form that an edge leads to from a form at a level.
    fn edge(&mut self, from: FormId, to: FormId, level: usize) -> FormId {
        match level + usize::from(self.back.contains(&(from, to))) {
            level if level < LEVELS => self.at(to, level),
            _ => {
                // The original stays as it is, so that the words about the text have all of it.
                let forms = &mut *self.forms;
                *self.texts.entry(to).or_insert_with(|| forms.add(Form::of(Shape::Same(to))))
            }
        }
    }
}

/// Returns the edges that lead back to a form around them, on the way from the root. Without them there are no circles.
fn back_edges(forms: &Forms) -> HashSet<(FormId, FormId)> {
    let inner = |id: FormId| {
        let mut inner = Vec::new();
        for alternative in &forms[id].alternatives {
            alternative.shape.each_inner(|form| inner.push(form));
        }
        inner
    };
    let mut back = HashSet::new();
    let (mut seen, mut open) = (HashSet::from([forms.root]), HashSet::from([forms.root]));
    let mut stack = vec![(forms.root, inner(forms.root), 0)];
    while let Some((id, all, next)) = stack.last_mut() {
        let id = *id;
        let Some(form) = all.get(*next).copied() else {
            open.remove(&id);
            stack.pop();
            continue;
        };
        *next += 1;
        if open.contains(&form) {
            back.insert((id, form));
        } else if seen.insert(form) {
            open.insert(form);
            stack.push((form, inner(form), 0));
        }
    }
    back
}
