//! Laws of every dialect with enforcement.

use std::collections::BTreeMap;

use formwork_core::{Lift, LossKind, Lower, LowerRequest, Lowered, Tighten, lift};
use formwork_dialect::{Native, lint, lower_value};
use formwork_json::is_same;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::laws::all;
use crate::model::{allows, sample};
use crate::probes::{Probe, probes};

fn lowered(dialect: &dyn Lower, schema: &Value) -> Lowered {
    dialect.lower(&LowerRequest::new(schema)).unwrap_or_else(|refused| panic!("{schema}: {refused}"))
}

/// Returns whether a loss is looser enforcement.
fn is_looser(lowered: &Lowered) -> bool {
    lowered.losses.iter().any(|loss| loss.kind != LossKind::Tightened)
}

/// Returns whether an answer may be impossible to lift, which is reported.
fn can_fail(lowered: &Lowered) -> bool {
    lowered.lift.iter().any(|op| {
        matches!(
            op.lift,
            Lift::ParseJson
                | Lift::Leaves
                | Lift::PairsToMap
                | Lift::Spread(_)
                | Lift::Tuple { .. }
                | Lift::Unlist(_)
                | Lift::Choice { .. }
        )
    })
}

#[test]
fn every_probe_keeps_every_valid_answer_and_says_what_it_lets_through() {
    let mut wrong = Vec::new();
    for dialect in all() {
        for Probe { name, schema, valid, invalid, .. } in probes() {
            let request = LowerRequest::new(&schema).with_tighten(Tighten::None);
            let lowered = match dialect.lower(&request) {
                Ok(lowered) => lowered,
                // Objects beside each other keep their optional members.
                Err(refused) if dialect.name() == "narrow" && refused.message.contains("optional") => {
                    continue;
                }
                Err(refused) => panic!("{schema}: {refused}"),
            };
            let sent = lowered.schema.as_ref().unwrap();
            for document in &valid {
                let Some(answer) = lower_value(document, &lowered) else {
                    wrong.push(format!("{dialect:?} {name}: {document} cannot be given by {sent}"));
                    continue;
                };
                // Other engines enforce bounds that llguidance ignores.
                let is_taken = if dialect.name() == "llguidance" {
                    allows(sent, &answer)
                } else {
                    Ok(formwork_schema::compile(sent).unwrap().is_valid(&answer))
                };
                match is_taken {
                    Ok(true) => {}
                    Ok(false) => wrong.push(format!("{dialect:?} {name}: {answer} is not allowed by {sent}")),
                    Err(error) => wrong.push(format!("{dialect:?} {name}: {error} in {sent}")),
                }
                let (back, problems) = lift(answer.clone(), &lowered);
                if !is_same(&back, document) || !problems.is_empty() {
                    wrong.push(format!(
                        "{dialect:?} {name}: {document} as {answer} comes back as {back} {problems:?}"
                    ));
                }
            }
            for document in &invalid {
                let is_allowed = lower_value(document, &lowered).is_some_and(|answer| {
                    allows(sent, &answer) == Ok(true) && is_same(&lift(answer, &lowered).0, document)
                });
                if is_allowed && !is_looser(&lowered) {
                    wrong.push(format!(
                        "{dialect:?} {name}: {document} is allowed and no loss says so, by {sent}"
                    ));
                }
            }
            let findings = lint(dialect.name(), sent);
            if !findings.is_empty() {
                wrong.push(format!("{dialect:?} {name}: {} in {sent}", findings[0]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_rust_types_make_keeps_every_variant() {
    let documents: BTreeMap<&str, Vec<Value>> =
        serde_json::from_str(include_str!("../data/schemars_documents.json")).unwrap();
    for row in include_str!("../data/schemars_shapes.jsonl").lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        let (name, schema) = (row["name"].as_str().unwrap(), &row["schema"]);
        for dialect in all() {
            let lowered = lowered(&*dialect, schema);
            let sent = lowered.schema.as_ref().unwrap();
            assert_eq!(lint(dialect.name(), sent), [], "{dialect:?} {name} {sent}");
            for document in &documents[name] {
                let answer = lower_value(document, &lowered)
                    .unwrap_or_else(|| panic!("{dialect:?} {name}: {document} by {sent}"));
                assert_eq!(allows(sent, &answer), Ok(true), "{dialect:?} {name}: {answer} by {sent}");
                let compiled = formwork_schema::compile(schema).unwrap();
                let (back, problems) = lift(answer, &lowered);
                assert!(problems.is_empty() && compiled.is_valid(&back), "{dialect:?} {name}: {back}");
            }
        }
    }
}

#[test]
fn what_may_be_answered_can_be_judged() {
    let mut runner = TestRunner::deterministic();
    for Probe { name, schema, .. } in probes() {
        let compiled = formwork_schema::compile(&schema).unwrap();
        for dialect in all() {
            let lowered = lowered(&*dialect, &schema);
            for _ in 0..3 {
                let mut draw = |below: usize| (0..below).new_tree(&mut runner).unwrap().current();
                let document = sample(lowered.schema.as_ref().unwrap(), &mut draw).unwrap();
                // The validator divides floats.
                if name == "multipleOf" && document["a"].is_f64() {
                    continue;
                }
                let (value, problems) = lift(document, &lowered);
                assert!(problems.is_empty() || can_fail(&lowered), "{dialect:?} {name}: {problems:?}");
                let is_fine = !problems.is_empty() || is_looser(&lowered) || compiled.is_valid(&value);
                assert!(is_fine, "{dialect:?} {name}: {value} is allowed and invalid");
            }
        }
    }
}

#[test]
fn openai_is_sent_closed_required_and_typed() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 80, "description": "Full name"},
            "nick": {"type": "string"},
            "born": {"type": ["string", "null"], "format": "date"},
            "scores": {"type": "object", "additionalProperties": {"type": "integer"}},
            "meta": true,
            "at": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "minItems": 2, "maxItems": 2},
        },
        "required": ["name", "scores", "meta", "at"],
    });
    let lowered = lowered(&Native::OPENAI, &schema);
    let sent = lowered.schema.clone().unwrap();
    assert_eq!(sent["required"], json!(["name", "nick", "born", "scores", "meta", "at"]));
    assert_eq!(sent["additionalProperties"], false);
    assert_eq!(
        sent["properties"]["name"],
        json!({"type": "string", "description": "Full name (1 to 80 characters.)"})
    );
    assert_eq!(sent["properties"]["nick"], json!({"anyOf": [{"type": "string"}, {"type": "null"}]}));
    assert_eq!(sent["properties"]["scores"]["description"], "(Each key once.)");
    assert_eq!(sent["properties"]["meta"], json!({"$ref": "#/$defs/any"}));
    let answer = json!({
        "name": "Ada", "nick": null, "born": null, "scores": [{"key": "a", "value": 1}],
        "meta": [1, {"entries": [{"key": "k", "value": true}]}],
        "at": {"_0": 1, "_1": 2.5},
    });
    assert_eq!(allows(&sent, &answer), Ok(true));
    let document =
        json!({"name": "Ada", "born": null, "scores": {"a": 1}, "meta": [1, {"k": true}], "at": [1, 2.5]});
    assert_eq!(lift(answer.clone(), &lowered), (document.clone(), vec![]));
    // `born` may be `null`, so absence needs another value.
    let mut without = document;
    without.as_object_mut().unwrap().shift_remove("born");
    let answer = lower_value(&without, &lowered).unwrap();
    assert_eq!(answer["born"], false);
    assert_eq!(lift(answer, &lowered), (without, vec![]));
    let losses: Vec<String> = lowered.losses.iter().map(ToString::to_string).collect();
    assert!(
        losses.contains(&"#/properties/name: `maxLength` is not enforced, only checked".to_owned()),
        "{losses:?}"
    );
}

