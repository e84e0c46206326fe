//! Decides whether alternatives exclude each other, and merges equal ones.

use formwork_json::is_same;
use serde_json::Value;

use super::containers::strings;
use super::flat::{At, Definitions, Flat};
use super::kinds::{self, Kinds};
use crate::form::{Alternative, Literals, Shape};
use crate::place::Places;

/// The maximum number of branches that are compared in pairs.
const MAX_COMPARED: usize = 64;

/// Returns whether types, enumerated values or tags prove that no value satisfies two of these schemas.
pub(super) fn are_disjoint<'a>(
    definitions: &mut Definitions<'a>,
    places: &mut Places,
    branches: &[At<'a>],
) -> bool {
    if branches.len() > MAX_COMPARED {
        return false;
    }
    let looks: Vec<_> = branches.iter().filter_map(|branch| Look::at(definitions, places, *branch)).collect();
    looks.iter().enumerate().all(|(index, one)| looks[index + 1..].iter().all(|other| one.excludes(other)))
}

/// The features that distinguish a branch.
struct Look<'a> {
    kinds: Kinds,
    literals: Option<Vec<Value>>,
    /// The possible values of required properties.
    tags: Vec<(&'a str, Vec<Value>)>,
    required: Vec<&'a str>,
    /// The allowed names, if no others are allowed.
    closed: Option<Vec<&'a str>>,
}

impl<'a> Look<'a> {
    /// Returns the features of a branch; `None` if nothing satisfies it.
    fn at(definitions: &mut Definitions<'a>, places: &mut Places, branch: At<'a>) -> Option<Self> {
        let mut flat = Flat::default();
        if !definitions.flatten(branch, &mut flat, places) {
            return None;
        }
        let kinds = flat.members.iter().fold(Kinds::ALL, |kinds, at| kinds.and(Kinds::of(at.node)));
        let required: Vec<_> = flat.members.iter().flat_map(|at| strings(at.node, "required")).collect();
        let mut tags = Vec::new();
        let mut closed = None;
        for at in &flat.members {
            let Some(properties) = at.node.get("properties").and_then(Value::as_object) else { continue };
            if at.node.get("additionalProperties") == Some(&Value::Bool(false)) {
                closed = Some(properties.keys().map(String::as_str).collect());
            }
            for (name, _) in properties {
                if !required.contains(&name.as_str()) {
                    continue;
                }
                let Some(property) = at.named("properties", name, places) else { continue };
                let mut inner = Flat::default();
                if definitions.flatten(property, &mut inner, places)
                    && let Some(values) = kinds::literals(&inner.members, Kinds::ALL)
                {
                    tags.push((name.as_str(), values));
                }
            }
        }
        let literals = kinds::literals(&flat.members, kinds);
        Some(Self { kinds, literals, tags, required, closed })
    }

    fn excludes(&self, other: &Self) -> bool {
        let apart = |one: &[Value], two: &[Value]| {
            !one.iter().any(|value| two.iter().any(|other| is_same(value, other)))
        };
        let both = self.kinds.and(other.kinds);
        if both.is_none() {
            return true;
        }
        if let (Some(one), Some(two)) = (&self.literals, &other.literals) {
            return apart(one, two);
        }
        let only_objects = both == Kinds::OBJECT;
        let tagged = self
            .tags
            .iter()
            .any(|(name, one)| other.tags.iter().any(|(same, two)| name == same && apart(one, two)));
        let misses = |one: &Self, two: &Self| {
            one.closed.as_ref().is_some_and(|names| two.required.iter().any(|name| !names.contains(name)))
        };
        only_objects && (tagged || misses(self, other) || misses(other, self))
    }
}

/// Merges enumerated values, removes duplicates, and keeps nothing beside an alternative for any value.
pub(super) fn merge(alternatives: &mut Vec<Alternative>) {
    if let Some(any) = alternatives.iter().position(|one| one.shape == Shape::Any) {
        let any = alternatives.swap_remove(any);
        *alternatives = vec![any];
        return;
    }
    let is_long = alternatives.len() > 256;
    let mut out: Vec<Alternative> = Vec::with_capacity(alternatives.len());
    let mut literals: Option<usize> = None;
    for mut alternative in alternatives.drain(..) {
        let described = alternative.notes.description().map(str::to_owned);
        if let Shape::Literals(more) = &mut alternative.shape {
            // The description of a branch with a single value becomes the description of that value.
            if let ([only], Some(_)) = (more.values.as_mut_slice(), &described)
                && only.description.is_none()
            {
                only.description = described;
                alternative.notes = crate::form::Notes::NONE;
            }
            if let Some(known) = literals.and_then(|at| out.get_mut(at))
                && let Shape::Literals(known) = &mut known.shape
            {
                for literal in more.values.drain(..) {
                    if is_long || !contains(known, &literal.value) {
                        known.values.push(literal);
                    }
                }
                continue;
            }
            literals = Some(out.len());
        }
        if is_long || !out.iter().any(|known| known.shape == alternative.shape) {
            out.push(alternative);
        }
    }
    *alternatives = out;
}

/// Returns whether a value is among enumerated ones.
fn contains(literals: &Literals, value: &Value) -> bool {
    literals.values.iter().any(|known| is_same(&known.value, value))
}
