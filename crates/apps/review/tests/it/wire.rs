//! The agent layer's rules in HTTP requests: scenes 004 a to c.

use std::sync::Arc;

use formwork_core::{ErrorKind, FaultKind, SharedProvider};
use formwork_extract::Backend;
use formwork_http::HttpTransport;
use formwork_openai::OpenAiConfig;
use formwork_review::{Agent, GenerationInput, GenerationResult, LlmGenerationService, modes};
use formwork_testkit::server::{Reply, Server};
use formwork_testkit::{FmtSpan, Log};
use formwork_wire::Http;
use serde_json::{Value, json};

use crate::support::*;

/// The requests of a server, and the result.
struct Exchange {
    result: GenerationResult,
    bodies: Vec<Value>,
    waits: Vec<u64>,
}

/// Generates a person with a model behind a scripted server that imitates LiteLLM.
async fn generate(model: &str, replies: Vec<Reply>) -> Exchange {
    let server = Server::start(replies).unwrap();
    let clock = Arc::new(Hurried::new());
    let result =
        generator(&server, model, &clock).generate(&GenerationInput::new("Maria, 34."), &person()).await;
    let received = server.received();
    assert!(received.iter().all(|request| request.path == "/v1/chat/completions"));
    let bodies = received.iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
    let waits = clock.waits();
    Exchange { result, bodies, waits }
}

fn generator(server: &Server, model: &str, clock: &Arc<Hurried>) -> LlmGenerationService {
    let url = format!("{}/v1", server.url());
    let config = OpenAiConfig {
        preset: Some("litellm".to_owned()),
        stream: Some(false),
        base_url: Some(url.clone()),
        ..OpenAiConfig::new(model)
    };
    let wire = config.resolve().unwrap().wire;
    let provider: SharedProvider = Arc::new(Http::new(wire, Arc::new(HttpTransport::new(&url).unwrap())));
    let modes = modes(model, provider.capabilities());
    let backend = modes.into_iter().fold(Backend::new(provider), Backend::with_mode);
    LlmGenerationService::new(Agent::new([backend]).with_clock(clock.clone()))
}

fn says(text: &str) -> Reply {
    Reply::json(completion(text))
}

const GOOD: &str = r#"{"name": "Maria", "age": 34}"#;
const BAD: &str = r#"{"name": "Maria", "age": 340}"#;

#[tokio::test]
async fn a_model_that_enforces_schemas_is_called_strictly_and_judged_all_the_same() {
    let generated = generate("gpt-4o", vec![says(BAD), says(GOOD)]).await;
    assert_eq!(generated.result.data, Some(json!({"name": "Maria", "age": 34})));
    assert_eq!(generated.bodies.len(), 2, "out of range is asked again");
    for body in &generated.bodies {
        let format = &body["response_format"];
        assert_eq!(format["type"], "json_schema");
        assert_eq!(
            (&format["json_schema"]["name"], &format["json_schema"]["strict"]),
            (&json!("output_schema"), &json!(true))
        );
        assert_eq!(format["json_schema"]["schema"]["required"], json!(["name", "age"]));
    }
}

#[tokio::test]
async fn one_that_does_not_is_validated_in_a_loop() {
    for model in ["gemini-1.5-pro", "gemini/gemini-1.5-flash"] {
        let generated = generate(model, vec![says("Sure: Maria is 34."), says(GOOD)]).await;
        assert!(generated.result.success, "{model}: {:?}", generated.result.error);
        assert_eq!(generated.bodies.len(), 2);
        for body in &generated.bodies {
            assert_eq!(body.get("response_format"), None, "{model}");
            assert_eq!(body.get("tools"), None, "{model}");
            let system = body["messages"][0]["content"].as_str().unwrap();
            assert!(system.contains("JSON Schema") && system.contains("maximum"), "{system}");
        }
    }
}