#[test]
fn a_root_that_is_no_object_is_wrapped() {
    let lowered = lowered(
        &Native::OPENAI,
        &json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}),
    );
    assert_eq!(lowered.schema.as_ref().unwrap()["required"], json!(["value"]));
    for answer in [json!({"value": [1]}), json!([1])] {
        assert_eq!(lift(answer, &lowered).0, json!([1]));
    }
}

#[test]
fn members_beside_named_ones_come_as_pairs() {
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}, "others": {"type": "boolean"}}, "required": ["id"], "additionalProperties": {"type": "string"}});
    let document = json!({"id": 1, "x": "y", "z": ""});
    let openai = lowered(&Native::OPENAI, &schema);
    let answer = lower_value(&document, &openai).unwrap();
    assert_eq!(answer["others_"][0], json!({"key": "x", "value": "y"}));
    assert_eq!(lift(answer, &openai), (document.clone(), vec![]));
    let double = json!({"id": 1, "others": null, "others_": [{"key": "id", "value": "2"}]});
    assert_eq!(lift(double, &openai).1[0].rule, "uniqueKeys");
    // llama.cpp supports such members; only patterns of names need the array.
    let llama = lowered(&Native::LLAMA_CPP, &schema);
    assert_eq!(lower_value(&document, &llama), Some(document));
    let schema = json!({"type": "object", "patternProperties": {"^x-": {"type": "integer"}}, "additionalProperties": false});
    let llama = lowered(&Native::LLAMA_CPP, &schema);
    assert_eq!(lower_value(&json!({"x-a": 1}), &llama), Some(json!([{"key": "x-a", "value": 1}])));
}

