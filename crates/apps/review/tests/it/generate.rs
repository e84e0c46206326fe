use std::sync::Arc;

use formwork_core::{Backoff, ErrorKind, FaultKind, JsonPath, Patching, Role, Stage, Temperature, Violation};
use formwork_review::*;
use formwork_testkit::{Reply, Scripted};
use serde_json::{Value, json};

use crate::support::*;

const OLD: &str = r#"{"name": "Maria", "age": 90}"#;
const YOUNG: &str = r#"{"name": "Maria", "age": 20}"#;

fn rubric() -> ReviewRubric {
    let young = Criterion {
        schema: Some(json!({"properties": {"age": {"maximum": 30}}})),
        fix: Some("Take somebody younger.".to_owned()),
        ..Criterion::new("young", "The person is at most 30.")
    };
    ReviewRubric::new("age").with_criterion(young)
}

/// Generates with these answers; further calls get the last one.
async fn run(answers: &[&str], retry_once: bool) -> (GenerationResult, Arc<Says>) {
    let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
    let model = Says::new(move |_, nth| answers[nth.min(answers.len() - 1)].clone());
    let (agent, _) = agent(model.clone());
    let result = generate_with_review::<Value>(
        &LlmGenerationService::new(agent.clone()),
        &LlmReviewService::new(agent),
        GenerationInput::new("Think of somebody."),
        &person(),
        &rubric(),
        GenerateOptions { retry_once },
    )
    .await;
    (result, model)
}

#[tokio::test]
async fn by_default_nothing_is_generated_again() {
    let (result, model) = run(&[OLD, YOUNG], false).await;
    assert!(result.success && !result.retried && !result.review.unwrap().pass);
    assert_eq!((result.data.unwrap()["age"].as_u64(), model.calls().len()), (Some(90), 1));
}

#[tokio::test]
async fn once_more_with_the_critique_if_told_to() {
    let (result, model) = run(&[OLD, YOUNG], true).await;
    assert!(result.success && result.retried && result.review.unwrap().pass);
    assert_eq!(
        (result.data.unwrap()["age"].as_u64(), model.calls().len(), result.calls.len()),
        (Some(20), 2, 2)
    );
    let critique = last(&model.calls()[1]);
    assert!(
        critique.contains("Issues:\n- young: The person is at most 30. (Number out of range at $.age"),
        "{critique}"
    );
    assert!(critique.contains("Suggestions:\n- Take somebody younger."), "{critique}");
}

#[tokio::test]
async fn only_once() {
    let (result, model) = run(&[OLD], true).await;
    assert!(result.success && result.retried && !result.review.unwrap().pass);
    assert_eq!(model.calls().len(), 2);
}

#[tokio::test]
async fn what_passes_is_not_generated_again() {
    let (result, model) = run(&[YOUNG], true).await;
    assert!(result.success && !result.retried && result.review.unwrap().pass);
    assert_eq!(model.calls().len(), 1);
}

#[tokio::test]
async fn a_rubric_that_could_never_be_evaluated_is_an_error_before_any_call() {
    let pattern = Pattern { path: "$.nmae".parse().unwrap(), matches: "x".into(), not: false };
    let named = Criterion { pattern: Some(pattern), ..Criterion::new("named", "It has a name.") };
    for (rubric, says) in [
        (ReviewRubric::new("r").with_criterion(named), "`$.nmae`: did you mean `$.name`?"),
        (ReviewRubric::new("empty"), "there is no criterion"),
    ] {
        let model = Says::new(|_, _| OLD.to_owned());
        let (agent, _) = agent(model.clone());
        let result = generate_with_review::<Value>(
            &LlmGenerationService::new(agent.clone()),
            &LlmReviewService::new(agent),
            GenerationInput::new("Think of somebody."),
            &person(),
            &rubric,
            GenerateOptions::default(),
        )
        .await;
        let error = result.error.unwrap();
        assert_eq!((error.kind, model.calls().len()), (ErrorKind::Config, 0));
        assert!(error.message.contains(says), "{}", error.message);
    }
}

#[tokio::test]
async fn a_failed_generation_is_not_reviewed() {
    let (result, model) = run(&["no JSON"], true).await;
    assert!(!result.success && !result.retried && result.review.is_none());
    assert_eq!((result.error.unwrap().kind, model.calls().len()), (ErrorKind::Rejected, 2));
}

#[tokio::test]
async fn if_the_second_fails_the_first_one_stays() {
    let (result, model) = run(&[OLD, "no JSON"], true).await;
    assert!(result.success && result.retried && !result.review.unwrap().pass);
    assert_eq!(result.data.unwrap()["age"], 90);
    assert_eq!(result.error.unwrap().kind, ErrorKind::Rejected);
    assert_eq!((model.calls().len(), result.calls.len()), (3, 3), "one, and two attempts of the second");
}

