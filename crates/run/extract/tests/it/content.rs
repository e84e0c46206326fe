use std::sync::Arc;

use formwork_core::*;
use formwork_extract::{AsyncValidator, Backend, Budget, CheckResult, Extractor};
use formwork_testkit::{Reply, Scripted};
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test]
async fn a_right_answer_is_the_outcome() {
    let model = Arc::new(Scripted::new([MARIA]));
    let extractor = persons(&model).0.with_system("Extract the person.").with_seed(7).build().unwrap();
    let outcome = extractor.extract(TEXT).await.unwrap();
    assert_eq!(outcome.value, maria());
    assert_eq!(outcome.origin, Origin::Model { target: "scripted".to_owned() });
    let [call] = model.calls().try_into().unwrap();
    let expected = [Message::system("Extract the person."), Message::user(TEXT)];
    assert_eq!(call.messages, expected.map(Arc::new));
    assert_eq!(call.schema().unwrap()["required"], json!(["name", "age"]));
    assert_eq!((call.schema_name.as_str(), call.sampling.seed), ("Person", Some(7)));
}

#[tokio::test]
async fn a_wrong_answer_is_requested_again_with_what_is_wrong() {
    let model = Arc::new(Scripted::new(["I think she is 34.", MARIA]));
    let outcome = persons(&model).0.build().unwrap().extract(TEXT).await.unwrap();
    assert_eq!((outcome.value, classes(&outcome.calls)), (maria(), vec!["not_json", "accepted"]));
    let second = &model.calls()[1].messages;
    assert_eq!(*second[1], Message::assistant("I think she is 34."));
    assert!(second[2].text().contains("Not JSON"), "{}", second[2].text());
}

