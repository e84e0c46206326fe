use std::time::Duration;

use formwork_core::{Enforcement, FaultKind, Time};
use formwork_wire::http::Response;
use formwork_wire::http::response::Parts;
use formwork_wire::{RequestInfo, error_in, fault_of, quoted, retry_after};
use serde_json::json;

fn head(status: u16, headers: &[(&str, &str)]) -> Parts {
    let response = headers
        .iter()
        .fold(Response::builder().status(status), |response, (name, value)| response.header(*name, *value));
    response.body(()).unwrap().into_parts().0
}

#[test]
fn statuses_are_classes() {
    use FaultKind::*;
    for (status, body, has_schema, kind) in [
        (400, r#"{"error": {"message": "messages is missing"}}"#, true, BadRequest),
        (
            400,
            r#"{"error": {"message": "Invalid schema for response_format 'x': 'oneOf' is not permitted."}}"#,
            true,
            SchemaRefused,
        ),
        (
            400,
            r#"{"error": {"message": "Invalid schema for response_format 'x': 'oneOf' is not permitted."}}"#,
            false,
            BadRequest,
        ),
        (500, r#"{"error": "invalid JSON schema in format"}"#, true, SchemaRefused),
        (502, r#"{"error": "failed to parse grammar"}"#, true, SchemaRefused),
        (500, "<html>oops</html>", true, Overloaded),
        (401, "", false, Auth),
        (403, "", false, Auth),
        (402, "", false, NoCredit),
        (404, r#"{"error": "model 'x' not found"}"#, false, Unsupported),
        (408, "", false, Timeout),
        (413, "", false, BadRequest),
        (422, r#"{"detail": [{"loc": ["body"]}]}"#, false, BadRequest),
        (429, r#"{"error": {"message": "slow down", "code": "rate_limit_exceeded"}}"#, false, RateLimited),
        (429, r#"{"error": {"message": "no more", "code": "insufficient_quota"}}"#, false, NoCredit),
        (500, "", false, Overloaded),
        (503, "", false, Overloaded),
        (504, "", false, Timeout),
        (529, "", false, Overloaded),
        (307, "", false, BadWire),
    ] {
        let fault = fault_of(&head(status, &[]), body.as_bytes(), has_schema, Time(0));
        assert_eq!((fault.kind, fault.status), (kind, Some(status)), "{status} {body}: {fault}");
    }
}

#[test]
fn the_servers_words_are_shown_in_bounds() {
    let body = json!({"error": {"message": format!("no\n{}", "x".repeat(9_000)), "code": "c1"}}).to_string();
    let fault = fault_of(&head(400, &[("x-request-id", "r7")]), body.as_bytes(), false, Time(0));
    assert!(fault.message.starts_with("400 Bad Request: \"no xxx"), "{fault}");
    assert!(fault.message.chars().count() < 600 && !fault.message.contains('\n'));
    assert_eq!(fault.request_id.as_deref(), Some("r7"));
    assert_eq!(quoted("a \"b\"\n c"), r#""a \"b\" c""#);
}

#[test]
fn a_redirect_says_where_to() {
    let fault = fault_of(&head(301, &[("location", "https://else.example/")]), b"", false, Time(0));
    assert!(fault.message.contains("https://else.example/") && fault.message.contains("base URL"), "{fault}");
}

#[test]
fn retry_after_is_read_in_all_its_forms() {
    let seconds = |headers: &[(&str, &str)]| {
        retry_after(&head(429, headers), Time(784_111_777_000)).map(|wait| wait.as_secs_f64())
    };
    assert_eq!(seconds(&[]), None);
    assert_eq!(seconds(&[("retry-after", "7")]), Some(7.0));
    assert_eq!(seconds(&[("retry-after", "0.5")]), Some(0.5));
    assert_eq!(seconds(&[("retry-after-ms", "250"), ("retry-after", "7")]), Some(0.25));
    // RFC 9110: 784111777 is Sun, 06 Nov 1994 08:49:37 GMT
    assert_eq!(seconds(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")]), Some(10.0));
    assert_eq!(seconds(&[("retry-after", "Sun, 06 Nov 1994 08:40:00 GMT")]), Some(0.0));
    let date = ("date", "Sun, 06 Nov 1994 08:49:00 GMT");
    assert_eq!(seconds(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT"), date]), Some(47.0));
    for absurd in ["-1", "soon", "NaN", "inf", "1e300", ""] {
        assert_eq!(seconds(&[("retry-after", absurd)]), None, "{absurd}");
    }
    assert_eq!(
        retry_after(&head(429, &[("retry-after", "31536000")]), Time(0)),
        Some(Duration::from_secs(31_536_000))
    );
}

#[test]
fn error_envelopes_are_known() {
    for (document, words) in [
        (json!({"error": {"message": "no", "type": "x"}}), Some("no")),
        (json!({"error": "no"}), Some("no")),
        (json!({"error": {"code": 3}}), Some(r#"{"code":3}"#)),
        (json!({"object": "error", "message": "no"}), Some("no")),
        (json!({"detail": "no"}), Some("no")),
        (json!({"message": "no"}), Some("no")),
        (json!({"error": null, "choices": []}), None),
        (json!({"choices": [], "message": "fine"}), None),
        (json!([1]), None),
    ] {
        assert_eq!(error_in(&document).as_deref(), words, "{document}");
    }
}

#[test]
fn a_phrase_counts_for_its_protocol_status_and_request_only() {
    use FaultKind::*;
    let request = |protocol, enforcement| RequestInfo {
        protocol,
        model: "m-1".to_owned(),
        enforcement,
        ..RequestInfo::default()
    };
    for (protocol, status, message, with_schema, without, words) in [
        ("bedrock", 400, "The provided model identifier is invalid.", Unsupported, Unsupported, "`m-1`"),
        ("bedrock", 424, "The model failed.", Overloaded, Overloaded, "424"),
        ("bedrock", 400, "Too many input tokens", BadRequest, BadRequest, "shorten the input: 400"),
        ("bedrock", 400, "outputConfig is not supported", SchemaRefused, BadRequest, "outputConfig"),
        ("cohere", 404, "model 'x' not found", Unsupported, Unsupported, "`m-1` does not exist"),
        ("cohere", 498, "invalid token", Auth, Auth, "the server refused the API key: 498"),
        ("cohere", 429, "You are using a Trial key", NoCredit, NoCredit, "no calls left"),
        ("cohere", 400, "invalid response_format", SchemaRefused, BadRequest, "response_format"),
        ("ollama/api", 500, "no such schema: EOF", Overloaded, Overloaded, "500"),
        ("openai/chat", 404, "gone", Unsupported, Unsupported, "no Chat Completions API"),
        ("openai/responses", 404, "gone", Unsupported, Unsupported, "no Responses API"),
        ("unknown", 400, "outputConfig is not supported", BadRequest, BadRequest, "400 Bad Request"),
    ] {
        let body = json!({"message": message}).to_string();
        for (enforcement, kind) in [(Enforcement::Schema, with_schema), (Enforcement::None, without)] {
            let fault = request(protocol, enforcement).fault(&head(status, &[]), body.as_bytes(), Time(0));
            assert_eq!((fault.kind, fault.status), (kind, Some(status)), "{protocol}: {fault}");
            assert!(fault.message.contains(words) || enforcement == Enforcement::None, "{fault}");
        }
    }
    let pattern = RequestInfo { has_pattern: true, ..request("ollama/api", Enforcement::Schema) };
    let fault = pattern.fault(&head(500, &[]), br#"{"error": "EOF"}"#, Time(0));
    assert_eq!(fault.kind, SchemaRefused);
}

#[test]
fn an_error_within_a_response_has_the_class_of_its_code() {
    use FaultKind::*;
    let request = RequestInfo { enforcement: Enforcement::Schema, ..RequestInfo::default() };
    for (error, kind) in [
        (json!({"message": "no", "code": 429}), RateLimited),
        (json!({"message": "no", "code": "401"}), Auth),
        (json!({"message": "no", "type": "overloaded_error"}), Overloaded),
        (json!({"message": "no", "type": "billing_error"}), NoCredit),
        (json!({"message": "no", "type": "request_too_large"}), BadRequest),
        (json!({"message": "no", "type": "timeout_error"}), Timeout),
        (json!({"message": "no", "type": "not_found_error"}), Unsupported),
        (json!("failed to parse grammar"), SchemaRefused),
        (json!("no"), Overloaded),
    ] {
        let document = json!({ "error": error });
        let fault = request.fault_within(&document, false);
        assert_eq!((fault.kind, fault.status), (kind, None), "{document}");
        assert!(fault.message.starts_with("the server ended the response with an error: "), "{fault}");
        // The server has accepted the schema once the model has sent text.
        assert_ne!(request.fault_within(&document, true).kind, SchemaRefused);
    }
}
