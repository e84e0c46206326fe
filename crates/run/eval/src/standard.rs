//! The default profile: every leaf counts the same.

use std::collections::HashMap;

use formwork_evidence::{Compare, Pairing, assign, is_stated, subschema};
use formwork_json::Segment;
use serde_json::Value;

use crate::tally::{Place, Sink, Tally, grade};

/// Compares a document with its gold, and reports each leaf.
///
/// # Errors
/// A message for an invalid `x-formwork-compare`.
pub(crate) fn compare(
    schema: Option<&Value>,
    expected: &Value,
    answer: Option<&Value>,
    sink: &mut Sink<'_>,
) -> Result<(), String> {
    Walk { root: schema }.values(&Place::Root, schema, None, [Some(expected), answer], sink)
}

struct Walk<'s> {
    root: Option<&'s Value>,
}

impl<'s> Walk<'s> {
    /// Compares two values. `inherited` is the comparison that a list states for its items.
    fn values(
        &self,
        place: &Place<'_>,
        schema: Option<&'s Value>,
        inherited: Option<Compare>,
        [expected, answer]: [Option<&Value>; 2],
        sink: &mut Sink<'_>,
    ) -> Result<(), String> {
        let stated = match (self.root, schema) {
            (Some(root), Some(schema)) => Compare::of_schema(root, schema)?,
            _ => None,
        };
        let how = stated.or(inherited);
        match (expected, answer) {
            (Some(Value::Object(one)), Some(Value::Object(other))) => {
                let added = other.keys().filter(|name| !one.contains_key(*name));
                for name in one.keys().chain(added) {
                    let values = [one.get(name), other.get(name)];
                    let member = self.sub(schema, &Segment::Key(name.clone()));
                    self.values(&Place::Key(place, name), member, None, values, sink)?;
                }
                Ok(())
            }
            (Some(Value::Array(one)), Some(Value::Array(other))) => {
                self.lists(place, schema, how, [one, other], sink)
            }
            (Some(Value::Object(_) | Value::Array(_)), other) if is_stated(other) => {
                self.values(place, schema, None, [expected, None], sink)?;
                self.values(place, schema, None, [None, answer], sink)
            }
            (one, Some(Value::Object(_) | Value::Array(_))) if is_stated(one) => {
                self.values(place, schema, None, [expected, None], sink)?;
                self.values(place, schema, None, [None, answer], sink)
            }
            // One side alone: each of its leaves is missing or invented.
            (Some(Value::Object(members)), _) | (_, Some(Value::Object(members))) if !members.is_empty() => {
                for (name, member) in members {
                    let values = if expected.is_some_and(Value::is_object) {
                        [Some(member), None]
                    } else {
                        [None, Some(member)]
                    };
                    let schema = self.sub(schema, &Segment::Key(name.clone()));
                    self.values(&Place::Key(place, name), schema, None, values, sink)?;
                }
                Ok(())
            }
            (Some(Value::Array(items)), _) | (_, Some(Value::Array(items))) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    let values = if expected.is_some_and(Value::is_array) {
                        [Some(item), None]
                    } else {
                        [None, Some(item)]
                    };
                    self.values(
                        &Place::Each(place),
                        self.sub(schema, &Segment::Index(index)),
                        how,
                        values,
                        sink,
                    )?;
                }
                Ok(())
            }
            _ => {
                let how = how.unwrap_or(Compare::Text);
                let grade = grade(expected, answer, |expected, answer| how.is_equal(expected, answer));
                sink(place, grade, expected, answer);
                Ok(())
            }
        }
    }

    fn lists(
        &self,
        place: &Place<'_>,
        schema: Option<&'s Value>,
        how: Option<Compare>,
        [expected, answer]: [&[Value]; 2],
        sink: &mut Sink<'_>,
    ) -> Result<(), String> {
        let each = Place::Each(place);
        let of_items = how.filter(|how| !matches!(how, Compare::Set | Compare::List));
        let item = |index: usize| self.sub(schema, &Segment::Index(index));
        if how == Some(Compare::List) {
            for index in 0..expected.len().max(answer.len()) {
                self.values(&each, item(index), None, [expected.get(index), answer.get(index)], sink)?;
            }
            return Ok(());
        }
        let of_item = match (self.root, item(0)) {
            (Some(root), Some(schema)) => Compare::of_schema(root, schema)?,
            _ => None,
        };
        let sets = [expected, answer].map(|items| match how {
            Some(Compare::Set) => unique(items, of_item.unwrap_or(Compare::Text)),
            _ => items.to_vec(),
        });
        let [expected, answer] = [0, 1].map(|side| sets.get(side).map(Vec::as_slice).unwrap_or_default());
        let similarity = |one: &Value, other: &Value| {
            let mut tally = Tally::default();
            let counted =
                self.values(&each, item(0), of_items, [Some(one), Some(other)], &mut |_, grade, _, _| {
                    tally.add(grade);
                });
            counted.map(|()| worth(&tally)).unwrap_or_default()
        };
        let pairing = Pairing::of(
            [expected, answer],
            Value::to_string,
            |rows, columns, weight| assign(rows, columns, weight),
            similarity,
        );
        for (one, other) in pairing.pairs {
            self.values(&each, item(one), of_items, [expected.get(one), answer.get(other)], sink)?;
        }
        for index in pairing.expected {
            self.values(&each, item(index), of_items, [expected.get(index), None], sink)?;
        }
        for index in pairing.answer {
            self.values(&each, item(index), of_items, [None, answer.get(index)], sink)?;
        }
        Ok(())
    }

    fn sub(&self, schema: Option<&'s Value>, step: &Segment) -> Option<&'s Value> {
        subschema(self.root?, schema?, step)
    }
}

/// Returns how much the pairing of two items adds to the score: right leaves first, then leaves that do not count for each item alone.
fn worth(tally: &Tally) -> f64 {
    /// Less than a right leaf for any number of leaves of a document.
    const EACH: f64 = 1e-9;

    if tally.right == 0 { 0.0 } else { tally.right as f64 + EACH * (tally.right + tally.wrong) as f64 }
}

/// Returns the items of a list without those that equal an earlier one.
fn unique(items: &[Value], how: Compare) -> Vec<Value> {
    // Equal texts have the same plain text, so that only few are compared.
    let mut seen = HashMap::<String, Vec<&Value>>::new();
    let mut kept = Vec::new();
    for item in items {
        let key = item.as_str().map_or_else(|| item.to_string(), formwork_evidence::plain);
        let alike = seen.entry(key).or_default();
        if !alike.iter().any(|earlier| how.is_equal(earlier, item)) {
            alike.push(item);
            kept.push(item.clone());
        }
    }
    kept
}
