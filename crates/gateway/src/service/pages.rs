//! Runs as JSON, and what pages share with them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use formwork_ledger::{Ledger, RecordId, RunDetail};

use super::Shared;
use super::refused::Refusal;
use crate::access::Client;
use crate::problem::{Kind, Problem};

/// Answers `GET /v1/runs/{id}`: a client sees its own runs, an admin all.
pub(super) async fn run(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let client = shared.access.client(&headers)?;
    let run = find(&shared, &client, &id).await?;
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(run)).into_response())
}

pub(super) async fn find(shared: &Shared, client: &Client, id: &str) -> Result<RunDetail, Problem> {
    let unknown = || Problem::new(Kind::NotFound, "there is no such run");
    let ledger = ledger(shared)?;
    let id: RecordId = id.parse().map_err(|_| unknown())?;
    // The run may still be in the writer's queue.
    _ = ledger.flush().await;
    let mut run = ledger
        .run(id)
        .map_err(|error| Problem::new(Kind::Internal, error.to_string()))?
        .ok_or_else(unknown)?;
    if client.is_admin() {
        return Ok(run);
    }
    // The addresses of targets are for admins.
    for call in run.calls.iter_mut().filter(|call| Problem::is_of_connection(&call.class)) {
        (call.message, run.run.message) = (None, None);
    }
    // A run of another key does not exist for a client.
    if run.run.key == client.id() { Ok(run) } else { Err(unknown()) }
}

pub(super) fn ledger(shared: &Shared) -> Result<&Ledger, Problem> {
    let message = "runs are not recorded: start the service with a ledger";
    shared.access.ledger().ok_or_else(|| Problem::new(Kind::NotFound, message))
}

/// Checks that a request may see pages and metrics.
///
/// # Errors
/// [`Kind::Unauthorized`], and [`Kind::Forbidden`] for a client's key.
pub(super) fn admin(shared: &Shared, headers: &HeaderMap) -> Result<(), Problem> {
    let client = shared.access.client(headers)?;
    match client.is_admin() {
        true => Ok(()),
        false => Err(Problem::new(Kind::Forbidden, "this needs an admin's key")),
    }
}