#[test]
fn openai_s_limits_are_kept_by_leaving_lists_out_and_by_text() {
    // 30 lists of 100 values: the longest lists are dropped.
    let list = |n: usize| json!({"enum": (0..100).map(|v| format!("v{n}_{v}")).collect::<Vec<_>>()});
    let mut properties: serde_json::Map<String, Value> =
        (0..30).map(|n| (format!("p{n}"), list(n))).collect();
    properties.insert("few".into(), json!({"enum": ["a", "b"]}));
    let schema = json!({"type": "object", "properties": properties});
    let many = lowered(&Native::OPENAI, &schema);
    assert_eq!(lint("openai", many.schema.as_ref().unwrap()), []);
    assert!(many.losses.iter().any(|loss| loss.keyword == "enum"
        && loss.kind == LossKind::Loosened
        && loss.pointer == "/properties/p7"));
    assert!(!many.losses.iter().any(|loss| loss.keyword == "enum" && loss.pointer == "/properties/few"));
    let described = &many.schema.unwrap()["properties"]["p0"]["anyOf"][0]["description"];
    assert!(described.as_str().unwrap().starts_with("(One of \"v0_0\", \"v0_1\","), "{described}");

    // Of 15 levels, the eleventh is JSON in a string.
    let deep = (0..15).fold(json!({"type": "integer"}), |inner, _| {
        json!({"type": "object", "properties": {"x": inner}, "required": ["x"], "additionalProperties": false})
    });
    let lowered_deep = lowered(&Native::OPENAI, &deep);
    assert_eq!(lint("openai", lowered_deep.schema.as_ref().unwrap()), []);
    let document = (0..15).fold(json!(1), |inner, _| json!({"x": inner}));
    let answer = lower_value(&document, &lowered_deep).unwrap();
    assert!(answer.to_string().contains(r#"\"x\":"#), "{answer}");
    assert_eq!(lift(answer, &lowered_deep), (document, vec![]));

    let wide: serde_json::Map<_, _> = (0..5001).map(|n| (format!("p{n}"), json!({"type": "null"}))).collect();
    let refused = Native::OPENAI.lower(&LowerRequest::new(&json!({"type": "object", "properties": wide})));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the schema cannot be used with openai: #: it comes to 5001 properties, and 5000 are taken: split it, or ask for its parts one by one"
    );
}

#[test]
fn anthropic_gets_what_it_takes_and_words_for_the_rest() {
    let schema = json!({
        "type": "object",
        "properties": {
            "nick": {"type": "string", "maxLength": 8},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "share": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
            "code": {"type": "string", "pattern": "^[A-Z]{2}\\d+$"},
            "odd": {"type": "string", "pattern": "x\\b"},
            "tags": {"type": "array", "items": {"enum": ["a", 1, {"b": 2}]}, "minItems": 2, "maxItems": 5},
            "some": {"type": "array", "items": {"type": "string", "format": "uri"}, "minItems": 1},
            "meta": {"description": "Anything."},
            "scores": {"type": "object", "additionalProperties": {"type": "integer"}},
            "at": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "items": false, "minItems": 2},
        },
        "required": ["age", "meta"],
    });
    let lowered = lowered(&Native::ANTHROPIC, &schema);
    let sent = lowered.schema.clone().unwrap();
    let properties = &sent["properties"];
    let names: Vec<_> = properties.as_object().unwrap().keys().map(String::as_str).collect();
    // Required members come first, as the provider generates them.
    assert_eq!(names, ["age", "meta", "nick", "share", "code", "odd", "tags", "some", "scores", "at"]);
    assert_eq!((&sent["required"], &sent["additionalProperties"]), (&json!(["age", "meta"]), &json!(false)));
    for (name, expected) in [
        ("nick", json!({"type": "string", "description": "(At most 8 characters.)"})),
        ("age", json!({"type": "integer", "description": "(Number: at least 0, at most 150.)"})),
        ("share", json!({"type": "number", "description": "(Number: more than 0.) (A multiple of 0.5.)"})),
        ("code", json!({"type": "string", "pattern": "^[A-Z]{2}\\d+$"})),
        ("odd", json!({"type": "string", "description": "(Matches x\\b.)"})),
        ("some", json!({"type": "array", "items": {"type": "string", "format": "uri"}, "minItems": 1})),
    ] {
        assert_eq!(properties[name], expected, "{name}");
    }
    assert_eq!((&properties["tags"]["minItems"], &properties["tags"]["maxItems"]), (&json!(1), &Value::Null));
    assert_eq!(properties["tags"]["description"], "(2 to 5 items.)");
    assert_eq!(properties["meta"]["type"], "array");
    assert!(properties["meta"]["description"].as_str().unwrap().starts_with("Anything. (Any value, as"));
    let document = json!({"age": 34, "meta": {"any": [1, null]}, "scores": {"a": 1}, "at": [1, 2.5], "tags": [{"b": 2}, 1]});
    let answer = lower_value(&document, &lowered).unwrap();
    let leaf = |index, value| json!({"path": ["any", index], "value": value});
    assert_eq!(answer["meta"], json!([leaf(0, json!(1)), leaf(1, Value::Null)]));
    assert_eq!(allows(&sent, &answer), Ok(true));
    let (back, problems) = lift(answer, &lowered);
    assert!(is_same(&back, &document) && problems.is_empty(), "{back} {problems:?}");
}

