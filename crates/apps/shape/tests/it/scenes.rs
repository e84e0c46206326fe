//! The scenes of the shape runner with a scripted model. Those of the command are in formwork-cli.

use std::sync::Arc;

use formwork_core::{Backoff, CallResult, ErrorKind, Lower, Patching, Role, Stage, Temperature, Violation};
use formwork_extract::Backend;
use formwork_shape::{Shape, ShapeRunner};
use formwork_testkit::Scripted;
use serde_json::{Value, json};

use crate::DOCUMENT;

/// The document's three answers; `...` and `[...]` are written out.
const FIRST: &str =
    r##"{"rationale": "# Summary", "components": [{"id": "a", "responsibility": "b", "api": "c"}]}"##;
const SECOND: &str = r##"{"name": "MyApp", "rationale": "# Summary", "components": [], "risks": [123]}"##;
const THIRD: &str =
    r##"{"name": "MyApp", "rationale": "# Summary", "components": [], "risks": ["Risk 1", "Risk 2"]}"##;

fn runner(model: &Arc<Scripted>) -> ShapeRunner {
    let shape = Shape::parse(DOCUMENT).unwrap();
    ShapeRunner::builder(shape).with_target(Arc::clone(model)).build().unwrap()
}

fn input() -> Value {
    json!({"repo_summary": "A web application for managing tasks", "constraints": ["Use PostgreSQL", "Use WebSockets"]})
}

#[test]
fn the_value_of_a_marked_field_stands_in_the_input() {
    let run = |fields: &str, answers: [&'static str; 3]| {
        let model = Arc::new(Scripted::new(answers));
        let shape = Shape::parse_fields(fields).unwrap();
        let runner = ShapeRunner::builder(shape).with_target(Arc::clone(&model)).build().unwrap();
        let outcome = runner.run_blocking(&json!("Maria Lindqvist is 34.")).unwrap();
        (outcome.calls.len(), outcome.value, model.calls()[0].messages[0].text())
    };
    let answers = [
        r#"{"name": "Mario", "age": 35}"#,
        r#"{"name": "Lindqvist", "age": 35}"#,
        r#"{"name": "Maria", "age": 34}"#,
    ];
    for (fields, calls) in [("name, age: int", 1), ("name~, age: int", 2), ("name~, age~: int", 3)] {
        let (made, value, prompt) = run(fields, answers);
        assert_eq!((made, value), (calls, serde_json::from_str(answers[calls - 1]).unwrap()), "{fields}");
        assert_eq!(prompt.contains("a `~` stands in the input"), fields.contains('~'), "{prompt}");
    }
}

