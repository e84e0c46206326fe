//! Classification of errors, with the messages of the API.

use std::time::Duration;

use formwork_anthropic::{Anthropic, Mode};
use formwork_core::{Enforcement, Fault, FaultKind, Time};
use formwork_wire::Wire;
use serde_json::json;

use crate::support::{call, head};

fn fault(mode: Mode, enforcement: Enforcement, status: u16, words: &str) -> Fault {
    let wire = Anthropic::new("claude-test").with_mode(mode);
    let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": words}, "request_id": "req_7"});
    wire.fault(&call(enforcement), &head(status, "application/json"), body.to_string().as_bytes(), Time(0))
}

#[test]
fn every_class_is_told_by_status_and_words() {
    use FaultKind::{
        Auth, BadRequest, NoCredit, Overloaded, RateLimited, SchemaRefused, Timeout, Unsupported,
    };
    let cases = [
        (401, "invalid x-api-key", Auth, ""),
        (403, "Your API key does not have permission to use the specified resource", Auth, ""),
        (
            400,
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
            NoCredit,
            "no credit left",
        ),
        (
            400,
            "You have reached your specified API usage limits. You will regain access on 2026-12-01.",
            NoCredit,
            "no credit left",
        ),
        (402, "There is an issue with your billing", NoCredit, ""),
        (404, "model: claude-tset", Unsupported, "the model `claude-test` does not exist"),
        (404, "Not Found", Unsupported, "base URL"),
        (413, "Request exceeds the maximum size", BadRequest, "send less"),
        (
            429,
            "This request would exceed your organization's rate limit of 30,000 input tokens per minute",
            RateLimited,
            "",
        ),
        (500, "Internal server error", Overloaded, ""),
        (504, "Timed out", Timeout, ""),
        (529, "Overloaded", Overloaded, ""),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", BadRequest, "shorten the input"),
        (
            400,
            "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-test",
            BadRequest,
            "smaller `max_tokens`",
        ),
        (400, "`temperature` is deprecated for this model.", BadRequest, "leave them out"),
        (
            400,
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
            BadRequest,
            "leave them out",
        ),
        (400, "Thinking may not be enabled when tool_choice forces tool use.", BadRequest, "`thinking`"),
        (
            400,
            "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.",
            BadRequest,
            "`effort`",
        ),
        (400, "messages: at least one message is required", BadRequest, ""),
        (
            400,
            "Schemas contains too many parameters with union types (18 parameters with type arrays or anyOf)",
            SchemaRefused,
            "",
        ),
        (
            400,
            "Schemas contains too many optional parameters (30), which would make grammar compilation inefficient",
            SchemaRefused,
            "",
        ),
        (
            400,
            "The compiled grammar is too large, which would cause performance issues. Simplify your tool schemas or reduce the number of strict tools.",
            SchemaRefused,
            "",
        ),
        (400, "output_config.format.schema: 'oneOf' is not supported", SchemaRefused, ""),
        (
            400,
            "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
            SchemaRefused,
            "",
        ),
        (400, "tools.0.custom.input_schema: JSON schema is invalid", SchemaRefused, ""),
        (400, "'claude-test' does not support output format.", SchemaRefused, ""),
        (400, "tool_choice: this model does not support forced tool use", SchemaRefused, ""),
    ];
    for (status, words, kind, advice) in cases {
        for mode in [Mode::Schema, Mode::Tool] {
            let found = fault(mode, Enforcement::Schema, status, words);
            assert_eq!(found.kind, kind, "{found}");
            assert!(found.message.contains(advice) && found.message.contains(&words[..9]), "{found}");
            assert_eq!((found.status, found.request_id.as_deref()), (Some(status), Some("req_7")));
        }
        // A request without a schema cannot be refused because of it.
        let found = fault(Mode::Schema, Enforcement::None, status, words);
        assert_eq!(found.kind, if kind == SchemaRefused { BadRequest } else { kind }, "{found}");
    }
}

#[test]
fn the_server_says_when_to_come_back_and_which_request_it_was() {
    let wire = Anthropic::new("claude-test");
    for status in [429, 529] {
        let mut head = head(status, "application/json");
        head.headers.insert("retry-after", "17".parse().unwrap());
        head.headers.insert("request-id", "req_header".parse().unwrap());
        let body =
            br#"{"type": "error", "error": {"type": "x", "message": "later"}, "request_id": "req_body"}"#;
        let found = wire.fault(&call(Enforcement::Schema), &head, body, Time(0));
        assert_eq!(found.retry_after, Some(Duration::from_secs(17)));
        assert_eq!(found.request_id.as_deref(), Some("req_header"));
        assert!(found.kind.is_transient());
    }
}
