//! The values that the restraint for tiny models ends, and those that it leaves alone.

use std::sync::LazyLock;

use formwork_core::{Completion, Finish};
use formwork_local::{Local, LocalOptions, Restraint, Store};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::calls::{answer, call, drawn, fits, tiny};
use crate::tiny::Tiny;

static FREE: LazyLock<Local> = LazyLock::new(|| tiny("llama", Restraint::None));
static RESTRAINED: LazyLock<Local> = LazyLock::new(|| tiny("llama", Restraint::TinyModel));

async fn answers(local: &Local, schema: &Value, seeds: u64, room: u32) -> Vec<(Value, Completion)> {
    let mut answers = Vec::new();
    for seed in 0..seeds {
        let answer = answer(local, &drawn(call(Some(schema.clone()), "x"), seed, room)).await.unwrap();
        let value = serde_json::from_str(&answer.text).unwrap();
        assert!(fits(schema, &value), "{}", answer.text);
        answers.push((value, answer));
    }
    answers
}

#[tokio::test]
async fn the_default_follows_from_the_size_of_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = Tiny::new("llama").write(folder.path());
    let options =
        || LocalOptions::new().with_model(path.to_str().unwrap()).with_store(Store::at(folder.path()));
    assert_eq!(Local::open(options()).unwrap().restraint(), Restraint::TinyModel);
    assert_eq!(Local::open(options().with_restraint(Restraint::None)).unwrap().restraint(), Restraint::None);
}

/// Finding A5: these answers were impossible with any model.
#[tokio::test]
async fn long_numbers_and_equal_items_are_written_where_the_model_is_not_tiny() {
    let number = json!({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 1});
    let texts = json!({"type": "array", "items": {"const": "same"}});
    let objects = json!({"type": "array", "items": {"type": "object", "properties": {"answer": {"const": "the same"}},
        "required": ["answer"], "additionalProperties": false}, "minItems": 3});
    let digits = |(value, _): &(Value, Completion)| value[0].to_string().trim_start_matches('-').len();
    let items = |(value, _): &(Value, Completion)| value.as_array().unwrap().len();
    for (schema, most, measure) in [
        (number, 18, &digits as &dyn Fn(&(Value, Completion)) -> usize),
        (texts, 5, &items),
        (objects, 3, &items),
    ] {
        let free = answers(&FREE, &schema, 60, 200).await;
        assert!(free.iter().any(|answer| measure(answer) > most), "{schema}");
        assert!(free.iter().all(|(_, answer)| !answer.restrained));
        let restrained = answers(&RESTRAINED, &schema, 60, 200).await;
        assert!(restrained.iter().all(|answer| measure(answer) <= most), "{schema}");
        let reported = restrained.iter().filter(|(_, answer)| answer.restrained);
        assert!(
            reported.clone().count() > 0 && reported.clone().all(|answer| measure(answer) + 1 >= most),
            "{schema}"
        );
    }
}

#[tokio::test]
async fn a_string_that_goes_round_in_circles_is_ended_for_a_tiny_model_alone() {
    let text = json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 1});
    let long = |answers: &[(Value, Completion)]| {
        answers.iter().filter(|(_, answer)| answer.finish == Finish::Length).count()
    };
    let (free, restrained) = (answers(&FREE, &text, 8, 400).await, answers(&RESTRAINED, &text, 8, 400).await);
    assert!(long(&free) > 0 && long(&restrained) == 0);
    assert!(restrained.iter().any(|(_, answer)| answer.restrained));
}

/// Documents that the schema determines: many equal items, repetitive texts, long numbers.
fn demanded() -> impl Strategy<Value = Value> {
    let text =
        prop_oneof![("[a-z]{1,3}", 1usize..40).prop_map(|(part, times)| part.repeat(times)), "[ -~]{0,40}",];
    let leaf = prop_oneof![
        text.prop_map(Value::from),
        Just(json!(0)),
        // Only these are exact in llguidance, which parses numbers as doubles.
        (0u32..60).prop_map(|power| json!(1i64 << power)),
        any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 60, 12, |inner| {
        prop_oneof![
            (inner.clone(), 1usize..25).prop_map(|(item, times)| Value::from(vec![item; times])),
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,5}", inner, 0..4)
                .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

fn ask(local: &Local, schema: Value, seed: u64) -> Completion {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(answer(local, &drawn(call(Some(schema), "x"), seed, 1000))).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_the_schema_demands_is_never_excluded(
        value in demanded().prop_filter("fits into the context", |value| value.to_string().len() < 600),
        times in 1usize..40,
        seed: u64,
    ) {
        let answer = ask(&RESTRAINED, json!({"const": value}), seed);
        prop_assert_eq!(serde_json::from_str::<Value>(&answer.text).unwrap(), value);
        prop_assert_eq!(answer.finish, Finish::Stop);
        let items = json!({"type": "array", "items": {"enum": ["y", 0]}, "minItems": times, "maxItems": times});
        let answer = ask(&RESTRAINED, items, seed);
        let written: Value = serde_json::from_str(&answer.text).unwrap();
        prop_assert_eq!((written.as_array().unwrap().len(), answer.finish), (times, Finish::Stop));
    }
}

/// Each of these starts like another alternative that the restraint would end there.
#[tokio::test]
async fn a_constant_is_written_to_its_end_although_another_one_is_its_beginning() {
    let la = "la ".repeat(40);
    let same = |times: usize| json!(vec!["same"; times]);
    let long = |times: usize| json!(vec![json!({"answer": "the same"}); times]);
    for (short, whole) in [
        (json!(100_000_000_000_000_000i64), json!(1_000_000_000_000_000_000i64)),
        (same(5), same(8)),
        (long(3), long(5)),
        (json!(la), json!(format!("{la}{la}"))),
    ] {
        let schema = json!({"enum": [short, whole]});
        let answers = answers(&RESTRAINED, &schema, 40, 600).await;
        assert!(answers.iter().any(|(value, _)| *value == whole), "never {whole}");
        assert!(answers.iter().all(|(_, answer)| answer.finish == Finish::Stop && !answer.restrained));
    }
}
