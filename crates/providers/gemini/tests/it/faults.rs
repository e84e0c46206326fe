//! Classification of errors and the advice in their messages.

use std::time::Duration;

use formwork_core::{Enforcement, FaultKind};
use serde_json::{Value, json};

use crate::support::{enforcing, fault};

fn error(code: u16, status: &str, message: &str, details: &Value) -> Value {
    json!({"error": {"code": code, "message": message, "status": status, "details": details}})
}

fn quota(id: &str) -> Value {
    json!([
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": id, "quotaMetric": "generate_content_free_tier_requests"}]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"},
    ])
}

#[test]
fn every_error_of_the_vendor_has_a_class() {
    use FaultKind::{
        Auth, BadRequest, NoCredit, Overloaded, RateLimited, SchemaRefused, Timeout, Unsupported,
    };
    let none = json!([]);
    let reason =
        |reason: &str| json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]);
    let exceeded = "You exceeded your current quota, please check your plan and billing details.";
    let schema = enforcing(Enforcement::Schema, Some(json!({"type": "object"})));
    for (code, status, message, details, kind, advice) in [
        (
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            reason("API_KEY_INVALID"),
            Auth,
            "the server refused the API key",
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "API key expired. Please renew the API key.",
            none.clone(),
            Auth,
            "the server refused the API key",
        ),
        (403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers.", none.clone(), Auth, ""),
        (
            403,
            "PERMISSION_DENIED",
            "Generative Language API has not been used",
            reason("SERVICE_DISABLED"),
            Auth,
            "not enabled",
        ),
        (401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", none.clone(), Auth, ""),
        (
            404,
            "NOT_FOUND",
            "models/gemini-9 is not found for API version v1beta",
            none.clone(),
            Unsupported,
            "`gemini-2.5-flash` does not exist on this server",
        ),
        (
            429,
            "RESOURCE_EXHAUSTED",
            exceeded,
            quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"),
            RateLimited,
            "",
        ),
        (
            429,
            "RESOURCE_EXHAUSTED",
            exceeded,
            quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
            NoCredit,
            "the daily quota",
        ),
        (429, "RESOURCE_EXHAUSTED", exceeded, none.clone(), RateLimited, ""),
        (
            429,
            "RESOURCE_EXHAUSTED",
            "Quota exceeded, limit: 0, model: gemini-2.5-pro",
            none.clone(),
            NoCredit,
            "no quota for this model",
        ),
        (500, "INTERNAL", "An internal error has occurred.", none.clone(), Overloaded, ""),
        (
            503,
            "UNAVAILABLE",
            "The model is overloaded. Please try again later.",
            none.clone(),
            Overloaded,
            "",
        ),
        (
            504,
            "DEADLINE_EXCEEDED",
            "Deadline expired before operation could complete.",
            none.clone(),
            Timeout,
            "",
        ),
        (499, "CANCELLED", "The operation was cancelled.", none.clone(), Overloaded, ""),
        (
            400,
            "FAILED_PRECONDITION",
            "User location is not supported for the API use.",
            none.clone(),
            Unsupported,
            "region",
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
            none.clone(),
            BadRequest,
            "context",
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "Budget 0 is invalid. This model only works in thinking mode.",
            none.clone(),
            BadRequest,
            "thinking_budget",
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "The specified schema produces a constraint that has too many states for serving.",
            none.clone(),
            SchemaRefused,
            "the schema",
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "Invalid value at 'generation_config.response_schema.type' (Proto field is not repeating, cannot start list.)",
            none.clone(),
            SchemaRefused,
            "the schema",
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "JSON mode is not enabled for models/gemma-3-4b-it",
            none.clone(),
            SchemaRefused,
            "the schema",
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "Request contains an invalid argument.",
            none.clone(),
            SchemaRefused,
            "the schema",
        ),
        (400, "INVALID_ARGUMENT", "Unable to process input image.", none.clone(), BadRequest, ""),
    ] {
        let body = error(code, status, message, &details);
        for body in [body.clone(), json!([body])] {
            let fault = fault(&schema, code, &body);
            assert_eq!((fault.kind, fault.status), (kind, Some(code)), "{fault}");
            assert!(fault.message.contains(advice) && fault.message.contains(&message[..8]), "{fault}");
            let delay = details.to_string().contains("34.5s").then_some(Duration::from_millis(34_500));
            assert_eq!(fault.retry_after, delay, "{fault}");
        }
        // A request without a schema cannot be refused because of it.
        if kind == SchemaRefused {
            let plain = enforcing(Enforcement::None, None);
            assert_eq!(fault(&plain, code, &error(code, status, message, &none)).kind, BadRequest);
        }
    }
}
