//! The meaning of this protocol's errors, beyond what all servers agree on.
//!
//! Collected in 2026 from the documentation and the reports of OpenAI, Azure, Groq, OpenRouter, Mistral, DeepSeek, vLLM and
//! llama.cpp.

use formwork_core::{Call, Completion, Enforcement, Fault, FaultKind, Finish, Time, Usage};
use formwork_wire::http::response::Parts;
use formwork_wire::http::{Response, StatusCode};
use formwork_wire::{error_in, fault_of, quoted};
use serde_json::Value;

use crate::encode::safe_name;
use crate::{Api, OpenAi};

/// The facts of a call that its response is read by.
#[derive(Debug, Clone)]
pub(crate) struct RequestInfo {
    pub(crate) api: Api,
    pub(crate) model: String,
    pub(crate) enforcement: Enforcement,
    /// The name of the tool whose arguments are the answer.
    pub(crate) tool: Option<String>,
    /// A guess, for servers that do not count.
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

    /// A guess at what a call used up that answered so much.
    pub(crate) fn estimate(&self, answered: usize) -> Usage {
        let output_tokens = answered.div_ceil(4) as u64;
        Usage::new(self.input_tokens, output_tokens).with_estimated(true)
    }
}

/// The words of an error, in lower case.
#[derive(Default)]
struct ErrorBody {
    message: String,
    /// `code` and `type`, whichever are words.
    codes: Vec<String>,
    /// The member of the request that it is about.
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

    /// The parameter that it is about: named as such, or the first word in quotation marks.
    fn parameter(&self) -> Option<&str> {
        self.param
            .as_deref()
            .or_else(|| self.message.split(['\'', '`', '"']).nth(1))
            .filter(|name| !name.is_empty())
    }
}

/// The member of the body that a server refuses that knows each by name, as Mistral does. It may tell so in JSON that is
/// a string in JSON.
fn extra_member(document: &Value) -> Option<String> {
    let inner =
        document.get("message").and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok());
    let detail = [Some(document), inner.as_ref()].into_iter().flatten().find_map(|body: &Value| {
        body.pointer("/detail/0").filter(|detail| detail["type"] == "extra_forbidden")
    })?;
    Some(detail["loc"].as_array()?.last()?.as_str()?.to_lowercase())
}

/// The fault of a response with an error status.
pub(crate) fn fault(asked: &RequestInfo, head: &Parts, body: &[u8], now: Time) -> Fault {
    let document = serde_json::from_slice(body).unwrap_or(Value::Null);
    let said = match &document {
        Value::Null => {
            ErrorBody { message: String::from_utf8_lossy(body).to_lowercase(), ..ErrorBody::default() }
        }
        document => ErrorBody::of(document),
    };
    let mut fault = fault_of(head, body, asked.enforcement != Enforcement::None, now);
    if let Some((kind, advice)) = special(asked, head.status.as_u16(), &said) {
        fault.kind = kind;
        fault.message = format!("{advice}: {}", fault.message);
    }
    fault
}

/// The fault of an error that came inside of a successful response.
pub(crate) fn fault_within(asked: &RequestInfo, document: &Value, words: &str) -> Fault {
    let said = ErrorBody::of(document);
    let numbers = ["/error/code", "/error/status", "/code", "/status"].iter();
    let number = numbers.filter_map(|place| {
        let number = document.pointer(place)?;
        number.as_u64().or_else(|| number.as_str()?.parse().ok())
    });
    let status =
        number.filter(|number| (400..600).contains(number)).find_map(|number| u16::try_from(number).ok());
    let status = status.unwrap_or_else(|| status_of(&said));
    let (mut head, ()) = Response::new(()).into_parts();
    head.status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let known = fault(asked, &head, document.to_string().as_bytes(), Time(0));
    // The status is a guess, so it is not shown as one.
    Fault::new(known.kind, format!("the server answered with an error: {}", quoted(words)))
}

/// The status that an error would have had, by its code.
fn status_of(said: &ErrorBody) -> u16 {
    let codes = said.codes.join(" ");
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
        // Something failed on the other side after it had begun to answer.
        () => 503,
    }
}

/// Members of the request that carry the schema.
const SCHEMA_PARAMS: &[&str] =
    &["response_format", "text.format", "tools", "tool_choice", "parallel_tool_calls", "functions"];

/// How refusals of a schema read with 400 and 422, besides those that all servers share.
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

