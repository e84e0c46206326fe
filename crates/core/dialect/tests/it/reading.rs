//! An answer is read along in the form of every dialect: none that is accepted in the end is stopped, and others are where a byte decides.

use std::sync::Arc;

use formwork_core::{
    Absent, Ask, Call, Capabilities, Coercion, Context, Follower, Inline, Lift, Lower, Lowered, Patching,
    Plan, Policy, Run, Step, Target, Time, lift,
};
use formwork_dialect::lower_value;
use formwork_testkit::{any_schema, schema};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::laws::{all, documents};

/// Returns a plan that stops each answer that cannot become valid, with its first call.
fn call(schema: &Value, lower: Arc<dyn Lower>, coercion: Coercion) -> Option<(Plan, Call)> {
    let contract = formwork_schema::contract_for(Arc::new(Inline::new("any", schema.clone()))).ok()?;
    let target = Target::new("model", Capabilities::new(lower.enforcement())).with_mode(lower);
    let policy = Policy::new(3).with_patching(Patching::Never).with_coercion(coercion);
    let plan = Plan::new(contract, vec![target]).with_policy(policy).build().ok()?;
    let mut run = Run::new(&plan, "A text".into());
    let Ok(Step::Call { call, .. }) = run.step(&plan, Time(1)) else { return None };
    let call = Call::clone(&call);
    Some((plan, call))
}

/// Reads an answer in chunks of these numbers of characters; returns the number of bytes after which it is stopped.
fn stopped(mut follower: Follower, text: &str, sizes: &[usize]) -> Option<usize> {
    let mut rest = text;
    for size in sizes.iter().copied().cycle() {
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at);
        let (chunk, after) = rest.split_at(end);
        if follower.push(chunk).is_some() {
            return Some(text.len() - after.len());
        }
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    // A document that ends is not stopped, so that its last byte is looked at here.
    (follower.possible_until() < text.len()).then_some(text.len())
}

/// Returns documents that differ from this one in one member or item, at any depth.
fn changes(value: &Value) -> Vec<Value> {
    let mut changed = Vec::new();
    let mut put = |steps: &mut dyn FnMut(Option<Value>) -> Value, inner: &Value| {
        let others = [json!(null), json!(7), json!("x"), json!([]), json!([inner]), json!({"x": 1})];
        changed.extend(others.into_iter().chain(changes(inner)).map(|new| steps(Some(new))));
        changed.push(steps(None));
    };
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let with = |new| {
                    let mut all = members.clone();
                    match new {
                        Some(new) => _ = all.insert(name.clone(), new),
                        None => _ = all.shift_remove(name),
                    }
                    Value::Object(all)
                };
                put(&mut { with }, member);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let with = |new| {
                    let mut all = items.clone();
                    all.splice(at..=at, new);
                    Value::Array(all)
                };
                put(&mut { with }, item);
            }
        }
        _ => {}
    }
    changed
}

fn is_accepted(plan: &Plan, lowered: &Lowered, answer: &Value) -> bool {
    let (value, problems) = lift(answer.clone(), lowered);
    problems.is_empty() && plan.contract().settle(value, &Context::EMPTY).judgement.is_accepted()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_answer_that_is_accepted_is_stopped_in_any_dialect(
        (mut schema, absent) in (prop_oneof![schema(), any_schema()], any::<bool>()),
        seed in any::<[u8; 32]>(), sizes in prop::collection::vec(1usize..12, 1..8),
        coercion in prop::sample::select(vec![Coercion::Ask, Coercion::Fix, Coercion::Drop]),
    ) {
        if absent {
            Absent::All.declare(&mut schema);
        }
        let documents = documents(&schema, &seed, 2);
        for dialect in all() {
            let Some((plan, call)) = call(&schema, dialect.clone(), coercion) else { continue };
            let answers = documents.iter().filter_map(|document| lower_value(document, &call.lowered));
            let answers = answers.flat_map(|answer| changes(&answer).into_iter().chain([answer])).take(200);
            for answer in answers.filter(|answer| is_accepted(&plan, &call.lowered, answer)) {
                let text = answer.to_string();
                let follower = Follower::with_progress(&plan, &call, &Ask::Whole);
                prop_assert_eq!(stopped(follower, &text, &sizes), None, "{} {}: {}", dialect.name(), schema, text);
            }
        }
    }
}