#[test]
fn the_documents_three_answers() {
    let model = Arc::new(Scripted::new([FIRST, SECOND, THIRD]));
    let outcome = runner(&model).run_blocking(&input()).unwrap();
    assert_eq!((outcome.value, outcome.calls.len()), (serde_json::from_str(THIRD).unwrap(), 3));
    let prompts: Vec<String> = model
        .calls()
        .iter()
        .map(|call| {
            // Each attempt is one fresh prompt, and sends no temperature.
            assert_eq!((call.messages.len(), call.messages[0].role), (1, Role::User));
            assert_eq!(call.sampling.temperature, None);
            call.messages[0].text()
        })
        .collect();
    let shape = Shape::parse(DOCUMENT).unwrap().to_string();
    assert!(
        prompts[0].contains("\"repo_summary\": \"A web application for managing tasks\""),
        "{}",
        prompts[0]
    );
    assert!(
        prompts[0].contains(&shape) && prompts[0].contains("Output one valid JSON object only"),
        "{}",
        prompts[0]
    );
    assert_eq!(prompts[0].matches("\"components\"").count(), 1, "the shape is shown once: {}", prompts[0]);
    let errors = |prompt: &str| {
        let after = prompt.strip_prefix(prompts[0].as_str()).unwrap();
        after.lines().filter(|line| line.starts_with("- ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        errors(&prompts[1]),
        ["- Missing required field at path $.name", "- Missing required field at path $.risks"]
    );
    assert_eq!(errors(&prompts[2]), ["- Type mismatch at $.risks[0]: expected string, found number"]);
}

#[test]
fn three_bad_answers_are_the_end() {
    let model = Arc::new(Scripted::new([FIRST, "no JSON at all", SECOND]));
    let error = runner(&model).run_blocking(&input()).unwrap_err();
    assert_eq!((error.kind(), model.calls().len()), (ErrorKind::Rejected, 3));
    let counts: Vec<usize> = error
        .calls()
        .iter()
        .map(|call| call.verdict.failure().map_or(0, |failure| failure.violations().len()))
        .collect();
    assert_eq!(counts, [2, 1, 1]);
}

#[test]
fn fences_prose_and_control_characters_are_read_through() {
    let text = format!(
        "Here is the design:\n```json\n{}\n```\nAnything else?",
        THIRD.replace("Risk 1", "Risk\n\t1\u{1}")
    );
    let model = Arc::new(Scripted::new([text.as_str()]));
    let outcome = runner(&model).run_blocking(&input()).unwrap();
    assert_eq!(outcome.calls.len(), 1);
    assert_eq!(outcome.calls[0].verdict, CallResult::Accepted);
    assert!(outcome.value["risks"][0].as_str().unwrap().starts_with("Risk\n\t1"), "{}", outcome.value);
    assert!(outcome.calls[0].edits.len() >= 3, "{:?}", outcome.calls[0].edits);
}

#[test]
fn answers_can_be_typed_and_questions_texts() {
    #[derive(serde::Deserialize)]
    struct Plan {
        steps: Vec<String>,
    }
    let model = Arc::new(Scripted::new([r#"{"steps": ["a"]}"#]));
    let shape = Shape::parse("{steps: [string], notes?: [markdown]}").unwrap();
    let runner = ShapeRunner::<Plan>::typed(shape)
        .with_target(Arc::clone(&model))
        .with_task("Plan this.")
        .settings(|extractor| extractor.with_max_tokens(200).with_seed(7))
        .build()
        .unwrap();
    assert_eq!(runner.run_blocking(&json!("a \"quoted\" day")).unwrap().value.steps, ["a"]);
    let call = model.calls().remove(0);
    let prompt = call.messages[0].text();
    assert!(prompt.starts_with("Plan this.\n\nInput:\na \"quoted\" day\n\n"), "{prompt}");
    assert!(
        prompt.ends_with(
            "Every field is required but those with a `?`. `markdown` stands for a string of Markdown."
        ),
        "{prompt}"
    );
    assert_eq!((call.max_tokens, call.sampling.seed), (Some(200), Some(7)));
}

#[test]
fn what_is_enforced_is_the_targets_own_way() {
    let model = Arc::new(Scripted::new([THIRD]));
    let backend = Backend::from(Arc::clone(&model)).with_mode(Arc::new(formwork_dialect::Native::LLGUIDANCE));
    let shape = Shape::parse(DOCUMENT).unwrap();
    ShapeRunner::builder(shape).with_target(backend).build().unwrap().run_blocking(&input()).unwrap();
    let call = model.calls().remove(0);
    assert_eq!(call.enforcement(), formwork_dialect::Native::LLGUIDANCE.enforcement());
    assert_eq!(call.schema().unwrap()["additionalProperties"], false);
    assert_eq!(call.messages.len(), 1, "the schema is not shown a second time");
}

#[test]
fn a_shape_that_is_no_object_is_explained_by_its_dialect() {
    type Case = (Arc<dyn Lower>, [&'static str; 2], &'static str, &'static str, &'static str);
    let modes: [Case; 3] = [
        (
            Arc::new(formwork_dialect::JsonObject),
            [r#"{"value": [1]}"#, r#"{"value": ["a"]}"#],
            "one JSON object only",
            "{\n  \"value\": [string]\n}",
            "$.value[0]",
        ),
        (
            Arc::new(formwork_dialect::Native::OPENAI),
            [r#"{"value": [1]}"#, r#"{"value": ["a"]}"#],
            "one JSON object only",
            "{\n  \"value\": [string]\n}",
            "$.value[0]",
        ),
        (
            Arc::new(formwork_dialect::Prompt::new()),
            ["[1]", r#"["a"]"#],
            "one JSON array only",
            "\n[string]",
            "$[0]",
        ),
    ];
    for (mode, answers, word, shape, place) in modes {
        let model = Arc::new(Scripted::new(answers));
        let backend = Backend::from(Arc::clone(&model)).with_mode(mode);
        let runner =
            ShapeRunner::builder(Shape::parse("[string]").unwrap()).with_target(backend).build().unwrap();
        assert_eq!(runner.run_blocking(&json!("x")).unwrap().value, json!(["a"]));
        let [first, second] = [0, 1].map(|nth| {
            model.calls()[nth].messages.iter().map(|message| message.text()).collect::<Vec<_>>().join("\n")
        });
        assert!(first.contains(word) && first.contains(shape), "{first}");
        assert_eq!(first.matches("[string]").count(), 1, "the shape is shown once: {first}");
        assert_eq!(first.matches("JSON array").count() + first.matches("JSON object").count(), 1, "{first}");
        assert!(second.contains(&format!("at {place}: expected string")), "{second}");
    }
    // The rules of a shape are no part of the schema that modes get.
    let model = Arc::new(Scripted::new([r#"[{"name": "x"}]"#]));
    let backend = Backend::from(Arc::clone(&model)).with_mode(Arc::new(formwork_dialect::Prompt::new()));
    let shape = Shape::parse(r#"[{"name"~: string}]"#).unwrap();
    let text = shape.to_string();
    ShapeRunner::builder(shape).with_target(backend).build().unwrap().run_blocking(&json!("x")).unwrap();
    let sent: String = model.calls()[0].messages.iter().map(|message| message.text().to_string()).collect();
    assert!(sent.contains(&text), "{sent}");
}

#[test]
fn the_policy_is_the_document_s() {
    let policy = formwork_shape::policy();
    assert_eq!((policy.attempts, policy.patching), (3, Patching::Never));
    assert_eq!((policy.temperature, policy.backoff), (Temperature::Own, Backoff::exponential()));
    assert!(!policy.accept_incomplete && !policy.ask_after_refusal && !policy.stop_on_repeat && !policy.stop);
    assert!(policy.feedback.fold && !policy.feedback.keep_previous);
    let wrong = [Violation::new("$.risks".parse().unwrap(), "required", Stage::Schema)];
    assert_eq!(
        policy.feedback.template.render(&wrong),
        "\n\nYour last answer had these errors:\n- Missing required field at path $.risks\n\nFix all of them. \
         Output valid JSON only."
    );
}