/// Returns the kinds of errors that are told apart, and what people can do about them.
fn special(asked: &RequestInfo, status: u16, said: &ErrorBody) -> Option<(FaultKind, String)> {
    let is_refused = matches!(status, 400 | 422);
    if said.has_code(&["insufficient_quota"]) {
        return Some((FaultKind::NoCredit, "the account has no credit left".to_owned()));
    }
    // Groq: no capacity for this tier
    if status == 498 {
        return Some((FaultKind::Overloaded, "there is no capacity at the moment".to_owned()));
    }
    if matches!(status, 400 | 413 | 422 | 500) && is_too_long(said) {
        let advice =
            "prompt and answer do not fit into the model's context, shorten the input or the limit of tokens";
        return Some((FaultKind::BadRequest, advice.to_owned()));
    }
    if matches!(status, 400 | 404 | 410) && is_model_missing(said) {
        let advice = format!("the model `{}` does not exist there, or is not for this key", asked.model);
        return Some((FaultKind::Unsupported, advice));
    }
    if asked.enforcement != Enforcement::None && is_schema_refused(asked, status, said) {
        return Some((FaultKind::SchemaRefused, "the server does not take the schema".to_owned()));
    }
    if is_refused && is_parameter_refused(said) {
        return said.parameter().map(|name| (FaultKind::BadRequest, parameter_advice(name)));
    }
    if matches!(status, 404 | 405) {
        let api = match asked.api {
            Api::Chat => "Chat Completions",
            Api::Responses => "the Responses API",
        };
        let advice = format!(
            "nothing answers {api} there, check the base URL (mostly it ends in `/v1`) and the model"
        );
        return Some((FaultKind::Unsupported, advice));
    }
    None
}

fn is_too_long(said: &ErrorBody) -> bool {
    said.has_code(&["context_length_exceeded", "exceed_context_size_error", "string_above_max_length"])
        || said.says(&[
            "maximum context length",
            "context length exceeded",
            "exceeds the context",
            "exceeds the available context",
            "context window",
            "prompt is too long",
        ])
}

fn is_model_missing(said: &ErrorBody) -> bool {
    let gone =
        ["not found", "not exist", "does not exist", "invalid model", "unknown model", "decommissioned"];
    said.has_code(&["model_not_found", "model_decommissioned", "invalid_model"])
        || (said.message.contains("model") && said.says(&gone))
}

fn is_schema_refused(asked: &RequestInfo, status: u16, said: &ErrorBody) -> bool {
    // OpenRouter with `require_parameters`: no host of this model takes the schema.
    if status == 404 {
        return said.says(&["no endpoints found that"]);
    }
    let about = |param: &String| SCHEMA_PARAMS.iter().any(|member| param.starts_with(member));
    let tool = asked.enforcement == Enforcement::Tool && said.says(&["tool", "function"]);
    matches!(status, 400 | 422) && (said.param.as_ref().is_some_and(about) || said.says(SCHEMA_WORDS) || tool)
}

fn is_parameter_refused(said: &ErrorBody) -> bool {
    said.has_code(&["unsupported_parameter", "unsupported_value", "unknown_parameter"])
        || said.says(&[
            "unsupported parameter",
            "unsupported value",
            "unknown parameter",
            "unrecognized request argument",
        ])
}

fn parameter_advice(name: &str) -> String {
    match name {
        "temperature" | "top_p" | "seed" => {
            format!("the model does not take `{name}` as it is, set `{name} = false` in its capabilities")
        }
        "max_tokens" => "set `max_tokens_field` to `max_completion_tokens`".to_owned(),
        "max_completion_tokens" => "set `max_tokens_field` to `max_tokens`".to_owned(),
        "stream_options" => "set `stream_usage` to false".to_owned(),
        name => format!("the server does not take `{name}` as it is"),
    }
}

/// Returns the model's answer where a server tells of it as an error: Groq of an answer that does not fit the
/// schema, Azure and OpenRouter of a prompt that a filter stopped.
pub(crate) fn rescue(asked: &RequestInfo, document: &Value) -> Option<Completion> {
    let error = document.get("error")?;
    let said = ErrorBody::of(document);
    if said.has_code(&["json_validate_failed", "tool_use_failed"]) {
        let text = match error.get("failed_generation") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let cut = said.says(&["max completion tokens", "max_completion_tokens", "max_tokens"]);
        let usage = asked.estimate(text.len());
        let finish = if cut { Finish::Length } else { Finish::Stop };
        return Some(Completion::new(text).with_finish(finish).with_usage(usage));
    }
    let filtered = said.has_code(&["content_filter", "content_policy_violation"])
        || error.pointer("/metadata/reasons").is_some_and(Value::is_array);
    filtered.then(|| {
        let words = error_in(document).unwrap_or_default();
        Completion::new(words).with_finish(Finish::Filtered).with_usage(asked.estimate(0))
    })
}
