//! Computes how deeply objects and arrays are nested.

use crate::form::{FormId, Forms, Shape};

/// Returns the forms whose objects and arrays are nested deeper than `limit` containers, counted from the root.
/// Recursion counts once.
pub(crate) fn too_deep(forms: &Forms, limit: usize) -> Vec<FormId> {
    let Walk { order, edges, .. } = Walk::of(forms);
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
    let Walk { order, edges, .. } = Walk::of(forms);
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
    let Walk { order, back, .. } = Walk::of(forms);
    let edges = |id: FormId| back[id.index()].iter().map(move |to| (id, *to)).collect::<Vec<_>>();
    order.into_iter().flat_map(edges).collect()
}

/// Returns the root and all forms below it.
pub(crate) fn reached(forms: &Forms) -> Vec<FormId> {
    Walk::of(forms).order
}

/// Returns how often each form is used, without the uses that close a cycle.
pub(crate) fn uses(forms: &Forms) -> Vec<usize> {
    let mut uses = vec![0; forms.len()];
    Walk::of(forms).edges.iter().flatten().for_each(|(inner, _)| uses[inner.index()] += 1);
    uses
}

/// The root and all forms below it.
struct Walk {
    /// The forms, the innermost first.
    order: Vec<FormId>,
    /// The inner forms of each form, and whether a container is in between. Edges that close a cycle are left out.
    edges: Vec<Vec<(FormId, bool)>>,
    /// The inner forms of each form that contain it.
    back: Vec<Vec<FormId>>,
}

impl Walk {
    fn of(forms: &Forms) -> Self {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; forms.len()];
        let (mut edges, mut back) = (vec![Vec::new(); forms.len()], vec![Vec::new(); forms.len()]);
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
            } else if !back[id.index()].contains(&form) {
                back[id.index()].push(form);
            }
            if marks[form.index()] == Mark::New {
                marks[form.index()] = Mark::Open;
                stack.push((form, inner(forms, form), 0));
            }
        }
        Self { order, edges, back }
    }
}

fn inner(forms: &Forms, id: FormId) -> Vec<(FormId, bool)> {
    let mut out = Vec::new();
    for alternative in &forms[id].alternatives {
        let is_inside = !matches!(alternative.shape, Shape::Same(_));
        alternative.shape.each_inner(|form| out.push((form, is_inside)));
    }
    out
}
