//! Unrolls recursive definitions, for dialects without recursion.

use crate::depth::circles;
use crate::form::{Form, FormId, Forms, Shape};
use foldhash::{HashMap, HashSet};

/// The number of copies of a definition inside each other; the next level is JSON in a string.
const LEVELS: usize = 2;

/// Unrolls recursive definitions to [`LEVELS`]. Returns the forms of the next level, which become JSON in a string.
pub(super) fn unroll(forms: &mut Forms) -> HashSet<FormId> {
    let back = circles(forms).into_iter().collect();
    let mut copies =
        Copies { forms, back, known: HashMap::default(), unwritten: Vec::new(), texts: HashMap::default() };
    if copies.back.is_empty() {
        return HashSet::default();
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
    /// The edges to a form that contains the edge.
    back: HashSet<(FormId, FormId)>,
    /// The copy of a form at each level.
    known: HashMap<(FormId, usize), FormId>,
    unwritten: Vec<(FormId, usize)>,
    /// The form of JSON in a string for each form that becomes one somewhere.
    texts: HashMap<FormId, FormId>,
}

impl Copies<'_> {
    /// Returns the copy of a form at a level.
    fn at(&mut self, id: FormId, level: usize) -> FormId {
        if let Some(known) = self.known.get(&(id, level)) {
            return *known;
        }
        let copy = self.forms.reserve();
        self.known.insert((id, level), copy);
        self.unwritten.push((id, level));
        copy
    }

    /// Returns the target of an edge from a form at a level.
    fn edge(&mut self, from: FormId, to: FormId, level: usize) -> FormId {
        match level + usize::from(self.back.contains(&(from, to))) {
            level if level < LEVELS => self.at(to, level),
            _ => {
                // The original stays unchanged, so that the description of the string is complete.
                let forms = &mut *self.forms;
                *self.texts.entry(to).or_insert_with(|| forms.add(Form::of(Shape::Same(to))))
            }
        }
    }
}