#[test]
fn any_value_and_every_depth_of_recursion_come_without_json_in_strings() {
    let node = json!({"type": "object", "required": ["v"], "properties": {
        "v": true, "next": {"$ref": "#/$defs/node"}, "path": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    }});
    let schema = json!({"$ref": "#/$defs/node", "$defs": {"node": node}});
    let mut document = json!({"v": [{"path": ["a"], "value": 1}]});
    for depth in 0..6 {
        for dialect in [Native::ANTHROPIC, Native::GEMINI, Native::XAI, Native::OPENAI] {
            let lowered = lowered(&dialect, &schema);
            let texts = lowered.lift.iter().filter(|op| op.lift == Lift::ParseJson).count();
            assert_eq!(texts, 0, "{dialect:?}");
            let answer = lower_value(&document, &lowered).unwrap_or_else(|| panic!("{dialect:?} {document}"));
            let sent = lowered.schema.as_ref().unwrap();
            assert!(formwork_schema::compile(sent).unwrap().is_valid(&answer), "{dialect:?} {answer}");
            let (back, problems) = lift(answer, &lowered);
            assert!(is_same(&back, &document) && problems.is_empty(), "{dialect:?} {back} {problems:?}");
        }
        let key = if depth % 2 == 0 { "next" } else { "path" };
        let inner = if key == "path" { json!([document, {"v": {}}]) } else { document };
        document = json!({"v": depth, key: inner});
    }
}

