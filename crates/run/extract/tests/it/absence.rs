//! Members without a value: `null` in optional members, members that a text may lack, and required members that it does not state.

use std::collections::BTreeSet;
use std::sync::Arc;

use formwork_core::*;
use formwork_dialect::{Dialects, lower_value};
use formwork_extract::{Backend, Extractor, ExtractorBuilder};
use formwork_schema::{compile, contract_for};
use formwork_testkit::{Reply, Scripted, instance, schema};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value, json};

use crate::support::{TEXT, classes};

fn contract(schema: &Value) -> Contract {
    contract_for(Arc::new(Inline::new("any", schema.clone()))).unwrap()
}

fn paths<'p>(paths: impl IntoIterator<Item = &'p JsonPath>) -> Vec<String> {
    paths.into_iter().map(ToString::to_string).collect()
}

/// A place of a document where `null` can be written.
struct Place {
    path: JsonPath,
    /// Whether the schema names the member there and does not require it.
    is_optional: bool,
    allows_null: bool,
}

/// Lists the places of a document of [`schema`]: members that the schema names, absent ones too, a further member of each map, and
/// items. Tags are left out, because without them no variant is known.
fn places(root: &Value, schema: &Value, value: &Value, path: &JsonPath, out: &mut Vec<Place>) {
    let with_definitions = |schema: &Value| {
        let mut schema = match schema {
            Value::Bool(false) => json!({"not": {}}),
            schema if schema.is_object() => schema.clone(),
            _ => json!({}),
        };
        schema["$defs"] = root["$defs"].clone();
        schema
    };
    let allows = |schema: &Value, value: &Value| compile(&with_definitions(schema)).unwrap().is_valid(value);
    let mut place = |path: JsonPath, schema: &Value, is_optional| {
        let is_tag = matches!(path.last(), Some(Segment::Key(name)) if name == "kind");
        if !is_tag {
            out.push(Place { path, is_optional, allows_null: allows(schema, &Value::Null) });
        }
    };
    if let Some(target) = keywords::target(root, schema) {
        return places(root, target, value, path, out);
    }
    if let Some(variants) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        if let Some(variant) =
            variants.iter().find(|variant| allows(variant, value)).filter(|_| !value.is_null())
        {
            places(root, variant, value, path, out);
        }
        return;
    }
    match value {
        Value::Object(members) => {
            let empty = Map::new();
            let named = schema["properties"].as_object().unwrap_or(&empty);
            for (name, part) in named {
                let is_required = schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
                place(path.key(name.as_str()), part, !is_required);
            }
            if schema.get("additionalProperties").is_some_and(|rest| *rest != true) {
                place(path.key("ZZ"), &schema["additionalProperties"], false);
            }
            for (name, member) in members {
                let part = named.get(name).unwrap_or(&schema["additionalProperties"]);
                places(root, part, member, &path.key(name.as_str()), out);
            }
        }
        Value::Array(items) => {
            (0..items.len()).for_each(|index| place(path.index(index), &schema["items"], false));
            for (index, item) in items.iter().enumerate() {
                places(root, &schema["items"], item, &path.index(index), out);
            }
        }
        _ => {}
    }
}

fn set(value: &mut Value, path: &JsonPath, new: Value) {
    match (path.parent().and_then(|parent| parent.get_mut(value)), path.last()) {
        (Some(Value::Object(members)), Some(Segment::Key(name))) => drop(members.insert(name.clone(), new)),
        (Some(Value::Array(items)), Some(Segment::Index(index))) => items[*index] = new,
        _ => panic!("{path}"),
    }
}

fn remove(value: &mut Value, path: &JsonPath) {
    if let (Some(Value::Object(members)), Some(Segment::Key(name))) =
        (path.parent().and_then(|parent| parent.get_mut(value)), path.last())
    {
        members.shift_remove(name);
    }
}

