//! A proxy that validates, written by hand for this one protocol: it reads the schema and the answer with types of its own, keeps
//! compiled schemas, and returns the response unchanged if the answer satisfies its schema. It corrects, retries, limits, prices,
//! counts and logs nothing, so its cost is the least that a validated answer has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode, Uri};
use axum::routing::post;
use jsonschema::Validator;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::bare::{Upstream, upstream};
use crate::Failure;
use crate::bench::process;

/// The compiled schemas by their texts.
type Schemas = Arc<Mutex<HashMap<Box<str>, Arc<Validator>>>>;

#[derive(Deserialize)]
struct Call<'t> {
    #[serde(borrow)]
    response_format: Format<'t>,
}

#[derive(Deserialize)]
struct Format<'t> {
    #[serde(borrow)]
    json_schema: Named<'t>,
}

#[derive(Deserialize)]
struct Named<'t> {
    #[serde(borrow)]
    schema: &'t RawValue,
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: String,
}

pub(in crate::bench) async fn serve(url: &str) -> Result<(), Failure> {
    let state = (upstream(url), Schemas::default());
    let router = Router::new().route("/v1/chat/completions", post(answer)).with_state(state);
    Ok(axum::serve(process::listen().await?, router).await?)
}

async fn answer(State((upstream, schemas)): State<(Upstream, Schemas)>, request: Request) -> Response<Body> {
    let answered = validated(upstream, schemas, request).await;
    answered.unwrap_or_else(|_| {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::BAD_GATEWAY;
        response
    })
}

async fn validated(
    (client, url): Upstream,
    schemas: Schemas,
    request: Request,
) -> Result<Response<Body>, Failure> {
    let (mut head, body) = request.into_parts();
    let body = to_bytes(body, 16 << 20).await?;
    let call: Call<'_> = serde_json::from_slice(&body)?;
    let validator = validator(&schemas, call.response_format.json_schema.schema.get())?;
    head.uri = Uri::from_static(url);
    head.headers.remove("host");
    let response = client.request(Request::from_parts(head, Body::from(body))).await?;
    let (head, body) = response.into_parts();
    let body: Bytes = to_bytes(Body::new(body), 16 << 20).await?;
    let completion: Completion = serde_json::from_slice(&body)?;
    let content = &completion.choices.first().ok_or("there is no choice")?.message.content;
    if !validator.is_valid(&serde_json::from_str(content)?) {
        return Err("the answer does not satisfy its schema".into());
    }
    Ok(Response::from_parts(head, Body::from(body)))
}

fn validator(schemas: &Schemas, text: &str) -> Result<Arc<Validator>, Failure> {
    let mut schemas = schemas.lock().map_err(|_| "a thread panicked")?;
    if let Some(known) = schemas.get(text) {
        return Ok(Arc::clone(known));
    }
    let compiled = Arc::new(jsonschema::validator_for(&serde_json::from_str(text)?)?);
    schemas.insert(text.into(), Arc::clone(&compiled));
    Ok(compiled)
}