#[test]
fn what_is_over_anthropic_s_budgets_comes_as_lists() {
    let optional: serde_json::Map<_, _> =
        (0..30).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let wide = json!({"type": "object", "properties": optional});
    let nullable: serde_json::Map<_, _> =
        (0..20).map(|n| (format!("p{n}"), json!({"type": ["integer", "null"]}))).collect();
    let names: Vec<&String> = nullable.keys().collect();
    let unions = json!({"type": "object", "required": names, "properties": nullable});
    for (schema, document, lists) in [
        (&wide, json!({"p1": "a", "p29": "b"}), 6),
        (
            &unions,
            (0..20).map(|n| (format!("p{n}"), if n % 2 == 0 { json!(n) } else { Value::Null })).collect(),
            4,
        ),
    ] {
        let lowered = lowered(&Native::ANTHROPIC, schema);
        let sent = lowered.schema.as_ref().unwrap();
        assert_eq!(lint("anthropic", sent), []);
        assert_eq!(sent.to_string().matches("\"array\"").count(), lists, "{sent}");
        let answer = lower_value(&document, &lowered).unwrap();
        assert_eq!(allows(sent, &answer), Ok(true));
        let (back, problems) = lift(answer, &lowered);
        assert!(is_same(&back, &document) && problems.is_empty(), "{back} {problems:?}");
    }
    // A list of two items in place of a member is reported and stays as it is.
    let twice = json!({"p24": ["a", "b"], "p25": [7], "p26": [], "p27": [], "p28": [], "p29": []});
    let (value, problems) = lift(twice, &lowered(&Native::ANTHROPIC, &wide));
    assert_eq!(problems.iter().map(|problem| problem.rule.as_str()).collect::<Vec<_>>(), ["maxItems"]);
    assert_eq!((&value["p24"], &value["p25"]), (&json!(["a", "b"]), &json!(7)));
    let narrow: serde_json::Map<_, _> =
        (0..24).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let narrow = lowered(&Native::ANTHROPIC, &json!({"type": "object", "properties": narrow}));
    assert!(!narrow.lift.iter().any(|op| matches!(op.lift, Lift::Unlist(_))));
}

