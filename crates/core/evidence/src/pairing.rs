//! Pairs of the items of two lists.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

/// The maximum number of pairs whose similarity is computed. Items beyond it are paired in their order.
const MAX_PAIRS: usize = 4_000_000;

/// The pairs of two lists, by index, and the items without a partner.
///
/// ```
/// use formwork_evidence::{Pairing, assign};
/// use serde_json::{Value, json};
///
/// let (expected, answer) = ([json!(1), json!("x")], [json!("y"), json!(1), json!(2)]);
/// let best = |rows, columns, similar: &dyn Fn(usize, usize) -> f64| assign(rows, columns, similar);
/// let texts = |one: &Value, other: &Value| f64::from(u8::from(one.is_string() && other.is_string()));
/// let pairing = Pairing::of([&expected, &answer], Value::to_string, best, texts);
/// assert_eq!((pairing.pairs, pairing.answer), (vec![(0, 1), (1, 0)], vec![2]));
/// ```
#[derive(Debug, Default)]
pub struct Pairing {
    /// The paired items of the first and the second list.
    pub pairs: Vec<(usize, usize)>,
    /// The items of the first list without a partner.
    pub expected: Vec<usize>,
    /// The items of the second list without a partner.
    pub answer: Vec<usize>,
}

impl Pairing {
    /// Pairs items with equal keys in their order, and the rest by `assign`, which gets the numbers of the remaining items of both
    /// lists and a similarity of two of them, and returns the item of the second list for each of the first.
    pub fn of(
        [expected, answer]: [&[Value]; 2],
        key: impl Fn(&Value) -> String,
        assign: impl FnOnce(usize, usize, &dyn Fn(usize, usize) -> f64) -> Vec<Option<usize>>,
        similarity: impl Fn(&Value, &Value) -> f64,
    ) -> Self {
        let mut equal: HashMap<String, VecDeque<usize>> = HashMap::new();
        for (index, item) in answer.iter().enumerate() {
            equal.entry(key(item)).or_default().push_back(index);
        }
        let (mut pairs, mut left) = (Vec::new(), Vec::new());
        for (index, item) in expected.iter().enumerate() {
            match equal.get_mut(&key(item)).and_then(VecDeque::pop_front) {
                Some(partner) => pairs.push((index, partner)),
                None => left.push(index),
            }
        }
        let mut right: Vec<usize> = equal.into_values().flatten().collect();
        right.sort_unstable();
        let of_left = if left.len().saturating_mul(right.len()) > MAX_PAIRS {
            (0..left.len()).map(|index| (index < right.len()).then_some(index)).collect()
        } else {
            let item = |list: &[usize], items: &[Value], index: usize| {
                list.get(index).and_then(|index| items.get(*index)).cloned().unwrap_or_default()
            };
            let left_items: Vec<Value> = (0..left.len()).map(|index| item(&left, expected, index)).collect();
            let right_items: Vec<Value> = (0..right.len()).map(|index| item(&right, answer, index)).collect();
            let similar = |row: usize, column: usize| match (left_items.get(row), right_items.get(column)) {
                (Some(one), Some(other)) => similarity(one, other),
                _ => 0.0,
            };
            assign(left.len(), right.len(), &similar)
        };
        let mut pairing = Self::default();
        let mut taken = vec![false; right.len()];
        for (index, partner) in left.iter().zip(of_left) {
            match partner.and_then(|partner| Some((right.get(partner)?, taken.get_mut(partner)?))) {
                Some((partner, taken)) => {
                    *taken = true;
                    pairs.push((*index, *partner));
                }
                None => pairing.expected.push(*index),
            }
        }
        pairing.answer =
            right.iter().zip(taken).filter(|(_, taken)| !taken).map(|(index, _)| *index).collect();
        pairs.sort_unstable();
        Self { pairs, ..pairing }
    }
}
