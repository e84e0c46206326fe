//! For any weights and any schema, a completion is a complete document of the schema within its token budget.

use std::sync::LazyLock;

use formwork_core::{FaultKind, Finish};
use formwork_local::{Local, Restraint};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::calls::{answer, call, drawn, fits, tiny};
use crate::tiny::CONTEXT;

static MODELS: LazyLock<[Local; 4]> = LazyLock::new(|| {
    let both = [Restraint::None, Restraint::TinyModel];
    let [[a, b], [c, d]] = ["llama", "qwen2"].map(|family| both.map(|restraint| tiny(family, restraint)));
    [a, b, c, d]
});

/// Returns the engine's minimum number of tokens of a document of this schema, from its error message.
pub(crate) async fn shortest(local: &Local, schema: &Value) -> u32 {
    let fault = answer(local, &drawn(call(Some(schema.clone()), "x"), 0, 1)).await;
    let Err(fault) = fault else { return 1 };
    assert_eq!(fault.kind, FaultKind::BadRequest, "{fault}: {schema}");
    let (_, tokens) = fault.message.rsplit_once("schema (").unwrap();
    tokens.trim_end_matches(" tokens)").parse().unwrap()
}

fn object(properties: Value) -> Value {
    let required: Vec<_> = properties.as_object().unwrap().keys().cloned().collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Schemas without bounds, most of them recursive, whose documents can grow without end.
fn boundless() -> Vec<Value> {
    let node = json!({"$ref": "#/$defs/node"});
    let with = |mut root: Value, defs: Value| {
        root["$defs"] = defs;
        root
    };
    let linked = |alternatives: Value| {
        let next = json!({"anyOf": alternatives});
        with(node.clone(), json!({"node": object(json!({"value": {"type": "integer"}, "next": next}))}))
    };
    vec![
        json!({}),
        json!({"type": "object"}),
        json!({"type": "array"}),
        json!({"type": "string"}),
        json!({"type": "number"}),
        json!({"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {"type": "string"}}}),
        linked(json!([node, {"type": "null"}])),
        linked(json!([{"type": "null"}, node])),
        with(
            node.clone(),
            json!({"node": object(json!({"name": {"type": "string"}, "children": {"type": "array", "items": node}}))}),
        ),
        with(
            node.clone(),
            json!({"node": {"anyOf": [
                object(json!({"children": {"type": "array", "items": node, "minItems": 2}})),
                {"type": "string"},
            ]}}),
        ),
        with(
            node.clone(),
            json!({
                "node": object(json!({"left": {"$ref": "#/$defs/other"}})),
                "other": {"anyOf": [object(json!({"right": node})), object(json!({"end": {"type": "boolean"}}))]},
            }),
        ),
        json!({"type": "array", "minItems": 50, "items": object(json!({"n": {"type": "integer"}}))}),
        object(json!({
            "kind": {"enum": ["a", "a much longer name of a kind", "null", null, 12]},
            "note": {"type": "string", "minLength": 3, "maxLength": 400},
            "code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{6,}(x|yy)$"},
            "id": {"type": "string", "format": "uuid"},
            "more": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "string", "minLength": 5}}]},
        })),
    ]
}

/// Schemas without the format `date`, because llguidance accepts 29 February in every year.
fn without_dates(schema: Value) -> Value {
    serde_json::from_str(&schema.to_string().replace(r#""format":"date""#, r#""format":"uuid""#)).unwrap()
}

/// Checks that a document in `room` tokens is complete, valid and not longer; returns whether it was completed without
/// the model.
async fn check(local: &Local, schema: &Value, seed: u64, room: u32) -> bool {
    let answer = answer(local, &drawn(call(Some(schema.clone()), "x"), seed, room)).await.unwrap();
    let details = || format!("seed {seed}, room {room}, {schema}: {}", answer.text);
    let value = serde_json::from_str(&answer.text).unwrap_or_else(|error| panic!("{error}: {}", details()));
    assert!(fits(schema, &value), "{}", details());
    assert!(answer.usage.output_tokens <= u64::from(room), "{}: {}", answer.usage.output_tokens, details());
    assert_eq!(answer.finish == Finish::Length, answer.closed_at.is_some(), "{}", details());
    assert!(matches!(answer.finish, Finish::Length | Finish::Stop), "{}", details());
    assert!(answer.closed_at.is_none_or(|at| answer.text.is_char_boundary(at)), "{}", details());
    answer.closed_at.is_some()
}

#[tokio::test]
async fn boundless_schemas_are_answered_within_any_budget() {
    for local in &*MODELS {
        let mut closed = 0;
        for schema in boundless() {
            let least = shortest(local, &schema).await;
            for seed in 0..6 {
                for room in [least, least + 1, least + 2 + seed as u32, least + 60, least + 250] {
                    closed += u32::from(check(local, &schema, seed, room).await);
                }
            }
        }
        assert!(closed > 50, "only {closed} answers came to what is tested");
    }
}

#[tokio::test]
async fn without_a_restraint_a_value_grows_until_the_tokens_are_used_up() {
    let local = &MODELS[0];
    assert_eq!(local.restraint(), Restraint::None);
    let closed = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
    for room in [20, 100, 500] {
        let mut full = 0;
        for seed in 0..10 {
            let answer = answer(local, &drawn(call(Some(closed.clone()), "x"), seed, room)).await.unwrap();
            if answer.finish == Finish::Length {
                full += 1;
                assert!(answer.usage.output_tokens + 4 > u64::from(room), "{room}: {:?}", answer.usage);
                assert!(!answer.restrained);
            }
        }
        assert!(full > 0, "of 10 answers none ran into {room} tokens");
    }
}

#[tokio::test]
async fn where_a_call_does_not_say_the_tokens_are_those_of_the_context_or_few_for_a_tiny_model() {
    let long = async |local: &Local, characters: usize| {
        let mut longest = 0;
        for seed in 0..8 {
            let schema = json!({"type": "string", "minLength": characters});
            let mut request = drawn(call(Some(schema), "x"), seed, 1);
            request.max_tokens = None;
            longest = longest.max(answer(local, &request).await.unwrap().usage.output_tokens);
        }
        longest
    };
    // The context leaves less than the default budget of a model that is not tiny.
    let free = long(&MODELS[0], 450).await;
    assert!((600..=CONTEXT as u64 - 20).contains(&free), "{free}");
    let tiny = long(&MODELS[1], 450).await;
    assert!((451..=512).contains(&tiny), "{tiny}");
    // A document that cannot be shorter gets the tokens that it needs.
    let tiny = long(&MODELS[1], 700).await;
    assert!((702..=CONTEXT as u64 - 20).contains(&tiny), "{tiny}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_schema_is_answered_within_any_budget(
        schema in formwork_testkit::schema().prop_map(without_dates),
        model in 0usize..4,
        seed: u64,
        more in prop_oneof![Just(0u32), 0u32..20, 0u32..300],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let local = &MODELS[model];
            let least = shortest(local, &schema).await;
            check(local, &schema, seed, least + more).await;
        });
    }
}
