//! Classification of the errors of Chat Completions and Responses, in addition to the rules common to all servers.
//!
//! The rules were collected in 2026 from the documentation and the bug reports of OpenAI, Azure, Groq, OpenRouter, Mistral,
//! DeepSeek, vLLM and llama.cpp.

use formwork_core::{Call, Completion, Enforcement, Fault, FaultKind, Finish, Time, Usage};
use formwork_wire::http::response::Parts;
use formwork_wire::http::{Response, StatusCode};
use formwork_wire::{error_in, fault_of, quoted};
use serde_json::Value;

use crate::encode::safe_name;
use crate::{Api, OpenAi};

/// The facts of a call that are needed to read its response.
#[derive(Debug, Clone)]
pub(crate) struct RequestInfo {
    pub(crate) api: Api,
    pub(crate) model: String,
    pub(crate) enforcement: Enforcement,
    /// The name of the tool whose arguments are the document.
    pub(crate) tool: Option<String>,
    /// The estimated tokens of the prompt, for servers that report no usage.
    pub(crate) input_tokens: u64,
}

impl RequestInfo {
    pub(crate) fn of(wire: &OpenAi, call: &Call) -> Self {
        let enforcement = call.enforcement();
        Self {
            api: wire.api,
            model: wire.model.clone(),
            enforcement,
            tool: (enforcement == Enforcement::Tool).then(|| safe_name(&call.schema_name)),
            input_tokens: Usage::estimate(call, 0).input_tokens,
        }
    }

    /// Returns the estimated usage of a call whose completion has `answered` bytes.
    pub(crate) fn estimate(&self, answered: usize) -> Usage {
        let output_tokens = answered.div_ceil(4) as u64;
        Usage::new(self.input_tokens, output_tokens).with_estimated(true)
    }
}

/// The error object of a response, with all texts in lower case.
#[derive(Default)]
struct ErrorBody {
    message: String,
    /// `code` and `type`, if they are strings.
    codes: Vec<String>,
    /// The property of the request that the server refused.
    param: Option<String>,
}

impl ErrorBody {
    fn of(document: &Value) -> Self {
        let error = document.get("error").filter(|error| error.is_object()).unwrap_or(document);
        let text = |name: &str| Some(error.get(name)?.as_str()?.to_lowercase());
        let extra = extra_member(document);
        let mut codes: Vec<String> = ["code", "type"].iter().filter_map(|name| text(name)).collect();
        if extra.is_some() {
            codes.push("unknown_parameter".to_owned());
        }
        Self {
            message: error_in(document).unwrap_or_default().to_lowercase(),
            codes,
            param: text("param").filter(|param| !param.is_empty()).or(extra),
        }
    }

    fn has_code(&self, codes: &[&str]) -> bool {
        self.codes.iter().any(|code| codes.contains(&code.as_str()))
    }

    fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|words| self.message.contains(words))
    }

    /// Returns the refused parameter: the value of `param`, or the first quoted word of the message.
    fn parameter(&self) -> Option<&str> {
        self.param
            .as_deref()
            .or_else(|| self.message.split(['\'', '`', '"']).nth(1))
            .filter(|name| !name.is_empty())
    }
}

/// Returns the unknown property that a server with a closed request schema refused. Mistral reports it as `extra_forbidden`,
/// in some cases as JSON inside the string `message`.
fn extra_member(document: &Value) -> Option<String> {
    let inner =
        document.get("message").and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok());
    let detail = [Some(document), inner.as_ref()].into_iter().flatten().find_map(|body: &Value| {
        body.pointer("/detail/0").filter(|detail| detail["type"] == "extra_forbidden")
    })?;
    Some(detail["loc"].as_array()?.last()?.as_str()?.to_lowercase())
}

