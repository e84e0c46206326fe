use std::sync::Arc;

use formwork_core::*;
use formwork_extract::{Extractor, ExtractorBuilder, Situation};
use formwork_testkit::Scripted;
use proptest::prelude::{Just, Strategy as _};
use serde_json::{Value, json};

use crate::support::*;

fn model() -> Arc<Scripted> {
    Arc::new(Scripted::new([MARIA]))
}

fn refused(
    builder: ExtractorBuilder<impl serde::de::DeserializeOwned + Send + 'static>,
) -> (ErrorKind, String) {
    let error = builder.build().unwrap_err();
    (error.kind(), error.message().to_owned())
}

#[tokio::test]
async fn examples_are_turns_before_the_input() {
    let model = model();
    let ada = Person { name: "Ada".to_owned(), age: 36 };
    let extractor = persons(&model)
        .0
        .with_system("Extract.")
        .with_example("Ada, 36.", &ada)
        .with_example("Bo, 7.", json!({"name": "Bo", "age": 7}))
        .build()
        .unwrap();
    extractor.extract(vec![Message::system("In English."), Message::user(TEXT)]).await.unwrap();
    let expected = [
        Message::system("Extract.\n\nIn English."),
        Message::user("Ada, 36."),
        Message::assistant(r#"{"name": "Ada", "age": 36}"#),
        Message::user("Bo, 7."),
        Message::assistant(r#"{"name": "Bo", "age": 7}"#),
        Message::user(TEXT),
    ];
    assert_eq!(model.calls()[0].messages, expected.map(Arc::new));
}

#[test]
fn an_example_that_breaks_the_contract_is_named_with_its_path() {
    let builder = || persons(&model()).0.with_example("Bo, 7.", json!({"name": "Bo", "age": 7}));
    let (kind, message) = refused(builder().with_example("Cy", json!({"name": "Cy", "age": "old"})));
    assert_eq!(kind, ErrorKind::Config);
    assert_eq!(message, "example 2: Type mismatch at $.age: expected integer, found string");
    // A check that is added after an example applies to it too, and each example is judged with its own input.
    let (_, message) =
        refused(builder().check("$.age", "adult", |person| {
            if person.age >= 18 { Ok(()) } else { Err("at least 18".into()) }
        }));
    assert!(message.starts_with("example 1: adult at $.age"), "{message}");
    let (_, message) = refused(
        builder()
            .with_example("somebody", json!(maria()))
            .with_rule(Rule::grounded("$.name".parse().unwrap())),
    );
    assert!(message.starts_with("example 2: grounded at $.name"), "{message}");
}

#[test]
fn what_cannot_work_is_refused_when_it_is_built() {
    let (kind, message) = refused(Extractor::<Person>::builder());
    assert_eq!((kind, message.as_str()), (ErrorKind::Config, "the plan has no target: add one"));

    let schema = json!({"properties": {"a": {"type": "strin"}}});
    let (kind, message) = refused(Extractor::for_document("bad", schema).with_target(backend(&model())));
    assert_eq!(kind, ErrorKind::Schema);
    assert!(message.starts_with("#/properties/a/type"), "{message}");

    let (kind, message) = refused(persons(&model()).0.check("age", "even", |_| Ok(())));
    assert_eq!(kind, ErrorKind::Config);
    assert!(message.contains("`age`"), "{message}");

    let custom = persons(&model()).0.with_policy(Arc::new(Policy::new(2))).with_max_attempts(2);
    assert_eq!(refused(custom).0, ErrorKind::Config);
    let named = || {
        Extractor::<Person>::builder()
            .with_target(backend(&model()).with_retry_policy(Arc::new(Policy::new(2))))
    };
    assert_eq!(refused(named().with_max_attempts(1)).0, ErrorKind::Config);
    assert_eq!(refused(named().with_temperature(0.7)).0, ErrorKind::Config);
    assert!(named().build().is_ok());
    let ready = persons(&model()).0.with_policy(Policy::new(2)).with_max_attempts(2);
    assert!(ready.build().is_ok());

    let of_another_type = Contract::new(
        Arc::new(Inline::new("age", json!({"type": "integer"}))),
        formwork_schema::compile(&json!({"type": "integer"})).unwrap(),
    );
    let check = |_: &String| Ok(());
    for (contract, found) in
        [(of_another_type.clone(), "without a type"), (of_another_type.with_type::<u8>(), "of `u8`")]
    {
        let error = contract.with_typed_check("$".parse().unwrap(), "even", check).check_paths().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.message().ends_with(&format!("the contract is {found}")), "{error}");
    }
}

#[tokio::test]
async fn settings_reach_the_call() {
    let model = Arc::new(Scripted::new(["no"]));
    let builder = persons(&model).0.with_temperature(0.3).with_max_attempts(2).with_max_tokens(99);
    assert_eq!(builder.build().unwrap().extract(TEXT).await.unwrap_err().calls().len(), 2);
    let calls = model.calls();
    assert!(calls.iter().all(|call| call.sampling.temperature == Some(0.3)));
    assert_eq!(calls[0].max_tokens, Some(99));

    let builder = persons(&model).0.with_policy(Arc::new(Policy::new(4).with_stop_on_repeat(false)));
    assert_eq!(builder.build().unwrap().extract(TEXT).await.unwrap_err().calls().len(), 4);
}

#[test]
fn extractors_are_shared() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<Extractor<Person>>();
    shared::<Extractor<Value>>();
    fn sent<T: Send + 'static>(_: T) {}
    let extractor = persons(&model()).0.build().unwrap();
    sent(extractor.extraction(TEXT).run());
    sent(extractor.stream(TEXT));
    sent(extractor.extract_all([TEXT], 1));
}

