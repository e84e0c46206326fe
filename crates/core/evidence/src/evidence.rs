//! The evidence for the leaves of a value.

use std::cmp::Reverse;

use formwork_json::{JsonPath, PathPattern};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::choose::choose;
use crate::index::Index;
use crate::numeral::Range;
use crate::record::{Leaf, Records};
use crate::status::Status;
use crate::text::size;

/// The maximum number of places of a leaf in its evidence.
pub(crate) const MAX_SPANS: usize = 32;

/// A place in the input, in Unicode scalar values from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// The offset of the first character.
    pub start: usize,
    /// The offset after the last character.
    pub end: usize,
    /// The page, from 1, if form feeds separate the pages of the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<usize>,
}

/// The evidence for one leaf of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The path of the leaf.
    pub path: JsonPath,
    /// The support of the leaf by the input.
    pub status: Status,
    /// The places of the leaf: the chosen one first, then at most 31 others in the order of the input. A computed value has the places
    /// of the values that it is computed from.
    pub spans: Vec<Span>,
    /// Whether the phrase of the chosen place goes on after it.
    #[serde(skip)]
    pub(crate) has_more: bool,
}

impl Index<'_> {
    /// Returns the evidence for each leaf of a value, in the order of the value. Of several places, the one whose surroundings fit is
    /// chosen: words of the member's name and description, values of the same record near by, the order of rows and their columns,
    /// and places that no other leaf has.
    ///
    /// The schema supplies descriptions and the rules in `x-formwork-rules`.
    pub fn evidence(&self, value: &Value, schema: Option<&Value>) -> Vec<Evidence> {
        let mut records = Records::of(self, value, schema);
        choose(self, &mut records);
        self.of_leaves(&records, value, schema, MAX_SPANS)
    }

    /// Returns the evidence for the leaves whose places are chosen, with at most `max` places of each.
    pub(crate) fn of_leaves(
        &self,
        records: &Records,
        value: &Value,
        schema: Option<&Value>,
        max: usize,
    ) -> Vec<Evidence> {
        let mut all: Vec<Evidence> = records.leaves.iter().map(|leaf| self.of_leaf(leaf, max)).collect();
        if let Some(schema) = schema {
            compute(&mut all, value, schema);
        }
        all
    }

    fn of_leaf(&self, leaf: &Leaf, max: usize) -> Evidence {
        let path = leaf.path.clone();
        let Some(place) = leaf.chosen.and_then(|chosen| leaf.places.get(chosen)) else {
            return Evidence { path, status: Status::NotFound, spans: Vec::new(), has_more: false };
        };
        let status = leaf.status(self, place);
        if max == 0 {
            return Evidence { path, status, spans: Vec::new(), has_more: false };
        }
        // Other places that are no better than a word somewhere are not evidence.
        let mut others: Vec<_> =
            leaf.places.iter().filter(|it| it.range != place.range && !it.needs_label).collect();
        others.sort_by_key(|it| (Reverse(it.status == place.status), it.range.start));
        others.truncate(max - 1);
        others.sort_by_key(|it| it.range.start);
        let spans = std::iter::once(place).chain(others).map(|place| self.span(place.range)).collect();
        Evidence { path, status, spans, has_more: self.has_more(size(place.range.last)) }
    }

    fn span(&self, range: Range) -> Span {
        Span { start: self.scalar(range.start), end: self.scalar(range.end), page: self.page(range.start) }
    }
}

/// A rule of the kind `weightedSum` in `x-formwork-rules`.
#[derive(Deserialize)]
struct Sum {
    target: PathPattern,
    terms: Vec<Term>,
    tolerance: f64,
}

#[derive(Deserialize)]
struct Term {
    path: PathPattern,
    weight: f64,
}

/// Marks the leaves that were not found, but are sums by a rule of the schema, of numbers that were found or computed.
fn compute(all: &mut [Evidence], value: &Value, schema: &Value) {
    let rules = schema.get("x-formwork-rules").and_then(Value::as_array).into_iter().flatten();
    let sums = rules.filter(|rule| rule.get("rule").is_some_and(|name| name == "weightedSum"));
    let sums: Vec<_> = sums.filter_map(|rule| Sum::deserialize(rule).ok()).collect();
    // A term may be a sum by a later rule.
    let computed = |all: &[Evidence]| all.iter().filter(|it| it.status == Status::Computed).count();
    loop {
        let before = computed(all);
        sums.iter().for_each(|sum| compute_one(all, value, sum));
        if computed(all) == before {
            break;
        }
    }
}

fn compute_one(all: &mut [Evidence], value: &Value, Sum { target, terms, tolerance }: &Sum) {
    for number in 0..all.len() {
        let Some(leaf) = all.get(number).filter(|it| it.status == Status::NotFound) else { continue };
        let Some(sum) = leaf.path.get(value).and_then(Value::as_f64).filter(|_| target.matches(&leaf.path))
        else {
            continue;
        };
        let terms: Vec<_> =
            terms.iter().map(|term| (term.path.bound(target, &leaf.path), term.weight)).collect();
        let of_term = |it: &Evidence| {
            let weights = terms.iter().filter(|(path, _)| path.matches(&it.path)).map(|(_, weight)| weight);
            let weight = weights.copied().reduce(|one, other| one + other)?;
            Some((weight * it.path.get(value)?.as_f64()?, it.status, it.spans.first().copied()))
        };
        let found: Vec<_> = all.iter().filter_map(of_term).collect();
        // Sums of decimal fractions have binary noise.
        let difference = (found.iter().map(|(term, ..)| term).sum::<f64>() - sum).abs();
        if difference > tolerance + 1e-9 * sum.abs().max(1.0)
            || found.iter().any(|(_, status, _)| *status == Status::NotFound)
        {
            continue;
        }
        let spans = found.iter().filter_map(|(.., span)| *span).take(MAX_SPANS).collect();
        if let Some(it) = all.get_mut(number) {
            (it.status, it.spans) = (Status::Computed, spans);
        }
    }
}
