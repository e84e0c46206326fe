//! Several answers: the merged value and the scores of leaves.

use formwork_evidence::{Evidence, Index, Question, Status, counterparts, merge, merged_scores, scores};
use proptest::prelude::*;
use serde_json::{Value, json};

fn merged(answers: &[Value]) -> Value {
    merge(&answers.iter().collect::<Vec<_>>(), None).value
}

#[test]
fn the_majority_decides_each_leaf_and_each_item() {
    let answers = [
        json!({"n": 1, "of": "a", "lines": [{"id": "x", "n": 1}, {"id": "y", "n": 2}]}),
        json!({"n": 1, "of": "b", "lines": [{"id": "y", "n": 3}, {"id": "x", "n": 1}]}),
        json!({"n": 2, "of": "a", "lines": [{"id": "x", "n": 1}, {"id": "y", "n": 2}, {"id": "z", "n": 9}]}),
    ];
    let expected = json!({"n": 1, "of": "a", "lines": [{"id": "x", "n": 1}, {"id": "y", "n": 2}]});
    assert_eq!(merged(&answers), expected);
    let disputed = merge(&answers.iter().collect::<Vec<_>>(), None).disputed;
    let paths: Vec<String> = disputed.iter().map(|it| it.path.to_string()).collect();
    assert_eq!(paths, ["$.n", "$.of", "$.lines[1].n", "$.lines"]);
    assert!(disputed.iter().all(|it| it.candidates.len() == 2 && it.support > 0.5));
}

#[test]
fn items_that_not_all_answers_have_are_disputed_and_not_asked_for() {
    let all = [json!({"of": ["x", "y"]}), json!({"of": ["x"]}), json!({"of": ["x", "y", "z"]})];
    for (answers, value, disputed) in [
        (&all[..2], json!(["x", "y"]), vec![("$.of[1]", json!(["y", null]))]),
        (&all[..], json!(["x", "y"]), vec![("$.of[1]", json!(["y", null])), ("$.of", json!([null, "z"]))]),
        (&all[..1], json!(["x", "y"]), vec![]),
    ] {
        let merged = merge(&answers.iter().collect::<Vec<_>>(), None);
        assert_eq!(merged.value["of"], value);
        let found = merged.disputed.iter().map(|it| (it.path.to_string(), json!(it.candidates)));
        let expected = disputed.iter().map(|(path, candidates)| (path.to_string(), candidates.clone()));
        assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        assert!(merged.disputed.iter().all(|it| it.support >= 0.5 && it.support < 1.0), "{merged:?}");
        assert_eq!(Question::for_disputed(&merged), None);
    }
    // The values of an item are asked for all the same.
    let rows = [json!([{"a": 1}, {"a": 2, "b": "p"}]), json!([{"a": 1, "b": "q"}])];
    let merged = merge(&rows.iter().collect::<Vec<_>>(), None);
    let asked = Question::for_disputed(&merged).unwrap();
    assert_eq!(asked.schema()["required"], json!(["$[0].b"]));
}

#[test]
fn a_list_or_an_object_that_only_some_answers_have_is_disputed_and_asked_for() {
    let (list, object) =
        (json!({"a": 1, "of": [{"k": "apple", "n": 1}]}), json!({"a": 1, "of": {"k": "apple"}}));
    for (one, other, none) in [
        (&list, json!({"a": 1, "of": []}), json!([])),
        (&list, json!({"a": 1}), Value::Null),
        (&json!({"a": 1, "of": ["x", "y"]}), json!({"a": 1, "of": []}), json!([])),
        (&object, json!({"a": 1, "of": null}), Value::Null),
        (&object, json!({"a": 1}), Value::Null),
    ] {
        let mut merged = merge(&[one, &other], None);
        assert_eq!(merged.value, *one);
        let found: Vec<_> =
            merged.disputed.iter().map(|it| (it.path.to_string(), json!(it.candidates))).collect();
        assert_eq!(found, [("$.of".to_owned(), json!([one["of"], none]))]);
        assert!(merged.disputed[0].support > 0.5 && merged.disputed[0].support < 0.6);
        let asked = Question::for_disputed(&merged).unwrap();
        assert_eq!(asked.decide(&json!({"of": none.to_string()}), &mut merged), 1);
        assert_eq!((&merged.value["of"], merged.disputed), (&none, vec![]));
    }
    // The choices inside of an object stay if the object does.
    let answers =
        [json!({"of": {"k": "fig", "n": 1}}), json!({"of": {"k": "pear", "n": 1}}), json!({"of": null})];
    let undecided = merge(&answers.iter().collect::<Vec<_>>(), None);
    let asked = Question::for_disputed(&undecided).unwrap();
    for (whole, expected) in
        [(answers[0]["of"].to_string(), &answers[1]["of"]), ("null".to_owned(), &Value::Null)]
    {
        let mut merged = undecided.clone();
        asked.decide(&json!({"of.k": "pear", "of": whole}), &mut merged);
        assert_eq!((&merged.value["of"], merged.disputed), (expected, vec![]));
    }
}

