//! The places of the contract's values in an answer.

use std::collections::{HashMap, HashSet};

use formwork_json::{JsonPath, Segment};
use serde_json::Value;

use crate::keywords::{Holds, Role, find, keyword, target};
use crate::{Lift, LiftOp, Lowered};

/// The places of the contract's values in an answer.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The member of the answer that is the document, if the answer itself is not.
    pub(crate) below: Option<String>,
    /// The names of the members whose values have another form in the answer than in the document, wherever they are; `None` if that
    /// can be the whole document.
    moved: Option<HashSet<String>>,
    /// The names of the members that have a value where the document has none.
    absent: HashSet<String>,
}

impl Places {
    pub(crate) fn of(lowered: &Lowered) -> Self {
        let schema = lowered.schema.as_ref().unwrap_or(&Value::Null);
        let (mut moved, mut nodes, mut places) = (HashSet::new(), Vec::new(), Self::default());
        for LiftOp { at, lift } in &lowered.lift {
            match lift {
                Lift::Reorder(_) | Lift::DropNull(_) => {}
                Lift::DropAbsent { names, .. } => places.absent.extend(names.iter().cloned()),
                Lift::Unlist(names) => moved.extend(names.iter().cloned()),
                Lift::Unwrap(name) if at.is_empty() && places.below.is_none() => {
                    places.below = Some(name.clone())
                }
                _ => nodes.extend(schema.pointer(at)),
            }
        }
        let around = if nodes.is_empty() { Some(HashSet::new()) } else { members_around(nodes, schema) };
        let around = around.filter(|names| places.below.as_ref().is_none_or(|name| !names.contains(name)));
        places.moved = around.map(|names| &names | &moved);
        places
    }

    /// Returns the names of the members that the contract cannot judge before they are lifted; `None` if that can be the whole document.
    pub(crate) fn undecided(&self) -> Option<HashSet<String>> {
        Some(self.moved.as_ref()? | &self.absent)
    }

    /// Returns whether the value at a path of the answer is one whose form changes, or inside of one.
    pub(crate) fn moves(&self, path: &JsonPath) -> bool {
        self.moved.as_ref().is_none_or(|moved| path.segments().iter().any(|step| is_named(step, moved)))
    }

    /// Returns the path in the contract's document of a path in the answer, up to a value whose form changes.
    pub(crate) fn lifted(&self, path: &JsonPath) -> JsonPath {
        let steps = match (&self.below, path.segments()) {
            (Some(name), [Segment::Key(first), rest @ ..]) if first == name => rest,
            (_, steps) => steps,
        };
        let Some(moved) = &self.moved else { return JsonPath::root() };
        let end = steps.iter().position(|step| is_named(step, moved)).map_or(steps.len(), |at| at + 1);
        steps.iter().take(end).cloned().collect()
    }
}

fn is_named(step: &Segment, names: &HashSet<String>) -> bool {
    matches!(step, Segment::Key(name) if names.contains(name))
}

/// Returns the names of the innermost members around the values of these nodes; `None` if one of the values can be the document or in no
/// member with a name of its own.
fn members_around(nodes: Vec<&Value>, schema: &Value) -> Option<HashSet<String>> {
    let mut around: HashMap<*const Value, Vec<&Value>> = HashMap::new();
    let mut names: HashMap<*const Value, Vec<&String>> = HashMap::new();
    find(schema, |node| {
        let mut inner: Vec<&Value> = target(schema, node).into_iter().collect();
        for (name, value) in node.as_object().into_iter().flatten() {
            let parts = || value.as_object().into_iter().flatten();
            match keyword(name) {
                _ if name == "properties" => {
                    parts().for_each(|(name, member)| names.entry(member).or_default().push(name));
                }
                Some(keyword) if keyword.role == Role::Definitions => {}
                Some(keyword) if keyword.holds == Holds::Map => inner.extend(parts().map(|(_, part)| part)),
                _ => inner.extend(value.as_array().into_iter().flatten().chain([value])),
            }
        }
        inner.into_iter().for_each(|inner| around.entry(inner).or_default().push(node));
        false
    });
    let (mut open, mut seen, mut found) = (nodes, HashSet::new(), HashSet::new());
    while let Some(node) = open.pop() {
        let at = std::ptr::from_ref(node);
        if std::ptr::eq(node, schema) {
            return None;
        }
        if seen.insert(at) {
            found.extend(names.get(&at).into_iter().flatten().map(|name| (*name).clone()));
            open.extend(around.get(&at).into_iter().flatten());
        }
    }
    Some(found)
}
