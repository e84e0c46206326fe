//! The names that there are, as each protocol lists them.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Request};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::refused::refused;
use super::{Shared, job};
use crate::protocol::{Anthropic, Ollama, OpenAi, Protocol, timestamp};

/// The creation time that is returned for every model, because the real one is unknown.
const CREATED: u64 = 0;

pub(super) async fn models(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let names = shared.engine.names.all();
    if headers.contains_key("anthropic-version") {
        let data: Vec<Value> = names.map(anthropic).collect();
        let id = |model: Option<&Value>| model.map_or(Value::Null, |model| model["id"].clone());
        let (first, last) = (id(data.first()), id(data.last()));
        return Json(json!({"data": data, "has_more": false, "first_id": first, "last_id": last}))
            .into_response();
    }
    let data: Vec<Value> = names.map(openai).collect();
    Json(json!({"object": "list", "data": data})).into_response()
}

pub(super) async fn model(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let is_anthropic = headers.contains_key("anthropic-version");
    match shared.engine.names.check(&name) {
        Ok(_) if is_anthropic => Json(anthropic(&name)).into_response(),
        Ok(_) => Json(openai(&name)).into_response(),
        Err(problem) => {
            let protocol: &dyn Protocol = if is_anthropic { &Anthropic } else { &OpenAi };
            refused(protocol, &problem)
        }
    }
}

fn openai(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": CREATED, "owned_by": "formwork"})
}

fn anthropic(name: &str) -> Value {
    json!({"type": "model", "id": name, "display_name": name, "created_at": timestamp(CREATED)})
}

pub(super) async fn tags(State(shared): State<Arc<Shared>>) -> Response {
    let models: Vec<Value> = shared.engine.names.all().map(tag).collect();
    Json(json!({"models": models})).into_response()
}

fn tag(name: &str) -> Value {
    json!({
        "name": name, "model": name, "modified_at": timestamp(CREATED), "size": 0, "digest": "", "details": details(),
    })
}

fn details() -> Value {
    json!({
        "parent_model": "", "format": "", "family": "formwork", "families": ["formwork"], "parameter_size": "",
        "quantization_level": "",
    })
}

pub(super) async fn show(State(shared): State<Arc<Shared>>, request: Request<Body>) -> Response {
    let info = async {
        let (parts, body) = request.into_parts();
        let (body, _) = job::json(&shared, &parts.headers, body).await?;
        let name = body["model"].as_str().or(body["name"].as_str()).unwrap_or_default();
        shared.engine.names.check(name)?;
        Ok(json!({
            "modelfile": "", "parameters": "", "template": "", "details": details(), "model_info": {},
            "capabilities": ["completion", "tools"], "modified_at": timestamp(CREATED),
        }))
    };
    match info.await {
        Ok(info) => Json(info).into_response(),
        Err(problem) => refused(&Ollama::Chat, &problem),
    }
}

pub(super) async fn version() -> Response {
    // Clients of this version of Ollama send a schema as `format`.
    Json(json!({"version": "0.13.0", "formwork": env!("CARGO_PKG_VERSION")})).into_response()
}
