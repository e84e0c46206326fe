//! The OpenAPI document of the service.
//!
//! It is made of the types that are read and written, by schemars, and of the lists of members that the protocols are read with,
//! so that it cannot say anything else than the code. `utoipa` would need a second derive on types of other crates, and `aide` a
//! router and handlers of its own; both are larger than this file.

use formwork_core::Outcome;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::options::OPTIONS;
use crate::protocol::{self, Protocol};
use crate::service::ExtractRequest;

/// A text of the document.
type Text = &'static str;

/// A resource of the service: method, path, purpose, and the documentation of its protocol.
struct Resource {
    method: Text,
    path: Text,
    summary: Text,
    body: Option<Body>,
    /// The media types of its answers.
    media: &'static [Text],
    tag: Text,
}

/// The body of a request.
enum Body {
    /// The members that a protocol has, and those of them that are required.
    Members(&'static Protocol, &'static [&'static str]),
    /// A type of ours.
    Extract,
    /// Passed on as it is.
    Any,
}

const HTML: &[&str] = &["text/html"];
const JSON: &[&str] = &["application/json"];
const JSON_OR_EVENTS: &[&str] = &["application/json", "text/event-stream"];
const JSON_OR_LINES: &[&str] = &["application/json", "application/x-ndjson"];

const OPENAI: &str = "OpenAI";
const ANTHROPIC: &str = "Anthropic";
const OLLAMA: &str = "Ollama";
const FORMWORK: &str = "Formwork";
const OPERATORS: &str = "Operators";

/// The documentation of each protocol.
const TAGS: [(&str, &str, Option<&str>); 5] = [
    (OPENAI, "OpenAI's protocols.", Some("https://platform.openai.com/docs/api-reference")),
    (ANTHROPIC, "Anthropic's Messages API.", Some("https://docs.anthropic.com/en/api/messages")),
    (OLLAMA, "Ollama's API.", Some("https://github.com/ollama/ollama/blob/main/docs/api.md")),
    (FORMWORK, "Contracts without the detour of a chat protocol, and recorded runs.", None),
    (OPERATORS, "Health, metrics and pages.", None),
];

const fn get(path: Text, summary: Text, media: &'static [Text], tag: Text) -> Resource {
    Resource { method: "get", path, summary, body: None, media, tag }
}

const fn post(path: Text, summary: Text, body: Body, media: &'static [Text], tag: Text) -> Resource {
    Resource { method: "post", path, summary, body: Some(body), media, tag }
}

const RESOURCES: &[Resource] = &[
    post(
        "/v1/chat/completions",
        "Answers a dialogue; `response_format` and tools are contracts",
        Body::Members(&protocol::OPENAI, &["model", "messages"]),
        JSON_OR_EVENTS,
        OPENAI,
    ),
    post(
        "/v1/responses",
        "Answers a dialogue; `text.format` and tools are contracts",
        Body::Members(&protocol::RESPONSES, &["model", "input"]),
        JSON_OR_EVENTS,
        OPENAI,
    ),
    post("/v1/messages/count_tokens", "Counts the tokens of a request", Body::Any, JSON, ANTHROPIC),
    post("/v1/embeddings", "Passes a request for embeddings on", Body::Any, JSON, OPENAI),
    post("/api/embed", "Passes a request for embeddings on", Body::Any, JSON, OLLAMA),
    post("/api/embeddings", "Passes a request for embeddings on, in its older form", Body::Any, JSON, OLLAMA),
    get("/api/ps", "Lists the names that clients may ask for", JSON, OLLAMA),
    get("/v1/models", "Lists the names that clients may ask for", JSON, OPENAI),
    get("/v1/models/{name}", "Returns one of the names", JSON, OPENAI),
    post(
        "/v1/messages",
        "Answers a dialogue; `output_config.format` and tools are contracts",
        Body::Members(&protocol::ANTHROPIC, &["model", "messages", "max_tokens"]),
        JSON_OR_EVENTS,
        ANTHROPIC,
    ),
    post(
        "/api/chat",
        "Answers a dialogue; `format` and tools are contracts",
        Body::Members(&protocol::OLLAMA, &["model", "messages"]),
        JSON_OR_LINES,
        OLLAMA,
    ),
    post(
        "/api/generate",
        "Answers a prompt; `format` is a contract",
        Body::Members(&protocol::OLLAMA_GENERATE, &["model"]),
        JSON_OR_LINES,
        OLLAMA,
    ),
    get("/api/tags", "Lists the names that clients may ask for", JSON, OLLAMA),
    post("/api/show", "Returns one of the names", Body::Any, JSON, OLLAMA),
    get("/api/version", "Returns the version", JSON, OLLAMA),
    post(
        "/v1/extract",
        "Returns a value that satisfies a schema or a named contract",
        Body::Extract,
        JSON_OR_EVENTS,
        FORMWORK,
    ),
    get("/v1/runs/{id}", "Returns a recorded run with its calls", JSON, FORMWORK),
    get("/openapi.json", "Returns this document", JSON, FORMWORK),
    get("/healthz", "Answers while the process lives", &["text/plain"], OPERATORS),
    get("/readyz", "Answers with 503 and the reasons while requests would be refused", JSON, OPERATORS),
    get(
        "/metrics",
        "Returns metrics for Prometheus, to admins",
        &["application/openmetrics-text"],
        OPERATORS,
    ),
    get("/", "Shows targets and sums of runs, to admins", HTML, OPERATORS),
    get("/runs", "Lists runs that the filters of the query select, to admins", HTML, OPERATORS),
    get("/runs.jsonl", "Returns these runs as JSON Lines, to admins", &["application/jsonl"], OPERATORS),
    get("/runs/{id}", "Shows a run with its calls, to admins", HTML, OPERATORS),
    get("/contracts", "Lists contracts and those of runs, to admins", HTML, OPERATORS),
    get("/contracts/{name}", "Shows a contract, its versions and failures, to admins", HTML, OPERATORS),
    get("/keys", "Lists keys, adds and revokes them, to admins", HTML, OPERATORS),
    get("/login", "Asks for the key of an admin", HTML, OPERATORS),
];

/// The headers of requests for an answer, beside the options.
const HEADERS: [(&str, &str); 4] = [
    ("idempotency-key", "A repetition with this key within ten minutes gets the first response."),
    ("cache-control", "`no-cache`: the model is asked again, although the cache has an answer."),
    ("x-request-id", "The identifier of the request in logs and records; the service chooses one otherwise."),
    ("traceparent", "The trace that the run belongs to, as W3C Trace Context has it."),
];

/// The headers of answers.
const RETURNED: [(&str, &str); 9] = [
    ("x-request-id", "The identifier of the request in logs and records."),
    ("request-id", "The same identifier, in the protocol of Anthropic."),
    ("x-formwork-cache", "`hit` or `miss`, where the cache was searched."),
    ("x-formwork-estimated", "The members of the response that are estimated."),
    ("idempotent-replayed", "`true` if the response is that of an earlier request."),
    ("x-formwork-run", "The identifier of the run in the ledger."),
    ("x-formwork-calls", "The number of calls, where it is known before the body."),
    ("x-formwork-ignored", "The members of the request that nothing acts on."),
    (
        "x-formwork-warnings",
        "What was repaired, dropped, chosen or rounded in the answer: kinds, each with its path.",
    ),
];

/// Returns the OpenAPI document of the service.
///
/// ```
/// let document = formwork_gateway::openapi();
/// assert_eq!(document["openapi"], "3.1.0");
/// assert!(document["paths"]["/v1/extract"]["post"].is_object());
/// ```
pub fn openapi() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut types = settings.clone().for_deserialize().into_generator();
    let mut written = settings.for_serialize().into_generator();
    let mut paths: Map<String, Value> = Map::new();
    for resource in RESOURCES {
        let entry = paths.entry(resource.path).or_insert_with(|| json!({}));
        entry[resource.method] = operation(resource, &mut types, &mut written);
    }
    // Types that are read and types that are written have different names here, or the same schema.
    let mut schemas = types.take_definitions(true);
    schemas.extend(written.take_definitions(true));
    schemas.insert("Error".to_owned(), error());
    let tags: Vec<Value> = TAGS
        .iter()
        .map(|(name, description, url)| {
            let mut tag = json!({"name": name, "description": description});
            if let Some(url) = url {
                tag["externalDocs"] = json!({"url": url});
            }
            tag
        })
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Formwork",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The protocols of OpenAI, Anthropic and Ollama in front of any model; every answer to a schema is valid.",
        },
        "tags": tags,
        "paths": paths,
        "security": [{}, {"bearer": []}, {"key": []}],
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    })
}

