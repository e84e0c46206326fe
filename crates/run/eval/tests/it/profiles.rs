//! The score of a document by each profile.

use formwork_eval::{Evaluation, Profile, Tally};
use proptest::prelude::*;
use serde_json::{Value, json};

fn score(profile: Profile, schema: Option<&Value>, expected: &Value, answer: &Value) -> f64 {
    Evaluation::new(profile).add(json!(1), schema, expected, Some(answer)).unwrap()
}

#[test]
fn the_rules_of_docubench() {
    let items = json!({"type": "array", "items": {"type": "object", "properties": {"a": {}, "b": {}}}});
    let schema = json!({"type": "object", "properties": {"x": {"type": "string"}, "n": {"type": "number"}, "items": items}});
    for (expected, answer, score_of) in [
        // Case, white space and punctuation; six decimals.
        (json!({"x": "A-b c.", "n": 1}), json!({"x": "abC", "n": 1.000_000_4}), 1.0),
        (json!({"x": "a", "n": 1}), json!({"x": "a", "n": 1.000_01}), 0.5),
        // Both empty: no effect. One empty: wrong.
        (json!({"x": "a", "n": null}), json!({"x": "a"}), 1.0),
        (json!({"x": "a", "n": null}), json!({"x": "a", "n": 2}), 0.5),
        // Members that the schema does not name have no effect outside of lists.
        (json!({"x": "a"}), json!({"x": "a", "other": 1}), 1.0),
        // Items in any order; an unpaired item counts against the score with the mean number of leaves.
        (
            json!({"items": [{"a": 1, "b": 1}, {"a": 2, "b": 2}]}),
            json!({"items": [{"a": 2, "b": 2}, {"a": 1, "b": 1}]}),
            1.0,
        ),
        (json!({"items": [{"a": 1, "b": 1}, {"a": 2, "b": 2}]}), json!({"items": [{"a": 1, "b": 1}]}), 0.5),
        (json!({"items": [{"a": 1, "b": 1}]}), json!({"items": [{"a": 1, "b": 3}]}), 0.5),
        (
            json!({"x": "a", "items": [{"a": 1, "b": 1}]}),
            json!({"x": "a", "items": [{"a": 1, "b": 3}]}),
            2.0 / 3.0,
        ),
        (json!({}), json!({}), 1.0),
    ] {
        let found = score(Profile::Docubench, Some(&schema), &expected, &answer);
        assert!((found - score_of).abs() < 1e-9, "{expected} and {answer}: {found}");
    }
}

#[test]
fn the_default_profile_counts_leaves() {
    let lines = |amounts: [i32; 2]| json!({"lines": amounts.map(|amount| json!({"amount": amount, "text": format!("t{amount}")}))});
    for (schema, expected, answer, score_of) in [
        (json!({}), json!({"a": 1, "b": 2}), json!({"a": 1, "b": 3}), 0.5),
        (json!({}), json!({"a": 1}), json!({"a": 1, "b": 3}), 0.5),
        (json!({}), json!({"a": 1, "b": null}), json!({"a": 1, "b": ""}), 1.0),
        (json!({}), lines([1, 2]), lines([2, 1]), 1.0),
        // Two right leaves of a longer item count more than the only one of a short item.
        (
            json!({}),
            json!({"l": [{"a": 1, "c": 1}, {"a": 3, "b": 2, "d": 3}]}),
            json!({"l": [{"a": 1}, {"a": 1, "b": 3, "c": 1, "d": 2}]}),
            0.25,
        ),
        (json!({"properties": {"lines": {"x-formwork-compare": "list"}}}), lines([1, 2]), lines([2, 1]), 0.0),
        (
            json!({"properties": {"t": {"x-formwork-compare": "set"}}}),
            json!({"t": ["a", "a"]}),
            json!({"t": ["A"]}),
            1.0,
        ),
        // Texts that differ are two members, and so are those that the schema compares exactly.
        (
            json!({"properties": {"t": {"x-formwork-compare": "set"}}}),
            json!({"t": ["C++", "C"]}),
            json!({"t": ["C"]}),
            0.5,
        ),
        (
            json!({"properties": {"t": {"x-formwork-compare": "set", "items": {"x-formwork-compare": "exact"}}}}),
            json!({"t": ["A", "a"]}),
            json!({"t": ["A"]}),
            0.5,
        ),
        (
            json!({"properties": {"d": {"format": "date"}}}),
            json!({"d": "2024-03-05"}),
            json!({"d": "5 March 2024"}),
            1.0,
        ),
        (json!({"properties": {"e": {"enum": ["A"]}}}), json!({"e": "A"}), json!({"e": "a"}), 0.0),
        (
            json!({"patternProperties": {"^p": {"x-formwork-compare": "number"}}}),
            json!({"p1": 5, "q": 5}),
            json!({"p1": "$5", "q": "$5"}),
            0.5,
        ),
        // Equality with a tolerance is not transitive: the equal items have other partners.
        (
            json!({"properties": {"l": {"items": {"x-formwork-compare": {"as": "number", "tolerance": 1}}}}}),
            json!({"l": [1, 2]}),
            json!({"l": [2, 3]}),
            1.0,
        ),
        (json!({}), json!({"a": {"b": 1}}), json!({"a": 1}), 0.0),
    ] {
        let found = score(Profile::Default, Some(&schema), &expected, &answer);
        assert!((found - score_of).abs() < 1e-9, "{schema}: {expected} and {answer}: {found}");
    }
}

