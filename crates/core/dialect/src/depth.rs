//! Computes how deeply objects and arrays are nested.

use crate::form::{FormId, Forms, Shape};

/// Returns the forms whose objects and arrays are nested deeper than `limit` containers, counted from the root.
/// Recursion counts once.
pub(crate) fn too_deep(forms: &Forms, limit: usize) -> Vec<FormId> {
    let (order, edges) = ordered(forms);
    let mut outer = vec![0_usize; forms.len()];
    let mut found = Vec::new();
    for id in order.into_iter().rev() {
        let is_container = forms[id]
            .alternatives
            .iter()
            .any(|alternative| matches!(alternative.shape, Shape::Array(_) | Shape::Object(_)));
        if is_container && outer[id.index()] + 1 > limit {
            found.push(id);
        }
        for (inner, is_inside) in &edges[id.index()] {
            let level = outer[id.index()] + usize::from(*is_inside);
            outer[inner.index()] = outer[inner.index()].max(level);
        }
    }
    found
}

/// Returns the form whose repetition makes a schema without references longest, if the schema is too long. Without
/// references, a form that is used twice is written twice, with all its contents.
pub(crate) fn too_often(forms: &Forms) -> Option<FormId> {
    let (order, edges) = ordered(forms);
    let mut size = vec![1_u64; forms.len()];
    for id in &order {
        let inside = edges[id.index()].iter().map(|(inner, _)| size[inner.index()]);
        size[id.index()] = inside.fold(1, u64::saturating_add);
    }
    if size[forms.root.index()] <= 2 * order.len() as u64 + 32 {
        return None;
    }
    let mut places = vec![0_u64; forms.len()];
    places[forms.root.index()] = 1;
    for id in order.iter().rev() {
        for (inner, _) in &edges[id.index()] {
            places[inner.index()] = places[inner.index()].saturating_add(places[id.index()]);
        }
    }
    let surplus = |id: &FormId| (places[id.index()].saturating_sub(1)).saturating_mul(size[id.index()]);
    order.into_iter().filter(|id| size[id.index()] > 1 && surplus(id) > 0).max_by_key(surplus)
}

/// Returns the edges from a form to a form that contains it, in the order of discovery.
pub(crate) fn circles(forms: &Forms) -> Vec<(FormId, FormId)> {
    let mut found = Vec::new();
    let (order, edges) = ordered(forms);
    for id in order {
        let mut kept = edges[id.index()].iter().map(|(inner, _)| *inner).peekable();
        for (all, _) in inner(forms, id) {
            if kept.peek() == Some(&all) {
                kept.next();
            } else if !found.contains(&(id, all)) {
                found.push((id, all));
            }
        }
    }
    found
}

/// The inner forms of each form, and whether a container is in between. Edges that close a cycle are left out.
type Edges = Vec<Vec<(FormId, bool)>>;

/// Returns all forms below the root, the innermost first, with their edges.
fn ordered(forms: &Forms) -> (Vec<FormId>, Edges) {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; forms.len()];
    let mut edges: Edges = vec![Vec::new(); forms.len()];
    let mut order = Vec::with_capacity(forms.len());
    let mut stack = vec![(forms.root, inner(forms, forms.root), 0)];
    marks[forms.root.index()] = Mark::Open;
    while let Some((id, all, next)) = stack.last_mut() {
        let id = *id;
        let Some((form, is_inside)) = all.get(*next).copied() else {
            marks[id.index()] = Mark::Done;
            order.push(id);
            stack.pop();
            continue;
        };
        *next += 1;
        if marks[form.index()] != Mark::Open {
            edges[id.index()].push((form, is_inside));
        }
        if marks[form.index()] == Mark::New {
            marks[form.index()] = Mark::Open;
            stack.push((form, inner(forms, form), 0));
        }
    }
    (order, edges)
}

fn inner(forms: &Forms, id: FormId) -> Vec<(FormId, bool)> {
    let mut out = Vec::new();
    for alternative in &forms[id].alternatives {
        let is_inside = !matches!(alternative.shape, Shape::Same(_));
        alternative.shape.each_inner(|form| out.push((form, is_inside)));
    }
    out
}
