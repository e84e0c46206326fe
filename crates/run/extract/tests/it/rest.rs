//! An answer that ended early is continued, and wrong values of a list are requested together: for each dialect and each place of the
//! end, the document is the one that a perfect model would have given.

use std::cell::RefCell;
use std::sync::Arc;

use formwork_core::*;
use formwork_dialect::{Dialects, lower_value};
use formwork_json::{Lexer, Token};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn schema() -> Value {
    let item = json!({
        "type": "object",
        "properties": {
            "sku": {"type": "string"},
            "quantity": {"type": "integer", "minimum": 0},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
            "note": {"type": "string"},
            "price": {"type": "number"},
        },
        "required": ["sku", "quantity", "tags", "price"],
        "additionalProperties": false,
    });
    json!({
        "type": "object",
        "properties": {
            "number": {"type": "string"},
            "buyer": {"$ref": "#/$defs/party"},
            "items": {"type": "array", "items": item},
            "seller": {"$ref": "#/$defs/party"},
            "total": {"type": "number"},
        },
        "required": ["number", "buyer", "items", "seller", "total"],
        "additionalProperties": false,
        "$defs": {"party": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "city": {"type": "string"}},
            "required": ["name"],
            "additionalProperties": false,
        }},
    })
}

fn document(items: usize, tags: usize) -> Value {
    let items: Vec<Value> = (0..items)
        .map(|nth| {
            let mut item = json!({"sku": format!("A-{}", 1000 + nth % 7), "quantity": nth % 3, "tags": vec!["x"; nth % (tags + 1)]});
            if nth % 2 == 1 {
                item["note"] = json!("Ship \"soon\", in [boxes] of {12}");
            }
            item["price"] = json!(nth as f64 + 0.5);
            item
        })
        .collect();
    json!({"number": "2026-17", "buyer": {"name": "Ada"}, "items": items, "seller": {"name": "Böhm", "city": "Graz"}, "total": 99.5})
}

/// Returns the text of the invoice, which has each value once.
fn input(document: &Value) -> Input {
    let mut text =
        format!("Invoice {} of {} for {}\n", document["number"], document["seller"], document["buyer"]);
    for (nth, item) in document["items"].as_array().unwrap().iter().enumerate() {
        text.push_str(&format!(
            "{:>3}. Article {} ordered as {}, {} pieces at {} EUR each\n",
            nth + 1,
            item["sku"],
            item["tags"],
            item["quantity"],
            item["price"]
        ));
    }
    Input::from(text)
}

/// Returns the contract's document of a perfect model's answer to a call: the whole, or an object with the names in the last message.
fn perfect(call: &Call, ask: &Ask, document: &Value) -> Value {
    if *ask == Ask::Whole {
        return document.clone();
    }
    let path = |name: &str| -> JsonPath {
        let dot = if name.starts_with('[') { "$" } else { "$." };
        format!("{dot}{name}").parse().unwrap()
    };
    let (mut answer, mut group, mut by_tens) = (Map::new(), String::new(), false);
    for line in call.messages.last().unwrap().text().lines() {
        if let Some(line) = line.strip_prefix("- \"") {
            let name = &line[..line.find('"').unwrap()];
            (group, by_tens) = (name.to_owned(), line.contains("last digit"));
            if let Some(list) = name.strip_suffix(":]") {
                let (list, from) = list.rsplit_once('[').unwrap();
                let list: JsonPath = if list.is_empty() { JsonPath::root() } else { path(list) };
                let from = from.parse().unwrap();
                let rest = match list.get(document).unwrap() {
                    Value::Object(map) => map.clone().into_iter().skip(from).collect(),
                    items => items.as_array().unwrap()[from..].into(),
                };
                answer.insert(name.to_owned(), rest);
            } else if name.contains("[*]") {
                answer.insert(name.to_owned(), json!({}));
            } else if let Some(value) = path(name).get(document) {
                answer.insert(name.to_owned(), value.clone());
            }
        } else if let Some((range, _)) = line.strip_prefix("  ").and_then(|line| line.split_once(": ")) {
            let (from, to) = range.split_once(" to ").unwrap_or((range, range));
            for index in from.parse::<usize>().unwrap()..=to.parse().unwrap() {
                // An optional member may be absent.
                if let Some(value) = path(&group.replacen('*', &index.to_string(), 1)).get(document) {
                    let inner = &mut answer[&group];
                    match by_tens {
                        true => {
                            inner[(index / 10 * 10).to_string()][(index % 10).to_string()] = value.clone()
                        }
                        false => inner[index.to_string()] = value.clone(),
                    }
                }
            }
        }
    }
    Value::Object(answer)
}

