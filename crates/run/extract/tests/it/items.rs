//! Items of lists are sent when they end. What was sent stands until it is taken back, and in the end it is the accepted document.

use std::collections::BTreeMap;
use std::sync::Arc;

use formwork_core::{Coercion, JsonPath, Outcome, Policy, Rule};
use formwork_extract::{Extractor, ExtractorBuilder, Update};
use formwork_testkit::{Reply, Scripted};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::*;

/// The items of a stream.
#[derive(Debug, Default)]
struct Stream {
    /// The items that stand.
    standing: BTreeMap<JsonPath, Value>,
    /// The paths of the items that were sent before the answer to the first call had ended.
    eager: Vec<String>,
    /// Every event about items, as text.
    events: Vec<String>,
    done: Option<Outcome<Value>>,
}

/// Returns the items of the stream of an extraction whose answers arrive in chunks of these numbers of characters.
fn streamed(builder: ExtractorBuilder<Value>, answers: &[&str], sizes: &[usize]) -> Stream {
    let replies = answers.iter().map(|text| {
        let mut sizes = sizes.iter().copied().cycle();
        let (mut pieces, mut rest) = (Vec::new(), *text);
        while !rest.is_empty() {
            let size = sizes.next().unwrap_or(1);
            let end = rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at);
            pieces.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
        Reply::pieces(pieces)
    });
    let model = Arc::new(Scripted::new(replies));
    // Answers are read to their end, so that items follow a wrong one.
    let policy = Policy::new(5).with_stop(false).with_coercion(Coercion::Fix);
    let extractor = builder.with_policy(policy).with_target(backend(&model)).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (mut updates, mut stream, mut is_first) = (extractor.stream(TEXT), Stream::default(), true);
        while let Some(update) = updates.next().await {
            match update {
                Ok(Update::Item(item)) => {
                    if is_first {
                        stream.eager.push(item.path.to_string());
                    }
                    stream.events.push(format!("{} = {}", item.path, item.value));
                    let before = stream.standing.insert(item.path.clone(), item.value);
                    assert!(before.is_none(), "{} was sent twice and not taken back", item.path);
                }
                Ok(Update::Replaced { path }) => {
                    stream.events.push(format!("{path} replaced"));
                    assert!(stream.standing.remove(&path).is_some(), "{path} does not stand");
                }
                Ok(Update::Finished(_)) => is_first = false,
                Ok(Update::Done(outcome)) => stream.done = Some(outcome),
                _ => {}
            }
        }
        stream
    })
}

/// Returns the items of the outermost lists of a document.
fn items(value: &Value, path: &JsonPath, out: &mut BTreeMap<JsonPath, Value>) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| items(member, &path.key(name.as_str()), out));
        }
        Value::Array(list) => {
            out.extend(list.iter().enumerate().map(|(index, item)| (path.index(index), item.clone())));
        }
        _ => {}
    }
}

fn orders() -> ExtractorBuilder<Value> {
    let item = json!({
        "type": "object",
        "properties": {"sku": {"type": "string"}, "count": {"type": "integer", "minimum": 0}, "note": {"type": "string"}},
        "required": ["sku", "count"],
    });
    let schema = json!({
        "type": "object",
        "properties": {"customer": {"type": "string"}, "items": {"type": "array", "items": item}, "total": {"type": "integer"}},
        "required": ["customer", "items", "total"],
    });
    Extractor::for_document("order", schema)
}