#[test]
fn each_leaf_has_one_verdict() {
    let mut evaluation = Evaluation::new(Profile::Default);
    let expected =
        json!({"right": 1, "wrong": 1, "missing": 1, "neither": null, "list": [{"a": 1}, {"a": 2}]});
    let answer = json!({"right": 1, "wrong": 2, "invented": 1, "neither": null, "list": [{"a": 2}]});
    evaluation.add(json!(1), None, &expected, Some(&answer)).unwrap();
    let report = evaluation.report(1);
    let tally = |path: &str| report.paths.iter().find(|it| it.path == path).unwrap().tally;
    let none = Tally::default();
    assert_eq!(tally("$.right"), Tally { right: 1, ..none });
    assert_eq!(tally("$.wrong"), Tally { wrong: 1, ..none });
    assert_eq!(tally("$.missing"), Tally { missing: 1, ..none });
    assert_eq!(tally("$.invented"), Tally { invented: 1, ..none });
    assert_eq!(tally("$.neither"), Tally { not_stated: 1, ..none });
    assert_eq!(tally("$.list[*].a"), Tally { right: 1, missing: 1, ..none });
}

#[test]
fn each_leaf_of_one_side_alone_is_missing_or_invented() {
    let schema = json!({"properties": {"v": {"x-formwork-compare": "set"}}});
    let none = Tally::default();
    let (missing, invented) = (|missing| Tally { missing, ..none }, |invented| Tally { invented, ..none });
    for (expected, answer, at, here, within) in [
        (json!(["a", "a"]), Value::Null, "$.v[*]", None, missing(2)),
        (Value::Null, json!(["a", "a"]), "$.v[*]", None, invented(2)),
        (json!({"a": 1, "b": 2}), Value::Null, "$.v.b", None, missing(1)),
        (json!({"a": 1}), json!(["a", "a"]), "$.v[*]", None, invented(2)),
        (json!(["a", "a"]), json!("a"), "$.v[*]", Some(invented(1)), missing(2)),
        (json!("a"), json!({"a": 1}), "$.v.a", Some(missing(1)), invented(1)),
        (json!([]), json!({"a": 1}), "$.v.a", None, invented(1)),
    ] {
        let mut evaluation = Evaluation::new(Profile::Default);
        evaluation
            .add(json!(1), Some(&schema), &json!({"v": expected}), Some(&json!({"v": answer})))
            .unwrap();
        let report = evaluation.report(1);
        let tally = |path: &str| report.paths.iter().find(|it| it.path == path).map(|it| it.tally);
        assert_eq!(tally(at), Some(within), "{expected} and {answer}");
        assert_eq!(tally("$.v").filter(|tally| tally.stated() > 0), here, "{expected} and {answer}");
    }
}

fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_i32..4).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let members = prop::collection::btree_map("[a-c]", inner.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            members.prop_map(|it| it.into_iter().collect())
        ]
    })
}

/// Items of a list, as counts of four members; 0 is a member that is not stated.
fn rows() -> impl Strategy<Value = Vec<[u8; 4]>> {
    prop::collection::vec(prop::array::uniform4(0_u8..3), 0..5)
}

/// Returns the most right leaves of all pairings of rows, and the fewest leaves that a pairing with as many has.
fn best(expected: &[[u8; 4]], answer: &[[u8; 4]]) -> (usize, usize) {
    let stated = |row: &[u8; 4]| row.iter().filter(|value| **value > 0).count();
    let Some((first, rest)) = expected.split_first() else {
        return (0, answer.iter().map(stated).sum());
    };
    let (right, leaves) = best(rest, answer);
    let alone = (right, leaves + stated(first));
    let pairs = (0..answer.len()).map(|nth| {
        let mut others = answer.to_vec();
        let partner = others.remove(nth);
        let both = || first.iter().zip(&partner);
        let (right, leaves) = best(rest, &others);
        let here = both().filter(|(one, other)| one == other && **one > 0).count();
        // A pair without a right leaf is none.
        let all = both().filter(|(one, other)| **one > 0 || **other > 0).count();
        if here == 0 { (0, usize::MAX) } else { (right + here, leaves + all) }
    });
    pairs.fold(alone, |one, other| match one.0.cmp(&other.0) {
        std::cmp::Ordering::Less => other,
        std::cmp::Ordering::Equal => (one.0, one.1.min(other.1)),
        std::cmp::Ordering::Greater => one,
    })
}

proptest! {
    #[test]
    fn items_are_paired_so_that_the_most_leaves_are_right(expected in rows(), answer in rows()) {
        let document = |rows: &[[u8; 4]]| {
            let row = |row: &[u8; 4]| json!({"a": row[0], "b": row[1], "c": row[2], "d": row[3]});
            let stated = |mut row: Value| {
                row.as_object_mut().unwrap().retain(|_, value| *value != 0);
                row
            };
            json!({"rows": rows.iter().map(row).map(stated).collect::<Vec<_>>()})
        };
        let (right, leaves) = best(&expected, &answer);
        let expected_score = if leaves == 0 { 1.0 } else { right as f64 / leaves as f64 };
        let found = score(Profile::Default, None, &document(&expected), &document(&answer));
        prop_assert!((found - expected_score).abs() < 1e-9, "{} is not {} of {}", found, right, leaves);
    }

    #[test]
    fn scores_are_shares_and_equal_documents_are_right(one in documents(), other in documents()) {
        for profile in [Profile::Default, Profile::Docubench] {
            let found = score(profile, None, &one, &other);
            prop_assert!((0.0..=1.0 + 1e-9).contains(&found), "{:?}: {}", profile, found);
            let same = score(profile, None, &one, &one);
            prop_assert!((same - 1.0).abs() < 1e-9, "{:?}: {} is {}", profile, one, same);
        }
    }
}