fn plan(dialect: Arc<dyn Lower>) -> Plan {
    plan_for(schema(), dialect)
}

fn plan_for(schema: Value, dialect: Arc<dyn Lower>) -> Plan {
    let contract = formwork_schema::contract_for(Arc::new(Inline::new("invoice", schema))).unwrap();
    let target = Target::new("one", Capabilities::new(dialect.enforcement())).with_mode(dialect);
    Plan::new(contract, vec![target]).with_policy(Policy::new(9)).build().unwrap()
}

fn dialects() -> impl Iterator<Item = Arc<dyn Lower>> {
    Dialects::builtin()
        .iter()
        .map(|dialect| Arc::clone(dialect) as Arc<dyn Lower>)
        .collect::<Vec<_>>()
        .into_iter()
}

/// The result of a run: its outcome, and the bytes of requests and answers.
struct Played {
    outcome: Result<Outcome<Value>, Error>,
    sent: Vec<usize>,
    received: Vec<usize>,
}

/// Drives a run; `reply` makes an event of the number of the call and the perfect text.
fn play(plan: &Plan, document: &Value, reply: impl Fn(usize, &Ask, &str) -> (String, Finish)) -> Played {
    play_with(plan, input(document), document, |nth, ask, text| {
        let (text, finish) = reply(nth, ask, text);
        Completion::new(text).with_finish(finish)
    })
}

fn play_with(
    plan: &Plan,
    input: Input,
    document: &Value,
    reply: impl Fn(usize, &Ask, &str) -> Completion,
) -> Played {
    play_streams(plan, input, document, |nth, ask, text| (reply(nth, ask, text), false))
}

/// Drives a run; `reply` also returns whether the answer breaks off.
fn play_streams(
    plan: &Plan,
    input: Input,
    document: &Value,
    reply: impl Fn(usize, &Ask, &str) -> (Completion, bool),
) -> Played {
    let mut run = Run::new(plan, input);
    let (mut sent, mut received, mut now) = (Vec::new(), Vec::new(), Time(0));
    loop {
        let (id, call) = match run.step(plan, now).unwrap() {
            Step::Call { id, call, .. } => (id, call),
            Step::Wait { until, .. } => {
                now = until;
                continue;
            }
            _ => return Played { outcome: run.finish(), sent, received },
        };
        let ask = run.ask().clone();
        let answer = perfect(&call, &ask, document);
        let text = lower_value(&answer, &call.lowered).unwrap_or(answer).to_string();
        let (completion, breaks_off) = reply(sent.len(), &ask, &text);
        let messages: usize = call.messages.iter().map(|message| message.text().len()).sum();
        sent.push(messages + call.schema().map_or(0, |schema| schema.to_string().len()));
        received.push(completion.text.len());
        let event = match breaks_off {
            true => Event::broken_off(id, completion, Fault::cut_off("its end marker is missing")),
            false => Event::answered(id, completion),
        };
        run.on(plan, now, event).unwrap();
    }
}

/// Returns the text up to about this byte.
fn cut(text: &str, at: usize) -> String {
    text[..text.floor_char_boundary(at)].to_owned()
}

