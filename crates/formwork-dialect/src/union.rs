use serde_json::Value;

use crate::flat::{At, Definitions, Flat};
use crate::form::Alternative;
use crate::kinds::{self, Kinds};

/// The most branches of which each pair is compared.
const MAX_COMPARED: usize = 64;

/// Whether no value satisfies two of these schemas, as far as types, listed values and tags tell.
pub(crate) fn are_disjoint<'a>(definitions: &Definitions<'a>, branches: &[At<'a>]) -> bool {
    if branches.len() > MAX_COMPARED {
        return false;
    }
    let looks: Vec<_> = branches.iter().filter_map(|branch| Look::at(definitions, branch)).collect();
    looks.iter().enumerate().all(|(index, one)| looks[index + 1..].iter().all(|other| one.excludes(other)))
}

/// What tells a branch from others.
struct Look<'a> {
    kinds: Kinds,
    literals: Option<Vec<Value>>,
    /// The values that required properties may have.
    tags: Vec<(&'a str, Vec<Value>)>,
    required: Vec<&'a str>,
    /// The names that it allows, if it allows no others.
    closed: Option<Vec<&'a str>>,
}

impl<'a> Look<'a> {
    /// `None` for a branch that nothing satisfies.
    fn at(definitions: &Definitions<'a>, branch: &At<'a>) -> Option<Self> {
        let mut flat = Flat::default();
        // A recursive branch is entered once; that is enough to see its tags.
        if !definitions.flatten(branch.clone(), &mut flat) {
            return None;
        }
        let kinds = flat.members.iter().fold(Kinds::ALL, |kinds, at| kinds.and(Kinds::of(at.node)));
        let names = |at: &At<'a>, keyword: &str| -> Vec<&'a str> {
            let names = at.node.get(keyword).and_then(Value::as_array).into_iter().flatten();
            names.filter_map(Value::as_str).collect()
        };
        let required: Vec<_> = flat.members.iter().flat_map(|at| names(at, "required")).collect();
        let mut tags = Vec::new();
        let mut closed = None;
        for at in &flat.members {
            let Some(properties) = at.node.get("properties").and_then(Value::as_object) else { continue };
            if at.node.get("additionalProperties") == Some(&Value::Bool(false)) {
                closed = Some(properties.keys().map(String::as_str).collect());
            }
            for (name, _) in properties {
                let Some(property) = at.named("properties", name) else { continue };
                let mut inner = Flat::default();
                if required.contains(&name.as_str())
                    && definitions.flatten(property, &mut inner)
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
        let apart = |one: &[Value], other: &[Value]| !one.iter().any(|value| other.contains(value));
        let both = self.kinds.and(other.kinds);
        if both.is_none() {
            return true;
        }
        if let (Some(one), Some(two)) = (&self.literals, &other.literals) {
            return apart(one, two);
        }
        let only_objects = both == Kinds::of(&serde_json::json!({"type": "object"}));
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

/// Puts listed values together and leaves out what stands twice.
pub(crate) fn merge(alternatives: &mut Vec<Alternative>) {
    let mut out: Vec<Alternative> = Vec::with_capacity(alternatives.len().min(64));
    let mut literals: Option<usize> = None;
    for alternative in alternatives.drain(..) {
        match (alternative, literals) {
            (Alternative::Literals(more), Some(at)) => {
                if let Alternative::Literals(known) = &mut out[at] {
                    let is_new = |value: &Value| !known.values.contains(value);
                    let new: Vec<_> = more.values.into_iter().filter(is_new).collect();
                    known.values.extend(new);
                }
            }
            (alternative, _) => {
                if matches!(alternative, Alternative::Literals(_)) {
                    literals = Some(out.len());
                }
                if out.len() > 256 || !out.contains(&alternative) {
                    out.push(alternative);
                }
            }
        }
    }
    *alternatives = out;
}
