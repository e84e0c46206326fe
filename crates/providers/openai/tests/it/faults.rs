//! Classification of errors.

use formwork_core::Time;
use formwork_core::{Enforcement, Fault, FaultKind, Finish};
use formwork_openai::OpenAi;
use formwork_wire::Wire;
use serde_json::{Value, json};

use crate::support::{answered, call, head};

fn fault(enforcement: Enforcement, status: u16, error: Value) -> Fault {
    let body = json!({"error": error}).to_string();
    OpenAi::new("gpt-test").fault(
        &call(enforcement),
        &head(status, "application/json"),
        body.as_bytes(),
        Time(0),
    )
}

#[test]
fn classes() {
    let schema = Enforcement::Schema;
    for (status, error, kind) in [
        (400, json!({"message": "bad", "type": "invalid_request_error"}), FaultKind::BadRequest),
        (401, json!({"message": "Incorrect API key", "code": "invalid_api_key"}), FaultKind::Auth),
        (402, json!({"message": "Insufficient Balance"}), FaultKind::NoCredit),
        (408, json!({"message": "timeout"}), FaultKind::Timeout),
        (
            429,
            json!({"message": "Rate limit reached", "code": "rate_limit_exceeded"}),
            FaultKind::RateLimited,
        ),
        (429, json!({"message": "no", "type": "insufficient_quota", "code": null}), FaultKind::NoCredit),
        (498, json!({"message": "Flex tier capacity exceeded"}), FaultKind::Overloaded),
        (500, json!({"message": "The server had an error"}), FaultKind::Overloaded),
        (
            503,
            json!({"message": "Loading model", "type": "unavailable_error", "code": 503}),
            FaultKind::Overloaded,
        ),
        (529, json!({"message": "overloaded"}), FaultKind::Overloaded),
    ] {
        let fault = fault(schema, status, error.clone());
        assert_eq!((fault.kind, fault.status), (kind, Some(status)), "{error}");
    }
}

#[test]
fn schemas_that_are_refused() {
    let cases = [
        (
            400,
            json!({"message": "Invalid schema for response_format 'x': In context=(), 'oneOf' is not permitted.", "param": "response_format"}),
        ),
        (400, json!({"message": "no", "param": "response_format.json_schema.schema"})),
        (400, json!({"message": "This model does not support response format `json_schema`."})),
        (400, json!({"message": "'response_format.type' must be 'json_schema' or 'text'"})),
        (
            400,
            json!({"message": "Unsupported parameter: 'response_format'", "code": "unsupported_parameter"}),
        ),
        (400, json!({"message": "JSON schema conversion failed: unsupported pattern", "code": 400})),
        (500, json!({"message": "failed to parse grammar"})),
        (502, json!({"message": "response_format minLength"})),
        (
            404,
            json!({"message": "No endpoints found that can handle the requested parameters.", "code": 404}),
        ),
        (422, json!({"message": "structured outputs are not available"})),
    ];
    for (status, error) in cases {
        let refused = fault(Enforcement::Schema, status, error.clone());
        assert_eq!(refused.kind, FaultKind::SchemaRefused, "{error}");
        // A request without a schema cannot be refused because of it.
        assert_ne!(fault(Enforcement::None, status, error).kind, FaultKind::SchemaRefused);
    }
    let object = json!({"message": "response_format json_object is not supported"});
    assert_eq!(fault(Enforcement::JsonObject, 400, object).kind, FaultKind::SchemaRefused);
    for error in [
        json!({"message": "deepseek-reasoner does not support this tool_choice"}),
        json!({"message": "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.", "param": "parallel_tool_calls"}),
        json!({"message": "Invalid schema for function 'Person'", "param": "tools[0].function.parameters", "code": "invalid_function_parameters"}),
    ] {
        assert_eq!(fault(Enforcement::Tool, 400, error.clone()).kind, FaultKind::SchemaRefused, "{error}");
    }
}

