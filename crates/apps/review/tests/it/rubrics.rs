//! Parsing of rubrics, and the messages about mistakes.

use formwork_review::ReviewRubric;
use formwork_review::document::Format;
use formwork_schema::compile;
use serde_json::json;

fn parse(text: &str) -> Result<ReviewRubric, String> {
    ReviewRubric::parse("r.yaml", text, Format::Yaml).map_err(|error| format!("{error:#}"))
}

const GOOD: &str = r#"
name: answers
description: What every answer of ours keeps to.
votes: {extra: 2, near: 10}
criteria:
  - id: polite
    description: The answer is polite.
    fix: Say please.
  - {id: total, description: The total is the sum., rule: {rule: atMost, target: $.low, limit: $.high}}
  - {id: title, description: It has a title., schema: {required: [title]}}
  - id: no-sorry
    description: It does not say sorry.
    pattern: {path: $.text, matches: "(?i)sorry", not: true}
  - {id: brand, description: It sounds like us., human: true}
  - {id: prices, description: Prices are right., needs: [price_list]}
"#;

#[test]
fn a_rubric_is_yaml_or_toml() {
    let rubric = parse(GOOD).unwrap();
    assert_eq!((rubric.criteria.len(), rubric.votes.extra), (6, 2));
    let toml = "name = \"r\"\n[[criteria]]\nid = \"a\"\ndescription = \"b\"\nneeds = [\"c\"]\n";
    let rubric = ReviewRubric::parse("r.toml", toml, Format::Toml).unwrap();
    assert_eq!(rubric.criteria[0].needs, ["c"]);
    let json = serde_json::to_string(&parse(GOOD).unwrap()).unwrap();
    assert_eq!(parse(&json).unwrap(), parse(GOOD).unwrap());
}

#[test]
fn what_is_wrong_has_line_column_caret_and_what_was_expected() {
    let criterion = |more: &str| format!("name: r\ncriteria:\n  - id: a\n    description: b\n{more}");
    for (text, says) in [
        (
            "name: r\ncriteria: []\n".to_owned(),
            "r.yaml:2:11: Too few items at $.criteria: expected at least 1",
        ),
        (
            "criteria:\n  - {id: a, description: b}\n".to_owned(),
            "r.yaml:1:1: required field `name` is missing",
        ),
        (
            criterion("    descripton: c\n"),
            "r.yaml:5:5: there is no `descripton` here: did you mean `description`?",
        ),
        (
            criterion("  - id: a\n    description: c\n"),
            "r.yaml:5:9: the id `a` is used twice: criterion 1 already has it",
        ),
        (
            criterion("    human: maybe\n"),
            "r.yaml:5:12: Type mismatch at $.criteria[0].human: expected boolean, found string",
        ),
        (
            criterion("    human: true\n    schema: {}\n"),
            "r.yaml:5:12: `schema` decides the criterion already",
        ),
        (criterion("    schema: {type: strin}\n"), "r.yaml:5:13: the schema cannot be used"),
        (
            criterion("    pattern: {matches: \"(a\"}\n"),
            "r.yaml:5:14: the expression cannot be used: unclosed group",
        ),
        (criterion("    pattern: {path: a.b, matches: a}\n"), "r.yaml:5:"),
        (criterion("    rule: {rule: atMots, target: $.a, limit: $.b}\n"), "r.yaml:5:"),
        (
            criterion("  - id: \"a b\"\n    description: c\n"),
            "r.yaml:5:9: Pattern mismatch at $.criteria[1].id",
        ),
        (
            criterion("votes: {extra: 3, near: 10}\n"),
            "r.yaml:5:16: expected an even number of extra votes, found 3",
        ),
        (
            criterion("votes: {extra: 2, near: 70}\n"),
            "r.yaml:5:25: Number out of range at $.votes.near: expected at most 50",
        ),
        ("- a\n".to_owned(), "r.yaml:1:1: Type mismatch at $: expected object, found array"),
        ("name: [\n".to_owned(), "r.yaml:"),
    ] {
        let error = parse(&text).unwrap_err();
        assert!(error.starts_with(says), "{text}\n{error}\nexpected {says}");
        assert!(error.contains(" | ") && error.contains('^'), "{error}");
        assert!(error.len() < 2000, "{error}");
    }
}

#[test]
fn all_of_it_is_reported_at_once() {
    let error = ReviewRubric::parse("r.yaml", "nam: r\ncriteria:\n  - id: 7\n", Format::Yaml).unwrap_err();
    assert_eq!(error.findings().len(), 4, "{error:#}");
    assert!(error.to_string().ends_with("(and 3 more)"), "{error}");
}

