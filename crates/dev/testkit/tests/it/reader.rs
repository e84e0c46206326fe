//! `formwork_core::Reader` against generated schemas and documents: it never rejects a valid document, and finds what is wrong.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use formwork_core::{
    Context, Inline, JsonPath, Level, Outline, Outlook, Reader, Report, Span, Structure, Validator, Validity,
};
use formwork_schema::{compile, contract_for};
use formwork_testkit::{any_schema, instance, near_misses, schema};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

fn outline(schema: &Value) -> Outline {
    let structure: Arc<dyn Structure> = compile(schema).unwrap();
    Outline::new(schema, Some(structure))
}

/// The result of reading a text.
#[derive(Debug, PartialEq)]
struct Read {
    outlook: Outlook,
    valid: Span,
    ended: Vec<(JsonPath, Span, Validity)>,
}

/// Reads a text in chunks of these sizes, in characters, and the rest in one.
fn read(outline: &Outline, text: &str, sizes: &[usize], level: Level, stored: bool) -> Read {
    let (mut reader, mut ended, mut rest) = (Reader::new(level), Vec::new(), text);
    for size in sizes.iter().copied().chain([usize::MAX]) {
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at);
        let (chunk, after) = rest.split_at(end);
        reader.push(outline, chunk, |end| ended.push((end.path(), end.span, end.validity)));
        if stored {
            let resumed: Reader = serde_json::from_str(&serde_json::to_string(&reader).unwrap()).unwrap();
            assert_eq!(resumed, reader);
            reader = resumed;
        }
        rest = after;
    }
    reader.end(outline, |end| ended.push((end.path(), end.span, end.validity)));
    let valid = reader.valid_prefix();
    Read { outlook: reader.outlook().clone(), valid: Span::new(valid.start, valid.end), ended }
}

/// Writes a document with its members in any order, with any white space and any escapes.
fn written(value: &Value, rng: &mut TestRng, out: &mut String) {
    let space = |rng: &mut TestRng, out: &mut String| {
        out.push_str(["", "", " ", "\n  ", "\t\r\n"][rng.random_range(0..5)]);
    };
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            for at in (1..members.len()).rev() {
                members.swap(at, rng.random_range(0..=at));
            }
            out.push('{');
            for (at, (name, member)) in members.into_iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                space(rng, out);
                written(&Value::from(name.as_str()), rng, out);
                space(rng, out);
                out.push(':');
                space(rng, out);
                written(member, rng, out);
                space(rng, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                space(rng, out);
                written(item, rng, out);
                space(rng, out);
            }
            out.push(']');
        }
        Value::String(text) => {
            out.push('"');
            for c in text.chars() {
                if rng.random_range(0..4) == 0 {
                    c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| write!(out, "\\u{unit:04X}").unwrap());
                } else {
                    let quoted = Value::from(c.to_string()).to_string();
                    out.push_str(&quoted[1..quoted.len() - 1]);
                }
            }
            out.push('"');
        }
        Value::Number(number)
            if number.is_i64() && number.as_i64().is_some_and(|whole| whole.abs() < 1 << 50) =>
        {
            match rng.random_range(0..4) {
                0 => write!(out, "{number}.0").unwrap(),
                // `00e-1` is no number.
                1 if number.as_i64() != Some(0) => write!(out, "{number}0e-1").unwrap(),
                _ => write!(out, "{number}").unwrap(),
            }
        }
        scalar => write!(out, "{scalar}").unwrap(),
    }
}

