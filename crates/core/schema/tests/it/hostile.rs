//! Schemas and values that are made to take unbounded time or stack. Test threads have 2 MB of stack.

use formwork_core::{Context, Report, Validator};
use formwork_schema::{compile, lint};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::messages;

fn definitions(count: usize, of: impl Fn(usize) -> Value) -> Value {
    let all: Map<String, Value> = (0..count).map(|number| (format!("d{number}"), of(number))).collect();
    json!({"$ref": "#/$defs/d0", "$defs": all})
}

fn to(number: usize) -> Value {
    json!({"$ref": format!("#/$defs/d{number}")})
}

/// Returns a schema nested in itself so many times.
fn nested(levels: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(json!({"type": "string"}), |inner, _| wrap(inner))
}

/// Compiles, lints and validates; returns the findings, and the error of compiling.
fn survives(schema: &Value) -> (Vec<String>, Option<String>) {
    let findings = lint(schema).iter().map(ToString::to_string).collect();
    let deep = (0..126).fold(json!(1), |inner, _| json!({"next": inner, "kind": 1}));
    match compile(schema) {
        Ok(compiled) => {
            for value in [json!(null), json!("x"), json!(1), json!([[1]]), json!({"next": {"kind": 3}}), deep]
            {
                let mut report = Report::default();
                compiled.validate(&value, &Context::EMPTY, &mut report);
                assert_eq!(report.is_empty(), compiled.is_valid(&value), "{value}");
            }
            (findings, None)
        }
        Err(error) => {
            assert!(!error.message.is_empty());
            (findings, Some(error.to_string()))
        }
    }
}

#[track_caller]
fn refused(schema: &Value, says: &str) {
    let (findings, error) = survives(schema);
    assert!(error.as_ref().is_some_and(|error| error.contains(says)), "{error:?}");
    assert!(findings[0].starts_with("error: "), "{findings:?}");
}

#[track_caller]
fn taken(schema: &Value) {
    let (findings, error) = survives(schema);
    assert_eq!((findings, error), (Vec::new(), None));
}

#[test]
fn unions_that_lead_to_each_other_are_taken_where_members_are_between_them() {
    for size in [40, 120] {
        taken(&definitions(size, |from| {
            let variant = |kind: usize| {
                let note = "x".repeat(60);
                json!({
                    "properties": {"kind": {"const": kind, "description": note}, "next": to((from * 7 + kind) % size)},
                    "required": ["kind"],
                })
            };
            json!({"oneOf": (0..8).map(variant).collect::<Vec<_>>()})
        }));
    }
}

#[test]
fn unions_that_lead_to_each_other_for_one_value_are_refused() {
    let union = |from: usize| json!({"oneOf": (0..8).map(|kind| to((from * 7 + kind * kind * 13 + 1) % 120)).collect::<Vec<_>>()});
    refused(&definitions(120, union), "unions and references lead to each other in too many ways");
    let twice = |from: usize| {
        if from == 40 { json!({"type": "null"}) } else { json!({"anyOf": [to(from + 1), to(from + 1)]}) }
    };
    refused(&definitions(41, twice), "the schema cannot be used: #/$defs/d28: unions and references");
    let unevaluated = nested(60, |inner| json!({"allOf": [inner], "unevaluatedProperties": false}));
    refused(&unevaluated, "too many ways");
}

#[test]
fn a_cycle_for_one_value_is_no_obstacle_while_it_is_small() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"anyOf": [{"type": "null"}, {"$ref": "#"}, {"allOf": [{"$ref": "#"}]}]}),
    ] {
        assert_eq!(survives(&schema).1, None, "{schema}");
    }
}