/// Returns the chosen places, none of which is inside of another.
fn chosen(places: Vec<Place>, choice: &[Index]) -> Vec<Place> {
    let indices: BTreeSet<usize> =
        choice.iter().filter(|_| !places.is_empty()).map(|index| index.index(places.len())).collect();
    let mut chosen: Vec<Place> = Vec::new();
    for (index, place) in places.into_iter().enumerate() {
        let is_apart =
            |other: &Place| !place.path.is_within(&other.path) && !other.path.is_within(&place.path);
        if indices.contains(&index) && chosen.iter().all(is_apart) {
            chosen.push(place);
        }
    }
    chosen
}

/// A schema, a document that satisfies it, and a choice of places.
fn cases() -> impl Strategy<Value = (Value, Value, Vec<Index>)> {
    schema().prop_flat_map(|schema| {
        let choice = prop::collection::vec(any::<Index>(), 0..6);
        (Just(schema.clone()), instance(&schema), choice)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Of the nulls that a schema rejects, exactly those in optional members are removed, and the others are violations.
    #[test]
    fn null_counts_as_absent_in_optional_members_alone((schema, document, choice) in cases()) {
        let mut all = Vec::new();
        places(&schema, &schema, &document, &JsonPath::root(), &mut all);
        let nulls = chosen(all, &choice);
        let (mut given, mut expected) = (document.clone(), document.clone());
        for Place { path, is_optional, allows_null } in &nulls {
            set(&mut given, path, Value::Null);
            if *is_optional && !allows_null {
                remove(&mut expected, path);
            } else {
                set(&mut expected, path, Value::Null);
            }
        }
        let contract = contract(&schema);
        let settled = contract.settle(given.clone(), &Context::EMPTY);
        prop_assert_eq!(&settled.value, &expected, "{} of {}", given, schema);
        let expected = nulls.iter().filter(|place| place.is_optional && !place.allows_null).map(|place| &place.path);
        prop_assert_eq!(paths(&settled.removed).into_iter().collect::<BTreeSet<_>>(), paths(expected).into_iter().collect());
        let wrong = nulls.iter().filter(|place| !place.is_optional && !place.allows_null).count();
        prop_assert_eq!(settled.judgement.is_accepted(), wrong == 0, "{:?}", settled.judgement);
    }

    /// In every dialect that enforces schemas, an answer with `null` in members that a text may lack comes back, is accepted, and lists
    /// exactly these members; so does an answer without these members.
    #[test]
    fn members_that_a_text_may_lack_survive_every_dialect((schema, document, choice) in cases()) {
        let mut all = Vec::new();
        places(&schema, &schema, &document, &JsonPath::root(), &mut all);
        let is_named = |place: &Place| {
            let around = place.path.parent().unwrap();
            contract(&schema).structure().member(&place.path, &document).is_some_and(|member| member.is_required)
                && around.get(&document).is_some_and(Value::is_object)
        };
        all.retain(is_named);
        let mut marked = schema.clone();
        Absent::All.declare(&mut marked);
        let contract = contract(&marked);
        let may_be_absent = |path: &JsonPath| contract.structure().member(path, &document).is_some_and(|member| member.may_be_absent);
        all.retain(|place| may_be_absent(&place.path));
        let nulls = chosen(all, &choice);
        let (mut given, mut without) = (document.clone(), document.clone());
        for place in &nulls {
            set(&mut given, &place.path, Value::Null);
            remove(&mut without, &place.path);
        }
        let settled = contract.settle(without, &Context::EMPTY);
        prop_assert!(settled.judgement.is_accepted(), "{:?} of {}", settled.judgement, marked);
        prop_assert!(formwork_json::is_same(&settled.value, &given), "{} and {} of {}", settled.value, given, marked);
        let not_stated: BTreeSet<String> = paths(&contract.not_stated(&given)).into_iter().collect();
        let written: BTreeSet<String> = paths(nulls.iter().map(|place| &place.path)).into_iter().collect();
        prop_assert!(written.is_subset(&not_stated), "{written:?} and {not_stated:?} of {marked}");
        for path in not_stated.difference(&written) {
            let path: JsonPath = path.parse().unwrap();
            prop_assert_eq!(path.get(&document), Some(&Value::Null), "{} was not written", path);
        }
        for dialect in Dialects::builtin().iter() {
            let Ok(lowered) = dialect.lower(&LowerRequest::new(&marked).with_tighten(Tighten::None)) else { continue };
            if lowered.schema.is_none() {
                continue;
            }
            let answer = lower_value(&given, &lowered);
            prop_assert!(answer.is_some(), "{} cannot be given in {} of {}", given, dialect.name(), marked);
            let (back, problems) = lift(answer.unwrap(), &lowered);
            prop_assert_eq!(problems, vec![]);
            prop_assert!(formwork_json::is_same(&back, &given), "{} comes back as {}", given, back);
            prop_assert!(contract.judge(&back, &Context::EMPTY).is_accepted());
        }
    }
}

/// A union without tags: the missing members of the first variant that the object then satisfies are `null`.
#[test]
fn missing_members_of_untagged_unions_are_not_stated() {
    let object = |members: &[(&str, Value)], required: &[&str]| {
        let properties: Map<String, Value> =
            members.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    };
    let (text, marked) = (json!({"type": "string"}), json!({"type": "string", "x-formwork-absent": true}));
    let variants = json!([
        object(
            &[("name", text.clone()), ("birth", marked.clone()), ("nick", json!({"type": "string"}))],
            &["name", "birth"]
        ),
        object(&[("name", text.clone()), ("founded", marked.clone())], &["name", "founded"]),
        object(
            &[("title", text.clone()), ("year", marked.clone()), ("note", marked)],
            &["title", "year", "note"]
        ),
    ]);
    for keyword in ["anyOf", "oneOf"] {
        for (path, around) in
            [("$", json!("HERE")), ("$.items[1]", json!({"items": [{"name": "a", "birth": "b"}, "HERE"]}))]
        {
            let union = json!({keyword: variants});
            let schema = match around.is_object() {
                true => json!({"type": "object", "properties": {"items": {"type": "array", "items": union}}}),
                false => union,
            };
            let contract = contract(&schema);
            for (given, expected, added) in [
                (json!({"name": "M"}), json!({"name": "M", "birth": null}), &["birth"][..]),
                (json!({"name": "M", "nick": null}), json!({"name": "M", "birth": null}), &["birth"]),
                (json!({"name": "M", "founded": "1900"}), json!({"name": "M", "founded": "1900"}), &[]),
                (json!({"title": "T"}), json!({"title": "T", "year": null, "note": null}), &["note", "year"]),
                (
                    json!({"title": "T", "note": "n"}),
                    json!({"title": "T", "note": "n", "year": null}),
                    &["year"],
                ),
                // No variant lacks only members that a text may lack.
                (json!({"age": 3}), json!({"age": 3}), &["refused"]),
                (json!({"name": 3}), json!({"name": 3}), &["refused"]),
            ] {
                let place = |value: &Value| {
                    let mut document = around.clone();
                    *path.parse::<JsonPath>().unwrap().get_mut(&mut document).unwrap() = value.clone();
                    document
                };
                let settled = contract.settle(place(&given), &Context::EMPTY);
                let is_refused = added == ["refused"];
                assert_eq!(
                    settled.judgement.is_accepted(),
                    !is_refused,
                    "{given} {keyword}: {:?}",
                    settled.judgement
                );
                assert!(
                    formwork_json::is_same(&settled.value, &place(&expected)),
                    "{given}: {}",
                    settled.value
                );
                let added: Vec<_> =
                    added.iter().filter(|_| !is_refused).map(|name| format!("{path}.{name}")).collect();
                assert_eq!(paths(&settled.added), added, "{given} {keyword}");
                assert_eq!(paths(&contract.not_stated(&settled.value)), added, "{given} {keyword}");
            }
        }
    }
}

fn extractor(schema: Value, model: &Arc<Scripted>, dialect: &str) -> ExtractorBuilder<Value> {
    let dialect = Dialects::builtin().get(dialect).unwrap();
    Extractor::for_document("answer", schema).with_target(Backend::from(Arc::clone(model)).with_mode(dialect))
}

fn person() -> Value {
    json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "birth": {"type": "string"}, "nick": {"type": "string"}},
        "required": ["name", "birth"],
    })
}

