//! The leaves of a document, and their counterparts in another answer.

use formwork_json::{JsonPath, Segment};
use serde_json::Value;

use crate::pairing::Pairing;
use crate::stated::is_stated;
use crate::{Compare, assign};

/// Returns whether two leaves say the same: equal values without case, white space and punctuation of texts, or no value on both sides.
pub(crate) fn is_equal(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one.filter(|one| is_stated(Some(one))), other.filter(|other| is_stated(Some(other)))) {
        (Some(one), Some(other)) => Compare::Text.is_equal(one, other),
        (None, None) => true,
        _ => false,
    }
}

/// A leaf of a document, with the value at the same place in another answer.
#[derive(Debug, Clone)]
pub struct Counterpart<'v> {
    /// The path of the leaf.
    pub path: JsonPath,
    /// The value of the leaf; empty lists and objects are leaves.
    pub value: &'v Value,
    /// The value in the other answer; `None` if it has none there.
    pub other: Option<&'v Value>,
    /// Whether the other answer has the item of the innermost list that the leaf belongs to; `true` outside of lists.
    pub has_item: bool,
}

impl Counterpart<'_> {
    /// Returns whether both say the same: equal values without case, white space and punctuation of texts, or no value on both sides.
    pub fn is_equal(&self) -> bool {
        is_equal(Some(self.value), self.other)
    }

    /// Returns whether the other answer has the item, and says the same.
    pub fn agrees(&self) -> bool {
        self.has_item && self.is_equal()
    }
}

/// Returns each leaf of a document with its counterpart in another answer. The items of lists are assigned to each other in any order,
/// so that as many leaves as possible are equal.
///
/// ```
/// use formwork_evidence::counterparts;
/// use serde_json::json;
///
/// let (one, other) = (json!({"lines": [{"n": 1, "of": "a"}]}), json!({"lines": [{"n": 9}, {"n": 2, "of": "A"}]}));
/// let found: Vec<_> = counterparts(&one, &other).iter().map(|it| (it.path.to_string(), it.is_equal())).collect();
/// assert_eq!(found, [("$.lines[0].n".to_owned(), false), ("$.lines[0].of".to_owned(), true)]);
/// ```
pub fn counterparts<'v>(value: &'v Value, other: &'v Value) -> Vec<Counterpart<'v>> {
    let mut all = Vec::new();
    walk(JsonPath::root(), value, Some(other), true, &mut all);
    all
}

fn walk<'v>(
    path: JsonPath,
    value: &'v Value,
    other: Option<&'v Value>,
    has_item: bool,
    all: &mut Vec<Counterpart<'v>>,
) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                let other = other.and_then(|other| other.get(name));
                walk(path.child(Segment::Key(name.clone())), member, other, has_item, all);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let others = other.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let partners = partners(items, others);
            for (index, (item, partner)) in items.iter().zip(partners).enumerate() {
                let other = partner.and_then(|partner| others.get(partner));
                walk(path.child(Segment::Index(index)), item, other, other.is_some(), all);
            }
        }
        value => all.push(Counterpart { path, value, other, has_item }),
    }
}

/// Returns the item of the second list for each item of the first one.
pub(crate) fn partners(items: &[Value], others: &[Value]) -> Vec<Option<usize>> {
    let best =
        |rows: usize, columns: usize, weight: &dyn Fn(usize, usize) -> f64| assign(rows, columns, weight);
    let pairing = Pairing::of([items, others], Value::to_string, best, similarity);
    let mut partners = vec![None; items.len()];
    for (one, other) in pairing.pairs {
        if let Some(partner) = partners.get_mut(one) {
            *partner = Some(other);
        }
    }
    partners
}

/// Returns the share of equal leaves among those that one of two items states, from 0 to 1.
pub(crate) fn similarity(one: &Value, other: &Value) -> f64 {
    let count = |[one, other]: [&Value; 2]| {
        let all = counterparts(one, other);
        let stated = all.iter().filter(|it| is_stated(Some(it.value)));
        let (equal, all) =
            stated.fold([0, 0], |[equal, all], it| [equal + usize::from(it.is_equal()), all + 1]).into();
        (equal, all)
    };
    let ((equal, of_one), (_, of_other)): ((usize, usize), (usize, usize)) =
        (count([one, other]), count([other, one]));
    let stated = of_one + of_other - equal.min(of_other);
    if stated == 0 { 1.0 } else { equal as f64 / stated as f64 }
}

/// Returns the mean agreement of each answer with the other ones, from 0 to 1.
pub(crate) fn agreements(answers: &[&Value]) -> Vec<f64> {
    let shared = |one: &Value, other: &Value| {
        let all = counterparts(one, other);
        all.iter().filter(|it| it.is_equal()).count() as f64 / all.len().max(1) as f64
    };
    let of = |(at, one): (usize, &&Value)| {
        let others = answers.iter().enumerate().filter(|(other, _)| *other != at);
        others.map(|(_, other)| shared(one, other).min(shared(other, one))).sum::<f64>()
            / (answers.len().max(2) - 1) as f64
    };
    answers.iter().enumerate().map(of).collect()
}