/// Generates a schema with one of its documents; `None` if none is found by chance.
fn pairs() -> impl Strategy<Value = (Value, Option<Value>)> {
    (prop_oneof![schema(), any_schema()], any::<[u8; 32]>()).prop_map(|(schema, seed)| {
        let config = Config { max_local_rejects: 20, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
        let document = instance(&schema).new_tree(&mut runner).ok().map(|tree| tree.current());
        (schema, document)
    })
}

fn is_impossible_at(outlook: &Outlook, at: usize) -> bool {
    matches!(outlook, Outlook::Impossible { at: found, .. } if *found == at)
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0usize..9, 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_valid_document_is_never_impossible_and_complete_at_its_end(
        (schema, document) in pairs(), sizes in sizes(), rng in any::<[u8; 32]>(), before in 0usize..6,
    ) {
        let Some(document) = document else { return Ok(()) };
        let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &rng);
        let mut text = ["", " \n", "\u{FEFF}", "```json\n", "Here it is: ", "<think>{\"a\": [</think>"][before].to_owned();
        let start = text.len();
        written(&document, &mut rng, &mut text);
        prop_assert_eq!(&serde_json::from_str::<Value>(&text[start..]).unwrap().as_object().map(|all| all.len()), &document.as_object().map(|all| all.len()));
        let outline = outline(&schema);
        // Without a bracket at its beginning, a document after prose is prose.
        let is_found = before != 4 || document.is_object() || document.is_array();
        // A bracket in it begins one.
        prop_assume!(is_found || !text[start..].contains(['{', '[']));
        for level in [Level::Clean, Level::Lenient] {
            let read = read(&outline, &text, &sizes, level, false);
            let at = if document.is_number() { text.len() } else { text.len() - 1 };
            let outlook = if is_found { Outlook::Complete { at } } else { Outlook::Possible };
            prop_assert_eq!(&read.outlook, &outlook, "{} {}", schema, text);
            if is_found {
                prop_assert_eq!(read.valid, Span::new(start, text.len()));
                prop_assert!(read.ended.iter().all(|(.., validity)| *validity != Validity::Impossible));
            }
        }
    }

    #[test]
    fn a_wrong_leaf_is_found_at_its_end((schema, document) in pairs()) {
        let Some(document) = document else { return Ok(()) };
        let outline = outline(&schema);
        for miss in near_misses(&schema, &document) {
            if miss.path.is_root() && !miss.value.is_object() && !miss.value.is_array() {
                // A text without brackets may be prose.
                continue;
            }
            let text = miss.value.to_string();
            let Outlook::Impossible { at, violation } = read(&outline, &text, &[], Level::Clean, false).outlook else {
                // `null` for an optional member may stand for an absent one.
                prop_assert!(miss.path.get(&miss.value) == Some(&Value::Null), "{schema} {text} {}", miss.keyword);
                continue;
            };
            let span = formwork_json::locate(&text, &miss.path).unwrap();
            // The end of a number is known after it.
            prop_assert!(at <= span.end, "{schema} {text} {}: {at} {violation}", miss.keyword);
            let early = ["type", "const", "maxLength"].contains(&miss.keyword) && !violation.rule.ends_with("Of");
            if early && miss.path.get(&miss.value).is_some_and(Value::is_string) && violation.rule == "type" {
                prop_assert_eq!(at, span.start);
            }
        }
    }

    #[test]
    fn any_chunking_and_storing_gives_the_same_result(
        (schema, document) in pairs(), cut: Index, piece in "[\\[\\]{}\",:a-c0-9\\\\ é]{0,5}", sizes in sizes(),
        level in prop::sample::select(vec![Level::Strict, Level::Clean, Level::Lenient]),
    ) {
        let Some(document) = document else { return Ok(()) };
        let mut text = document.to_string();
        let cut = (0..=cut.index(text.len() + 1)).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        text.insert_str(cut, &piece);
        let outline = outline(&schema);
        let at_once = read(&outline, &text, &[], level, false);
        prop_assert_eq!(&read(&outline, &text, &sizes, level, false), &at_once, "{} {}", schema, text);
        let single = vec![1; text.len()];
        prop_assert_eq!(&read(&outline, &text, &single, level, true), &at_once, "{} {}", schema, text);
        // The rest of the text cannot change what has been decided.
        if let Outlook::Impossible { at, .. } = at_once.outlook {
            let end = text.ceil_char_boundary((at + 1).min(text.len()));
            let again = read(&outline, &text[..end], &[], level, false).outlook;
            prop_assert!(is_impossible_at(&again, at), "{again:?}");
        }
    }
}