#[test]
fn a_rule_or_check_that_can_never_run_is_refused_with_the_nearest_path() {
    struct Reads;
    impl Validator for Reads {
        fn validate(&self, _: &Value, _: &Context<'_>, _: &mut Report) {}
        fn reads(&self) -> Vec<JsonPath> {
            vec!["$.nmae".parse().unwrap()]
        }
    }

    let quoted = || Rule::grounded("$.nmae".parse().unwrap());
    let most = || Rule::AtMost { target: "$.age".parse().unwrap(), limit: "$.nmae".parse().unwrap() };
    let builder = || persons(&model()).0;
    for builder in [
        builder().with_rule(quoted()),
        builder().with_soft_rule(quoted()),
        builder().with_rules([Rule::grounded("$.name".parse().unwrap()), most()]),
        builder().with_check(Reads),
        builder().check("$.nmae", "short", |_| Ok(())),
    ] {
        let (kind, message) = refused(builder);
        assert_eq!(kind, ErrorKind::Config);
        assert!(message.contains("the schema has no `$.nmae`: did you mean `$.name`?"), "{message}");
    }
    for path in ["$", "$.name", "$.age"] {
        builder().check(path, "fine", |_| Ok(())).build().unwrap();
    }
}

#[test]
fn what_a_schema_leaves_open_may_be_there() {
    let open = json!({
        "type": "object",
        "properties": {
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"id": {"type": "string"}}}},
            "any": {},
            "either": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/tree"}]},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}], "items": false},
        },
        "patternProperties": {"^x-": {"type": "integer"}},
        "if": {"properties": {"kind": {"const": "b"}}}, "then": {"properties": {"more": {"type": "string"}}},
        "$defs": {"tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "leaf": {"type": "string"}}}},
    });
    let compiled = formwork_schema::compile(&open).unwrap();
    let missing = |path: &str| Structure::missing(&*compiled, &path.parse().unwrap());
    for path in [
        "$.map.whatever.id",
        "$.map[*].id",
        "$.any.a.b[3]",
        "$.either.left.left.leaf",
        "$.pair[0]",
        "$['x-1']",
        "$.more",
        "$.kind",
    ] {
        assert_eq!(missing(path), None, "{path}");
    }
    for (path, near) in [
        ("$.map.whatever.di", "no `$.map.whatever.di`"),
        ("$.either.left.laef", "did you mean `$.either.left.leaf`?"),
        ("$.pair[1]", "nothing can be inside of"),
        ("$.y", "there are"),
        ("$.pair.left", "did you mean `$.either.left`?"),
        ("$[*].nothing.at.all", "no `$[*].nothing.at.all`"),
    ] {
        let why = missing(path);
        assert!(
            path == "$[*].nothing.at.all" || why.as_ref().is_some_and(|why| why.contains(near)),
            "{path}: {why:?}"
        );
    }
}