/// Returns the fault for a response with an error status.
pub(crate) fn fault(request: &RequestInfo, head: &Parts, body: &[u8], now: Time) -> Fault {
    let document = serde_json::from_slice(body).unwrap_or(Value::Null);
    let error = match &document {
        Value::Null => {
            ErrorBody { message: String::from_utf8_lossy(body).to_lowercase(), ..ErrorBody::default() }
        }
        document => ErrorBody::of(document),
    };
    let mut fault = fault_of(head, body, request.enforcement != Enforcement::None, now);
    if let Some((kind, advice)) = special(request, head.status.as_u16(), &error) {
        fault.kind = kind;
        fault.message = format!("{advice}: {}", fault.message);
    }
    fault
}

/// Returns the fault for an error inside a successful response.
pub(crate) fn fault_within(request: &RequestInfo, document: &Value, words: &str) -> Fault {
    let error = ErrorBody::of(document);
    let numbers = ["/error/code", "/error/status", "/code", "/status"].iter();
    let number = numbers.filter_map(|place| {
        let number = document.pointer(place)?;
        number.as_u64().or_else(|| number.as_str()?.parse().ok())
    });
    let status =
        number.filter(|number| (400..600).contains(number)).find_map(|number| u16::try_from(number).ok());
    let status = status.unwrap_or_else(|| status_of(&error));
    let (mut head, ()) = Response::new(()).into_parts();
    head.status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let known = fault(request, &head, document.to_string().as_bytes(), Time(0));
    // The status may be derived and not received, so the message does not name it.
    Fault::new(known.kind, format!("the server ended the response with an error: {}", quoted(words)))
}

/// Returns the HTTP status that corresponds to the code of an error.
fn status_of(error: &ErrorBody) -> u16 {
    let codes = error.codes.join(" ");
    let has = |words: &[&str]| words.iter().any(|word| codes.contains(word));
    match () {
        () if has(&["insufficient_quota", "billing"]) => 402,
        () if has(&["rate_limit", "too_many"]) => 429,
        () if has(&["authentication", "invalid_api_key", "permission"]) => 401,
        () if has(&["timeout"]) => 504,
        () if has(&["not_found"]) => 404,
        () if has(&[
            "invalid_request",
            "bad_request",
            "badrequest",
            "context_size",
            "context_length",
            "invalid_prompt",
            "invalid_image",
        ]) =>
        {
            400
        }
        // An unknown error within the response is a failure of the server.
        () => 503,
    }
}

/// Properties of the request that contain the schema or belong to it.
const SCHEMA_PARAMS: &[&str] =
    &["response_format", "text.format", "tools", "tool_choice", "parallel_tool_calls", "functions"];

/// Phrases by which a refusal of the schema is recognized (status 400 and 422), in addition to those common to all servers.
const SCHEMA_WORDS: &[&str] = &[
    "schema",
    "response_format",
    "response format",
    "text.format",
    "json_object",
    "json mode",
    "structured output",
    "structured_output",
    "guided",
    "grammar",
    "tool_choice",
    "tool choice",
];

/// Returns the class of an error that is not determined by its status alone, with advice on what to do.
fn special(request: &RequestInfo, status: u16, error: &ErrorBody) -> Option<(FaultKind, String)> {
    let is_refused = matches!(status, 400 | 422);
    if error.has_code(&["insufficient_quota"]) {
        return Some((FaultKind::NoCredit, "the account has no credit left".to_owned()));
    }
    // Groq sends 498 if the service tier has no capacity.
    if status == 498 {
        return Some((FaultKind::Overloaded, "the server has no capacity at the moment".to_owned()));
    }
    if matches!(status, 400 | 413 | 422 | 500) && is_too_long(error) {
        let advice = "prompt and completion exceed the model's context window, shorten the input or lower `max_tokens`";
        return Some((FaultKind::BadRequest, advice.to_owned()));
    }
    if matches!(status, 400 | 404 | 410) && is_model_missing(error) {
        let advice = format!(
            "the model `{}` does not exist on this server, or this key has no access to it",
            request.model
        );
        return Some((FaultKind::Unsupported, advice));
    }
    if request.enforcement != Enforcement::None && is_schema_refused(request, status, error) {
        return Some((FaultKind::SchemaRefused, "the server refused the schema".to_owned()));
    }
    if is_refused && is_parameter_refused(error) {
        return error.parameter().map(|name| (FaultKind::BadRequest, parameter_advice(name)));
    }
    if matches!(status, 404 | 405) {
        let api = match request.api {
            Api::Chat => "Chat Completions API",
            Api::Responses => "Responses API",
        };
        let advice = format!(
            "the server has no {api} at this address, check the base URL (usually it ends in `/v1`) and the model"
        );
        return Some((FaultKind::Unsupported, advice));
    }
    None
}