#[test]
fn products_of_unions_are_not_multiplied_out() {
    let conflict = "warning: #/properties/a: no value satisfies";
    for branch in [
        |all: usize, any: usize| json!({"required": [format!("p{all}_{any}")]}),
        |all, any| json!({"type": "string", "pattern": format!("^a{all}.*b{any}$")}),
        |all, any| json!({"not": {"const": format!("{all} {any}")}}),
        |all, any| json!({"properties": {"a": {"anyOf": [{"minimum": all}, {"maximum": any}]}}}),
    ] {
        let product = |all: usize, any: usize| {
            let union = |all| json!({"anyOf": (0..any).map(|any| branch(all, any)).collect::<Vec<_>>()});
            json!({"allOf": (0..all).map(union).collect::<Vec<_>>()})
        };
        taken(&product(12, 6));
        taken(&product(2, 3));
        // The other parts of a schema are examined only while the product is small.
        let with_conflict =
            |product: Value| json!({"properties": {"a": {"type": "string", "const": 1}, "b": product}});
        assert!(survives(&with_conflict(product(2, 3))).0[0].starts_with(conflict));
        assert!(survives(&with_conflict(product(12, 6))).0.is_empty());
    }
    let case = |number: usize| json!({"if": {"required": [format!("p{number}")]}, "then": {"required": ["q"]}, "else": {"maxProperties": number}});
    taken(&json!({"allOf": (0..20).map(case).collect::<Vec<_>>()}));
    taken(
        &json!({"allOf": (1..200).map(|n| json!({"multipleOf": 1e300 / f64::from(n)})).collect::<Vec<_>>()}),
    );
}

#[test]
fn what_is_just_examined_is_examined_on_a_small_stack() {
    let examined = |schema: &Value| assert!(lint(schema).is_empty(), "{schema}");
    for wrap in [
        |inner: Value| json!({"items": inner}),
        |inner| json!({"properties": {"a": inner}, "required": ["a"]}),
        |inner| json!({"oneOf": [{"type": "null"}, inner]}),
        |inner| json!({"allOf": [{"type": "string"}, inner]}),
    ] {
        (36..42).for_each(|levels| examined(&nested(levels, wrap)));
    }
    for units in 8..21 {
        examined(&definitions(
            units,
            |from| if from + 1 == units { json!({"type": "null"}) } else { to(from + 1) },
        ));
        examined(&definitions(units, |from| json!({"properties": {"next": to((from + 1) % units)}})));
        let variant = |from: usize, kind: usize| json!({"properties": {"kind": {"const": kind}, "next": to((from * 7 + kind) % units)}, "required": ["kind"]});
        examined(&definitions(
            units,
            |from| json!({"oneOf": [variant(from, 0), variant(from, 1), variant(from, 2)]}),
        ));
    }
}

#[test]
fn what_is_nested_too_deeply_is_refused_where_it_is() {
    for wrap in [
        |inner| json!({"items": inner}),
        |inner| json!({"not": inner}),
        |inner| json!({"properties": {"a/b": inner}}),
        |inner| json!({"anyOf": [inner]}),
        |inner| json!({"allOf": [inner, true]}),
        |inner| json!({"x-own": inner, "type": "string"}),
    ] {
        taken(&nested(50, wrap));
        refused(&nested(400, wrap), "nested deeper than 127 levels");
        let start =
            if nested(1, wrap).get("properties").is_some() { "#/properties/a~1b/properties" } else { "#/" };
        let SchemaParts { pointer, finding } = too_deep(&nested(400, wrap));
        assert!(format!("#{pointer}").starts_with(start) && pointer.split('/').count() == 129, "{pointer}");
        assert_eq!(finding, pointer);
    }
}

struct SchemaParts {
    pointer: String,
    finding: String,
}

fn too_deep(schema: &Value) -> SchemaParts {
    SchemaParts { pointer: compile(schema).unwrap_err().pointer, finding: lint(schema)[0].pointer.clone() }
}

#[test]
fn ten_thousand_levels_are_refused_on_a_stack_that_can_hold_them() {
    // `serde_json` itself needs the stack, to drop such a value.
    // `json!` would copy what is inside of it.
    let items = |inner| Value::Object(Map::from_iter([("items".to_owned(), inner)]));
    let build = move || refused(&nested(10_000, items), "nested deeper than 127 levels");
    std::thread::Builder::new().stack_size(64 << 20).spawn(build).unwrap().join().unwrap();
}

