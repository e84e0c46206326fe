//! Removes impossible alternatives, and merges equal ones.

use foldhash::HashMap;
use formwork_core::LossKind;

use super::{Losses, union};
use crate::form::{Alternative, ArrayForm, Form, FormId, Forms, Literals, ObjectForm, Shape};

/// The maximum number of alternatives that are copied from a form among the alternatives of another.
const MAX_INLINED: usize = 4;

/// Removes alternatives that no finite document satisfies, and simplifies the others.
pub(super) fn prune(forms: &mut Forms, losses: &mut Losses) {
    let possible = possible(forms);
    for id in forms.ids() {
        let mut form = std::mem::take(forms.get_mut(id));
        form.alternatives.retain(|alternative| is_possible(&alternative.shape, &possible));
        for alternative in &mut form.alternatives {
            match &mut alternative.shape {
                Shape::Object(object) => prune_object(object, &possible, forms, losses),
                Shape::Array(array) => prune_array(array, &possible),
                _ => {}
            }
        }
        forms.set(id, form);
    }
    break_circles(forms);
    for id in forms.ids() {
        inline_small(forms, id);
    }
    for id in forms.ids() {
        let form = forms.get_mut(id);
        union::merge(&mut form.alternatives);
    }
}

/// Returns for each form whether some finite document satisfies it: the least fixed point.
fn possible(forms: &Forms) -> Vec<bool> {
    let mut users: HashMap<FormId, Vec<FormId>> = HashMap::default();
    for id in forms.ids() {
        for alternative in &forms[id].alternatives {
            alternative.shape.each_inner(|inner| users.entry(inner).or_default().push(id));
        }
    }
    let mut possible = vec![false; forms.len()];
    let mut queue: Vec<FormId> = forms.ids().collect();
    while let Some(id) = queue.pop() {
        if possible[id.index()] {
            continue;
        }
        if forms[id].alternatives.iter().any(|alternative| is_possible(&alternative.shape, &possible)) {
            possible[id.index()] = true;
            queue.extend(users.get(&id).into_iter().flatten());
        }
    }
    possible
}

fn is_possible(shape: &Shape, possible: &[bool]) -> bool {
    let holds = |id: FormId| possible[id.index()];
    match shape {
        Shape::Same(inner) => holds(*inner),
        Shape::Array(array) => {
            let first = array.prefix.iter().take(usize::try_from(array.min).unwrap_or(usize::MAX));
            first.clone().all(|item| holds(item.form))
                && (array.min <= array.prefix.len() as u64
                    || array.items.as_ref().is_some_and(|items| holds(items.form)))
        }
        Shape::Object(object) => {
            let required = object.properties.iter().filter(|property| property.required);
            let named = object.properties.iter().filter(|property| holds(property.value.form)).count() as u64;
            let has_extras = object.extras.iter().any(|extra| holds(extra.value.form));
            required.clone().all(|property| holds(property.value.form))
                && (has_extras || object.min <= named)
                && object.max.is_none_or(|max| required.count() as u64 <= max && object.min <= max)
        }
        Shape::Literals(literals) => !literals.values.is_empty(),
        _ => true,
    }
}

fn prune_object(object: &mut ObjectForm, possible: &[bool], forms: &Forms, losses: &mut Losses) {
    object.extras.retain(|extra| possible[extra.value.form.index()]);
    let count = object.properties.len();
    object.properties.retain(|property| possible[property.value.form.index()]);
    // A name that was removed is one of the other names from here on.
    if object.properties.len() < count && !object.extras.is_empty() && !object.is_unsaid {
        losses.insert((forms.places.pointer(object.origin), "properties".to_owned(), LossKind::Loosened));
    }
}

fn prune_array(array: &mut ArrayForm, possible: &[bool]) {
    let is_impossible = |form: FormId| !possible[form.index()];
    if let Some(end) = array.prefix.iter().position(|item| is_impossible(item.form)) {
        array.prefix.truncate(end);
        array.items = None;
    }
    if array.items.as_ref().is_some_and(|items| is_impossible(items.form)) {
        array.items = None;
    }
    if array.items.is_none() {
        array.max = Some(array.max.unwrap_or(u64::MAX).min(array.prefix.len() as u64));
    }
}

/// Forms among their own alternatives, directly or indirectly, add nothing there: the alternatives of all forms in the
/// cycle remain.
fn break_circles(forms: &mut Forms) {
    for id in forms.ids() {
        let mut reached = Vec::new();
        collect_same(forms, id, &mut reached);
        if !reached.contains(&id) {
            continue;
        }
        let in_circle = |other: FormId| {
            let mut back = Vec::new();
            collect_same(forms, other, &mut back);
            back.contains(&id)
        };
        let circle: Vec<_> = reached.iter().copied().filter(|other| in_circle(*other)).collect();
        let leaves = |alternative: &&Alternative| match &alternative.shape {
            Shape::Same(inner) => !circle.contains(inner),
            _ => true,
        };
        let parts = std::iter::once(id).chain(circle.iter().copied().filter(|other| *other != id));
        let alternatives: Vec<_> =
            parts.flat_map(|part| forms[part].alternatives.iter().filter(leaves).cloned()).collect();
        forms.get_mut(id).alternatives = alternatives;
    }
}

/// Collects the forms among the alternatives of a form, directly or indirectly.
fn collect_same(forms: &Forms, id: FormId, out: &mut Vec<FormId>) {
    let mut queue = vec![id];
    while let Some(id) = queue.pop() {
        for alternative in &forms[id].alternatives {
            if let Shape::Same(inner) = alternative.shape
                && !out.contains(&inner)
            {
                out.push(inner);
                queue.push(inner);
            }
        }
    }
}

/// Copies the alternatives of small forms to their places of use among others.
fn inline_small(forms: &mut Forms, id: FormId) {
    let is_only = forms[id].alternatives.len() == 1;
    let mut out = Vec::with_capacity(forms[id].alternatives.len());
    for alternative in forms[id].alternatives.clone() {
        match alternative.shape {
            Shape::Same(inner) if is_only || is_small(&forms[inner]) => {
                // A form that only refers to another one is replaced by it.
                let Form { alternatives, notes, .. } = &forms[inner];
                for one in alternatives {
                    let mut own = alternative.notes.clone();
                    own.or(one.notes.clone());
                    if !is_only {
                        own.or(notes.clone());
                    }
                    out.push(Alternative {
                        notes: own,
                        is_unsaid: one.is_unsaid || alternative.is_unsaid,
                        ..one.clone()
                    });
                }
                if is_only {
                    let notes = notes.clone();
                    forms.get_mut(id).notes.or(notes);
                }
            }
            _ => out.push(alternative),
        }
    }
    forms.get_mut(id).alternatives = out;
}

/// Returns whether a form only has a few scalars or types.
fn is_small(form: &Form) -> bool {
    form.alternatives.len() <= MAX_INLINED
        && form.alternatives.iter().all(|alternative| {
            matches!(
                alternative.shape,
                Shape::Any
                    | Shape::Null
                    | Shape::Boolean
                    | Shape::Number(_)
                    | Shape::String(_)
                    | Shape::Literals(Literals { .. })
            )
        })
}