#[test]
fn keywords_of_the_validator_are_judged_when_their_value_ends() {
    for (schema, text, at) in [
        (json!({"items": {"pattern": "^a"}}), r#"["ab", "b", 1]"#, 9),
        (json!({"items": {"format": "date"}}), r#"["2026-11-24", "tomorrow"]"#, 24),
        (json!({"items": {"multipleOf": 5}}), "[5, 7, 1]", 5),
        // A limit that is no double.
        (json!({"items": {"minimum": 9007199254740993_u64}}), "[9007199254740993, 9007199254740992, 1]", 35),
        (
            json!({"items": {"exclusiveMaximum": 9007199254740993_u64}}),
            "[9007199254740992, 9007199254740993, 1]",
            35,
        ),
        (json!({"properties": {"a": {"uniqueItems": true}}}), r#"{"a": [1, 1], "b": 2}"#, 11),
        (
            json!({"properties": {"a": {"contains": {"$ref": "#/$defs/b"}}}, "$defs": {"b": {"const": 2}}}),
            r#"{"a": [1, 3], "b": 2}"#,
            11,
        ),
        (json!({"properties": {"a": {"not": {"type": "string"}}}}), r#"{"a": "x", "b": 2}"#, 8),
        (
            json!({"properties": {"a": {"if": {"required": ["x"]}, "then": {"required": ["y"]}}}}),
            r#"{"a": {"x": 1}, "b": 2}"#,
            13,
        ),
        (json!({"properties": {"a": {"dependentRequired": {"x": ["y"]}}}}), r#"{"a": {"x": 1}, "b": 2}"#, 13),
        (
            json!({"properties": {"a": {"unevaluatedProperties": false, "allOf": [{"properties": {"y": {}}}]}}}),
            r#"{"a": {"x": 1}, "b": 2}"#,
            13,
        ),
        (json!({"propertyNames": {"pattern": "^x"}}), r#"{"x": 1, "b": 2}"#, 11),
        (
            json!({"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": false}),
            r#"{"x1": "", "b": 2}"#,
            13,
        ),
        (
            json!({"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": false}),
            r#"{"x1": 1, "b": 2}"#,
            7,
        ),
        (json!({"properties": {"a": {"oneOf": [{"minimum": 1}, {"minimum": 2}]}}}), r#"{"a": 3, "b": 2}"#, 7),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}], "additionalItems": false}),
            r#"["a", 1]"#,
            6,
        ),
    ] {
        let outlook = read(&outline(&schema), text, &[], Level::Clean, false).outlook;
        assert!(
            matches!(&outlook, Outlook::Impossible { at: found, .. } if *found == at),
            "{schema} {text}: {outlook:?}"
        );
    }
    // Unions and older drafts in which the same text is valid.
    for (schema, text) in [
        (json!({"oneOf": [{"anyOf": [{"minimum": 1}, {"minimum": 2}]}, {"maximum": 0}]}), "3"),
        (json!({"oneOf": [{"oneOf": [{"minimum": 1}, {"minimum": 2}]}, {"minimum": 3}]}), "3"),
        (json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}), r#"{"b": 1}"#),
        (
            json!({"$schema": "http://json-schema.org/draft-04/schema#", "if": {"type": "object"}, "then": {"required": ["a"]}}),
            "{}",
        ),
        (json!({"$schema": "http://json-schema.org/draft-07/schema#", "format": "uuid"}), "\"no\""),
        (json!({"$schema": "http://json-schema.org/draft-07/schema#", "not": {"format": "uuid"}}), "\"no\""),
        (
            json!({"minProperties": 2, "anyOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"a": {"type": "string"}}}]}),
            r#"{"a": null, "b": 1}"#,
        ),
    ] {
        let valid = compile(&schema).unwrap().is_valid(&serde_json::from_str(text).unwrap());
        let outlook = read(&outline(&schema), text, &[], Level::Clean, false).outlook;
        assert_eq!(matches!(outlook, Outlook::Complete { .. }), valid, "{schema} {text}: {outlook:?}");
    }
}

#[test]
fn what_a_mark_leaves_open_is_not_decided_and_everything_else_is() {
    let schema = |birth: &Value, root: Value| {
        let person = json!({
            "type": "object",
            "properties": {"birth": birth, "age": {"type": "integer"}},
            "required": ["birth", "age"],
            "minProperties": 2,
            "maxProperties": 2,
        });
        let mut schema = json!({"type": "object", "properties": {"one": person, "all": {"items": {"$ref": "#/properties/one"}}}});
        schema.as_object_mut().unwrap().extend(root.as_object().unwrap().clone());
        schema
    };
    let (plain, none) = (json!({"type": "string"}), json!({}));
    let marked = |name: &str, mark: Value| json!({"type": "string", "default": "x", name: mark});
    for (schema, is_marked) in [
        (schema(&plain, none.clone()), false),
        (schema(&marked("x-formwork-absent", json!(true)), none.clone()), true),
        (schema(&plain, json!({"x-formwork-absent": ["$.one.birth", "$.all[*].birth"]})), true),
        (schema(&marked("x-formwork-coerce", json!("default")), none.clone()), true),
        (schema(&marked("x-formwork-coerce", json!("guess")), none), true),
        (schema(&plain, json!({"x-formwork-coerce": {"$.all[*].birth": "drop"}})), true),
    ] {
        let contract = contract_for(Arc::new(Inline::new("people", schema.clone()))).unwrap();
        for (person, is_decided) in [
            (r#"{"birth": null, "age": 3}"#, false),
            (r#"{"age": 3}"#, false),
            (r#"{"birth": [1], "age": 3}"#, false),
            (r#"{"age": [3], "birth": "x"}"#, true),
            (r#"{"birth": "x", "age": 3, "more": {"other": 1}, "last": 2}"#, true),
        ] {
            for text in [format!("{{\"one\": {person}"), format!("{{\"all\": [{person}")] {
                let outlook = read(&contract.outline(), &text, &[], Level::Clean, false).outlook;
                let is_impossible = matches!(outlook, Outlook::Impossible { .. });
                assert_eq!(is_impossible, is_decided || !is_marked, "{schema} {text}: {outlook:?}");
            }
        }
    }
    // A mark on everything leaves nothing to decide.
    let all = schema(&plain, json!({"x-formwork-coerce": "drop"}));
    let contract = contract_for(Arc::new(Inline::new("people", all))).unwrap();
    assert_eq!(
        read(&contract.outline(), r#"{"one": 3, "#, &[], Level::Clean, false).outlook,
        Outlook::Possible
    );
}

/// Changes one of the members of an object and of the objects inside of it: removes it, or replaces it.
fn changes(value: &Value) -> Vec<Value> {
    let Value::Object(members) = value else { return Vec::new() };
    let mut changed = Vec::new();
    for (name, member) in members {
        let mut put = |new: Option<Value>| {
            let mut all = members.clone();
            match new {
                Some(new) => _ = all.insert(name.clone(), new),
                None => _ = all.shift_remove(name),
            }
            changed.push(Value::Object(all));
        };
        [None, Some(json!(null)), Some(json!(7)), Some(json!("x")), Some(json!([])), Some(json!({"x": 1}))]
            .into_iter()
            .for_each(&mut put);
        changes(member).into_iter().for_each(|inner| put(Some(inner)));
    }
    changed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_the_contract_accepts_is_never_impossible(
        (mut schema, document) in pairs(), which: Index, mark in 0usize..6, at_root: bool,
    ) {
        let Some(document) = document else { return Ok(()) };
        let mark = [
            ("x-formwork-absent", json!(true)),
            ("x-formwork-coerce", json!("drop")),
            ("x-formwork-coerce", json!("default")),
            ("x-formwork-coerce", json!("guess")),
            ("x-formwork-coerce", json!("fix")),
            ("x-formwork-coerce", json!("ask")),
        ][mark].clone();
        let mut pointers = Vec::new();
        formwork_core::keywords::find(&schema, |node| {
            let members = node.get("properties").and_then(Value::as_object).into_iter().flatten();
            pointers.extend(members.filter(|(_, member)| member.is_object()).map(|(_, member)| std::ptr::from_ref(member)));
            false
        });
        if at_root && mark.0 == "x-formwork-coerce" {
            schema.as_object_mut().map(|keywords| keywords.insert(mark.0.to_owned(), mark.1));
        } else if !pointers.is_empty() {
            let chosen = *which.get(&pointers);
            mark_at(&mut schema, chosen, &mark);
        }
        let contract = contract_for(Arc::new(Inline::new("any", schema.clone())));
        let Ok(contract) = contract else { return Ok(()) };
        for value in changes(&document).into_iter().chain([document]).take(60) {
            let text = value.to_string();
            let settled = contract.settle_text(value, Some(&text), &Context::EMPTY);
            if settled.judgement.is_accepted() {
                for level in [Level::Clean, Level::Lenient] {
                    let outlook = read(&contract.outline(), &text, &[], level, false).outlook;
                    prop_assert!(!matches!(outlook, Outlook::Impossible { .. }), "{schema} {text}: {outlook:?}");
                }
            }
        }
    }

    #[test]
    fn what_the_tolerant_reader_makes_of_a_value_is_never_impossible(
        before in "[a-z0-9\"'/_:. -]{0,12}", quoted: bool, keyword in 0usize..6, after: bool, sizes in sizes(),
    ) {
        let keywords = [
            json!({"type": "string"}),
            json!({"type": "string", "minLength": 6}),
            json!({"type": "string", "pattern": "[a-z]$"}),
            json!({"type": "integer"}),
            json!({"type": "number", "minimum": 100}),
            json!({"enum": ["a", "ab", "true", "a \"b\" c"]}),
        ][keyword].clone();
        let value = if quoted { format!("\"{before}\"") } else { before };
        let text = format!("{{\"a\": {value}{}", if after { ", \"b\": 1}" } else { "}" });
        let schema = json!({"type": "object", "properties": {"a": keywords}, "required": ["a"]});
        let Ok(reading) = formwork_json::read(&text, Level::Lenient) else { return Ok(()) };
        let compiled = compile(&schema).unwrap();
        if reading.candidates().iter().any(|candidate| compiled.is_valid(&candidate.value)) {
            let outlook = read(&outline(&schema), &text, &sizes, Level::Lenient, false).outlook;
            prop_assert!(!matches!(outlook, Outlook::Impossible { .. }), "{schema} {text}: {outlook:?}");
        }
    }
}

/// Adds a mark to the part of a schema at this address.
fn mark_at(schema: &mut Value, chosen: *const Value, (name, mark): &(&str, Value)) {
    if std::ptr::eq(schema, chosen) {
        schema[*name] = mark.clone();
        return;
    }
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(|inner| mark_at(inner, chosen, &(name, mark.clone())))
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|inner| mark_at(inner, chosen, &(name, mark.clone())))
        }
        _ => {}
    }
}

#[test]
fn at_the_lenient_level_a_scalar_is_judged_once_what_follows_shows_its_end() {
    let of = |keywords: Value| json!({"type": "object", "properties": {"a": keywords}, "required": ["a"]});
    let text = json!({"type": "string"});
    for (value, keywords) in [
        ("2024-01-05", text.clone()),
        ("12 Main Street", text.clone()),
        ("true story", text.clone()),
        ("1/2", text.clone()),
        ("555-1234", text.clone()),
        ("\"He said \"hello there friends\" ok\"", json!({"minLength": 10})),
        ("1_000", json!({"minimum": 100})),
    ] {
        let document = format!("{{\"a\": {value}, \"b\": 1}}");
        let outlook = read(&outline(&of(keywords)), &document, &[], Level::Lenient, false).outlook;
        assert_eq!(outlook, Outlook::Possible, "{document}");
    }
    for (document, keywords, at) in [
        ("{\"a\": 2024 , \"b\": 1", text.clone(), 11),
        ("{\"a\": true}", text, 10),
        ("{\"a\": \"He said\"\n}", json!({"minLength": 10}), 16),
        ("{\"a\": \"He said\" ", json!({"minLength": 10}), 16),
        ("{\"a\": [1, 0] ", json!({"items": {"minimum": 1}}), 11),
    ] {
        let outlook = read(&outline(&of(keywords)), document, &[], Level::Lenient, false).outlook;
        assert!(is_impossible_at(&outlook, at), "{document}: {outlook:?}");
    }
}

/// A validator that counts the bytes of the values that it judges.
struct Counting {
    inner: Arc<dyn Structure>,
    judged: Arc<AtomicUsize>,
}

impl Validator for Counting {
    fn validate(&self, value: &Value, cx: &Context<'_>, out: &mut Report) {
        self.judged.fetch_add(value.to_string().len(), Ordering::Relaxed);
        self.inner.validate(value, cx, out);
    }
}

impl Structure for Counting {
    fn subschema(&self, path: &JsonPath, document: &Value) -> Option<Value> {
        self.inner.subschema(path, document)
    }

    fn compiled(&self, schema: &Value) -> Option<Arc<dyn Structure>> {
        let inner = self.inner.compiled(schema)?;
        Some(Arc::new(Self { inner, judged: Arc::clone(&self.judged) }))
    }
}

#[test]
fn the_validator_judges_in_each_chunk_at_most_the_bytes_that_end_in_it() {
    let item = json!({
        "type": "object",
        "properties": {"sku": {"type": "string", "pattern": "^A"}, "on": {"format": "date"}, "tags": {"uniqueItems": true}},
        "if": {"properties": {"sku": {"const": "A0"}}}, "then": {"required": ["on"]},
    });
    let schema = json!({"type": "object", "properties": {"items": {"type": "array", "items": item}}, "minProperties": 1});
    let items: Vec<Value> = (0..300)
        .map(|nth| json!({"sku": format!("A{nth}"), "on": "2026-11-24", "tags": [nth, "x"]}))
        .collect();
    let text = json!({"items": items}).to_string();
    let judged = Arc::new(AtomicUsize::new(0));
    let structure = Counting { inner: compile(&schema).unwrap(), judged: Arc::clone(&judged) };
    let outline = Outline::new(&schema, Some(Arc::new(structure)));
    for size in [1, 4, 64, 1000] {
        let mut reader = Reader::new(Level::Clean);
        for chunk in text.as_bytes().chunks(size) {
            let mut ended = 0;
            judged.store(0, Ordering::Relaxed);
            reader.push(&outline, std::str::from_utf8(chunk).unwrap(), |end| {
                ended += end.span.end - end.span.start
            });
            // At most four keywords of one value are judged one by one.
            let judged = judged.load(Ordering::Relaxed);
            assert!(judged <= 4 * ended, "{judged} bytes judged in a chunk of {size} that ends {ended}");
        }
        assert!(matches!(reader.outlook(), Outlook::Complete { .. }));
    }
}