#[test]
fn chains_of_references_are_refused_where_they_are_for_one_value() {
    let end = |number| json!({"const": number});
    let chain = |length: usize| {
        definitions(length + 1, move |from| if from == length { end(from) } else { to(from + 1) })
    };
    taken(&chain(300));
    refused(&chain(9000), "more than 400 parts include each other");
    let members = |length: usize| {
        definitions(length + 1, move |from| {
            if from == length { end(from) } else { json!({"properties": {"next": to(from + 1)}}) }
        })
    };
    taken(&members(2000));
    refused(&members(11_000), "the schema refers to 11001 definitions, more than 10000");
    let deep = |from: usize| (0..60).fold(to((from + 1) % 40), |inner, _| json!({"anyOf": [inner]}));
    refused(&definitions(40, deep), "too many definitions are nested deeply");
}

#[test]
fn a_megabyte_is_no_obstacle() {
    let words: Vec<String> = (0..60_000).map(|number| format!("value {number}")).collect();
    taken(&json!({"enum": words}));
    let properties: Map<String, Value> = (0..12_000)
        .map(|number| (format!("field {number}"), json!({"type": "string", "minLength": 1})))
        .collect();
    taken(&json!({"type": "object", "properties": properties, "additionalProperties": false}));
    let variant = |number: usize| json!({"properties": {"kind": {"const": number}}, "required": ["kind"]});
    taken(&json!({"oneOf": (0..12_000).map(variant).collect::<Vec<_>>()}));
    taken(&json!({"type": "string", "description": "x".repeat(1_000_000)}));
    // All names have the same end.
    let all: Map<String, Value> =
        (0..2000).map(|n| (format!("d{n}"), json!({"properties": {"a": {}}}))).collect();
    let each: Map<String, Value> =
        (0..2000).map(|n| (format!("p{n}"), json!({"$ref": format!("#/$defs/d{n}/properties/a")}))).collect();
    taken(&json!({"properties": each, "$defs": all}));
}

#[test]
fn a_megabyte_of_misspelled_words_is_no_obstacle() {
    let unknown: Map<String, Value> =
        (0..40_000).map(|number| (format!("unknown {number}"), json!(1))).collect();
    assert_eq!(lint(&Value::Object(unknown)).len(), 1, "every value satisfies it");
    let keywords: Map<String, Value> =
        (0..20_000).map(|n| (format!("p{n}"), json!({"requird": []}))).collect();
    assert_eq!(lint(&json!({"properties": keywords})).len(), 200);
    let names: Vec<String> = (0..20_000).map(|number| format!("field_number_{number}")).collect();
    let properties: Map<String, Value> =
        (0..20_000).map(|number| (format!("property_number_{number}"), json!({}))).collect();
    taken(&json!({"required": names, "properties": properties}));
    taken(
        &json!({"x".repeat(500_000): 1, "properties": {"y".repeat(500_000): {}}, "required": ["y".repeat(499_999)]}),
    );
}

#[test]
fn nothing_satisfies_false() {
    let findings: Vec<_> = lint(&json!(false)).iter().map(ToString::to_string).collect();
    assert_eq!(findings, ["error: #: no value satisfies `false`"]);
}

#[test]
fn tangled_references_that_say_nothing_are_found_in_time() {
    let ring = |size: usize| {
        definitions(
            size,
            move |from| json!({"anyOf": [to((from + 1) % size), to((from * 7) % size), {"type": "null"}]}),
        )
    };
    let chain = definitions(9000, |from| to(from + 1));
    for schema in [
        ring(9000),
        ring(100),
        chain,
        definitions(9000, to),
        nested(120, |inner| json!({"anyOf": [inner, to(0)]})),
    ] {
        survives(&schema);
        let start = std::time::Instant::now();
        formwork_schema::says_nothing(&schema);
        assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
    }
}

/// Returns the schema of an expression with so many kinds of operations.
fn expressions(kinds: usize) -> Value {
    let operation = |kind: usize| {
        json!({
            "type": "object",
            "properties": {"kind": {"const": format!("k{kind}")}, "left": to(0), "right": to(0)},
            "required": ["kind", "left", "right"],
            "additionalProperties": false,
        })
    };
    let variants: Vec<_> = (0..kinds).map(operation).chain([json!({"type": "number"})]).collect();
    definitions(1, |_| json!({"oneOf": variants}))
}

fn expression(levels: usize, innermost: Value) -> Value {
    (0..levels).fold(innermost, |left, _| json!({"kind": "k1", "left": left, "right": 1}))
}