/// Returns all paths of a document.
fn paths(value: &Value, path: &JsonPath, found: &mut Vec<JsonPath>) {
    found.push(path.clone());
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| paths(member, &path.key(name), found))
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(nth, item)| paths(item, &path.index(nth), found))
        }
        _ => {}
    }
}

proptest::proptest! {
    #[test]
    fn every_place_of_a_valid_document_may_be_named_in_a_rule(
        (schema, document) in formwork_testkit::schema()
            .prop_flat_map(|schema| (Just(schema.clone()), formwork_testkit::instance(&schema)))
    ) {
        let compiled = formwork_schema::compile(&schema).unwrap();
        let mut found = Vec::new();
        paths(&document, &JsonPath::root(), &mut found);
        for path in found {
            if compiled.subschema(&path, &document).is_none() && !path.is_root() {
                continue;
            }
            let pattern = PathPattern::from(path.clone());
            proptest::prop_assert_eq!(Structure::missing(&*compiled, &pattern), None, "{}", path);
            let each: PathPattern = pattern
                .steps()
                .iter()
                .map(|step| match step {
                    PatternStep::One(Segment::Index(_)) => PatternStep::Each,
                    step => step.clone(),
                })
                .collect();
            proptest::prop_assert_eq!(Structure::missing(&*compiled, &each), None, "{}", each);
        }
    }
}

fn document(schema: Value) -> ExtractorBuilder<Value> {
    Extractor::for_document("answer", schema).with_target(model())
}

#[test]
fn a_schema_that_says_nothing_is_refused_unless_any_value_is_wanted() {
    for schema in [json!(true), json!({}), json!({"title": "x"}), json!({"name": "x", "parameters": {}})] {
        let (kind, message) = refused(document(schema.clone()));
        assert_eq!(kind, ErrorKind::Schema, "{schema}");
        assert!(message.starts_with("#: every value satisfies the schema"), "{message}");
        assert!(message.ends_with("write `type`, and `properties` for an object"), "{message}");
        assert_eq!(
            document(schema).with_any().build().unwrap().extract_blocking(TEXT).unwrap().value,
            json!(maria())
        );
    }
    assert_eq!(refused(Extractor::<Value>::builder().with_target(model())).0, ErrorKind::Schema);
    // Nobody wants a cycle.
    let cycle = json!({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}});
    let (kind, message) = refused(document(cycle).with_any());
    assert_eq!(kind, ErrorKind::Schema);
    assert!(
        message.starts_with("#/$defs/a: every value satisfies this schema, because its references"),
        "{message}"
    );
}

#[test]
fn a_wrapped_schema_is_unwrapped_and_every_outcome_says_so() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let wrapper = json!({"type": "json_schema", "json_schema": {"name": "person", "schema": schema}});
    let model = Arc::new(Scripted::new([r#"{"totally": "wrong"}"#, MARIA, MARIA]));
    let builder = || Extractor::for_document("answer", wrapper.clone()).with_target(Arc::clone(&model));
    let extractor = builder().build().unwrap();
    assert_eq!(extractor.plan().contract().schema().document(), &schema);
    let outcome = extractor.extract_blocking(TEXT).unwrap();
    assert_eq!((&outcome.value["name"], outcome.calls.len()), (&json!("Maria"), 2));
    let [warning] = outcome.warnings.as_slice() else { panic!("{:?}", outcome.warnings) };
    assert_eq!(warning.kind, WarningKind::Unwrapped);
    assert!(warning.message.starts_with("the schema is the member #/json_schema/schema of"), "{warning}");
    let refuses = |_: &Situation<'_>| Some(json!({"name": "nobody"}));
    let silent = Arc::new(Scripted::new(["no"]));
    let fallback =
        Extractor::for_document("answer", wrapper.clone()).with_target(silent).with_fallback_fn(refuses);
    assert_eq!(fallback.build().unwrap().extract_blocking(TEXT).unwrap().warnings, outcome.warnings);
}