#[test]
fn values_that_lifting_moves_leave_the_rest_of_the_answer_decided() {
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let any = json!({"type": "object", "properties": {"of": {}}, "required": ["of"], "additionalProperties": false});
    let row = json!({"type": "object", "properties": {"id": {"type": "integer"}, "counts": {"$ref": "#/$defs/counts"}},
        "required": ["id", "counts"], "additionalProperties": false});
    let schema = json!({
        "type": "object",
        "properties": {
            "state": {"enum": ["open", "closed"]},
            "nick": {"type": ["string", "null"]},
            "tags": {"anyOf": [map, {"type": "array", "items": map}]},
            "free": any,
            "rows": {"type": "array", "items": row},
        },
        "required": ["state", "tags", "free", "rows"],
        "additionalProperties": false,
        "$defs": {"counts": map},
    });
    let document = json!({
        "state": "open", "nick": null, "tags": {"a": 1}, "free": {"of": {"x": [1, "y"]}},
        "rows": [{"id": 1, "counts": {"a": 1, "b": 2}}, {"id": 2, "counts": {}}],
    });
    let (mut moving, mut marking) = (0, 0);
    for dialect in all() {
        let (plan, call) = call(&schema, dialect.clone(), Coercion::Ask).unwrap();
        let ops = || call.lowered.lift.iter().map(|op| &op.lift);
        moving +=
            usize::from(ops().any(|op| matches!(op, Lift::PairsToMap | Lift::Leaves | Lift::ParseJson)));
        marking += usize::from(ops().any(|op| matches!(op, Lift::DropAbsent { .. })));
        let answer = lower_value(&document, &call.lowered).unwrap();
        let follower = || Follower::with_progress(&plan, &call, &Ask::Whole);
        assert_eq!(stopped(follower(), &answer.to_string(), &[3]), None, "{}", dialect.name());
        for (at, wrong) in [("/state", json!("lost")), ("/rows/1/id", json!("two")), ("/rows/0", json!([]))] {
            let mut answer = answer.clone();
            *answer.pointer_mut(at).unwrap() = wrong.clone();
            let text = answer.to_string();
            let end = text.rfind(&wrong.to_string()).unwrap() + wrong.to_string().len();
            let found = stopped(follower(), &text, &[3]);
            assert!(
                found.is_some_and(|found| found <= end + 3 && found < text.len()),
                "{} {at}: {found:?} {text}",
                dialect.name()
            );
        }
        // Items of lists that keep their form are known as soon as they end.
        let text = answer.to_string();
        let mut follower = follower();
        follower.push(&text[..text.find("\"id\":2").unwrap()]);
        let items = follower.progress(&plan, &Context::EMPTY).items;
        let first: Vec<_> = items.iter().filter(|item| item.path.to_string().starts_with("$.rows")).collect();
        assert_eq!(
            first.iter().map(|item| &item.value).collect::<Vec<_>>(),
            [&document["rows"][0]],
            "{}",
            dialect.name()
        );
        assert!(
            items.iter().all(|item| item.path.get(&document) == Some(&item.value)),
            "{}: {items:?}",
            dialect.name()
        );
    }
    assert!(moving >= 3 && marking >= 1, "{moving} {marking}");
}

#[test]
fn an_answer_to_a_patch_that_is_no_object_is_stopped() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    for dialect in all() {
        let (plan, call) = call(&schema, dialect.clone(), Coercion::Ask).unwrap();
        let patch = Ask::Patch(vec!["$.a".parse().unwrap()]);
        let list = format!("[{}1]", "1, ".repeat(100));
        for (text, is_stopped) in
            [(list, true), (json!({"a": "x", "b": "y ".repeat(100)}).to_string(), false)]
        {
            let found = stopped(Follower::new(&plan, &call, &patch), &text, &[2]);
            assert_eq!(
                found.is_some_and(|found| found < 100),
                is_stopped,
                "{} {text}: {found:?}",
                dialect.name()
            );
        }
    }
}
