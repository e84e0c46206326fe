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
    let quoted = Rule::grounded(pattern("$.people[*].name"));
    assert_eq!(found(&quoted, &json!({"people": [{"name": "ada"}, {"name": "Eve"}]})), ["$.people[1].name"]);
}

#[test]
fn grounded_values_stand_in_the_text_as_whole_words_numbers_and_dates() {
    let source = "Anna paid 1,250.50 EUR on 5 March 2024 for item B-7. 東京都の価格は１２３円。 שלום עולם 🎉 Café. Type A, grade b";
    let wrong = |value: Value, min_length| {
        let rule = Rule::Grounded { target: pattern("$.v"), min_length };
        let mut report = Report::default();
        rule.validate(&json!({ "v": value }), &Context { source, data: &Value::Null }, &mut report);
        report.violations().iter().map(|violation| violation.path.to_string()).collect::<Vec<_>>()
    };
    for value in [
        json!("anna"),
        json!(1250.5),
        json!("2024-03-05"),
        json!("EUR"),
        json!("b-7"),
        json!("東京都"),
        json!(123),
        json!("עולם"),
        json!("🎉"),
        json!("Cafe\u{301}"),
        json!("A"),
        json!(null),
        json!(true),
        json!([]),
        json!("item B"),
    ] {
        assert_eq!(wrong(value.clone(), None), Vec::<String>::new(), "{value}");
    }
    for value in [
        json!("Ann"),
        json!("nna paid"),
        json!(250.5),
        json!(-1250.5),
        json!("2024-03-06"),
        json!(""),
        json!("  "),
        json!("."),
        json!("京都府"),
        json!("a"),
        json!("Anna 1"),
        json!(12),
    ] {
        assert_eq!(wrong(value.clone(), None), ["$.v"], "{value}");
    }
    assert_eq!(wrong(json!(["Anna", "Eve", {"n": 7, "of": "Bob"}]), None), ["$.v[1]", "$.v[2].of"]);
    assert_eq!((wrong(json!("EUR"), Some(3)).len(), wrong(json!("EUR"), Some(4)).len()), (0, 1));
}

#[test]
fn the_nearest_text_is_quoted_as_data_with_a_cap() {
    let nearest = |source: &str, value: &str| {
        let mut report = Report::default();
        let cx = Context { source, data: &Value::Null };
        Rule::grounded(pattern("$")).validate(&json!(value), &cx, &mut report);
        report.violations()[0].expected.clone()
    };
    assert_eq!(
        nearest("pay to Maria\u{7}\nLindqvist", "Marja Lindqvist"),
        "words of the source text; the most similar text is \"Maria\\u0007\\nLindqvist\""
    );
    let long = format!("x {} y", "word ".repeat(200));
    assert!(nearest(&long, &"word ".repeat(201)).chars().count() < 160);
    assert_eq!(nearest("nothing alike", "Zürich"), "words of the source text");
    assert_eq!(nearest("", "Zürich"), "words of the source text");
}

#[test]
fn quoted_is_another_name_of_grounded_in_files() {
    let rule: Rule = serde_json::from_value(json!({"rule": "quoted", "target": "$.name"})).unwrap();
    assert_eq!(rule, Rule::grounded(pattern("$.name")));
    assert_eq!(serde_json::to_value(&rule).unwrap(), json!({"rule": "grounded", "target": "$.name"}));
    let schema = schemars::schema_for!(Rule).to_value();
    assert!(
        schema["oneOf"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["properties"]["rule"]["enum"] == json!(["grounded", "quoted"]))
    );
}

proptest! {
    #[test]
    fn a_planted_value_is_grounded_and_a_changed_one_is_not(
        before in "([a-z]{1,9} ){0,6}", after in "( [a-z]{1,9}){0,6}", word in "[A-Z][a-z]{2,8}", number in 100_000_u32..999_999,
        script in prop::sample::select(vec!["東京都", "שלום", "مرحبا", "🎉🎊", "e\u{301}te\u{301}", "Straße"]),
    ) {
        let source = format!("{before}{word} {number} {script}{after}");
        let cx = Context { source: &source, data: &Value::Null };
        let count = |value: Value| {
            let mut report = Report::default();
            Rule::grounded(pattern("$")).validate(&value, &cx, &mut report);
            report.violations().len()
        };
        prop_assert_eq!(count(json!([word, number, script])), 0);
        prop_assert_eq!(count(json!([format!("{word}q"), number + 1_000_000, format!("{script}9"), ""])), 4);
    }
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

#[test]
fn a_narrowed_schema_says_whether_it_leaves_a_value() {
    let bounds = [None, Some(-1.0), Some(0.0), Some(0.5), Some(1.0)];
    for kind in ["integer", "number"] {
        for nth in 0..5_usize.pow(6) {
            let [low, high, above, below, new_low, new_high] =
                std::array::from_fn(|place| bounds[nth / 5_usize.pow(place as u32) % 5]);
            let with = |schema: Value, bounds: &[(&str, Option<f64>)]| {
                bounds.iter().fold(schema, |mut schema, (name, bound)| {
                    bound.iter().for_each(|bound| schema[name] = json!(bound));
                    schema
                })
            };
            let own = [
                ("minimum", low),
                ("maximum", high),
                ("exclusiveMinimum", above),
                ("exclusiveMaximum", below),
            ];
            let mut schema = with(json!({"type": kind}), &own);
            let narrowing = with(json!({}), &[("minimum", new_low), ("maximum", new_high)]);
            let leaves = Rule::tighten(&mut schema, &narrowing);
            let fits = |value: f64| {
                low.into_iter().chain(new_low).all(|low| value >= low)
                    && high.into_iter().chain(new_high).all(|high| value <= high)
                    && above.is_none_or(|above| value > above)
                    && below.is_none_or(|below| value < below)
            };
            let step = if kind == "integer" { 4 } else { 1 };
            let expected = (-20..=20).step_by(step).any(|quarter| fits(f64::from(quarter) / 4.0));
            assert_eq!(leaves, expected, "{own:?} {narrowing} -> {schema}");
        }
    }
}

#[test]
fn a_narrowed_list_has_the_values_of_both() {
    for (own, narrowing, expected) in [
        (json!({}), json!(["b", "c"]), json!(["b", "c"])),
        (json!({"enum": ["a", "b"]}), json!(["b", "c"]), json!(["b"])),
        (json!({"enum": ["a"]}), json!(["b"]), json!([])),
    ] {
        let mut schema = own;
        let leaves = Rule::tighten(&mut schema, &json!({"enum": narrowing}));
        assert_eq!((&schema["enum"], leaves), (&expected, expected != json!([])));
    }
}