#[tokio::test]
async fn null_in_an_optional_member_takes_one_call_in_every_dialect_and_is_a_warning() {
    let text = r#"{"name": "Maria", "birth": "1990", "nick": null}"#;
    for dialect in Dialects::builtin().iter() {
        let model = Arc::new(Scripted::new([text]));
        let outcome =
            extractor(person(), &model, dialect.name()).build().unwrap().extract(TEXT).await.unwrap();
        assert_eq!(classes(&outcome.calls), ["accepted"], "{}", dialect.name());
        assert_eq!(outcome.value, json!({"name": "Maria", "birth": "1990"}));
        let warnings: Vec<_> =
            outcome.warnings.iter().map(|warning| (warning.kind, warning.path.clone())).collect();
        let offers_null = model.calls()[0].lowered.lift.iter().any(|op| matches!(op.lift, Lift::DropNull(_)));
        let expected = [(WarningKind::NullAsAbsent, Some("$.nick".parse().unwrap()))];
        assert_eq!(warnings, if offers_null { &expected[..0] } else { &expected[..] }, "{}", dialect.name());
    }
}

#[tokio::test]
async fn null_in_a_patch_counts_as_absent_too() {
    let first = r#"{"name": "Maria", "birth": [1990], "nick": [5]}"#;
    let patch = r#"{"birth": "1990", "nick": null}"#;
    let model = Arc::new(Scripted::new([first, patch]));
    let outcome = extractor(person(), &model, "llguidance").build().unwrap().extract(TEXT).await.unwrap();
    assert_eq!((outcome.calls.len(), outcome.calls[1].patched.len()), (2, 2));
    assert_eq!(outcome.value, json!({"name": "Maria", "birth": "1990"}));
    let warnings: Vec<String> = outcome.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["null_as_absent at $.nick: null in an optional member counts as absent"]);
}

