//! Decides whether jsonschema's canonical form of a schema is cheap.
//!
//! Alternatives that have to hold together are multiplied, so the time is exponential in the number of unions, and the
//! recursion takes 30 KB of stack for each nested or referenced part (dev build, jsonschema 0.60.2). jsonschema has no
//! limits for it, and a thread with a larger stack would only postpone the problem. The canonical form is therefore
//! computed only for schemas whose parts prove that it is cheap; nothing is claimed about others.

use formwork_core::keywords::At;
use serde_json::Value;

use super::bounded;
use super::graph::{Graph, groups, parts};
use super::measure::nesting;

/// The maximum size in bytes: written as 2500 definitions, a dev build takes 2 s for it, and a release build 0.2 s.
const MAX_BYTES: usize = 256 * 1024;

/// The maximum depth of parts, through references too: 1.2 MB of stack.
pub(crate) const MAX_CANONICAL: usize = 40;

/// The maximum number of multiplied alternatives, in all parts together. A dev build takes up to half a second for 64 of
/// them, for 256 up to two seconds with plain keywords and 8 with conditions, and half a minute for 4096.
const MAX_PRODUCTS: u64 = 128;

/// The maximum number of compared pairs of variants, or of names and patterns: up to two seconds in a dev build.
const MAX_PAIRS: u64 = 4096;

/// The maximum number of different `multipleOf`s, whose common multiples are computed: a hundred take seconds, large ones
/// minutes.
const MAX_MULTIPLES: usize = 8;

/// The exponents of ten of the largest and smallest `multipleOf`: beyond, common multiples have too many digits.
const MAX_DIGITS: f64 = 20.0;

/// Returns whether a schema is small and plain enough for the canonical form.
pub(crate) fn is_cheap(schema: &Value) -> bool {
    if schema.to_string().len() > MAX_BYTES {
        return false;
    }
    let Ok(bounded) = bounded(schema) else { return false };
    let graph = Graph::new(&bounded.normal);
    let mut cost = Cost::new(&graph);
    let edges = graph.edges(false);
    let mut levels = vec![0usize; graph.units.len()];
    for group in groups(&edges) {
        let outside = group.iter().flat_map(|unit| &edges[*unit]).map(|to| levels[*to]).max().unwrap_or(0);
        let depth = group.iter().map(|unit| nesting(graph.units[*unit])).sum::<usize>() + outside;
        group.iter().for_each(|unit| levels[*unit] = depth);
        // A reference back into the group counts as one alternative, because it is not expanded.
        let found: Vec<u64> = group.iter().map(|unit| cost.of(graph.units[*unit])).collect();
        group.iter().zip(found).for_each(|(unit, found)| cost.alternatives[*unit] = found);
    }
    cost.multiples.sort_unstable_by(f64::total_cmp);
    cost.multiples.dedup();
    let is_plain = |multiple: &f64| multiple.is_finite() && multiple.log10().abs() <= MAX_DIGITS;
    levels.iter().all(|levels| *levels <= MAX_CANONICAL)
        && cost.products <= MAX_PRODUCTS
        && cost.pairs <= MAX_PAIRS
        && cost.multiples.len() <= MAX_MULTIPLES
        && cost.multiples.iter().all(is_plain)
}

/// The cost of the canonical form of a schema.
struct Cost<'g> {
    graph: &'g Graph<'g>,
    /// The number of alternatives of each unit.
    alternatives: Vec<u64>,
    products: u64,
    pairs: u64,
    multiples: Vec<f64>,
}

impl<'g> Cost<'g> {
    fn new(graph: &'g Graph<'g>) -> Self {
        let alternatives = vec![1; graph.units.len()];
        Self { graph, alternatives, products: 0, pairs: 0, multiples: Vec::new() }
    }

    /// Returns the number of alternatives of a part of the schema and its subschemas. If two of them have to hold together,
    /// the alternatives inside are multiplied as well.
    fn of(&mut self, schema: &Value) -> u64 {
        let mut all = Vec::new();
        all.extend(self.graph.target(schema).map(|unit| self.alternatives[unit]));
        let (mut any, mut one, mut not, mut cases, mut inside) = (0u64, 0u64, 0u64, Vec::new(), 1);
        for part in parts(schema) {
            let found = self.of(part.schema);
            match part.keyword.name {
                "anyOf" => any = any.saturating_add(found),
                "oneOf" => one = one.saturating_add(found),
                // The negation of a conjunction has an alternative for each part.
                "not" => not = found.saturating_mul(size(part.schema)),
                "if" | "then" | "else" => cases.push(found),
                "contains" | "dependentSchemas" | "dependencies" => all.push(found.saturating_add(1)),
                _ if part.keyword.at == At::Here => all.push(found),
                _ => inside = inside.max(found),
            }
        }
        self.pairs = self.pairs.saturating_add(one.saturating_mul(one)).saturating_add(patterns(schema));
        self.multiples.extend(schema.get("multipleOf").and_then(Value::as_f64));
        if !cases.is_empty() {
            // The condition holds and `then` too, or it fails and `else` holds: two alternatives each.
            all.push(cases.iter().copied().fold(1, u64::saturating_mul).saturating_add(2));
        }
        let types = schema.get("type").and_then(Value::as_array).map_or(1, Vec::len) as u64;
        all.extend([any, one, not, types, inside].into_iter().filter(|found| *found > 1));
        let product = all.iter().copied().fold(1, u64::saturating_mul);
        if all.len() > 1 && product > 1 {
            self.products = self.products.saturating_add(product);
        }
        product
    }
}

/// Returns the number of parts of a schema, its own keywords included.
fn size(schema: &Value) -> u64 {
    let own = schema.as_object().map_or(1, serde_json::Map::len) as u64;
    parts(schema).map(|part| size(part.schema)).fold(own, u64::saturating_add).max(1)
}

/// Returns the number of names and patterns that patterns are compared with.
fn patterns(schema: &Value) -> u64 {
    let count =
        |keyword: &str| schema.get(keyword).and_then(Value::as_object).map_or(0, serde_json::Map::len) as u64;
    let patterns = count("patternProperties");
    patterns.saturating_mul(patterns.saturating_add(count("properties")))
}
