//! The names that there are, as each protocol lists them.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Request};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::refused::{Refusal, refused};
use super::{Shared, job};
use crate::protocol::{ANTHROPIC, OLLAMA, OPENAI, Protocol, timestamp};

/// The creation time that is returned for every model, because the real one is unknown.
const CREATED: u64 = 0;

pub(super) async fn models(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
) -> Result<Json<Value>, Refusal> {
    let client = shared.access.client(&headers)?;
    let known = &shared.engine.names;
    let names = known.all().filter(|name| client.may_use(known, name));
    if headers.contains_key("anthropic-version") {
        let data: Vec<Value> = names.map(anthropic).collect();
        let id = |model: Option<&Value>| model.map_or(Value::Null, |model| model["id"].clone());
        let (first, last) = (id(data.first()), id(data.last()));
        let list = json!({"data": data, "has_more": false, "first_id": first, "last_id": last});
        return Ok(Json(list));
    }
    let data: Vec<Value> = names.map(openai).collect();
    Ok(Json(json!({"object": "list", "data": data})))
}

pub(super) async fn model(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let is_anthropic = headers.contains_key("anthropic-version");
    let known = &shared.engine.names;
    let found = shared.access.client(&headers).and_then(|client| match client.may_use(known, &name) {
        true => known.check(&name),
        false => Err(known.unknown(&name, |other| client.may_use(known, other))),
    });
    match found {
        Ok(_) if is_anthropic => Json(anthropic(&name)).into_response(),
        Ok(_) => Json(openai(&name)).into_response(),
        Err(problem) => {
            let protocol: &Protocol = if is_anthropic { &ANTHROPIC } else { &OPENAI };
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

pub(super) async fn tags(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    listed(&shared, &headers, tag)
}

/// Lists the models that are loaded: all of them, as far as clients can tell.
pub(super) async fn running(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let running = |name: &str| {
        let mut model = tag(name);
        model["expires_at"] = timestamp(CREATED).into();
        model["size_vram"] = 0.into();
        model
    };
    listed(&shared, &headers, running)
}

fn listed(shared: &Shared, headers: &HeaderMap, describe: impl Fn(&str) -> Value) -> Response {
    let known = &shared.engine.names;
    match shared.access.client(headers) {
        Ok(client) => {
            let names = known.all().filter(|name| client.may_use(known, name));
            Json(json!({"models": names.map(describe).collect::<Vec<_>>()})).into_response()
        }
        Err(problem) => refused(&OLLAMA, &problem),
    }
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
        let text = job::text(&shared, &parts.headers, body).await?;
        let body: Value = serde_json::from_str(&text).map_err(|error| job::no_json(&error))?;
        let name = body["model"].as_str().or(body["name"].as_str()).unwrap_or_default();
        shared.access.client(&parts.headers)?.may_ask(&shared.engine.names, name)?;
        shared.engine.names.check(name)?;
        Ok(json!({
            "modelfile": "", "parameters": "", "template": "", "details": details(), "model_info": {},
            "capabilities": ["completion", "tools"], "modified_at": timestamp(CREATED),
        }))
    };
    match info.await {
        Ok(info) => Json(info).into_response(),
        Err(problem) => refused(&OLLAMA, &problem),
    }
}

pub(super) async fn version() -> Response {
    // Clients of this version of Ollama send a schema as `format`.
    Json(json!({"version": "0.13.0", "formwork": env!("CARGO_PKG_VERSION")})).into_response()
}