#[test]
fn errors_deep_inside_of_unions_are_found_level_by_level() {
    let schema = expressions(5);
    let left = |levels: usize| ".left".repeat(levels);
    for levels in [2, 12, 40] {
        assert!(messages(&schema, &expression(levels, json!(1))).is_empty(), "{levels}");
        let found = messages(&schema, &expression(levels, json!({"kind": "k2", "left": 1})));
        assert_eq!(found, [format!("Missing required field at path ${}.right", left(levels))], "{levels}");
    }
    let found = messages(&schema, &expression(12, json!("x")));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains(&format!("${}: ", left(12))), "{found:?}");
    let mut value = expression(6, json!({"kind": "k2", "left": 1, "right": 2, "more": 3}));
    value = json!({"kind": "k3", "left": value, "right": {"kind": "k4", "left": 1}});
    let found = messages(&schema, &value);
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn a_value_without_a_tag_in_unions_without_end_is_reported_in_time() {
    let variant = |name: &str| json!({"properties": {"next": {"$ref": "#"}}, "minProperties": name.len()});
    let schema = json!({"oneOf": [variant("a"), variant("ab"), {"properties": {"next": {"$ref": "#"}}}]});
    let value = (0..100).fold(json!({}), |inner, _| json!({"next": inner}));
    assert_eq!(messages(&schema, &value).len(), 1);
}

#[test]
fn a_value_that_is_nested_too_deeply_for_its_schema_is_not_valid() {
    let schema = json!({"items": {"$ref": "#"}});
    let value = |levels: usize| (0..levels).fold(json!([]), |inner, _| Value::Array(vec![inner]));
    assert!(messages(&schema, &value(120)).is_empty());
    let found = messages(&schema, &value(2000));
    assert!(found.len() == 1 && found[0].contains("nested levels"), "{found:?}");
    // The value is examined only as deep as the schema describes it.
    assert!(messages(&json!({"items": {"items": {"type": "array"}}}), &value(2000)).is_empty());
}

#[test]
fn what_is_deep_in_a_value_is_found_on_a_small_stack() {
    for wrap in [
        |inner: Value| json!({"anyOf": [{"type": "null"}, inner]}),
        |inner| json!({"oneOf": [{"type": "null"}, inner]}),
        |inner| json!({"allOf": [{"type": "array"}, inner]}),
        |inner| json!({"if": {"type": "array"}, "then": inner, "else": false}),
        |inner: Value| json!({"anyOf": [{"minItems": 2, "items": to(0)}, inner]}),
    ] {
        for levels in [1, 4, 10, 30] {
            let items = json!({"type": "array", "items": to(0), "minItems": 1});
            let schema = definitions(1, |_| (0..levels).fold(items.clone(), |inner, _| wrap(inner)));
            let value = (0..126).fold(json!("bad"), |inner, _| json!([inner]));
            assert!(!messages(&schema, &value).is_empty());
        }
    }
}

/// Generates schemas of a few definitions that refer to each other wherever a schema may.
fn graphs() -> impl Strategy<Value = Value> {
    let part = prop_oneof![
        (0usize..12).prop_map(to),
        prop::sample::select(vec![
            json!(true),
            json!(false),
            json!({"type": "string"}),
            json!({"minimum": 3})
        ]),
    ];
    let part = part.prop_recursive(3, 24, 6, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..7);
        prop_oneof![
            (prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]), list.clone())
                .prop_map(|(keyword, list)| json!({keyword: list})),
            (
                prop::sample::select(vec![
                    "not",
                    "if",
                    "then",
                    "items",
                    "contains",
                    "additionalProperties",
                    "unevaluatedProperties",
                    "unevaluatedItems",
                    "propertyNames",
                ]),
                inner.clone()
            )
                .prop_map(|(keyword, inner)| json!({keyword: inner})),
            (inner.clone(), inner, list).prop_map(|(next, kind, list)| {
                json!({"properties": {"next": next, "kind": kind}, "required": ["kind"], "anyOf": list})
            }),
        ]
    });
    prop::collection::vec(part, 12).prop_map(|parts| definitions(12, |number| parts[number].clone()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_graph_of_references_is_taken_or_refused(schema in graphs()) {
        let (findings, error) = survives(&schema);
        prop_assert_eq!(error.is_some(), findings.iter().any(|finding| finding.contains("too many ways")));
    }
}
