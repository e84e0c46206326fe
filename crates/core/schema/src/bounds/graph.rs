//! The references between the parts of a schema, as a graph.
//!
//! The schema has to be [normalised](formwork_core::normalise), so that every reference is `#/$defs/name`.

use std::collections::HashMap;

use formwork_core::keywords::{self, At, Part, Role, definition_name};
use serde_json::Value;

/// Returns the subschemas of a schema, without definitions and the schema that it refers to.
pub(crate) fn parts(schema: &Value) -> impl Iterator<Item = Part<'_>> {
    keywords::parts(schema).filter(|part| part.keyword.role != Role::Definitions)
}

/// The root and the definitions of a schema by their numbers; the root has number 0.
pub(crate) struct Graph<'s> {
    pub(crate) units: Vec<&'s Value>,
    pub(crate) names: Vec<&'s str>,
    numbers: HashMap<&'s str, usize>,
}

impl<'s> Graph<'s> {
    pub(crate) fn new(normal: &'s Value) -> Self {
        let mut graph = Self { units: vec![normal], names: vec![""], numbers: HashMap::new() };
        for (name, unit) in normal.get("$defs").and_then(Value::as_object).into_iter().flatten() {
            graph.numbers.insert(name, graph.units.len());
            graph.units.push(unit);
            graph.names.push(name);
        }
        graph
    }

    /// Returns the number of the definition that a schema refers to.
    pub(crate) fn target(&self, schema: &Value) -> Option<usize> {
        // `$recursiveRef` refers to the root, or to a schema in its place.
        let recursive = schema.get("$recursiveRef").map(|_| 0);
        definition_name(schema).and_then(|name| self.numbers.get(name).copied()).or(recursive)
    }

    /// Returns the definitions that each unit refers to, one entry per reference: all, or with `only_here` those for the
    /// value itself.
    pub(crate) fn edges(&self, only_here: bool) -> Vec<Vec<usize>> {
        let of = |unit: &&Value| {
            let mut found = Vec::new();
            self.collect(unit, only_here, &mut found);
            found
        };
        self.units.iter().map(of).collect()
    }

    fn collect(&self, schema: &Value, only_here: bool, found: &mut Vec<usize>) {
        found.extend(self.target(schema));
        for part in parts(schema) {
            if !only_here || part.keyword.at == At::Here {
                self.collect(part.schema, only_here, found);
            }
        }
    }
}

/// Returns the strongly connected groups of nodes; each group comes after all groups that it leads to.
///
/// Tarjan's algorithm without recursion, because a chain of references may be as long as the schema.
pub(crate) fn groups(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let mut index = vec![NEW; edges.len()];
    let mut low = vec![0; edges.len()];
    let mut open = vec![false; edges.len()];
    let (mut stack, mut groups, mut next) = (Vec::new(), Vec::new(), 0);
    for root in 0..edges.len() {
        if index[root] != NEW {
            continue;
        }
        let mut frames = vec![(root, 0)];
        while let Some((node, at)) = frames.pop() {
            if at == 0 {
                (index[node], low[node], open[node]) = (next, next, true);
                next += 1;
                stack.push(node);
            }
            if let Some(&to) = edges[node].get(at) {
                frames.push((node, at + 1));
                if index[to] == NEW {
                    frames.push((to, 0));
                } else if open[to] {
                    low[node] = low[node].min(index[to]);
                }
                continue;
            }
            if let Some(&(parent, _)) = frames.last() {
                low[parent] = low[parent].min(low[node]);
            }
            if low[node] == index[node] {
                let from = stack.iter().rposition(|open| *open == node).unwrap_or(0);
                let group = stack.split_off(from);
                group.iter().for_each(|node| open[*node] = false);
                groups.push(group);
            }
        }
    }
    groups
}

/// Returns whether a group refers back to itself.
pub(crate) fn is_cycle(group: &[usize], edges: &[Vec<usize>]) -> bool {
    group.len() > 1 || group.iter().any(|node| edges[*node].contains(node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns whether one node leads to another.
    fn reaches(edges: &[Vec<usize>], from: usize, to: usize) -> bool {
        let (mut seen, mut open) = (vec![false; edges.len()], edges[from].clone());
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut seen[node], true) {
                open.extend(&edges[node]);
            }
        }
        seen[to]
    }

    proptest! {
        #[test]
        fn groups_are_what_leads_to_each_other(
            edges in (1usize..9).prop_flat_map(|size| {
                prop::collection::vec(prop::collection::vec(0..size, 0..4), size)
            })
        ) {
            let groups = groups(&edges);
            let mut group_of = vec![usize::MAX; edges.len()];
            for (number, group) in groups.iter().enumerate() {
                group.iter().for_each(|node| group_of[*node] = number);
            }
            for a in 0..edges.len() {
                for b in 0..edges.len() {
                    let both = a == b || (reaches(&edges, a, b) && reaches(&edges, b, a));
                    prop_assert_eq!(group_of[a] == group_of[b], both);
                }
                for to in &edges[a] {
                    prop_assert!(group_of[*to] <= group_of[a], "what is led to comes first");
                }
            }
        }
    }
}