fn operation(resource: &Resource, types: &mut SchemaGenerator, written: &mut SchemaGenerator) -> Value {
    let mut operation = json!({"summary": resource.summary, "tags": [resource.tag]});
    let mut parameters: Vec<Value> = Vec::new();
    if let Some((_, name)) = resource.path.split_once('{') {
        let name = name.trim_end_matches('}');
        parameters.push(json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    }
    let mut answer = json!({"description": "The answer."});
    if let Some(body) = &resource.body {
        let options = OPTIONS.iter().map(|header| (header.name, header.about));
        parameters.extend(options.chain(HEADERS).map(|(name, description)| {
            json!({"name": name, "in": "header", "description": description, "schema": {"type": "string"}})
        }));
        let schema = match body {
            Body::Members(protocol, required) => members(protocol, required),
            Body::Extract => types.subschema_for::<ExtractRequest>().to_value(),
            Body::Any => json!({"type": "object"}),
        };
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": schema}}});
        let headers: Map<String, Value> = RETURNED
            .iter()
            .map(|(name, text)| {
                ((*name).to_owned(), json!({"description": text, "schema": {"type": "string"}}))
            })
            .collect();
        answer["headers"] = headers.into();
    }
    let schema = match (&resource.body, resource.media) {
        (Some(Body::Extract), _) => {
            let outcome = written.subschema_for::<Outcome<Value>>().to_value();
            let run = json!({"type": "string", "description": "The identifier of the run in the ledger."});
            json!({"allOf": [outcome], "type": "object", "properties": {"run": run}, "required": ["run"]})
        }
        (_, media) if media.contains(&"application/json") => json!({"type": "object"}),
        _ => json!({"type": "string"}),
    };
    let content: Map<String, Value> = resource
        .media
        .iter()
        .map(|media| {
            let is_json = *media == "application/json";
            let schema = if is_json { schema.clone() } else { json!({"type": "string"}) };
            ((*media).to_owned(), json!({"schema": schema}))
        })
        .collect();
    answer["content"] = content.into();
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    let problem = json!({
        "description": "The error, in the words of the protocol.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    });
    operation["responses"] = json!({"200": answer, "default": problem});
    operation
}

/// Returns the schema of a protocol's request: the members that are known, whose values the protocol's documentation describes.
fn members(protocol: &Protocol, required: &[&str]) -> Value {
    let names = protocol.fields.iter();
    let properties: Map<String, Value> = names.map(|name| ((*name).to_owned(), json!(true))).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Returns the schema of errors: an object in the protocols of OpenAI and Anthropic, a text in Ollama's.
fn error() -> Value {
    let violation = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"}, "rule": {"type": "string"}, "expected": {"type": "string"},
            "found": {"type": "string"},
        },
        "required": ["path", "rule", "expected", "found"],
    });
    let violations = json!({"type": "array", "items": violation});
    json!({
        "type": "object",
        "properties": {
            "error": {"anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {
                        "message": {"type": "string"}, "type": {"type": "string"},
                        "param": {"type": ["string", "null"]}, "code": {"type": ["string", "null"]},
                        "violations": violations,
                    },
                    "required": ["message", "type"],
                },
            ]},
            "violations": violations,
        },
        "required": ["error"],
    })
}
