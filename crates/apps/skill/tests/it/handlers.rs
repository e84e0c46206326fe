use async_trait::async_trait;
use formwork_review::GenerationInput;
use formwork_skill::*;
use serde_json::{Value, json};

use crate::support::*;

const PLAIN: &str = "
name: plain
description: Does it itself.
inputs: {text: {type: string, default: hello}}
";

/// Returns its inputs.
struct Echo;

#[async_trait]
impl SkillHandler for Echo {
    async fn handle(&self, cx: &SkillContext<'_>) -> Result<Value, SkillError> {
        Ok(json!({"echo": cx.inputs()["text"]}))
    }
}

/// Runs the skills in its input.
struct Runs;

#[async_trait]
impl SkillHandler for Runs {
    async fn handle(&self, cx: &SkillContext<'_>) -> Result<Value, SkillError> {
        let next = cx.inputs()["text"].as_str().unwrap_or_default().to_owned();
        Ok(cx.execute(&next, json!({"text": cx.skill().name()})).await?.output)
    }
}

#[tokio::test]
async fn without_a_template_type_the_handler_runs() {
    for text in [PLAIN.to_owned(), format!("{PLAIN}template_type: null\n")] {
        let nothing: [&str; 0] = [];
        let (runner, model) = runner(&[&text], nothing);
        let runner = runner.with_handler("plain", Echo);
        let outcome = runner.execute("plain", json!({})).await.unwrap();
        assert_eq!((outcome.output, outcome.template_type), (json!({"echo": "hello"}), None));
        assert!(model.calls().is_empty());
        assert!(runner.execute("plain", json!({"text": 7})).await.is_err());
    }
}

#[tokio::test]
async fn a_handler_without_a_registration_is_an_error() {
    let nothing: [&str; 0] = [];
    let named = format!("{PLAIN}handler: ecko\n");
    let (runner, _) = runner(&[&named], nothing);
    let error = runner.execute("plain", json!({})).await.unwrap_err().to_string();
    assert_eq!(error, "skill `plain`: no handler `ecko` is registered; there is none");
    let error = runner.with_handler("echo", Echo).execute("plain", json!({})).await.unwrap_err().to_string();
    assert_eq!(error, "skill `plain`: no handler `ecko` is registered: did you mean `echo`?");
}

#[tokio::test]
async fn services_are_at_a_handlers_hand() {
    struct Thin;

    #[async_trait]
    impl SkillHandler for Thin {
        async fn handle(&self, cx: &SkillContext<'_>) -> Result<Value, SkillError> {
            let (_, prompt) = cx.prompt()?;
            let schema = cx.skill().output_schema().cloned().unwrap_or_default();
            let result = cx.generation().generate(&GenerationInput::new(prompt), &schema).await;
            let data = result.data.ok_or_else(|| cx.failed("no data"))?;
            let rubric = cx.skill().rubric().ok_or_else(|| cx.failed("no rubric"))?;
            let review = cx.review().review(data.clone(), rubric).await.map_err(|error| cx.failed(error))?;
            Ok(json!({"data": data, "pass": review.pass}))
        }
    }

    let text = format!(
        "{PLAIN}prompt: 'Age of {{{{ text }}}}?'\noutput: {{shape: '{{\"age\": integer}}'}}\n\
         rubric: {{name: r, criteria: [{{id: a, description: b, schema: {{properties: {{age: {{maximum: 30}}}}}}}}]}}\n"
    );
    let (runner, model) = runner(&[&text], [r#"{"age": 34}"#]);
    let outcome =
        runner.with_handler("plain", Thin).execute("plain", json!({"text": "Maria"})).await.unwrap();
    assert_eq!(outcome.output, json!({"data": {"age": 34}, "pass": false}));
    assert_eq!(model.calls()[0].messages.last().unwrap().text(), "Age of Maria?");
}

#[tokio::test]
async fn skills_run_each_other_but_not_themselves() {
    let nothing: [&str; 0] = [];
    let named = |name: &str| PLAIN.replace("name: plain", &format!("name: {name}"));
    let (first, second, third) = (named("first"), named("second"), named("third"));
    let (runner, _) = runner(&[&first, &second, &third], nothing);
    let runner = runner.with_handler("first", Runs).with_handler("second", Runs).with_handler("third", Echo);
    let outcome = runner.execute("first", json!({"text": "third"})).await.unwrap();
    assert_eq!(outcome.output, json!({"echo": "first"}));
    // `first` runs `second`, which runs the skill in its input: `first`.
    let error = runner.execute("first", json!({"text": "second"})).await.unwrap_err();
    assert!(matches!(error, SkillError::Recursion { .. }));
    assert_eq!(error.to_string(), "a skill must not run itself: first -> second -> first");
    let error = runner.execute("first", json!({"text": "first"})).await.unwrap_err();
    assert_eq!(error.to_string(), "a skill must not run itself: first -> first");
}

#[tokio::test]
async fn skills_run_each_other_only_so_deep() {
    struct Next;

    #[async_trait]
    impl SkillHandler for Next {
        async fn handle(&self, cx: &SkillContext<'_>) -> Result<Value, SkillError> {
            let nth: u32 =
                cx.skill().name().trim_start_matches('s').parse().map_err(|error| cx.failed(error))?;
            Ok(cx.execute(&format!("s{}", nth + 1), json!({})).await?.output)
        }
    }

    let nothing: [&str; 0] = [];
    let texts: Vec<String> =
        (0..20).map(|n| format!("name: s{n}\ndescription: x\nhandler: next\n")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (runner, _) = runner(&texts, nothing);
    let error = runner.with_handler("next", Next).execute("s0", json!({})).await.unwrap_err();
    assert!(matches!(error, SkillError::Deep { limit: 8, .. }), "{error}");
}

#[tokio::test]
async fn a_handler_that_fails_says_so() {
    struct Fails;

    #[async_trait]
    impl SkillHandler for Fails {
        async fn handle(&self, cx: &SkillContext<'_>) -> Result<Value, SkillError> {
            Err(cx.failed("the shop is closed"))
        }
    }

    let nothing: [&str; 0] = [];
    let (runner, _) = runner(&[PLAIN], nothing);
    let error = runner.with_handler("plain", Fails).execute("plain", json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), "skill `plain`: the handler failed: the shop is closed");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_end_is_ended() {
    struct Hangs;

    #[async_trait]
    impl SkillHandler for Hangs {
        async fn handle(&self, _: &SkillContext<'_>) -> Result<Value, SkillError> {
            std::future::pending().await
        }
    }

    let nothing: [&str; 0] = [];
    let (runner, _) = runner(&[PLAIN], nothing);
    let error = runner.with_handler("plain", Hangs).execute("plain", json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), "skill `plain`: the handler is not done after 60 seconds");
}