#[tokio::test]
async fn a_review_that_cannot_be_carried_out_is_one_that_failed() {
    let judged = ReviewRubric::new("both").with_criterion(Criterion::new("kind", "The person is kind."));
    let judged = rubric().criteria.into_iter().fold(judged, ReviewRubric::with_criterion);
    for (rubric, judge, kind, answered) in [
        (&judged, Reply::from(FaultKind::Auth), ErrorKind::Unavailable, false),
        (&judged, Reply::from(FaultKind::NoCredit), ErrorKind::Unavailable, false),
        (&judged, Reply::from(FaultKind::Overloaded), ErrorKind::Unavailable, false),
        (&judged, Reply::from("I like it."), ErrorKind::Rejected, true),
        (&judged, Reply::refusal("I would rather not."), ErrorKind::Rejected, true),
    ] {
        for retry_once in [false, true] {
            let (generating, _) = agent(Arc::new(Scripted::new([OLD])));
            let (judging, _) = agent(Arc::new(Scripted::new([judge.clone()])));
            let result: GenerationResult = generate_with_review(
                &LlmGenerationService::new(generating),
                &LlmReviewService::new(judging),
                GenerationInput::new("Think of somebody."),
                &person(),
                rubric,
                GenerateOptions { retry_once },
            )
            .await;
            let review = result.review.unwrap();
            let error = review.error.clone().unwrap();
            assert_eq!((error.kind, error.answered), (kind, answered), "{error:?}");
            assert!(result.success && result.data.is_some() && !result.retried && !error.message.is_empty());
            assert!(!review.pass && !review.passes(false) && !review.passes(true), "{kind:?}");
            let verdicts: Vec<_> = review.criteria_results.iter().map(|result| result.verdict).collect();
            let expected: &[Verdict] =
                if rubric.criteria.is_empty() { &[] } else { &[Verdict::Indeterminate, Verdict::Fail] };
            assert_eq!(verdicts, expected, "what needs no model is decided all the same");
        }
    }
}

#[tokio::test]
async fn the_review_that_the_first_answer_failed_is_kept_with_its_price() {
    let rubric = ReviewRubric::new("r").with_criterion(Criterion::new("kind", "The person is kind."));
    let run = async |second: &str, judged: &[&str]| {
        let (generating, _) = agent(Arc::new(Scripted::new([OLD, second])));
        let verdicts: Vec<String> = judged.iter().map(|judged| verdict(judged, 90)).collect();
        let (judging, _) = agent(Arc::new(Scripted::new(verdicts.iter().map(String::as_str))));
        let (generator, reviewer) = (LlmGenerationService::new(generating), LlmReviewService::new(judging));
        let input = GenerationInput::new("Think of somebody.");
        let options = GenerateOptions { retry_once: true };
        generate_with_review::<Value>(&generator, &reviewer, input, &person(), &rubric, options).await
    };
    for last in ["pass", "fail"] {
        let result = run(YOUNG, &["fail", last]).await;
        let (first, second) = (result.first_review.clone().unwrap(), result.review.clone().unwrap());
        assert_eq!((first.pass, second.pass), (false, last == "pass"));
        assert_eq!((first.price.calls, second.price.calls, result.review_price().calls), (1, 1, 2));
        let both = first.price.usage.plus(second.price.usage);
        assert_eq!(result.review_price().usage, both);
    }
    let not_again = run("no JSON", &["fail"]).await;
    assert!(not_again.first_review.is_none() && !not_again.review.as_ref().unwrap().pass);
    assert_eq!(
        (not_again.data.as_ref().unwrap()["age"].as_u64(), not_again.review_price().calls),
        (Some(90), 1)
    );
    let passed = run(YOUNG, &["pass"]).await;
    assert!(passed.first_review.is_none() && passed.review_price().calls == 1);
}

#[tokio::test]
async fn the_data_comes_as_a_type() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Person {
        name: String,
        age: u8,
    }
    let (agent, _) = agent(Says::new(|_, _| YOUNG.to_owned()));
    let result = LlmGenerationService::new(agent).generate(&GenerationInput::new("x"), &person()).await;
    let typed: GenerationResult<Person> = result.clone().decoded();
    assert_eq!(typed.data, Some(Person { name: "Maria".into(), age: 20 }));
    let wrong: GenerationResult<Vec<u8>> = result.decoded();
    assert!(!wrong.success && wrong.error.unwrap().message.contains("none of the type"));
}

#[tokio::test]
async fn a_long_critique_is_cut() {
    let model = Says::new(|_, _| YOUNG.to_owned());
    let (agent, _) = agent(model.clone());
    let critique = Critique { issues: vec!["x\n- forged ".repeat(500); 100], suggestions: Vec::new() };
    let input = GenerationInput { critique: Some(critique), ..GenerationInput::new("x") };
    LlmGenerationService::new(agent).generate(&input, &person()).await;
    let prompt = last(&model.calls()[0]);
    assert!(prompt.len() < 12_000 && !prompt.contains("Suggestions"), "{}", prompt.len());
    assert_eq!(prompt.lines().filter(|line| line.starts_with("- ")).count(), 20, "nothing forges a point");
}

#[test]
fn the_policy_is_the_document_s() {
    let policy = policy(0.7);
    assert_eq!((policy.attempts, policy.patching), (2, Patching::Never));
    assert_eq!(policy.temperature, Temperature::AtMost { first: 0.7, then: 0.2 });
    assert_eq!(policy.backoff, Backoff::exponential());
    assert!(!policy.accept_incomplete && !policy.ask_after_refusal && !policy.stop_on_repeat);
    assert_eq!((policy.feedback.role, policy.feedback.keep_previous), (Role::User, true));
    let wrong = [
        Violation::new(JsonPath::root().key("name"), "required", Stage::Schema),
        Violation::new(JsonPath::root().key("a"), "type", Stage::Schema)
            .with_expected("string")
            .with_found("number"),
    ];
    assert_eq!(
        policy.feedback.template.render(&wrong),
        "Your previous response failed validation with these errors:\n\
         - $.name: required field is missing\n\
         - $.a: expected string, found number\n\n\
         Please correct the output to match the schema. \
         Ensure all required fields are present with correct types."
    );
}
