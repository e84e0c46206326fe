//! `POST /v1/extract`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::Response;

use super::Shared;
use super::routes::refused;
use crate::problem::{Kind, Problem};
use crate::protocol::OpenAi;

pub(super) async fn extract(State(_): State<Arc<Shared>>, _: Request<Body>) -> Response {
    refused(&OpenAi, &Problem::new(Kind::NotFound, "later"))
}
