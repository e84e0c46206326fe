use proptest::prelude::*;

use super::*;

fn pattern(text: &str) -> PathPattern {
    text.parse().unwrap()
}

fn term(path: &str, weight: f64) -> Term {
    Term { path: pattern(path), weight }
}

fn found(rule: &Rule, value: &Value) -> Vec<String> {
    let mut report = Report::default();
    rule.validate(value, &Context { source: "Ada and Bob", data: &Value::Null }, &mut report);
    report.violations().iter().map(|violation| violation.path.to_string()).collect()
}

#[test]
fn each_value_of_a_wildcard_is_judged_on_its_own_item() {
    let most = Rule::AtMost { target: pattern("$.lines[*].low"), limit: pattern("$.lines[*].high") };
    let value =
        json!({"lines": [{"low": 1, "high": 2}, {"low": 3, "high": 2}, {"low": 9}, {"low": 5, "high": 4}]});
    assert_eq!(found(&most, &value), ["$.lines[1].low", "$.lines[3].low"]);
    let least = Rule::AtMost { target: pattern("$.first"), limit: pattern("$.lines[*].high") };
    assert_eq!(found(&least, &json!({"first": 3, "lines": [{"high": 4}, {"high": 2}]})), ["$.first"]);
    let member = Rule::MemberOf { target: pattern("$.picks[*]"), of: pattern("$.offers[*].id") };
    let value = json!({"picks": ["a", "c"], "offers": [{"id": "a"}, {"id": "b"}]});
    assert_eq!(found(&member, &value), ["$.picks[1]"]);
    let quoted = Rule::Quoted { target: pattern("$.people[*].name") };
    assert_eq!(found(&quoted, &json!({"people": [{"name": "ada"}, {"name": "Eve"}]})), ["$.people[1].name"]);
}

#[test]
fn nothing_is_said_of_what_is_not_there() {
    let sum = |target: &str, path: &str| Rule::WeightedSum {
        target: pattern(target),
        terms: vec![term(path, 1.0)],
        tolerance: 0.0,
    };
    let rule = sum("$.total", "$.lines[*].total");
    for (value, wrong) in [
        (json!({"total": 3}), false),
        (json!({"total": 3, "lines": []}), true),
        (json!({"total": 0, "lines": []}), false),
        (json!({"total": 3, "lines": [{"total": 3}, {}, {"total": null}]}), false),
        (json!({"total": 3, "lines": [{"total": "3"}]}), false),
        (json!({"lines": [{"total": 3}]}), false),
    ] {
        assert_eq!(!found(&rule, &value).is_empty(), wrong, "{value}");
    }
    assert!(rule.dependency().is_some_and(|order| order.first == [pattern("$.lines").stem()]));
    assert_eq!(sum("$.lines[*].total", "$.lines[*].net").dependency(), None);
}

proptest! {
    #[test]
    fn a_sum_is_that_of_all_items_and_what_is_narrowed_passes(
        totals in proptest::collection::vec(-1_000i64..1_000, 0..100),
        off in -3i64..=3,
    ) {
        let rule = Rule::WeightedSum {
            target: pattern("$.total"),
            terms: vec![term("$.lines[*].total", 1.0)],
            tolerance: 1.0,
        };
        let lines: Vec<_> = totals.iter().map(|total| json!({"total": total})).collect();
        let sum: i64 = totals.iter().sum();
        let value = json!({"lines": lines, "total": sum + off});
        prop_assert_eq!(found(&rule, &value).is_empty(), off.abs() <= 1);
        let (path, schema) = rule.narrow(&value).unwrap();
        prop_assert_eq!((path.to_string(), schema), ("$.total".to_owned(), json!({"minimum": sum - 1, "maximum": sum + 1})));
    }

    #[test]
    fn the_rule_of_one_item_is_the_rule_of_all(lines in proptest::collection::vec((0i64..9, 0i64..9), 0..20)) {
        let rule = Rule::WeightedSum {
            target: pattern("$.lines[*].gross"),
            terms: vec![term("$.lines[*].net", 1.0), term("$.tax", 1.0)],
            tolerance: 0.0,
        };
        let items: Vec<_> = lines.iter().map(|(net, gross)| json!({"net": net, "gross": gross})).collect();
        let value = json!({"lines": items, "tax": 2});
        let wrong: Vec<_> = (0..lines.len())
            .filter(|nth| lines[*nth].1 != lines[*nth].0 + 2)
            .map(|nth| format!("$.lines[{nth}].gross"))
            .collect();
        prop_assert_eq!(found(&rule, &value), wrong);
        for (nth, (net, _)) in lines.iter().enumerate() {
            let path: JsonPath = format!("$.lines[{nth}].gross").parse().unwrap();
            let (at, schema) = rule.at(&path).unwrap().narrow(&value).unwrap();
            prop_assert_eq!((at, schema["minimum"].as_i64()), (path, Some(net + 2)));
        }
    }
}
