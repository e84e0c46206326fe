//! Measures the work that a schema can cause, before it is compiled.

use std::collections::HashSet;

use formwork_core::keywords::At;
use serde_json::Value;

use super::graph::{Graph, groups, is_cycle, parts};

/// Upper bounds on the time and the stack that a schema needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Measure {
    /// The maximum cost of one value, for the root and each definition.
    pub(crate) units: Vec<Reach>,
    /// The maximum depth of parts through references; `None` if the schema refers back to itself, so that the depth depends
    /// on the value.
    pub(crate) levels: Option<usize>,
    /// The maximum depth of parts while the schema is compiled.
    pub(crate) compiling: usize,
    /// The number of parts if every reference is written out. [`u64::MAX`] if a member of a value can be reached in several
    /// ways at every level.
    pub(crate) unfolded: u64,
    /// The number of parts of the schema as written.
    pub(crate) parts: u64,
}

/// The cost of comparing one value with a part of a schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The number of parts that it is compared with, counted once for each way to them.
    pub(crate) ways: u64,
    /// The depth of these parts.
    pub(crate) levels: usize,
}

/// The number of nested schemas that jsonschema compiles before it postpones references, plus the root.
const COMPILED_AT_ONCE: usize = 9;

impl Measure {
    /// Measures a normalised schema, which has to be [`shallow`](super::shallow).
    pub(crate) fn of(normal: &Value) -> Self {
        let graph = Graph::new(normal);
        let nested: Vec<usize> = graph.units.iter().map(|unit| nesting(unit)).collect();
        let mut sorted = nested.clone();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let mut work = Work::new(&graph);
        let here = graph.edges(true);
        for group in groups(&here) {
            work.settle(&group, &here);
        }
        let mut measure = Self {
            units: Vec::with_capacity(graph.units.len()),
            levels: None,
            compiling: sorted.iter().take(COMPILED_AT_ONCE).sum(),
            unfolded: 0,
            parts: graph.units.iter().map(|unit| size(unit)).sum(),
        };
        for (number, unit) in graph.units.iter().enumerate() {
            // A part of a cycle costs more than its own keywords.
            let mut max = work.reach[number];
            work.every(unit, &mut |reach| {
                max = Reach { ways: max.ways.max(reach.ways), levels: max.levels.max(reach.levels) };
            });
            measure.units.push(max);
        }
        (measure.levels, measure.unfolded) = unfolded(&graph, &nested);
        measure
    }
}

/// Returns the depth of a schema as written, in parts.
pub(crate) fn nesting(schema: &Value) -> usize {
    1 + parts(schema).map(|part| nesting(part.schema)).max().unwrap_or(0)
}

/// Returns the number of schemas in a schema as written, itself included.
pub(crate) fn size(schema: &Value) -> u64 {
    1 + parts(schema).map(|part| size(part.schema)).sum::<u64>()
}

/// The cost of one value, for each unit.
struct Work<'g> {
    graph: &'g Graph<'g>,
    reach: Vec<Reach>,
}

impl<'g> Work<'g> {
    fn new(graph: &'g Graph<'g>) -> Self {
        Self { graph, reach: vec![Reach::default(); graph.units.len()] }
    }

    /// Counts the units of a group, after all units that the group refers to.
    fn settle(&mut self, group: &[usize], edges: &[Vec<usize>]) {
        let own: Vec<Reach> =
            group.iter().map(|unit| self.every(self.graph.units[*unit], &mut |_| {})).collect();
        let mut reach = own.first().copied().unwrap_or_default();
        if is_cycle(group, edges) {
            // Each way passes a unit once, and leaves it by one of its references into the group.
            let members: HashSet<&usize> = group.iter().collect();
            let inner = |unit: &usize| edges[*unit].iter().filter(|to| members.contains(to)).count() as u64;
            let turns = group.iter().map(|unit| inner(unit).max(1)).fold(1, u64::saturating_mul);
            let each = own.iter().map(|reach| reach.ways).fold(0, u64::saturating_add);
            reach.ways = each.saturating_mul(turns).saturating_mul(group.len() as u64);
            reach.levels = own.iter().map(|reach| reach.levels).sum();
        }
        for unit in group {
            self.reach[*unit] = reach;
        }
    }

    /// Returns the cost of a schema, and calls `found` with the cost of each schema inside it.
    fn every(&self, schema: &Value, found: &mut impl FnMut(Reach)) -> Reach {
        let mut reach = self.graph.target(schema).map(|unit| self.reach[unit]).unwrap_or_default();
        // `unevaluatedProperties` and `unevaluatedItems` evaluate the other keywords a second time.
        let mut again = 1;
        for part in parts(schema) {
            let inner = self.every(part.schema, found);
            if part.keyword.at == At::Here {
                reach.ways = reach.ways.saturating_add(inner.ways);
                reach.levels = reach.levels.max(inner.levels);
            } else if part.keyword.name.starts_with("unevaluated") {
                again = 2;
            }
        }
        reach.ways = reach.ways.saturating_add(1).saturating_mul(again);
        reach.levels += 1;
        found(reach);
        reach
    }
}

