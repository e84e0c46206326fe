//! Pairs of the items of two lists.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;
use serde_json::Value;

/// The maximum number of pairs whose similarity is computed. Items of longer lists are paired by the values that few of them have.
const MAX_PAIRS: usize = 4_000_000;

/// The maximum number of items that have a value by which an item of a long list is paired.
const MAX_ALIKE: usize = 32;

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
            let items = [(&left, expected), (&right, answer)]
                .map(|(list, items)| list.iter().filter_map(|index| items.get(*index)).collect::<Vec<_>>());
            by_values(&items)
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

/// Returns for each item of the first list the free one of the second that has the most of its rare values, then the first free one.
fn by_values([left, right]: &[Vec<&Value>; 2]) -> Vec<Option<usize>> {
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for (index, item) in right.iter().enumerate() {
        values(item, 0, &mut |value| {
            let items = places.entry(value).or_default();
            if items.len() <= MAX_ALIKE {
                items.push(index);
            }
        });
    }
    places.retain(|_, items| items.len() <= MAX_ALIKE);
    let mut free = vec![true; right.len()];
    let of_left = left.iter().map(|item| {
        let mut shared: HashMap<usize, usize> = HashMap::new();
        values(item, 0, &mut |value| {
            for index in places.get(&value).into_iter().flatten() {
                *shared.entry(*index).or_default() += 1;
            }
        });
        shared.retain(|index, _| free.get(*index) == Some(&true));
        let best = shared.into_iter().max_by_key(|(index, count)| (*count, Reverse(*index)))?.0;
        *free.get_mut(best)? = false;
        Some(best)
    });
    let mut of_left: Vec<_> = of_left.collect();
    let mut others = (0..right.len()).filter(|index| free.get(*index) == Some(&true));
    of_left.iter_mut().filter(|partner| partner.is_none()).for_each(|partner| *partner = others.next());
    of_left
}

/// Passes the digests of the leaves of a value to a function, each with that of its place.
fn values(value: &Value, at: u64, each: &mut dyn FnMut(u64)) {
    let digest = |part: &str| FixedState::with_seed(0).hash_one((at, part));
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| values(member, digest(name), each));
        }
        Value::Array(items) => items.iter().for_each(|item| values(item, digest("[]"), each)),
        Value::String(text) => each(digest(text)),
        leaf => each(digest(&leaf.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_of_long_lists_are_paired_by_their_values() {
        let item = |number: usize, other: u8| json!({"name": format!("item {number}"), "of": {"all": 1}, "other": other});
        let expected: Vec<_> = (0..2_500).map(|number| item(number, 1)).collect();
        let mut answer: Vec<_> = (0..2_500).rev().map(|number| item(number, 2)).collect();
        answer.push(json!({"name": "one more"}));
        let similar = |_: &Value, _: &Value| unreachable!("there are too many pairs");
        let pairing = Pairing::of([&expected, &answer], Value::to_string, |_, _, _| Vec::new(), similar);
        let wrong = pairing.pairs.iter().filter(|(one, other)| one + other != 2_499).count();
        assert_eq!((pairing.pairs.len(), wrong, pairing.answer), (2_500, 0, vec![2_500]));
    }
}