#[test]
fn an_answer_that_is_cut_at_any_byte_is_continued_to_the_same_document() {
    let document = document(5, 2);
    let whole = serde_json::to_string(&document).unwrap();
    for dialect in [Arc::new(formwork_dialect::Prompt::new()) as Arc<dyn Lower>].into_iter() {
        let plan = plan(dialect);
        let mut continued = 0;
        for at in 0..whole.len() {
            for finish in [Finish::Length, Finish::Stop] {
                let played = play(&plan, &document, |nth, _, text| match nth {
                    0 => (cut(text, at), finish.clone()),
                    _ => (text.to_owned(), Finish::Stop),
                });
                let outcome = played.outcome.unwrap();
                assert_eq!(outcome.value, document, "{at}: {}", cut(&whole, at));
                assert_eq!(outcome.calls.len(), 2);
                assert_eq!(outcome.closed().count(), 0);
                continued += usize::from(!outcome.calls[1].patched.is_empty());
            }
        }
        assert!(continued > 2 * (whole.len() - 60), "{continued} of {}", 2 * whole.len());
    }
}

#[test]
fn every_dialect_continues_an_answer_and_sends_less_than_a_second_whole() {
    let document = document(100, 1);
    for dialect in dialects() {
        let (name, plan) = (dialect.name().to_owned(), plan(dialect));
        let one = play(&plan, &document, |_, _, text| (text.to_owned(), Finish::Stop));
        assert!(one.outcome.is_ok(), "{name}: {:?}", one.outcome);
        for percent in [10, 50, 90, 99] {
            let played = play(&plan, &document, |nth, _, text| match nth {
                0 => (cut(text, text.len() * percent / 100), Finish::Length),
                _ => (text.to_owned(), Finish::Stop),
            });
            let ratio = |all: &[usize], one: &[usize]| all.iter().sum::<usize>() as f64 / one[0] as f64;
            let (sent, received) = (ratio(&played.sent, &one.sent), ratio(&played.received, &one.received));
            println!("{name}, cut at {percent} %: {sent:.2} / {received:.2}");
            assert_eq!(played.outcome.unwrap().value, document, "{name}: {percent}");
            assert!(sent <= 2.2 && received <= 1.05, "{name}, cut at {percent} %: {sent:.2} / {received:.2}");
        }
    }
}

#[test]
fn wrong_values_of_a_list_are_one_group_and_the_others_stay() {
    let right = document(100, 1);
    for dialect in dialects() {
        let (name, plan) = (dialect.name().to_owned(), plan(dialect));
        let one = play(&plan, &right, |_, _, text| (text.to_owned(), Finish::Stop));
        for (wrong, max_sent, max_received) in [(9, 2.2, 1.05), (100, 2.3, 1.2)] {
            let mut broken = right.clone();
            for item in broken["items"].as_array_mut().unwrap().iter_mut().step_by(100 / wrong).take(wrong) {
                match wrong {
                    9 => item["quantity"] = json!("many"),
                    _ => _ = item.as_object_mut().unwrap().shift_remove("price"),
                }
            }
            let played = play(&plan, &right, |nth, _, text| match nth {
                0 => (serde_json::to_string(&broken).unwrap(), Finish::Stop),
                _ => (text.to_owned(), Finish::Stop),
            });
            let outcome = played.outcome.unwrap();
            assert_eq!(outcome.value, right, "{name}");
            assert_eq!(outcome.calls[1].patched.len(), wrong);
            let ratio = |all: &[usize], one: &[usize]| all.iter().sum::<usize>() as f64 / one[0] as f64;
            let (sent, received) = (ratio(&played.sent, &one.sent), ratio(&played.received, &one.received));
            println!("{name}, {wrong} wrong: {sent:.2} / {received:.2}");
            assert!(
                sent <= max_sent && received <= max_received,
                "{name}, {wrong}: {sent:.2} / {received:.2}"
            );
        }
    }
}