#[tokio::test]
async fn a_wrong_value_is_requested_alone() {
    let model = Arc::new(Scripted::new([TOO_OLD, r#"{"age": 34}"#]));
    let outcome = persons(&model).0.build().unwrap().extract(TEXT).await.unwrap();
    assert_eq!(outcome.value, maria());
    assert_eq!(outcome.calls[1].patched, ["$.age".parse().unwrap()]);
    assert_eq!(outcome.provenance.last().map(|part| part.source), Some(Source::Patched));
    assert_eq!(model.calls()[1].schema().unwrap()["required"], json!(["age"]));
}

#[tokio::test]
async fn checks_of_every_kind_are_heard() {
    let model = Arc::new(Scripted::new([r#"{"name": "Nobody", "age": 34}"#]));
    let extractor = persons(&model)
        .0
        .with_max_attempts(1)
        .with_data(json!({"most": 30}))
        .with_soft_rule(Rule::grounded("$.name".parse().unwrap()))
        .check("$.age", "even", |person| if person.age % 2 == 1 { Ok(()) } else { Err("odd".into()) })
        .with_check(|value: &Value, cx: &Context<'_>, out: &mut Report| {
            assert_eq!(cx.source, TEXT);
            if value["age"].as_u64() > cx.data["most"].as_u64() {
                out.push(Violation::new(JsonPath::root().key("age"), "most", Stage::Check));
            }
        })
        .build()
        .unwrap();
    let error = extractor.extract(TEXT).await.unwrap_err();
    let found = |error: &Error| {
        let violations = error.best().unwrap().violations.iter();
        violations.map(|violation| violation.rule.clone()).collect::<Vec<_>>()
    };
    assert_eq!((error.kind(), found(&error)), (ErrorKind::Rejected, vec!["even".to_owned()]));
    let input = Input::from(TEXT).with_data(json!({"most": 40}));
    assert_eq!(found(&extractor.extract(input).await.unwrap_err()), ["even"]);
}

#[tokio::test]
async fn a_soft_check_is_a_warning() {
    let model = Arc::new(Scripted::new([MARIA]));
    let builder = persons(&model).0.soft_check("$.age", "young", |_| Err("under 30".into()));
    let outcome = builder.build().unwrap().extract(TEXT).await.unwrap();
    assert_eq!(
        outcome.warnings.iter().map(|warning| warning.message.as_str()).collect::<Vec<_>>(),
        ["young at $.age: expected under 30"]
    );
}

#[tokio::test]
async fn a_raw_schema_gives_a_value() {
    let model = Arc::new(Scripted::new(["[1, 2.0]"]));
    let schema = json!({"type": "array", "items": {"type": "integer"}});
    let extractor = Extractor::for_document("numbers", schema)
        .with_target(backend(&model))
        .check("$", "two", |value| if value[1] == 2.0 { Ok(()) } else { Err("two".into()) })
        .build()
        .unwrap();
    assert_eq!(extractor.extract("1, 2").await.unwrap().value, json!([1, 2.0]));
}

#[tokio::test]
async fn the_fallback_is_used_and_judged() {
    let model = Arc::new(Scripted::new(["no", "no!"]));
    let with = |value: Value| {
        let builder = persons(&model).0.with_max_attempts(2);
        builder.with_fallback_fn(move |situation| {
            assert_eq!((situation.input.source.as_str(), situation.calls.len()), (TEXT, 2));
            assert_eq!(situation.draft, &Value::Null);
            Some(value.clone())
        })
    };
    let outcome = with(json!(maria())).build().unwrap().extract(TEXT).await.unwrap();
    assert_eq!((outcome.value, outcome.origin), (maria(), Origin::Fallback));
    assert_eq!(classes(&outcome.calls), ["not_json", "not_json"]);
    let error = with(json!({"name": 1})).build().unwrap().extract(TEXT).await.unwrap_err();
    assert_eq!((error.kind(), error.calls().len()), (ErrorKind::Rejected, 2));
    assert!(error.message().contains("the fallback's value breaks the contract"), "{error}");
}

/// An async validator with a list of known names.
struct Register;

#[async_trait::async_trait]
impl AsyncValidator for Register {
    async fn validate(&self, value: &Value, cx: &Context<'_>) -> CheckResult {
        assert_eq!(cx.source, TEXT);
        tokio::task::yield_now().await;
        let path = JsonPath::root().key("name");
        let findings: CheckResult = match value["name"].as_str() {
            Some("Maria") => Violation::new(path, "new", Stage::AsyncCheck).as_warning().into(),
            _ => Violation::new(path, "registered", Stage::AsyncCheck).with_expected("a known person").into(),
        };
        findings.with_spent(Cost { tokens: 5, micro_usd: Some(0) })
    }
}

#[tokio::test]
async fn an_async_validator_rejects_and_then_accepts() {
    let model = Arc::new(Scripted::new([r#"{"name": "Marta", "age": 34}"#, r#"{"name": "Maria"}"#]));
    let budget = Budget::new(Cost { tokens: 100_000, micro_usd: None });
    let builder = persons(&model).0.with_async_validator(Register).with_shared_budget(budget.clone());
    let extractor = builder.build().unwrap();
    let outcome = extractor.extract(TEXT).await.unwrap();
    assert_eq!((outcome.value, classes(&outcome.calls)), (maria(), vec!["invalid", "accepted"]));
    let calls: u64 = outcome.calls.iter().map(|call| call.cost.tokens).sum();
    assert_eq!((outcome.warnings[0].message.as_str(), outcome.cost.tokens), ("new at $.name", calls + 10));
    assert_eq!(budget.spent().tokens, calls + 10);
    assert!(model.calls()[1].messages.last().unwrap().text().contains("a known person"));
}

#[tokio::test]
async fn the_ledger_is_complete_on_failure() {
    let replies = [
        Reply::from(FaultKind::Overloaded),
        Reply::from("prose"),
        Reply::truncated(r#"{"name": "Ma"#),
        Reply::from(TOO_OLD),
    ];
    let model = Arc::new(Scripted::new(replies));
    let policy = Policy::new(3).with_patching(Patching::Never);
    let error = persons(&model).0.with_policy(policy).build().unwrap().extract(TEXT).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Rejected);
    assert_eq!(classes(error.calls()), ["fault", "not_json", "truncated", "invalid"]);
    assert_eq!(error.calls().iter().map(|call| call.attempt).collect::<Vec<_>>(), [1, 1, 2, 3]);
    assert_eq!(error.best().unwrap().value, json!({"name": "Maria", "age": 340}));
    assert_eq!(error.calls().len(), model.calls().len());
}

/// The number of times that a [`Counted`] was decoded.
static DECODED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

#[derive(Debug, PartialEq, schemars::JsonSchema)]
struct Counted {
    age: u8,
}

impl<'de> serde::Deserialize<'de> for Counted {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct Plain {
            age: u8,
        }
        DECODED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Plain::deserialize(deserializer).map(|Plain { age }| Self { age })
    }
}

#[tokio::test]
async fn the_accepted_value_is_decoded_once() {
    let model = Arc::new(Scripted::new([r#"{"age": 34}"#]));
    let extractor = Extractor::<Counted>::builder().with_target(backend(&model)).build().unwrap();
    for inputs in 1..=3 {
        assert_eq!(extractor.extract(TEXT).await.unwrap().value, Counted { age: 34 });
        assert_eq!(DECODED.load(std::sync::atomic::Ordering::Relaxed), inputs);
    }
    let silent = Arc::new(Scripted::new(["no"]));
    let builder = Extractor::<Counted>::builder().with_target(backend(&silent)).with_max_attempts(1);
    let saved = builder.with_fallback_fn(|_| Some(json!({"age": 7}))).build().unwrap();
    assert_eq!(saved.extract(TEXT).await.unwrap().value, Counted { age: 7 });
    assert_eq!(DECODED.load(std::sync::atomic::Ordering::Relaxed), 4);
}

#[tokio::test]
async fn calls_share_the_texts_of_the_prompt() {
    let model = Arc::new(Scripted::new(["{}", MARIA, MARIA]));
    let builder = persons(&model).0.with_system("Extract the person.").with_example("Maria, 34", maria());
    let extractor = builder.build().unwrap();
    for _ in 0..2 {
        extractor.extract(TEXT).await.unwrap();
    }
    let calls = model.calls();
    let [first, again, of_another_run] = &calls[..] else { panic!("{} calls", calls.len()) };
    let is_shared = |call: &Call, nth: usize| Arc::ptr_eq(&first.messages[nth], &call.messages[nth]);
    // The system prompt and the example belong to the extractor, the text to its run.
    for nth in 0..4 {
        assert!(is_shared(again, nth), "message {nth} of the second call");
        assert_eq!(is_shared(of_another_run, nth), nth < 3, "message {nth} of the other run");
    }
    assert!(Arc::ptr_eq(&first.lowered, &of_another_run.lowered));
    let written = first.lowered.schema_json().unwrap();
    assert_eq!(written.get(), first.schema().unwrap().to_string());
    assert!(std::ptr::eq(written, of_another_run.lowered.schema_json().unwrap()));
}

#[tokio::test]
async fn the_prompt_and_the_violations_are_about_the_answer_that_is_asked_for() {
    let schema =
        json!({"type": "array", "items": {"type": "object", "properties": {"qty": {"type": "integer"}}}});
    // The mode, what the answers are called, the text around an answer, and the place of a wrong value.
    for (mode, kind, around, place) in [
        ("json-object", "object", ["{\"value\": ", "}"], "$.value[0].qty"),
        ("prompt", "array", ["", ""], "$[0].qty"),
    ] {
        let answer = |array: &str| format!("{}{array}{}", around[0], around[1]);
        let answers = [answer(r#"[{"qty": "x"}]"#), "No.".to_owned(), answer(r#"[{"qty": 1}]"#)];
        let model = Arc::new(Scripted::new(answers.iter().map(String::as_str)));
        let backend = Backend::from(Arc::clone(&model)).with_mode(formwork_dialect::dialect(mode).unwrap());
        let extractor = Extractor::for_document("answer", schema.clone()).with_target(backend);
        let policy = Policy::new(3).with_patching(Patching::Never);
        let outcome = extractor.with_policy(policy).build().unwrap().extract(TEXT).await.unwrap();
        assert_eq!(outcome.value, json!([{"qty": 1}]));
        let calls = model.calls();
        assert!(calls[0].messages[0].text().contains(&format!("one JSON {kind} only")), "{mode}");
        let feedback = |nth: usize| calls[nth].messages.last().unwrap().text();
        assert!(feedback(1).contains(&format!("at {place}: expected integer")), "{mode}: {}", feedback(1));
        assert!(feedback(2).contains("Not JSON") && !feedback(2).contains("$.value"), "{}", feedback(2));
    }
}