#[test]
fn a_definition_stands_twice_inside_of_itself_and_then_as_text_where_recursion_is_not_taken() {
    let schema = json!({
        "$ref": "#/$defs/node",
        "$defs": {"node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["name"],
            "additionalProperties": false,
        }},
    });
    let lowered = lowered(&Native::ANTHROPIC, &schema);
    let sent = lowered.schema.as_ref().unwrap();
    assert_eq!(lint("anthropic", sent), []);
    assert_eq!(
        lint("anthropic", &schema).first().map(|finding| finding.keyword.as_deref()),
        Some(Some("$defs"))
    );
    let tree = |depth: usize| {
        (0..depth).fold(
            json!({"name": "leaf"}),
            |inner, level| json!({"name": format!("n{level}"), "children": [inner]}),
        )
    };
    for (depth, is_text) in [(0, false), (1, false), (2, true), (5, true)] {
        let document = tree(depth);
        let answer = lower_value(&document, &lowered).unwrap();
        assert_eq!(answer.to_string().contains(r#"[""#), is_text, "{answer}");
        assert_eq!(allows(sent, &answer), Ok(true), "{answer} by {sent}");
        assert_eq!(lift(answer, &lowered), (document, vec![]));
    }
}

#[test]
fn anthropic_s_counts_are_kept_before_a_call() {
    let object = |count: usize| {
        let properties: serde_json::Map<String, Value> =
            (0..count).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
        json!({"type": "object", "properties": properties, "additionalProperties": false})
    };
    // The members of a variant distinguish it, so they are not grouped.
    for (count, refused) in [(12, None), (13, Some("26 optional properties, and 24 are taken"))] {
        let schema = json!({"anyOf": [object(count), object(count)]});
        let lowered = Native::ANTHROPIC.lower(&LowerRequest::new(&schema)).map(|lowered| lowered.schema);
        match refused {
            None => assert_eq!(lint("anthropic", &lowered.unwrap().unwrap()), []),
            Some(words) => assert!(lowered.unwrap_err().message.contains(words)),
        }
    }
}

#[test]
fn llama_cpp_gets_patterns_that_it_understands() {
    let pattern = |pattern: &str, extra: Value| {
        let mut schema = json!({"type": "string", "pattern": pattern});
        schema.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        lowered(&Native::LLAMA_CPP, &schema).schema.unwrap()
    };
    assert_eq!(pattern(r"^\d{3}$", json!({})), json!({"type": "string", "pattern": "^[0-9]{3}$"}));
    assert_eq!(
        pattern("^[a-z]+$", json!({"maxLength": 3})),
        json!({"type": "string", "pattern": "^[a-z]+$"})
    );
    assert_eq!(pattern("^(?=a)a$", json!({"maxLength": 3})), json!({"type": "string", "maxLength": 3}));
    assert_eq!(pattern(r"^\\$", json!({"maxLength": 3})), json!({"type": "string", "maxLength": 3}));
    let long = lowered(&Native::LLAMA_CPP, &json!({"type": "string", "minLength": 5000}));
    assert_eq!(long.schema.unwrap(), json!({"type": "string", "minLength": 1000}));
    assert_eq!(long.losses[0].kind, LossKind::Loosened);
}

#[test]
fn required_members_come_first_and_go_back() {
    let schema = json!({"type": "object", "properties": {"b": {"type": "integer"}, "a": {"type": "integer"}}, "required": ["a"]});
    let lowered = lowered(&Native::LLAMA_CPP, &schema);
    let sent = lowered.schema.as_ref().unwrap();
    assert_eq!(sent["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(lift(json!({"a": 1, "b": 2}), &lowered).0.to_string(), r#"{"b":2,"a":1}"#);
}

#[test]
fn ollama_keeps_a_declared_order_through_the_alphabet() {
    use formwork_core::Dependency;
    let schema = json!({"type": "object", "properties": {"score": {"type": "integer"}, "total": {"type": "integer"}, "zip": {"type": "string"}}, "required": ["score", "total", "zip"]});
    let path = |text: &str| text.parse().unwrap();
    let depends = |first: &str, then: &str| Dependency { first: vec![path(first)], then: path(then) };
    let names = |dependency: Dependency| {
        let dependencies = [dependency];
        let request = LowerRequest::new(&schema).with_dependencies(&dependencies);
        let lowered = Native::OLLAMA.lower(&request).unwrap();
        let sent = lowered.schema.as_ref().unwrap();
        let names: Vec<String> = sent["properties"].as_object().unwrap().keys().cloned().collect();
        (names, lowered)
    };
    // The alphabetical order is valid, so nothing changes.
    assert_eq!(names(depends("$.score", "$.total")).0, ["score", "total", "zip"]);
    let (sent, lowered) = names(depends("$.zip", "$.score"));
    assert_eq!(sent, ["a_total", "b_zip", "c_score"]);
    let (value, problems) = lift(json!({"a_total": 2, "b_zip": "x", "c_score": 1}), &lowered);
    assert_eq!((value.to_string().as_str(), problems), (r#"{"score":1,"total":2,"zip":"x"}"#, vec![]));
}

#[test]
fn json_object_shows_the_schema_and_the_word() {
    use formwork_core::{Enforcement, SchemaText};
    let dialect = formwork_dialect::dialect("json-object").unwrap();
    let lower = |schema: &Value| dialect.lower(&LowerRequest::new(schema)).unwrap();
    let text = |lowered: &Lowered| match &lowered.prompt_schema {
        Some(SchemaText::JsonSchema(text)) => text.clone(),
        other => panic!("{other:?}"),
    };
    let object = lower(&json!({"type": "object", "properties": {"a": {"type": "integer"}}}));
    assert_eq!((object.schema.is_none(), object.enforcement), (true, Enforcement::JsonObject));
    assert_eq!(
        text(&object),
        r#"{"$comment": "The answer is one JSON object.", "type": "object", "properties": {"a": {"type": "integer"}}}"#
    );
    let list = lower(
        &json!({"type": "array", "items": {"$ref": "#/definitions/x"}, "definitions": {"x": {"type": "integer"}}}),
    );
    let described: Value = serde_json::from_str(&text(&list)).unwrap();
    let compiled = formwork_schema::compile(&described).unwrap();
    assert!(compiled.is_valid(&json!({"value": [1]})) && !compiled.is_valid(&json!({"value": ["x"]})));
    assert_eq!(lift(json!({"value": [1]}), &list).0, json!([1]));
}
