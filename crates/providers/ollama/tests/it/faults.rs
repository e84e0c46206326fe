//! Faults, with the messages of Ollama 0.17.4.

use formwork_core::{Call, Delta, Enforcement, Fault, FaultKind};
use formwork_ollama::Ollama;
use formwork_wire::closed_early;
use serde_json::json;

use crate::support::{Reply, answered, enforcing, ok, person, pieces, with_schema};

fn error(status: u16, words: &str) -> Reply {
    Ok((status, json!({"error": words}).to_string()))
}

async fn fault(call: &Call, reply: Reply) -> Fault {
    answered(Ollama::new("nope"), call, reply).await.unwrap_err()
}

#[tokio::test]
async fn every_class_is_recognised_by_its_words() {
    let schema = with_schema(person());
    let plain = enforcing(Enforcement::None);
    let stopped = "model runner has unexpectedly stopped, this may be due to resource limitations or an internal error, check ollama server logs for details";
    let invalid = "invalid format: \"\\\"xml\\\"\"; expected \"json\" or a valid JSON Schema object";
    use FaultKind::{Auth, BadRequest, Overloaded, SchemaRefused, Unsupported};
    let too_old = "json: cannot unmarshal object into Go struct field GenerateRequest.format of type string";
    let classes: [(&Call, u16, &str, FaultKind, &str); 19] = [
        (&schema, 400, too_old, SchemaRefused, ""),
        (&plain, 400, too_old, BadRequest, ""),
        (&schema, 404, "model 'nope' not found", Unsupported, "`ollama pull nope`"),
        (&schema, 500, "invalid JSON schema in format", SchemaRefused, ""),
        (&schema, 500, stopped, SchemaRefused, ""),
        (&plain, 500, stopped, Overloaded, ""),
        (&schema, 500, invalid, SchemaRefused, ""),
        (&schema, 400, "JSON schema conversion failed:\nUnrecognized schema: true", SchemaRefused, ""),
        (&schema, 500, "failed to parse grammar", SchemaRefused, ""),
        (&schema, 400, "\"nope\" does not support thinking", Unsupported, "remove `think`"),
        (&plain, 400, "\"nope\" does not support chat", Unsupported, "generate API"),
        (&schema, 400, "this model does not support structured outputs", SchemaRefused, ""),
        (&schema, 400, "the input length exceeds the context length", BadRequest, "`num_ctx`"),
        (
            &schema,
            400,
            "the request exceeds the available context size, try increasing it",
            BadRequest,
            "`num_ctx`",
        ),
        (&schema, 503, "server busy, please try again.  maximum pending requests exceeded", Overloaded, ""),
        (
            &plain,
            500,
            "model requires more system memory (8.0 GiB) than is available (2.0 GiB)",
            Overloaded,
            "`num_ctx`",
        ),
        (&plain, 401, "unauthorized", Auth, ""),
        (&plain, 400, "json: cannot unmarshal array into Go value of type api.ChatRequest", BadRequest, ""),
        (&plain, 502, "bad gateway", Overloaded, ""),
    ];
    for (call, status, words, kind, hint) in classes {
        let fault = fault(call, error(status, words)).await;
        assert_eq!((fault.kind, fault.status), (kind, Some(status)), "{words}");
        assert!(fault.message.contains(hint), "{}", fault.message);
        assert!(fault.message.lines().count() == 1, "{}", fault.message);
    }
}

#[tokio::test]
async fn json_that_is_refused_is_a_schema_that_is_refused() {
    let refused = error(500, "invalid format: \"json\"");
    assert_eq!(fault(&enforcing(Enforcement::JsonObject), refused).await.kind, FaultKind::SchemaRefused);
}

#[tokio::test]
async fn another_404_is_a_wrong_address() {
    let fault = fault(&enforcing(Enforcement::None), Ok((404, "404 page not found".into()))).await;
    assert_eq!(fault.kind, FaultKind::Unsupported);
    assert!(!fault.message.contains("ollama pull"), "{fault}");
}

#[tokio::test]
async fn an_error_in_the_middle_comes_after_the_text() {
    let body =
        "{\"message\":{\"content\":\"{\\\"a\\\"\"},\"done\":false}\n{\"error\":\"CUDA out of memory\"}\n";
    let pieces = pieces(Ollama::new("m"), &with_schema(person()), ok(body)).await;
    assert_eq!(pieces[0], Ok(Delta::Text("{\"a\"".into())));
    let fault = pieces[1].as_ref().unwrap_err();
    assert_eq!(fault.kind, FaultKind::Overloaded);
    assert!(fault.message.contains("\"CUDA out of memory\""), "{fault}");
    assert_eq!(pieces.len(), 2);
}

#[tokio::test]
async fn a_schema_is_to_blame_only_before_the_first_text() {
    let stopped = "{\"error\":\"model runner has unexpectedly stopped\"}\n";
    let schema = with_schema(person());
    assert_eq!(fault(&schema, ok(stopped)).await.kind, FaultKind::SchemaRefused);
    let later = format!("{{\"message\":{{\"content\":\"x\"}},\"done\":false}}\n{stopped}");
    let pieces = pieces(Ollama::new("m"), &schema, ok(later)).await;
    assert_eq!(pieces[1].as_ref().unwrap_err().kind, FaultKind::Overloaded);
    let document = answered(Ollama::new("m").with_stream(false), &schema, ok(stopped)).await.unwrap_err();
    assert_eq!(document.kind, FaultKind::SchemaRefused);
    let late = "{\"error\":\"nothing for you\",\"status\":400}\n";
    assert_eq!(fault(&schema, ok(late)).await.kind, FaultKind::BadRequest);
}

#[tokio::test]
async fn a_server_that_dies_of_a_pattern_has_refused_the_schema() {
    let pattern = with_schema(
        json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^[a-z]+$"}}}),
    );
    let closed = || closed_early("connection closed before message completed");
    let refused = fault(&pattern, Err(closed())).await;
    assert_eq!(refused.kind, FaultKind::SchemaRefused);
    assert!(refused.message.contains("`pattern`"), "{refused}");
    // Without a pattern, or without a server, a retry may help.
    assert_eq!(fault(&with_schema(person()), Err(closed())).await, closed());
    let absent = Fault::new(FaultKind::Unreachable, "connection refused");
    assert_eq!(fault(&pattern, Err(absent.clone())).await, absent);
    // The model's own process may crash instead of the server.
    let eof = || error(500, "Post \"http://127.0.0.1:41234/completion\": EOF");
    assert_eq!(fault(&pattern, eof()).await.kind, FaultKind::SchemaRefused);
    assert_eq!(fault(&with_schema(person()), eof()).await.kind, FaultKind::Overloaded);
}