#[test]
fn items_that_most_answers_have_stay_although_others_share_values_with_them() {
    let of = |names: &[&str]| {
        let price = |name: &str| name.len() as f64 + 0.25;
        let row = |name: &&str| json!({"item": name, "qty": 10, "price": price(name)});
        json!({"lines": names.iter().map(row).collect::<Vec<_>>()})
    };
    let all = [of(&["Saw", "Hammer"]), of(&["Saw", "Drill"]), of(&["Drill", "Hammer"])];
    for [one, two, three] in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let value = merged(&[all[one].clone(), all[two].clone(), all[three].clone()]);
        let mut names: Vec<&str> =
            value["lines"].as_array().unwrap().iter().map(|row| row["item"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["Drill", "Hammer", "Saw"], "{one} {two} {three}");
    }
    // Of long lists, too, items that have nothing in common are different ones.
    let long =
        |kind: &str| json!((0..2_100).map(|nth| json!({ kind: format!("{kind}{nth}") })).collect::<Vec<_>>());
    assert_eq!(merged(&[long("a"), long("b")]).as_array().unwrap().len(), 4_200);
    // One value of three in common makes no version of the same item.
    assert_eq!(merged(&[all[0].clone(), all[1].clone()])["lines"].as_array().unwrap().len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Answers that each omit other rows of a list in the order of the document, and misread one value of a row, have all rows together, and in their
    /// order if nothing is misread.
    #[test]
    fn rows_that_answers_omit_are_in_the_merged_list(
        rows in prop::collection::vec((0..5_usize, 1..100_000_u32), 6..40),
        omitted in prop::collection::vec(any::<prop::sample::Index>(), 3),
        misread in any::<prop::sample::Index>(),
        answers in 2..4_usize,
    ) {
        let row = |(nth, (name, price)): (usize, &(usize, u32))| json!({"of": format!("name {name}"), "day": nth / 3, "price": price * 100 + nth as u32});
        let full: Vec<Value> = rows.iter().enumerate().map(row).collect();
        let omitted: Vec<usize> = omitted.iter().map(|index| index.index(full.len())).collect();
        // The order of two neighbours that no answer has both of is unknown.
        let is_apart = |[one, other]: [usize; 2]| omitted[one].abs_diff(omitted[other]) > 1;
        prop_assume!([[0, 1], [1, 2], [0, 2]].into_iter().all(is_apart));
        let all: Vec<Value> = (0..answers)
            .map(|nth| {
                let mut own = full.clone();
                // Three answers: the majority reads it right.
                let at = misread.index(full.len());
                if answers == 3 && nth == 0 && !omitted.contains(&at) {
                    own[at]["price"] = json!(50_000_000 + at);
                }
                own.remove(omitted[nth]);
                json!({"rows": own})
            })
            .collect();
        let mut found = merged(&all)["rows"].as_array().cloned().unwrap();
        if answers == 3 {
            // A misread row beside an omitted one may be a version of either.
            found.sort_by_key(|row| full.iter().position(|one| one == row));
        }
        prop_assert_eq!(&found, &full);
    }
}

#[test]
fn evidence_decides_between_two_answers_and_nothing_is_made_of_nothing() {
    let (one, other) = (json!({"total": 12.5}), json!({"total": 13}));
    for (text, found) in [("Total: 12.50", json!(12.5)), ("Total: 13", json!(13))] {
        let merged = merge(&[&one, &other], Some(&Index::new(text)));
        assert_eq!(merged.value["total"], found);
    }
    assert_eq!(merged(&[]), Value::Null);
    assert_eq!(merged(&[json!(null), json!(null)]), Value::Null);
    assert_eq!(merged(&[json!({"a": [1]}), json!([])]), json!({"a": [1]}));
}

#[test]
fn doubtful_leaves_have_lower_scores_than_certain_ones() {
    let schema = json!({"properties": {"due": {"type": "string", "format": "date"}}});
    let index = Index::new("Ada, 7/15, 1815, total 12");
    let score = |value: Value, others: &[Value]| {
        let others: Vec<&Value> = others.iter().collect();
        scores(
            &json!({"due": value}),
            &others,
            Some(&index.evidence(&json!({"due": value}), Some(&schema))),
            Some(&schema),
        )[0]
        .score
    };
    let agreed = |value: &str| [json!({"due": value}), json!({"due": value})];
    assert!(score(json!("Ada"), &[]) < score(json!(12), &[]), "a date without its year");
    assert!(score(json!(99), &[]) < score(json!(12), &[]), "no evidence");
    let lines =
        json!({"lines": [{"n": 12, "of": "zebra"}, {"n": 99, "of": "Ada"}, {"n": 1815, "of": "yak"}]});
    let of = |path: &str| {
        let all = scores(&lines, &[], Some(&index.evidence(&lines, None)), None);
        all.iter().find(|it| it.path.to_string() == path).unwrap().score
    };
    assert!(of("$.lines[1].of") < of("$.lines[0].n"), "the other items of its member have no evidence");
    assert!(score(json!(0), &[]) <= score(json!(12), &[]), "a zero");
    assert!(score(json!(12), &agreed("x")) < score(json!("x"), &agreed("x")));
    assert!(score(json!("7/15"), &agreed("7/15")) < 0.5);
    let none = scores(&json!({"a": "x"}), &[], None, None);
    assert_eq!(none[0].score, 0.5);
}

#[test]
fn a_choice_needs_no_place_in_the_input() {
    let schema = json!({
        "properties": {
            "paid": {"type": "boolean"},
            "state": {"$ref": "#/$defs/state"},
            "kind": {"anyOf": [{"const": "a bill"}, {"type": "null"}]},
            "name": {"anyOf": [{"type": "string"}, {"const": null}]},
        },
        "$defs": {"state": {"enum": ["open", "closed"]}},
    });
    let of = |input: &str, value: Value, schema: Option<&Value>| {
        let evidence = Index::new(input).evidence(&value, schema);
        scores(&value, &[], Some(&evidence), schema).iter().map(|it| it.score).collect::<Vec<_>>()
    };
    let value = json!({"paid": true, "state": "open", "kind": "a bill", "name": "Zed"});
    assert_eq!(of("Ada owes 12", value.clone(), Some(&schema)), [0.5, 0.5, 0.5, 0.0]);
    assert_eq!(of("an open sum of Zed", value.clone(), Some(&schema)), [0.5, 1.0, 0.5, 1.0]);
    assert_eq!(of("Ada owes 12", value, None), [0.5, 0.0, 0.0, 0.0]);
    assert_eq!(of("Ada owes 12", json!({"state": "late"}), Some(&schema)), [0.0], "not a listed one");
}

#[test]
fn a_quote_of_the_model_makes_no_value_surer() {
    let (index, value) = (Index::new("Maria lives in Madrid."), json!({"city": "Lisbon"}));
    let mut evidence = index.evidence(&value, None);
    let score = |evidence: &[Evidence]| scores(&value, &[], Some(evidence), None)[0].score;
    assert_eq!(score(&evidence), 0.0);
    let question = Question::for_quotes(&value, &evidence).unwrap();
    assert_eq!(question.quote(&json!({"city": "lives in Madrid"}), &index, &mut evidence), 1);
    assert_eq!((evidence[0].status, score(&evidence)), (Status::Quoted, 0.0));
}

#[test]
fn an_answer_that_differs_everywhere_hardly_counts() {
    let answer = |n: i64, of: &str| json!({"n": n, "of": of, "a": "x", "b": "y"});
    let value = answer(1, "me");
    let score = |path: &str, others: &[&Value]| {
        let scores = scores(&value, others, None, None);
        scores.iter().find(|it| it.path.to_string() == path).unwrap().score
    };
    let (close, far) = (answer(1, "you"), json!({"n": 2, "of": "me", "a": "1", "b": "2"}));
    assert!(
        score("$.n", &[&close, &far]) > score("$.of", &[&close, &far]),
        "the close answer agrees on n alone"
    );
    assert_eq!(score("$.n", &[&close, &far]), score("$.n", &[&far, &close]), "in any order");
    assert_eq!(score("$.n", &[&close]), 1.0, "one other answer has no weight of its own");
    let nothing = scores(&json!({"a": null}), &[&json!({}), &json!([])], None, None);
    assert!((0.0..=1.0).contains(&nothing[0].score), "answers without anything in common: {nothing:?}");
}

#[test]
fn an_answer_that_writes_a_member_in_its_own_way_makes_none_of_its_values_doubtful() {
    let rows = |date: &dyn Fn(usize) -> String| {
        let row = |nth| json!({"n": nth, "of": format!("name {nth}"), "due": date(nth)});
        json!({"rows": (0..8).map(row).collect::<Vec<_>>()})
    };
    let (value, same) = (rows(&|nth| format!("2024-01-1{nth}")), rows(&|nth| format!("2024-01-1{nth}")));
    let own_way = rows(&|nth| format!("1{nth} January"));
    let once = rows(&|nth| if nth == 3 { "2024-01-30".to_owned() } else { format!("2024-01-1{nth}") });
    let score = |others: &[&Value]| {
        let scores = scores(&value, others, None, None);
        scores.iter().find(|it| it.path.to_string() == "$.rows[3].due").unwrap().score
    };
    let (systematic, single) = (score(&[&same, &own_way]), score(&[&same, &once]));
    assert!(systematic > 0.9 && single < 0.8, "{systematic} {single}");
    assert_eq!(systematic, score(&[&own_way, &same]), "in any order");
    assert!(score(&[&own_way, &once]) < 0.5, "both differ");
    assert!(score(&[&own_way]) < 0.2, "no third answer says which of the two is the odd one");
    let half = json!({"rows": value["rows"].as_array().unwrap()[..4]});
    let all_rows = |others: &[&Value]| {
        scores(&value, others, None, None).iter().map(|it| it.score).fold(f64::INFINITY, f64::min)
    };
    assert!(
        all_rows(&[&same, &half]) < 0.9,
        "rows that an answer does not have are not written in its own way"
    );
    let merged = |answers: &[&Value]| {
        let scores = merged_scores(&value, answers, None, None);
        scores.iter().find(|it| it.path.to_string() == "$.rows[3].due").unwrap().score
    };
    assert!(merged(&[&value, &own_way]) < 0.6, "one of two answers is no majority");
    assert!(merged(&[&value, &own_way, &rows(&|nth| format!("Jan 1{nth}"))]) < 0.5, "nor is one of three");
    assert!(merged(&[&value, &same, &own_way]) > 0.9);
}

#[test]
fn a_text_after_which_its_phrase_goes_on_is_doubtful_among_texts_that_end_with_theirs() {
    let of = |input: &str, names: &[&str], schema: Option<&Value>| {
        let items: Vec<Value> = names.iter().map(|name| json!({"of": name})).collect();
        let value = json!({"rows": items});
        let evidence = Index::new(input).evidence(&value, schema);
        scores(&value, &[], Some(&evidence), schema).iter().map(|it| it.score).collect::<Vec<_>>()
    };
    let whole = ["Rent of rooms", "Heat", "Taxes on land", "Water"];
    let cut = ["Rent of rooms", "Heat", "Taxes", "Water"];
    for input in [
        "| Rent of rooms | 12 |\n| Heat | 13 |\n| Taxes on land | 14 |\n| Water | 15 |",
        "Rent of rooms   12\nHeat            13\nTaxes on land   14\nWater           15",
        "Rent of rooms,12\nHeat,13\nTaxes on land,14\nWater,15",
        "Rent of rooms\nHeat\nTaxes on land\nWater",
    ] {
        assert_eq!(of(input, &whole, None), [1.0; 4], "{input}");
        let scores = of(input, &cut, None);
        assert!(scores[2] < 0.5 && [0, 1, 3].iter().all(|at| scores[*at] == 1.0), "{input}: {scores:?}");
        let schema = json!({"properties": {"rows": {"items": {"properties": {"of": {"enum": cut}}}}}});
        assert_eq!(
            of(input, &cut, Some(&schema)),
            [1.0; 4],
            "a listed text is as long as the list says: {input}"
        );
    }
    // Where every text stands within a sentence, none is cut; and the end of a sentence is an end, as the comma of a list.
    assert_eq!(
        of("The rent of rooms, the heat and taxes on land rose.", &["rent", "heat", "taxes"], None),
        [1.0; 3]
    );
    assert_eq!(
        of("They pay rent. They pay heat. They pay taxes.", &["rent", "heat", "taxes"], None),
        [1.0; 3]
    );
    assert_eq!(
        of("Paid: rent, heat, taxes and water.", &["rent", "heat", "taxes and water"], None),
        [1.0; 3]
    );
    assert_eq!(of("Taxes on land 14", &["Taxes"], None), [1.0], "one text has no others beside it");
}

#[test]
fn a_value_that_more_leaves_have_than_the_input_has_places_is_supported_by_a_share_of_a_place() {
    let of = |input: &str, value: Value, schema: Option<&Value>| {
        let evidence = Index::new(input).evidence(&value, schema);
        scores(&value, &[], Some(&evidence), schema).iter().map(|it| it.score).collect::<Vec<_>>()
    };
    for (input, value, expected) in [
        ("Ada, Zed, 12, 12", json!({"a": "Ada", "b": "Zed", "c": 12, "d": 12}), vec![1.0; 4]),
        ("Ada, Zed, 12", json!({"a": "Ada", "b": "Ada", "c": "Zed"}), vec![0.5, 0.5, 1.0]),
        ("Ada owes 12", json!([12, 12, "12", 12]), vec![0.4; 4]),
        (
            "Ada Lovelace, 12 EUR",
            json!({"first": "Ada", "name": "Ada Lovelace", "n": 12, "sum": "12 EUR"}),
            vec![1.0; 4],
        ),
        ("Ada, Zed, Ada", json!({"a": "Ada", "b": "ada", "c": "Ada", "d": "Ada"}), vec![0.5; 4]),
        // Of 32 places, more may exist than are known.
        (&"Ada, ".repeat(32), json!(vec!["Ada"; 100]), vec![1.0; 100]),
    ] {
        assert_eq!(of(input, value.clone(), None), expected, "{input}: {value}");
    }
    let schema = json!({"items": {"properties": {"state": {"enum": ["open", "closed"]}}}});
    let states = json!([{"state": "open"}, {"state": "open"}, {"state": "open"}]);
    assert_eq!(of("all are open", states, Some(&schema)), [0.5; 3], "as much as a choice that is not stated");
    let currencies: Vec<&str> = std::iter::repeat_n("EUR", 19).chain(["USD"]).collect();
    let scores = of("in EUR", json!(currencies), None);
    assert!(scores[19] < scores[0] && scores[0] == 0.4, "one that is not found is below them: {scores:?}");
}

fn document() -> impl Strategy<Value = Value> {
    let item = ("[a-c]{1,2}", 0_u8..3).prop_map(|(of, n)| json!({"of": of, "n": n}));
    ("[a-c]{0,2}", prop::collection::vec(item, 0..5))
        .prop_map(|(of, lines)| json!({"of": of, "lines": lines}))
}

proptest! {
    #[test]
    fn equal_answers_merge_to_themselves_in_any_number(one in document(), count in 1_usize..5) {
        let answers = vec![one.clone(); count];
        prop_assert_eq!(merged(&answers), one);
    }

    #[test]
    fn a_leaf_on_which_all_agree_is_kept_and_scores_are_shares(one in document(), two in document(), three in document()) {
        let answers = [one, two, three];
        let value = merged(&answers);
        let of = |answer: &Value| answer["of"].as_str().unwrap().to_owned();
        if of(&answers[0]) == of(&answers[1]) {
            prop_assert_eq!(value["of"].as_str().unwrap(), of(&answers[0]));
        }
        let others: Vec<&Value> = answers.iter().skip(1).collect();
        let scores = scores(&answers[0], &others, None, None);
        prop_assert_eq!(scores.len(), counterparts(&answers[0], &answers[1]).len());
        prop_assert!(scores.iter().all(|it| (0.0..=1.0).contains(&it.score)));
    }
}