#[tokio::test]
async fn what_is_wrong_is_reported_once_in_the_documents_words() {
    let both = r#"{"name": 7, "age": 340}"#;
    let generated = generate("gpt-4o", vec![says(both), says(both)]).await;
    assert!(!generated.result.success, "it fails after two");
    let error = generated.result.error.unwrap();
    assert_eq!((error.kind, error.violations.len(), generated.bodies.len()), (ErrorKind::Rejected, 2, 2));
    let (first, second) = (&generated.bodies[0], &generated.bodies[1]);
    assert_eq!((first["temperature"].as_f64(), second["temperature"].as_f64()), (Some(0.7), Some(0.2)));
    let messages = second["messages"].as_array().unwrap();
    assert_eq!(messages[messages.len() - 2], json!({"role": "assistant", "content": both}));
    let expected = "Your previous response failed validation with these errors:\n\
        - $.name: expected string, found number\n\
        - $.age: expected at most 150, found 340\n\n\
        Please correct the output to match the schema. Ensure all required fields are present with correct types.";
    assert_eq!(messages[messages.len() - 1], json!({"role": "user", "content": expected}));
}

#[tokio::test]
async fn a_busy_server_is_called_again_after_2_4_and_8_seconds() {
    let busy = || Reply::status(503);
    let generated = generate("gpt-4o", vec![busy(), busy(), busy(), says(GOOD)]).await;
    assert!(generated.result.success);
    assert_eq!((generated.bodies.len(), generated.waits), (4, vec![2, 4, 8]));
    assert!(generated.result.calls.iter().all(|call| call.attempt == 1), "one content attempt");
    assert_eq!(generated.result.retries(), 0);

    let generated = generate("gpt-4o", vec![busy()]).await;
    let error = generated.result.error.unwrap();
    assert_eq!(
        (error.kind, generated.bodies.len(), generated.waits),
        (ErrorKind::Unavailable, 4, vec![2, 4, 8])
    );
}

#[tokio::test]
async fn a_longer_retry_after_wins_and_budgets_are_apart() {
    let slow = Reply::status(429).with_header("retry-after", "20");
    let generated =
        generate("gpt-4o", vec![Reply::status(503), slow, says(BAD), Reply::status(503), says(GOOD)]).await;
    assert!(generated.result.success);
    assert_eq!(generated.waits, [2, 20, 2], "counted anew for the second attempt");
    assert_eq!(generated.result.retries(), 1);
    let temperatures: Vec<_> =
        generated.bodies.iter().map(|body| body["temperature"].as_f64().unwrap()).collect();
    assert_eq!(temperatures, [0.7, 0.7, 0.7, 0.2, 0.2]);
}

#[tokio::test]
async fn a_wrong_key_is_used_once() {
    let generated = generate("gpt-4o", vec![Reply::status(401)]).await;
    let error = generated.result.error.unwrap();
    assert_eq!((error.kind, generated.bodies.len(), generated.waits.len()), (ErrorKind::Unavailable, 1, 0));
    let fault = generated.result.calls[0].verdict.failure().unwrap();
    assert!(matches!(fault, formwork_core::Failure::Fault(fault) if fault.kind == FaultKind::Auth));
}

#[tokio::test]
async fn a_minute_is_all_there_is() {
    // Delays of 2, 4 and 8 seconds fit; a delay of 59 seconds after them does not.
    let slow = || Reply::status(503).with_header("retry-after", "40");
    let generated = generate("gpt-4o", vec![slow()]).await;
    let error = generated.result.error.unwrap();
    assert_eq!((generated.bodies.len(), generated.waits), (2, vec![40]), "{error:?}");
}

#[tokio::test]
async fn spans_have_the_documents_name() {
    let log = Log::default();
    let guard = log.listen(FmtSpan::NEW);
    generate("gpt-4o", vec![says(GOOD)]).await;
    drop(guard);
    let written = log.text();
    assert!(written.contains("llm_generation{"), "{written}");
    assert!(
        written.contains(":extract{") && written.contains("formwork.schema=\"output_schema\""),
        "{written}"
    );
}