#[test]
fn a_path_that_outputs_cannot_have_is_a_mistake() {
    let named = json!({"type": "object", "properties": {
        "answer": {"type": "string"},
        "prices": {"type": "array", "items": {"type": "object", "properties": {"net": {}, "gross": {}}}},
    }});
    let with = |others: serde_json::Value| {
        let mut schema = named.clone();
        schema["additionalProperties"] = others;
        schema
    };
    for (criterion, place, meant) in [
        ("pattern: {path: $.anwser, matches: x}", "r.yaml:4:14", "`$.answer`"),
        ("pattern: {path: $.answer.text, matches: x}", "r.yaml:4:14", "nothing can be inside of `$.answer`"),
        ("rule: {rule: quoted, target: $.anwser}", "r.yaml:4:11", "`$.answer`"),
        (
            "rule: {rule: atMost, target: '$.prices[*].net', limit: '$.prices[*].gros'}",
            "r.yaml:4:11",
            "`$.prices[*].gross`",
        ),
        ("schema: {properties: {anwser: {maxLength: 5}}}", "r.yaml:4:13", "`$.answer`"),
        ("schema: {required: [anwser]}", "r.yaml:4:13", "`$.answer`"),
        ("schema: {allOf: [{properties: {anwser: {maxLength: 5}}}]}", "r.yaml:4:13", "`$.answer`"),
        ("schema: {anyOf: [{type: 'null'}, {required: [anwser]}]}", "r.yaml:4:13", "`$.answer`"),
        ("schema: {not: {properties: {anwser: {const: x}}}}", "r.yaml:4:13", "`$.answer`"),
        ("schema: {if: {required: [anwser]}, then: {required: [prices]}}", "r.yaml:4:13", "`$.answer`"),
        (
            "schema: {$ref: '#/$defs/a', $defs: {a: {properties: {prices: {items: {$ref: '#/$defs/a'}}}, required: [anwser]}}}",
            "r.yaml:4:13",
            "`$.answer`",
        ),
        ("schema: {dependentRequired: {anwser: [prices]}}", "r.yaml:4:13", "`$.answer`"),
        ("schema: {dependentRequired: {prices: [answer, anwser]}}", "r.yaml:4:13", "`$.answer`"),
        ("schema: {dependentSchemas: {anwser: {required: [prices]}}}", "r.yaml:4:13", "`$.answer`"),
        ("schema: {dependentSchemas: {prices: {required: [anwser]}}}", "r.yaml:4:13", "`$.answer`"),
        ("schema: {not: {dependentRequired: {anwser: [prices]}}}", "r.yaml:4:13", "`$.answer`"),
        (
            "schema: {properties: {prices: {items: {dependentRequired: {net: [gros]}}}}}",
            "r.yaml:4:13",
            "`$.prices[*].gross`",
        ),
        (
            "schema: {properties: {prices: {contains: {required: [gros]}}}}",
            "r.yaml:4:13",
            "`$.prices[*].gross`",
        ),
        (
            "schema: {properties: {prices: {items: {properties: {gros: {minimum: 0}}}}}}",
            "r.yaml:4:13",
            "`$.prices[*].gross`",
        ),
    ] {
        let text = format!("name: r\ncriteria:\n  - id: a\n    {criterion}\n    description: b\n");
        let parse = |schema: &serde_json::Value| {
            let compiled = compile(schema).unwrap();
            let rubric = ReviewRubric::parse_for("r.yaml", &text, Format::Yaml, Some(compiled.as_ref()));
            rubric.map_err(|error| format!("{error:#}"))
        };
        for closed in [named.clone(), with(json!(false))] {
            let error = parse(&closed).unwrap_err();
            assert!(error.starts_with(&format!("{place}: the schema has no ")), "{criterion}: {error}");
            assert!(error.contains(meant), "{criterion}: {error}");
        }
        // Without a schema nothing is known about the paths.
        assert!(ReviewRubric::parse("r.yaml", &text, Format::Yaml).is_ok(), "{criterion}");
        assert!(parse(&json!({"type": "object"})).is_ok(), "{criterion}");
        let is_top = criterion.contains("anwser");
        for open in [with(json!(true)), with(json!({"type": "string"}))] {
            assert_eq!(parse(&open).is_ok(), is_top, "{criterion}");
        }
    }
    let compiled = compile(&named).unwrap();
    for forbids in [
        "properties: {secret: false}",
        "not: {required: [secret]}",
        "not: {dependentRequired: {answer: [secret]}}",
        "dependentSchemas: {secret: false}",
    ] {
        let text = format!("name: r\ncriteria:\n  - {{id: a, description: b, schema: {{{forbids}}}}}\n");
        let rubric = ReviewRubric::parse_for("r.yaml", &text, Format::Yaml, Some(compiled.as_ref()));
        assert!(rubric.is_ok(), "a member that is forbidden may be absent: {forbids}");
    }
}
