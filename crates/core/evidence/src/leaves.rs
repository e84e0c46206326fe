//! The leaves of a document, and their counterparts in another answer.

use formwork_json::JsonPath;
use serde_json::Value;

use crate::pairing::Pairing;
use crate::stated::is_stated;
use crate::{Compare, assign};

/// Returns whether two leaves say the same: equal values without case, white space and punctuation of texts, or no value on both sides.
pub(crate) fn is_equal(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one.filter(|one| is_stated(Some(one))), other.filter(|other| is_stated(Some(other)))) {
        (Some(Value::String(one)), Some(Value::String(other))) if are_apart(one, other) => false,
        (Some(one), Some(other)) => Compare::Text.is_equal(one, other),
        (None, None) => true,
        _ => false,
    }
}

/// Returns whether two texts have other letters or digits, for which no comparison of texts is needed. Zeros may end the decimals of a number.
fn are_apart(one: &str, other: &str) -> bool {
    one.is_ascii() && other.is_ascii() && !marks(one).eq(marks(other))
}

/// Returns the letters and digits of a text in small letters, without zeros.
fn marks(text: &str) -> impl Iterator<Item = u8> {
    let bytes = text.bytes().filter(|byte| byte.is_ascii_alphanumeric() && *byte != b'0');
    bytes.map(|byte| byte.to_ascii_lowercase())
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
    walk(Some(&JsonPath::root()), (value, Some(other)), true, &mut |path, (value, other), has_item| {
        all.push(Counterpart { path: path.cloned().unwrap_or_default(), value, other, has_item });
    });
    all
}

/// A value and its counterpart.
type Pair<'v> = (&'v Value, Option<&'v Value>);

/// Passes each leaf and its counterpart to a function, with its path if that of the value is given.
fn walk<'v>(
    path: Option<&JsonPath>,
    (value, other): Pair<'v>,
    has_item: bool,
    each: &mut dyn FnMut(Option<&JsonPath>, Pair<'v>, bool),
) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, member) in members {
                let other = other.and_then(|other| other.get(name));
                walk(path.map(|path| path.key(name)).as_ref(), (member, other), has_item, each);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let others = other.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let partners = partners(items, others);
            for (index, (item, partner)) in items.iter().zip(partners).enumerate() {
                let other = partner.and_then(|partner| others.get(partner));
                walk(path.map(|path| path.index(index)).as_ref(), (item, other), other.is_some(), each);
            }
        }
        value => each(path, (value, other), has_item),
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
    let count = |one, other| {
        let (mut equal, mut all) = (0, 0);
        walk(None, (one, other), true, &mut |_, (value, other), _| {
            let is_stated = is_stated(Some(value));
            equal += usize::from(is_stated && is_equal(Some(value), other));
            all += usize::from(is_stated);
        });
        (equal, all)
    };
    let ((equal, of_one), (_, of_other)): ((usize, usize), (usize, usize)) =
        (count(one, Some(other)), count(other, None));
    let stated = of_one + of_other - equal.min(of_other);
    if stated == 0 { 1.0 } else { equal as f64 / stated as f64 }
}

/// Returns the mean agreement of each answer with the other ones, from 0 to 1.
pub(crate) fn agreements(answers: &[&Value]) -> Vec<f64> {
    let shared = |one, other| {
        let (mut equal, mut all) = (0.0, 0.0_f64);
        walk(None, (one, Some(other)), true, &mut |_, (value, other), _| {
            equal += f64::from(u8::from(is_equal(Some(value), other)));
            all += 1.0;
        });
        equal / all.max(1.0)
    };
    let mut sums = vec![0.0; answers.len()];
    for (at, one) in answers.iter().enumerate() {
        for (beside, other) in answers.iter().enumerate().skip(at + 1) {
            let shared = shared(one, other).min(shared(other, one));
            sums.iter_mut()
                .enumerate()
                .filter(|(it, _)| [at, beside].contains(it))
                .for_each(|(_, sum)| *sum += shared);
        }
    }
    sums.into_iter().map(|sum| sum / (answers.len().max(2) - 1) as f64).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_with_other_letters_or_digits_are_different(one in "[aB0-2.,:/ $-]{0,6}", other in "[aB0-2.,:/ $-]{0,6}") {
            let is_same = Compare::Text.is_equal(&one.as_str().into(), &other.as_str().into());
            prop_assert!(!(is_same && are_apart(&one, &other)), "{one} {other}");
        }
    }
}