/// Returns the depth of a schema through references, and the number of its parts with every reference written out.
fn unfolded(graph: &Graph<'_>, nested: &[usize]) -> (Option<usize>, u64) {
    let edges = graph.edges(false);
    let mut levels = vec![0usize; edges.len()];
    let mut sizes = vec![0u64; edges.len()];
    let mut group_of = vec![usize::MAX; edges.len()];
    let (mut cyclic, mut max) = (false, 0);
    for (number, group) in groups(&edges).into_iter().enumerate() {
        group.iter().for_each(|unit| group_of[*unit] = number);
        let outside = group.iter().flat_map(|unit| &edges[*unit]).map(|to| levels[*to]).max();
        let depth = group.iter().map(|unit| nested[*unit]).sum::<usize>() + outside.unwrap_or(0);
        let mut size = group
            .iter()
            .map(|unit| written_out(graph, graph.units[*unit], &sizes))
            .fold(0, u64::saturating_add);
        if is_cycle(&group, &edges) {
            cyclic = true;
            let back = |schema: &Value| graph.target(schema).is_some_and(|unit| group_of[unit] == number);
            if group.iter().any(|unit| turns(graph.units[*unit], &back) == Turns::Many) {
                size = u64::MAX;
            }
        }
        for unit in group {
            (levels[unit], sizes[unit]) = (depth, size);
        }
        max = max.max(size);
    }
    (if cyclic { None } else { levels.iter().copied().max() }, max)
}

fn written_out(graph: &Graph<'_>, schema: &Value, sizes: &[u64]) -> u64 {
    let referred = graph.target(schema).map_or(0, |unit| sizes[unit]);
    parts(schema)
        .map(|part| written_out(graph, part.schema, sizes))
        .fold(referred.saturating_add(1), u64::saturating_add)
}

/// The number of ways in which a schema refers back to itself for the same member of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turns {
    None,
    One,
    Many,
}

fn turns(schema: &Value, back: &impl Fn(&Value) -> bool) -> Turns {
    let mut ways = usize::from(back(schema));
    let (mut members, mut items) = (false, false);
    for part in parts(schema) {
        match turns(part.schema, back) {
            Turns::Many => return Turns::Many,
            Turns::None => {}
            // Only one of these keywords applies to a member.
            Turns::One => match part.keyword.name {
                "properties" | "additionalProperties" => members = true,
                "items" | "prefixItems" | "additionalItems" => items = true,
                _ => ways += 1,
            },
        }
    }
    match ways + usize::from(members) + usize::from(items) {
        0 => Turns::None,
        // A value is an object or an array, never both.
        1 => Turns::One,
        2 if ways == 0 => Turns::One,
        _ => Turns::Many,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Follows every way for one value, like jsonschema, up to a reference back to a schema on the way.
    fn walk<'s>(normal: &'s Value, schema: &'s Value, behind: &mut Vec<&'s str>, max: u64) -> (u64, usize) {
        let (mut ways, mut levels) = (1, 0);
        let name = formwork_core::keywords::definition_name(schema).filter(|name| !behind.contains(name));
        if let Some((name, unit)) = name.and_then(|name| Some((name, normal["$defs"].get(name)?))) {
            behind.push(name);
            let inner = walk(normal, unit, behind, max);
            behind.pop();
            (ways, levels) = (ways + inner.0, levels.max(inner.1));
        }
        for part in parts(schema).filter(|part| part.keyword.at == At::Here) {
            if ways < max {
                let inner = walk(normal, part.schema, behind, max - ways);
                (ways, levels) = (ways + inner.0, levels.max(inner.1));
            }
        }
        (ways, levels + 1)
    }

    proptest! {
        #[test]
        fn no_way_through_a_schema_is_longer_or_left_out(
            units in prop::collection::vec(prop::collection::vec(0usize..7, 0..4), 7)
        ) {
            let unit = |targets: &Vec<usize>| {
                let to = |unit: &usize| json!({"$ref": format!("#/$defs/d{unit}")});
                json!({"anyOf": targets.iter().map(to).collect::<Vec<_>>()})
            };
            let all: serde_json::Map<_, _> =
                units.iter().enumerate().map(|(number, targets)| (format!("d{number}"), unit(targets))).collect();
            let normal = json!({"$ref": "#/$defs/d0", "$defs": all});
            let measure = Measure::of(&normal);
            let (ways, levels) = walk(&normal, &normal, &mut Vec::new(), 100_000);
            prop_assert!(ways.min(100_000) <= measure.units[0].ways, "{} {}", ways, measure.units[0].ways);
            prop_assert!(levels <= measure.units[0].levels);
        }
    }

    #[test]
    fn a_list_turns_in_one_way_and_an_expression_in_many() {
        let list = json!({"anyOf": [{"type": "null"}, {"properties": {"next": {"$ref": "#/$defs/l"}}}]});
        let measure = Measure::of(&json!({"$ref": "#/$defs/l", "$defs": {"l": list}}));
        assert_eq!((measure.levels, measure.unfolded < 100), (None, true));
        let add = json!({"properties": {"left": {"$ref": "#/$defs/e"}, "right": {"$ref": "#/$defs/e"}}});
        let measure = Measure::of(&json!({"$ref": "#/$defs/e", "$defs": {"e": {"oneOf": [add, add]}}}));
        assert_eq!((measure.levels, measure.unfolded), (None, u64::MAX));
        let tree = Measure::of(&json!({"$ref": "#/$defs/e", "$defs": {"e": add}}));
        assert!(tree.unfolded < 100, "left and right are different members");
        let flat = Measure::of(&json!({"properties": {"a": {"items": {"type": "string"}}}}));
        assert_eq!((flat.levels, flat.compiling, flat.parts), (Some(3), 3, 3));
    }
}