#[test]
fn a_list_is_complete_only_if_the_model_says_so() {
    let document = document(3, 1);
    let plan = plan(Arc::new(formwork_dialect::Prompt::new()));
    let at = |text: &str| text.find("A-1001").unwrap() - 8;
    let played = play(&plan, &document, |nth, _, text| match nth {
        0 => (cut(text, at(text)), Finish::Length),
        // The rest of the items is left out; a model that says that there are no more says `[]`.
        1 => {
            let mut answer: Value = serde_json::from_str(text).unwrap();
            answer.as_object_mut().unwrap().retain(|name, _| !name.starts_with("items["));
            (answer.to_string(), Finish::Stop)
        }
        _ => (text.to_owned(), Finish::Stop),
    });
    let outcome = played.outcome.unwrap();
    assert_eq!((outcome.value, outcome.calls.len()), (document, 3));
    assert_eq!(outcome.calls[1].verdict.failure().unwrap().class(), "truncated");
}

#[test]
fn a_whole_document_in_place_of_requested_values_is_taken_if_it_is_valid_and_lacks_nothing() {
    let document = document(3, 1);
    let whole = document.to_string();
    for dialect in dialects() {
        let name = dialect.name().to_owned();
        // The rest of a cut answer, and a wrong value.
        for first in [cut(&whole, whole.find("A-1001").unwrap() - 8), String::new()] {
            let played =
                play(&plan(Arc::clone(&dialect)), &document, |nth, ask, text| match (nth, &*first) {
                    (0, "") => (text.replace("\"quantity\":1", "\"quantity\":\"many\""), Finish::Stop),
                    (0, _) => (cut(text, first.len()), Finish::Length),
                    _ => (if *ask == Ask::Whole { text } else { &whole }.to_owned(), Finish::Stop),
                });
            let outcome = played.outcome.unwrap();
            assert_eq!((outcome.value, outcome.calls.len()), (document.clone(), 2), "{name}");
        }
    }
    // What lacks a member that the document has is no document in its place, although all members are optional.
    let optional = json!({"properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}}});
    let person = json!({"name": "Ada", "age": 36, "city": "London"});
    let plan = plan_for(optional, Arc::new(formwork_dialect::Prompt::new()));
    let played = play_with(&plan, "Ada, 36, in London".into(), &person, |nth, _, text| {
        Completion::new(match nth {
            0 => r#"{"name": "Ada", "city": "London", "age": "many"}"#,
            1 => r#"{"foo": 1}"#,
            _ => text,
        })
    });
    let outcome = played.outcome.unwrap();
    assert_eq!((outcome.value, outcome.calls.len()), (person, 3));
}

#[test]
fn a_continuation_without_any_requested_value_is_followed_by_the_whole_also_after_nulls() {
    let text = r#"{"items": [{"name": "a", "note": null}, {"name": "b", "note": null}"#;
    let item = json!({"type": "object", "properties": {"name": {"type": "string"}, "note": {"type": "string"}}, "required": ["name"]});
    let schema = json!({"type": "object", "properties": {"items": {"type": "array", "items": item}}, "required": ["items"]});
    let document = json!({"items": [{"name": "a"}, {"name": "b"}, {"name": "c"}]});
    for first in [text.to_owned(), text.replace(r#", "note": null"#, "")] {
        let plan = plan_for(schema.clone(), Arc::new(formwork_dialect::Prompt::new()));
        let played = play_with(&plan, "a, b, c".into(), &document, |nth, ask, text| match nth {
            0 => Completion::new(first.clone()).with_finish(Finish::Length),
            1 => Completion::new(r#"{"foo": 1}"#),
            _ => {
                assert_eq!(*ask, Ask::Whole, "{first}");
                Completion::new(text)
            }
        });
        let outcome = played.outcome.unwrap();
        assert_eq!((outcome.value, outcome.calls.len()), (document.clone(), 3));
        let says = outcome.calls[1].verdict.failure().unwrap().violations()[0].to_string();
        assert!(says.ends_with("found an answer without the requested values"), "{says}");
    }
}

proptest! {
    #[test]
    fn several_cuts_and_a_wrong_value_lose_and_double_nothing(items in 0usize..12, tags in 0usize..4, cuts in prop::collection::vec(0usize..1000, 1..4), wrong in any::<bool>()) {
        let document = document(items, tags);
        let plan = plan(Arc::new(formwork_dialect::Prompt::new()));
        let played = play(&plan, &document, |nth, ask, text| {
            let text = if wrong && *ask == Ask::Whole { text.replace("\"quantity\":1", "\"quantity\":\"one\"") } else { text.to_owned() };
            match cuts.get(nth) {
                Some(at) => (cut(&text, text.len() * at / 1000), Finish::Length),
                None => (text, Finish::Stop),
            }
        });
        // A model that gives the same wrong values again at each whole answer may fail, but nothing else is accepted.
        match played.outcome {
            Ok(outcome) => prop_assert_eq!(outcome.value, document),
            Err(error) => prop_assert!(false, "{}", error),
        }
    }
}

#[test]
fn a_continuation_that_breaks_off_or_is_cut_keeps_what_it_added() {
    let document = document(40, 2);
    for dialect in dialects() {
        let (name, plan) = (dialect.name().to_owned(), plan(dialect));
        for broken in [[true, true, true], [false, true, true], [true, false, true]] {
            // Each answer ends early and gives half of what is missing, until one gives all.
            let played =
                play_streams(&plan, input(&document), &document, |nth, _, text| match broken.get(nth) {
                    Some(breaks_off) => {
                        (Completion::new(cut(text, text.len() / 2)).with_finish(Finish::Length), *breaks_off)
                    }
                    None => (Completion::new(text), false),
                });
            let outcome = played.outcome.unwrap();
            assert_eq!(outcome.value, document, "{name}: {broken:?}");
            let [whole, .., last] = played.received[..] else { panic!() };
            assert!(outcome.calls.len() == 4 && last < whole, "{name}: {:?}", played.received);
        }
    }
}

#[test]
fn a_continuation_that_breaks_off_is_an_attempt_if_it_adds_a_value_and_a_failed_call_otherwise() {
    let (document, plan) = (document(200, 1), plan(Arc::new(formwork_dialect::Prompt::new())));
    // The answer breaks off, and each continuation gives one more item or nothing.
    for (adds, calls, class) in
        [(true, 1 + 9, ErrorKind::Unavailable), (false, 1 + 3, ErrorKind::Unavailable)]
    {
        let played = play_streams(&plan, input(&document), &document, |nth, _, text| {
            let items: Vec<usize> = text.match_indices("\"sku\"").map(|(at, _)| at).collect();
            let end = if nth == 0 || adds { items[2] } else { items[0] };
            (Completion::new(&text[..end]), true)
        });
        let error = played.outcome.unwrap_err();
        assert_eq!((error.kind(), error.calls().len()), (class, calls), "{error}");
    }
}

#[test]
fn what_no_patch_can_correct_is_left_out_of_the_beginning() {
    let list = json!({"type": "array", "items": {"type": "integer"}, "maxItems": 2});
    let object = json!({
        "type": "object",
        "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
        "required": ["x", "y"],
        "additionalProperties": false,
    });
    let schema = json!({
        "type": "object",
        "properties": {"a": list, "o": object, "last": {"type": "integer"}},
        "required": ["a", "o", "last"],
        "additionalProperties": false,
    });
    let document = json!({"a": [1, 2], "o": {"x": "u", "y": "v"}, "last": 3});
    for (wrong, asked) in [
        (r#"{"a": [1, 2, 5, 3, 7, 9"#, &["$.o", "$.last"][..]),
        (r#"{"a": [1, 2], "o": {"x": "u", "z": 1, "w": [2"#, &["$.o.y", "$.last"]),
        (r#"{"a": [1, 2], "more": [1, {"u": "#, &["$.o", "$.last"]),
        // The first mistake could be corrected, the second one could not.
        (r#"{"a": [1, "two", 5, 3"#, &["$.a[1]", "$.o", "$.last"]),
        // Nothing is left out before a value that a patch corrects.
        (r#"{"a": [1, "two"], "o": {"x": "u""#, &["$.a[1]", "$.o.y", "$.last"]),
    ] {
        for finish in [Finish::Length, Finish::Stop] {
            let plan = plan_for(schema.clone(), Arc::new(formwork_dialect::Prompt::new()));
            let played =
                play_with(&plan, Input::from("1 2 u v 3"), &document, |nth, ask, text| match (nth, ask) {
                    (0, _) => Completion::new(wrong).with_finish(finish.clone()),
                    (_, Ask::Patch(paths)) => {
                        let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
                        assert_eq!(paths, asked, "{wrong}");
                        Completion::new(text)
                    }
                    _ => panic!("{wrong}"),
                });
            assert_eq!(played.outcome.unwrap().value, document, "{wrong}");
        }
    }
}

#[test]
fn too_many_items_of_a_continuation_are_left_out() {
    let list = json!({"type": "array", "items": {"type": "integer"}, "maxItems": 3});
    let schema = json!({
        "type": "object",
        "properties": {"a": list, "last": {"type": "integer"}},
        "required": ["a", "last"],
        "additionalProperties": false,
    });
    let document = json!({"a": [1, 2, 3], "last": 3});
    for dialect in dialects() {
        let name = dialect.name().to_owned();
        let plan = plan_for(schema.clone(), dialect);
        let played = play_with(&plan, Input::from("1 2 3"), &document, |nth, ask, text| {
            let end = |after: &str| text.find(after).unwrap() + after.len();
            match (nth, ask) {
                (0, _) => Completion::new(&text[..end("1,")]).with_finish(Finish::Length),
                (1, Ask::Patch(_)) => {
                    let more = text.replacen("3]", "3,4,5,6,", 1);
                    Completion::new(&more[..more.find("6,").unwrap() + 2]).with_finish(Finish::Length)
                }
                (_, Ask::Patch(paths)) => {
                    assert_eq!(paths, &["$.last".parse().unwrap()], "{name}");
                    Completion::new(text)
                }
                _ => panic!("{name}: {nth}"),
            }
        });
        assert_eq!(played.outcome.unwrap().value, document, "{name}");
    }
}

#[test]
fn a_list_that_ends_with_a_few_equal_items_is_continued_and_one_that_repeats_itself_is_not() {
    let schema = json!({"type": "object", "properties": {"marks": {"type": "array", "items": {"type": "integer"}}}, "required": ["marks"]});
    for (equal, continued) in [(1, true), (2, true), (7, true), (8, false), (50, false)] {
        let contract = formwork_schema::contract_for(Arc::new(Inline::new("marks", schema.clone()))).unwrap();
        let dialect = Arc::new(formwork_dialect::Prompt::new());
        let target = Target::new("one", Capabilities::new(dialect.enforcement())).with_mode(dialect);
        let plan = Plan::new(contract, vec![target]).with_policy(Policy::new(3)).build().unwrap();
        let mut run = Run::new(&plan, Input::from("marks"));
        let Step::Call { id, .. } = run.step(&plan, Time(0)).unwrap() else { panic!() };
        let text = format!("{{\"marks\": [3, {}", "1, ".repeat(equal));
        run.on(&plan, Time(0), Event::answered(id, Completion::new(text).with_finish(Finish::Length)))
            .unwrap();
        assert_eq!(matches!(run.ask(), Ask::Patch(_)), continued, "{equal} equal items");
    }
}

/// Schemas whose documents some dialects write in another form, or whose objects have names of their own, each with a document.
fn other_forms() -> Vec<(&'static str, Value, Value)> {
    let entry = json!({
        "type": "object",
        "properties": {"unit": {"type": "string"}, "amounts": {"type": "array", "items": {"type": "integer"}}},
        "required": ["unit", "amounts"],
        "additionalProperties": false,
    });
    let one = |nth: usize| json!({"unit": format!("kg {nth}"), "amounts": [nth, nth + 1, 100 * nth]});
    let map: Map<String, Value> = (0..12).map(|nth| (format!("article {nth}"), one(nth))).collect();
    let numbers: Map<String, Value> = (0..12).map(|nth| (format!("n{nth}"), json!(nth))).collect();
    let map_of = |entry: Value| json!({"type": "object", "additionalProperties": entry});
    let around = |name: &str, inner: Value| {
        json!({
            "type": "object",
            "properties": {"first": {"type": "string"}, name: inner, "last": {"type": "integer"}},
            "required": ["first", name, "last"],
            "additionalProperties": false,
        })
    };
    let tuple = json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}], "items": false, "minItems": 3});
    let mixed = json!({
        "type": "object",
        "properties": {"title": {"type": "string"}, "size": {"type": "integer"}},
        "required": ["title", "size"],
        "additionalProperties": {"type": "integer"},
    });
    let mut mixed_document = json!({"title": "T", "size": 3});
    mixed_document.as_object_mut().unwrap().extend(numbers.clone());
    vec![
        ("a map as root", map_of(entry.clone()), map.clone().into()),
        ("a map of numbers as root", map_of(json!({"type": "integer"})), numbers.clone().into()),
        ("a map", around("map", map_of(entry.clone())), json!({"first": "a", "map": map, "last": 3})),
        ("names and others", mixed, mixed_document),
        (
            "any object",
            around("any", json!({"type": "object"})),
            json!({"first": "a", "any": {"x": 1, "y": [true, null], "z": {"deep": "b"}}, "last": 3}),
        ),
        ("a tuple", around("tuple", tuple), json!({"first": "a", "tuple": ["x", 5, true], "last": 3})),
        ("a list as root", json!({"type": "array", "items": entry}), (0..12).map(one).collect()),
    ]
}

/// Returns whether a value has ended in the first `at` bytes of an answer.
fn has_ended(text: &str, at: usize) -> bool {
    let mut has_ended = false;
    Lexer::new(Level::Clean)
        .push(cut(text, at).as_bytes(), |event| has_ended |= matches!(event.token, Token::End(_)));
    has_ended
}

/// Nothing that has ended is written again: wherever an answer in any form is cut or was closed by its provider, the answers together
/// have at most the bytes of the whole, of the value in which the cut is, and of the names and brackets of a patch.
#[test]
fn documents_in_other_forms_are_continued_wherever_they_end() {
    let (mut continued, mut all) = (0, 0);
    for (what, schema, document) in other_forms() {
        for (nth, dialect) in dialects().enumerate() {
            let (name, plan) = (dialect.name().to_owned(), plan_for(schema.clone(), dialect));
            let first = RefCell::new(String::new());
            let play = |at: Option<usize>, is_closed: bool| {
                play_with(&plan, Input::from("text"), &document, |nth, _, text| {
                    if nth == 0 {
                        first.replace(text.to_owned());
                    }
                    match at.filter(|_| nth == 0) {
                        None => Completion::new(text),
                        Some(at) if is_closed => {
                            let mut closed = Completion::new(text).with_finish(Finish::Length);
                            closed.closed_at = Some(at);
                            closed
                        }
                        Some(at) => Completion::new(cut(text, at)).with_finish(Finish::Length),
                    }
                })
            };
            let length = play(None, false).received[0];
            for at in (nth % 7 + 1..length).step_by(length / 4 + 1) {
                for is_closed in [false, true] {
                    let played = play(Some(at), is_closed);
                    let place = format!("{what} in {name}, at {at} of {length}, closed: {is_closed}");
                    let outcome = played.outcome.unwrap_or_else(|error| panic!("{place}: {error}"));
                    assert_eq!(outcome.value, document, "{place}");
                    assert_eq!(outcome.closed().count(), 0, "{place}");
                    all += 1;
                    let is_continued = !outcome.calls[1].patched.is_empty();
                    continued += usize::from(is_continued);
                    // The only reason to start over is that no value has ended.
                    assert_eq!(is_continued, has_ended(&first.borrow(), at), "{place}");
                    if what.contains("root") && at * 2 > length {
                        assert!(!outcome.calls[1].patched.is_empty(), "{place} starts over");
                    }
                }
            }
        }
    }
    println!("{continued} of {all} answers were continued");
    assert!(continued * 100 >= all * 70, "{continued} of {all}");
}
