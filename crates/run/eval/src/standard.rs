//! The default profile: every leaf counts the same.

use std::collections::HashMap;

use formwork_core::keywords::find;
use formwork_evidence::{Compare, KEYWORD, Pairing, assign, is_stated, subschema};
use formwork_json::Segment;
use serde_json::{Map, Value};

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
    let is_near = |schema: &Value| schema.get(KEYWORD).is_some_and(|how| how.get("tolerance").is_some());
    let has_tolerance = schema.is_some_and(|schema| find(schema, is_near).is_some());
    Walk { root: schema, has_tolerance }.values(&Place::Root, schema, None, [Some(expected), answer], sink)
}

struct Walk<'s> {
    root: Option<&'s Value>,
    has_tolerance: bool,
}

impl<'s> Walk<'s> {
    /// Compares two values. `inherited` is the comparison that a list states for its items.
    fn values<'v>(
        &self,
        place: &Place<'_>,
        schema: Option<&'s Value>,
        inherited: Option<Compare>,
        [expected, answer]: [Option<&'v Value>; 2],
        sink: &mut Sink<'_>,
    ) -> Result<(), String> {
        let stated = match (self.root, schema) {
            (Some(root), Some(schema)) => Compare::of_schema(root, schema)?,
            _ => None,
        };
        let how = stated.or(inherited);
        let objects = [expected, answer].map(|value| value.and_then(Value::as_object));
        let lists = [expected, answer].map(|value| value.and_then(Value::as_array).map(Vec::as_slice));
        let is_nested =
            |value: Option<&Value>| value.is_some_and(|value| value.is_object() || value.is_array());
        let are_alike = !objects.contains(&None) || !lists.contains(&None);
        // Of values of two kinds, as of one side alone, each leaf is missing or invented.
        if !are_alike
            && (is_nested(expected) && is_stated(answer) || is_nested(answer) && is_stated(expected))
        {
            self.values(place, schema, None, [expected, None], sink)?;
            return self.values(place, schema, None, [None, answer], sink);
        }
        if objects.iter().flatten().any(|members| are_alike || !members.is_empty()) {
            let [one, other] = objects;
            let keys = |members: Option<&'v Map<String, Value>>| members.into_iter().flat_map(Map::keys);
            let added = keys(other).filter(|name| one.is_none_or(|one| !one.contains_key(*name)));
            for name in keys(one).chain(added) {
                let values = objects.map(|members| members.and_then(|members| members.get(name)));
                let member = self.sub(schema, &Segment::Key(name.clone()));
                self.values(&Place::Key(place, name), member, None, values, sink)?;
            }
            return Ok(());
        }
        if lists.iter().flatten().any(|items| are_alike || !items.is_empty()) {
            // The items of one side alone are not compared with each other.
            let how = how.filter(|_| are_alike);
            return self.lists(place, schema, how, lists.map(Option::unwrap_or_default), sink);
        }
        let how = how.unwrap_or(Compare::Text);
        let grade = grade(expected, answer, |expected, answer| how.is_equal(expected, answer));
        sink(place, grade, expected, answer);
        Ok(())
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
            // Equality with a tolerance is not transitive: equal items may have better partners.
            |item| if self.has_tolerance { format!("{item:p}") } else { item.to_string() },
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
