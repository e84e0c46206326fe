//! `formwork_schema::compare` against generated documents: no claim of compatibility is refuted by any of them.

use std::collections::BTreeMap;

use formwork_schema::{Compatibility, Formats, compare, compile, compile_with};
use formwork_testkit::{any_schema, instance, schema};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

const CASES: usize = 200;
const DOCUMENTS: usize = 3;

/// Changes one part of a schema, like an edit of a type. The result may not be a schema.
fn edited(schema: &Value, place: Index, edit: usize, number: i64) -> Value {
    let mut places = Vec::new();
    pointers(schema, String::new(), &mut places);
    let mut schema = schema.clone();
    if places.is_empty() {
        return schema.clone();
    }
    let pointer: &String = place.get(&places);
    let Some(Value::Object(keywords)) = schema.pointer_mut(pointer) else { return schema };
    match edit {
        0 => drop(keywords.insert("type".into(), json!(["integer", "string", "null"]))),
        1 => drop(keywords.insert("type".into(), json!("number"))),
        2 => drop(keywords.insert("additionalProperties".into(), json!(false))),
        3 => drop(keywords.remove("additionalProperties")),
        4 => drop(keywords.remove("required")),
        5 => drop(keywords.insert("minimum".into(), json!(number))),
        6 => drop(keywords.insert("maxLength".into(), json!(number.unsigned_abs()))),
        7 => drop(keywords.insert("description".into(), json!("Another text."))),
        8 => {
            if let Some(Value::Object(members)) = keywords.get_mut("properties") {
                members.insert("added".into(), json!({"type": ["string", "null"]}));
            }
        }
        9 => {
            if let Some(Value::Object(members)) = keywords.get_mut("properties") {
                members.remove_first();
            }
        }
        10 => {
            if let Some(Value::Array(values)) = keywords.get_mut("enum") {
                values.push(json!(number));
            }
        }
        11 => {
            for keyword in ["enum", "required", "anyOf", "oneOf", "allOf"] {
                if let Some(Value::Array(values)) =
                    keywords.get_mut(keyword).filter(|list| list[1] != Value::Null)
                {
                    values.pop();
                }
            }
        }
        12 => {
            let whole = Value::Object(keywords.clone());
            *keywords = [("anyOf".to_owned(), json!([whole, {"type": "null"}]))].into_iter().collect();
        }
        13 => {
            for keyword in [
                "minLength",
                "minItems",
                "minimum",
                "pattern",
                "format",
                "maxItems",
                "maximum",
                "not",
                "items",
            ] {
                keywords.remove(keyword);
            }
        }
        14 => drop(keywords.insert("format".into(), json!("date"))),
        _ => drop(keywords.insert("uniqueItems".into(), json!(true))),
    }
    schema
}

trait RemoveFirst {
    fn remove_first(&mut self);
}

impl RemoveFirst for serde_json::Map<String, Value> {
    fn remove_first(&mut self) {
        if let Some(first) = self.keys().next().cloned() {
            self.shift_remove(&first);
        }
    }
}

fn pointers(part: &Value, at: String, out: &mut Vec<String>) {
    match part {
        Value::Object(members) => {
            for (name, member) in members {
                pointers(member, format!("{at}/{name}"), out);
            }
            let keywords = ["type", "enum", "properties", "items", "anyOf", "allOf", "$ref", "const"];
            if keywords.iter().any(|keyword| members.contains_key(*keyword)) {
                out.push(at);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| pointers(item, format!("{at}/{n}"), out));
        }
        _ => {}
    }
}

/// Closes every object that names its members; for schemas without keywords that apply several schemas to one value.
fn close(part: &mut Value) {
    match part {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.get("properties").is_some_and(Value::is_object)
                && members.get("type") == Some(&json!("object"))
            {
                members.entry("additionalProperties").or_insert(json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Returns some documents that satisfy a schema.
fn documents(schema: &Value, runner: &mut TestRunner) -> Vec<Value> {
    (0..DOCUMENTS).filter_map(|_| instance(schema).new_tree(runner).ok()).map(|tree| tree.current()).collect()
}

#[test]
fn no_document_refutes_what_is_claimed_of_a_change() {
    let mut runner = TestRunner::deterministic();
    let edits = (any::<Index>(), 0_usize..16, -5_i64..60);
    let mut verdicts: BTreeMap<String, usize> = BTreeMap::new();
    for case in 0..CASES {
        let schemas = if case % 2 == 0 { schema() } else { any_schema() };
        let before = schemas.new_tree(&mut runner).unwrap().current();
        let (place, edit, number) = edits.new_tree(&mut runner).unwrap().current();
        let after = edited(&before, place, edit, number);
        if before == after || compile(&before).is_err() || compile(&after).is_err() {
            continue;
        }
        // Both directions: an edit that narrows widens in the opposite direction.
        for (before, after) in [(&before, &after), (&after, &before)] {
            let found = compare(before, after);
            *verdicts.entry(found.verdict.to_string()).or_default() += 1;
            let mut closed = before.clone();
            close(&mut closed);
            let mut of = |schema, is_claimed: bool| match is_claimed {
                true => documents(schema, &mut runner),
                false => Vec::new(),
            };
            let old_values = of(before, found.verdict.keeps_old_values());
            let new_values = of(after, found.verdict == Compatibility::Unchanged);
            let named_values = of(&closed, found.keeps_named);
            for formats in [Formats::Assert, Formats::Annotate] {
                let (old, new) =
                    (compile_with(before, formats).unwrap(), compile_with(after, formats).unwrap());
                for value in old_values.iter().chain(&named_values) {
                    assert!(
                        !old.is_valid(value) || new.is_valid(value),
                        "{before}\n{after}\n{value}\n{found:?}"
                    );
                }
                for value in &new_values {
                    assert!(
                        !new.is_valid(value) || old.is_valid(value),
                        "{before}\n{after}\n{value}\n{found:?}"
                    );
                }
            }
        }
    }
    // Most comparisons have to be decided, or the claims would be worthless.
    let undecided = verdicts.get("cannot be told").copied().unwrap_or_default();
    assert!(undecided * 4 < verdicts.values().sum(), "{verdicts:?}");
}

#[test]
fn every_schema_is_the_same_as_itself_with_other_annotations() {
    let mut runner = TestRunner::deterministic();
    for _ in 0..CASES {
        let before = any_schema().new_tree(&mut runner).unwrap().current();
        let mut after = before.clone();
        if let Some(keywords) = after.as_object_mut() {
            keywords.insert("title".to_owned(), json!("Another title"));
        }
        let found = compare(&before, &after);
        assert_eq!((found.verdict, found.changes.len()), (Compatibility::Unchanged, 0), "{before}");
    }
}