fn is_too_long(error: &ErrorBody) -> bool {
    error.has_code(&["context_length_exceeded", "exceed_context_size_error", "string_above_max_length"])
        || error.says(&[
            "maximum context length",
            "context length exceeded",
            "exceeds the context",
            "exceeds the available context",
            "context window",
            "prompt is too long",
        ])
}

fn is_model_missing(error: &ErrorBody) -> bool {
    let gone =
        ["not found", "not exist", "does not exist", "invalid model", "unknown model", "decommissioned"];
    error.has_code(&["model_not_found", "model_decommissioned", "invalid_model"])
        || (error.message.contains("model") && error.says(&gone))
}

fn is_schema_refused(request: &RequestInfo, status: u16, error: &ErrorBody) -> bool {
    // OpenRouter sends 404 with `require_parameters` if no host of the model supports the schema.
    if status == 404 {
        return error.says(&["no endpoints found that"]);
    }
    let about = |param: &String| SCHEMA_PARAMS.iter().any(|member| param.starts_with(member));
    let tool = request.enforcement == Enforcement::Tool && error.says(&["tool", "function"]);
    matches!(status, 400 | 422)
        && (error.param.as_ref().is_some_and(about) || error.says(SCHEMA_WORDS) || tool)
}

fn is_parameter_refused(error: &ErrorBody) -> bool {
    error.has_code(&["unsupported_parameter", "unsupported_value", "unknown_parameter"])
        || error.says(&[
            "unsupported parameter",
            "unsupported value",
            "unknown parameter",
            "unrecognized request argument",
        ])
}

fn parameter_advice(name: &str) -> String {
    match name {
        "temperature" | "top_p" | "seed" => {
            format!("the model does not support this `{name}`, set `{name} = false` in its capabilities")
        }
        "max_tokens" => "set `max_tokens_field` to `max_completion_tokens`".to_owned(),
        "max_completion_tokens" => "set `max_tokens_field` to `max_tokens`".to_owned(),
        "stream_options" => "set `stream_usage` to false".to_owned(),
        name => format!("the server does not support this `{name}`"),
    }
}

/// Returns the completion that a server reports as an error: Groq for a text that violates the schema, Azure and OpenRouter
/// for a prompt that a content filter stopped.
pub(crate) fn rescue(request: &RequestInfo, document: &Value) -> Option<Completion> {
    let error = document.get("error")?;
    let body = ErrorBody::of(document);
    if body.has_code(&["json_validate_failed", "tool_use_failed"]) {
        let text = match error.get("failed_generation") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let cut = body.says(&["max completion tokens", "max_completion_tokens", "max_tokens"]);
        let usage = request.estimate(text.len());
        let finish = if cut { Finish::Length } else { Finish::Stop };
        return Some(Completion::new(text).with_finish(finish).with_usage(usage));
    }
    let filtered = body.has_code(&["content_filter", "content_policy_violation"])
        || error.pointer("/metadata/reasons").is_some_and(Value::is_array);
    filtered.then(|| {
        let words = error_in(document).unwrap_or_default();
        Completion::new(words).with_finish(Finish::Filtered).with_usage(request.estimate(0))
    })
}
