//! Whether the service is ready: whether requests would be answered now.

use std::time::{Duration, Instant};

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use formwork_core::{Restriction, RestrictionKind};
use formwork_extract::ObservationStore;
use formwork_ledger::{Error, Ledger};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::access::{Access, REPLACED, now};
use crate::engine::Engine;
use crate::names::Target;

/// The time for which a check of the ledger holds, so that probes, which need no key, cost nothing.
const HOLDS: Duration = Duration::from_secs(2);

/// The time in which the ledger has to write.
const PATIENCE: Duration = Duration::from_secs(2);

/// The free space below which the disk of the ledger counts as full: 64 MiB.
const MIN_FREE: u64 = 64 << 20;

/// The last check of the ledger: its time, and the reason why it cannot be written.
#[derive(Debug, Default)]
pub(crate) struct Checked(Mutex<Option<(Instant, Option<String>)>>);

/// Returns a response: 200, or 503 if requests would be refused now.
pub(super) fn response(is_ready: bool, ledger: Option<&str>, reasons: Vec<String>) -> Response {
    let mut body = json!({"status": if is_ready { "ready" } else { "not ready" }});
    if let Some(ledger) = ledger {
        body["ledger"] = ledger.into();
    }
    if !reasons.is_empty() {
        body["reasons"] = Value::from(reasons);
    }
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(body)).into_response()
}

/// Responds by the state of the ledger and the targets. No target is called for it. A ledger that cannot be written is no reason to refuse
/// requests: runs and spending are kept in memory meanwhile. It becomes one when the memory for the spending of keys is full, or when the
/// file is no longer at its path.
pub(super) async fn answer(engine: &Engine, access: &Access, checked: &Checked) -> Response {
    let (mut is_ready, mut state, mut reasons) = (true, None, Vec::new());
    if let Some(ledger) = access.ledger() {
        let why = unwritten(ledger, checked).await;
        // Every request that needs a key is refused then.
        is_ready = why.as_deref() != Some(REPLACED);
        state = Some(if why.is_some() { "degraded" } else { "ok" });
        reasons.extend(why);
        if !ledger.counts_spending() && ledger.has_keys(now()).unwrap_or(true) {
            (is_ready, state) = (false, Some("degraded"));
            reasons.push(
                "the spending of keys cannot be counted any more: the memory for it is full".to_owned(),
            );
        }
    }
    let targets = engine.names.targets();
    let is_out = |target: &Target| is_down(target) || engine.outages.is_out(target.name());
    if !targets.is_empty() && targets.iter().all(is_out) {
        is_ready = false;
        reasons.push(format!("none of {} targets answered its last calls", targets.len()));
    }
    response(is_ready, state, reasons)
}

/// Returns whether the observations of runs say that a target is down, which has not answered another request since.
fn is_down(target: &Target) -> bool {
    let found = target.backend.observation_store().map(ObservationStore::in_force).unwrap_or_default();
    let own = target.backend.identity().unwrap_or(target.name());
    let is_out =
        |one: &Restriction| one.kind == RestrictionKind::OutOfService && one.last > target.answered();
    found.iter().any(|one| one.target == own && is_out(one))
}

/// Returns why the ledger cannot be written; `None` if it can.
async fn unwritten(ledger: &Ledger, checked: &Checked) -> Option<String> {
    let mut checked = checked.0.lock().await;
    if let Some((at, reason)) = &*checked
        && at.elapsed() < HOLDS
    {
        return reason.clone();
    }
    let reason = match tokio::time::timeout(PATIENCE, ledger.probe()).await {
        Err(_) => Some("the ledger is locked by another process".to_owned()),
        // The message may name the file, which is no business of clients without a key.
        Ok(Err(Error::Replaced { .. })) => Some(REPLACED.to_owned()),
        Ok(Err(_)) => Some("the ledger cannot be written".to_owned()),
        // A damaged page may let the probe pass, and no run.
        Ok(Ok(())) if ledger.health().lacks_runs => Some("the ledger cannot be written".to_owned()),
        Ok(Ok(())) => ledger
            .free_bytes()
            .filter(|free| *free < MIN_FREE)
            .map(|free| format!("the disk of the ledger has {free} bytes left")),
    };
    *checked = Some((Instant::now(), reason.clone()));
    reason
}