#[test]
fn models_that_are_not_there() {
    for (status, error) in [
        (
            404,
            json!({"message": "The model `gpt-test` does not exist or you do not have access to it.", "code": "model_not_found"}),
        ),
        (404, json!({"message": "model 'gpt-test' not found"})),
        (400, json!({"message": "Model Not Exist", "type": "invalid_request_error"})),
        (400, json!({"message": "gone", "code": "model_decommissioned"})),
    ] {
        let fault = fault(Enforcement::Schema, status, error.clone());
        assert_eq!(fault.kind, FaultKind::Unsupported, "{error}");
        assert!(fault.message.contains("the model `gpt-test`"), "{fault}");
    }
    let wire = OpenAi::new("m");
    let fault = wire.fault(&call(Enforcement::None), &head(404, "text/html"), b"<h1>Not Found</h1>", Time(0));
    assert_eq!(fault.kind, FaultKind::Unsupported);
    assert!(fault.message.contains("base URL"), "{fault}");
}

#[test]
fn prompts_that_are_too_long() {
    for (status, error) in [
        (
            400,
            json!({"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"}),
        ),
        (
            400,
            json!({"message": "the request exceeds the available context size", "type": "exceed_context_size_error"}),
        ),
        (400, json!({"message": "prompt is too long: 9 tokens > 8 maximum"})),
    ] {
        let fault = fault(Enforcement::Schema, status, error);
        assert_eq!(fault.kind, FaultKind::BadRequest);
        assert!(fault.message.contains("shorten"), "{fault}");
    }
}

#[test]
fn parameters_that_are_refused() {
    let unsupported = |message: &str, param: Value| json!({"message": message, "param": param, "code": "unsupported_value"});
    for (error, advice) in [
        (
            unsupported("Unsupported value: 'temperature' does not support 0.3", json!("temperature")),
            "`temperature = false`",
        ),
        (unsupported("Unsupported value: 'top_p' does not", Value::Null), "`top_p = false`"),
        (
            unsupported("Unsupported parameter: 'max_tokens' is not supported", json!("max_tokens")),
            "`max_completion_tokens`",
        ),
        (unsupported("Unsupported parameter: 'stop'", json!("stop")), "`stop`"),
    ] {
        let fault = fault(Enforcement::Schema, 400, error);
        assert_eq!(fault.kind, FaultKind::BadRequest);
        assert!(fault.message.contains(advice), "{fault}");
    }
    let detail = json!([{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]);
    let nested = json!({"object": "error", "message": json!({"detail": detail}).to_string()});
    for body in [json!({"detail": detail}), nested] {
        let wire = OpenAi::new("m");
        let ask = call(Enforcement::Schema);
        let fault = wire.fault(&ask, &head(422, "application/json"), body.to_string().as_bytes(), Time(0));
        assert_eq!(fault.kind, FaultKind::BadRequest, "{fault}");
        assert!(fault.message.contains("`seed = false`"), "{fault}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_reaches_the_reader() {
    let error = |message: &str, text: Value| {
        json!({"error": {"message": message, "type": "invalid_request_error", "code": "json_validate_failed", "failed_generation": text}})
            .to_string()
    };
    let ask = call(Enforcement::Schema);
    let body = error("Generated JSON does not match the expected schema.", json!("{\"age\": \"34\"}"));
    let answer = answered(&ask, 400, "application/json", body).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.finish), ("{\"age\": \"34\"}", Finish::Stop));
    assert!(answer.usage.estimated);
    let cut = "Failed to generate JSON: max completion tokens reached before generating a valid document.";
    let answer = answered(&ask, 400, "application/json", error(cut, json!("{\"ag"))).await.unwrap();
    assert_eq!(answer.finish, Finish::Length);
    let answer = answered(&ask, 400, "application/json", error("Failed to validate JSON.", Value::Null))
        .await
        .unwrap();
    assert_eq!((answer.text.as_str(), answer.finish), ("", Finish::Stop));
}

#[tokio::test]
async fn a_prompt_that_a_filter_stops_is_filtered() {
    let azure = json!({"error": {"message": "The response was filtered due to the prompt.", "param": "prompt", "code": "content_filter", "status": 400}});
    let router = json!({"error": {"message": "Your input was flagged", "code": 403, "metadata": {"reasons": ["violence"]}}});
    for (status, body) in [(400, azure), (403, router)] {
        let answer =
            answered(&call(Enforcement::Schema), status, "application/json", body.to_string()).await.unwrap();
        assert_eq!(answer.finish, Finish::Filtered);
        assert!(answer.text.contains("was f"), "{}", answer.text);
    }
}