#[tokio::test]
async fn a_member_that_a_text_may_lack_is_described_to_the_model_and_listed() {
    let mut schema = person();
    "$.birth".parse::<Absent>().unwrap().declare(&mut schema);
    for (dialect, text, not_stated) in [
        ("openai", r#"{"name": "Maria", "birth": null, "nick": null}"#, true),
        ("ollama", r#"{"name": "Maria", "birth": null}"#, true),
        ("prompt", r#"{"name": "Maria"}"#, true),
        ("prompt-outline", r#"{"name": "Maria"}"#, true),
        ("json-object", r#"{"name": "Maria", "birth": "1990"}"#, false),
    ] {
        let model = Arc::new(Scripted::new([text]));
        let outcome =
            extractor(schema.clone(), &model, dialect).build().unwrap().extract(TEXT).await.unwrap();
        let birth = if not_stated { Value::Null } else { json!("1990") };
        assert_eq!(outcome.value, json!({"name": "Maria", "birth": birth}), "{dialect}");
        assert_eq!(
            paths(&outcome.not_stated),
            if not_stated { vec!["$.birth"] } else { vec![] },
            "{dialect}"
        );
        let json = serde_json::to_value(&outcome).unwrap();
        assert_eq!(json.get("not_stated").is_some(), not_stated, "{json}");
        let [call] = model.calls().try_into().unwrap();
        let sent = call.schema().map(ToString::to_string).unwrap_or_default();
        let told: String = call.messages.iter().map(|message| message.text()).chain([sent]).collect();
        assert!(told.contains("null if the text does not state it"), "{dialect}: {told}");
        assert!(!told.contains(ABSENT), "{dialect}: {told}");
    }
}

#[derive(Debug, PartialEq, schemars::JsonSchema, serde::Deserialize)]
struct Letter {
    from: String,
    /// The date of the letter.
    #[schemars(extend("x-formwork-absent" = true))]
    date: Option<String>,
}

#[tokio::test]
async fn an_option_with_the_mark_is_a_required_member_that_a_text_may_lack() {
    for text in [r#"{"from": "Maria", "date": null}"#, r#"{"from": "Maria"}"#] {
        let model = Arc::new(Scripted::new([text]));
        let backend = Backend::from(Arc::clone(&model)).with_mode(Dialects::builtin().get("openai").unwrap());
        let extractor = Extractor::<Letter>::builder().with_target(backend).build().unwrap();
        let outcome = extractor.extract(TEXT).await.unwrap();
        assert_eq!(outcome.value, Letter { from: "Maria".to_owned(), date: None });
        assert_eq!(paths(&outcome.not_stated), ["$.date"]);
        assert_eq!(model.calls()[0].schema().unwrap()["required"], json!(["from", "date"]));
    }
}

#[tokio::test]
async fn a_required_member_that_two_answers_do_not_state_ends_the_run() {
    let (null, missing, good) = (
        r#"{"name": "Maria", "birth": null}"#,
        r#"{"name": "Maria"}"#,
        r#"{"name": "Maria", "birth": "1990"}"#,
    );
    for (replies, class, calls) in [
        (vec![null, null, good], Err(ErrorKind::NotStated), 2),
        (vec![missing, null, good], Err(ErrorKind::NotStated), 2),
        (vec![null, missing, good], Err(ErrorKind::NotStated), 2),
        // A patch without the value.
        (vec![missing, "{}", good], Err(ErrorKind::NotStated), 2),
        // The question is repeated once.
        (vec![null, good], Ok(()), 2),
        // A text between the two answers does not count.
        (vec![null, "I am not sure.", null], Err(ErrorKind::NotStated), 3),
        // These answers have another form: they say nothing about the text.
        (vec![r#"{"answer": {"name": "Maria"}}"#, r#"{"result": {"name": "M"}}"#, good], Ok(()), 3),
    ] {
        let model = Arc::new(Scripted::new(replies.iter().map(|text| Reply::from(*text))));
        let result = extractor(person(), &model, "prompt").build().unwrap().extract(TEXT).await;
        assert_eq!(model.calls().len(), calls, "{replies:?}");
        match (result, class) {
            (Ok(outcome), Ok(())) => assert_eq!(outcome.value["birth"], "1990"),
            (Err(error), Err(class)) => {
                assert_eq!(
                    (error.kind(), paths(error.not_stated())),
                    (class, vec!["$.birth".to_owned()]),
                    "{replies:?}"
                );
                assert!(error.to_string().contains("$.birth"), "{error}");
            }
            (result, _) => panic!("{replies:?}: {result:?}"),
        }
    }
    // Another member is missing in the second answer.
    let replies = [r#"{"birth": "1990"}"#, missing, good].map(Reply::from);
    let model = Arc::new(Scripted::new(replies));
    let policy = Policy::default().with_patching(Patching::Never);
    let outcome =
        extractor(person(), &model, "prompt").with_policy(policy).build().unwrap().extract(TEXT).await;
    assert_eq!(outcome.unwrap().calls.len(), 3);
    // Policies of applications count their own attempts.
    let model = Arc::new(Scripted::new([null]));
    let builder =
        extractor(person(), &model, "prompt").with_policy(Policy::new(3).with_stop_on_repeat(false));
    let error = builder.build().unwrap().extract(TEXT).await.unwrap_err();
    assert_eq!((error.kind(), model.calls().len(), error.not_stated().len()), (ErrorKind::Rejected, 3, 0));
}