#[test]
fn an_item_is_sent_in_the_chunk_that_ends_it() {
    let text =
        r#"{"customer": "Ada", "items": [{"sku": "a", "count": 1}, {"sku": "b", "count": 2}], "total": 3}"#;
    let model = Arc::new(Scripted::new([Reply::pieces(text.chars().map(String::from))]));
    let extractor = orders().with_target(backend(&model)).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let sent = runtime.block_on(async {
        let (mut updates, mut read, mut sent) = (extractor.stream(TEXT), String::new(), Vec::new());
        while let Some(update) = updates.next().await {
            match update.unwrap() {
                Update::Text(text) => read += &text,
                Update::Item(item) => sent.push((item.path.to_string(), read.len())),
                _ => {}
            }
        }
        sent
    });
    let end = |item: &str| text.find(item).unwrap() + item.len();
    let expected = [
        ("$.items[0]".to_owned(), end(r#"{"sku": "a", "count": 1}"#)),
        ("$.items[1]".to_owned(), end(r#"{"sku": "b", "count": 2}"#)),
    ];
    assert_eq!(sent, expected);
}

#[test]
fn a_wrong_item_is_sent_when_its_patch_is_accepted_and_the_others_before() {
    let answers = [
        r#"{"customer": "Ada", "items": [{"sku": "a", "count": 1}, {"sku": "b", "count": -2}, {"sku": "c", "count": 3}], "total": 3}"#,
        r#"{"items[1].count": 2}"#,
    ];
    let stream = streamed(orders(), &answers, &[7]);
    assert_eq!(stream.eager, ["$.items[0]", "$.items[2]"]);
    assert_eq!(stream.events.last().unwrap(), r#"$.items[1] = {"sku":"b","count":2}"#);
}

#[test]
fn an_item_is_in_the_form_of_the_contract_after_permitted_conversions() {
    let text = r#"{"customer": "Ada", "items": [{"sku": "a", "count": "1", "note": null}], "total": 1}"#;
    let stream = streamed(orders(), &[text], &[5]);
    assert_eq!(stream.events, [r#"$.items[0] = {"sku":"a","count":1}"#]);
}

#[test]
fn an_item_that_violates_a_rule_about_it_is_not_sent_early() {
    let rule = || Rule::AtMost {
        target: "$.items[*].count".parse().unwrap(),
        limit: "$.items[*].max".parse().unwrap(),
    };
    let item = json!({"properties": {"count": {"type": "integer"}, "max": {"type": "integer"}}, "required": ["count", "max"]});
    let schema = json!({"type": "object", "properties": {"items": {"type": "array", "items": item}, "end": {}}, "required": ["items", "end"]});
    let builder = Extractor::for_document("counts", schema).with_rules([rule()]);
    let answers = [
        r#"{"items": [{"count": 3, "max": 2}, {"count": 1, "max": 2}], "end": 0}"#,
        r#"{"items[0].count": 2}"#,
    ];
    let stream = streamed(builder, &answers, &[3]);
    assert_eq!(stream.eager, ["$.items[1]"]);
    assert_eq!(stream.events.last().unwrap(), r#"$.items[0] = {"count":2,"max":2}"#);
}

#[test]
fn another_answer_replaces_only_the_items_that_it_changes() {
    // The second answer is a whole one, because the root is wrong in the first.
    let answers = [
        r#"{"items": [{"sku": "a", "count": 1}, {"sku": "b", "count": 2}, {"sku": "c", "count": 3}], "customer": "Ada", "total": 1} {"x": 1}"#,
        r#"{"customer": "Ada", "items": [{"sku": "a", "count": 1}, {"sku": "b", "count": 4}], "total": 5}"#,
    ];
    let check = |value: &Value, _: &formwork_core::Context<'_>, out: &mut formwork_core::Report| {
        if value["total"] == 1 {
            out.push(formwork_core::Violation::new(JsonPath::root(), "sum", formwork_core::Stage::Check));
        }
    };
    let stream = streamed(orders().with_check(check), &answers, &[11]);
    let expected = [
        r#"$.items[0] = {"sku":"a","count":1}"#,
        r#"$.items[1] = {"sku":"b","count":2}"#,
        r#"$.items[2] = {"sku":"c","count":3}"#,
        "$.items[1] replaced",
        r#"$.items[1] = {"sku":"b","count":4}"#,
        "$.items[2] replaced",
    ];
    assert_eq!(stream.events, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn for_every_chunking_the_items_that_stand_are_those_of_the_outcome(
        counts in prop::collection::vec((-3i64..20, any::<bool>()), 0..8),
        wrapping in 0usize..4,
        cut in 0usize..200,
        sizes in prop::collection::vec(1usize..40, 1..8),
        other in prop::collection::vec(1usize..40, 1..8),
    ) {
        let item = |(at, (count, noted)): (usize, &(i64, bool))| {
            let mut item = json!({"sku": format!("s{at}"), "count": count});
            if *noted {
                item["note"] = Value::Null;
            }
            item
        };
        let list: Vec<Value> = counts.iter().enumerate().map(item).collect();
        let right: Vec<Value> = list.iter().map(|item| {
            let mut item = item.clone();
            item["count"] = item["count"].as_i64().unwrap_or_default().max(0).into();
            item.as_object_mut().map(|item| item.remove("note"));
            item
        }).collect();
        let document = json!({"customer": "Ada", "items": list, "total": 3});
        let good = json!({"customer": "Ada", "items": right, "total": 3}).to_string();
        let text = match wrapping {
            0 => document.to_string(),
            1 => format!("Here it is:\n```json\n{document:#}\n```"),
            2 => document.to_string().chars().take(cut).collect(),
            _ => format!("<think>{{\"items\": [1]}}</think>{document}"),
        };
        // A patch that the model does not give is followed by the whole document.
        let answers = [text.as_str(), "no", good.as_str(), good.as_str()];
        let (one, two) = (streamed(orders(), &answers, &sizes), streamed(orders(), &answers, &other));
        prop_assert_eq!(&one.events, &two.events);
        prop_assert_eq!(&one.eager, &two.eager);
        let done = one.done.expect("the last answer is good");
        let mut expected = BTreeMap::new();
        items(&done.value, &JsonPath::root(), &mut expected);
        prop_assert_eq!(&one.standing, &expected);
        if wrapping == 0 {
            let valid = counts.iter().filter(|(count, _)| *count >= 0).count();
            prop_assert_eq!(one.eager.len(), valid, "{:?}", one.events);
        }
    }
}
