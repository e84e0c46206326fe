//! The reasons for which the service is not ready.

use std::time::{Duration, Instant};

use formwork_core::RestrictionKind;
use formwork_extract::ObservationStore;
use tokio::sync::Mutex;

use crate::access::Access;
use crate::engine::Engine;
use crate::names::Target;

/// The time for which a check of the ledger holds, so that probes, which need no key, cost nothing.
const HOLDS: Duration = Duration::from_secs(2);

/// The time in which the ledger has to write.
const PATIENCE: Duration = Duration::from_secs(2);

/// The free space below which the disk of the ledger counts as full: 64 MiB.
const MIN_FREE: u64 = 64 << 20;

/// The last check of the ledger: its time and the reason why it is not ready.
#[derive(Debug, Default)]
pub(crate) struct Checked(Mutex<Option<(Instant, Option<String>)>>);

/// Returns the reasons for which requests would fail now; none if the service is ready. No target is called for it.
pub(super) async fn lacks(engine: &Engine, access: &Access, checked: &Checked) -> Vec<String> {
    let mut lacks: Vec<String> = ledger(access, checked).await.into_iter().collect();
    let targets = engine.names.targets();
    if !targets.is_empty() && targets.iter().all(is_down) {
        lacks.push(format!("none of {} targets answered its last calls", targets.len()));
    }
    lacks
}

/// Returns whether the observations say that a target is down.
fn is_down(target: &Target) -> bool {
    let found = target.backend.observation_store().map(ObservationStore::in_force).unwrap_or_default();
    let own = target.backend.identity().unwrap_or(target.name());
    found.iter().any(|one| one.target == own && one.kind == RestrictionKind::OutOfService)
}

async fn ledger(access: &Access, checked: &Checked) -> Option<String> {
    let ledger = access.ledger()?;
    let mut checked = checked.0.lock().await;
    if let Some((at, reason)) = &*checked
        && at.elapsed() < HOLDS
    {
        return reason.clone();
    }
    let reason = match tokio::time::timeout(PATIENCE, ledger.probe()).await {
        Err(_) => Some("the ledger is locked by another process".to_owned()),
        // The message may name the file, which is no business of clients without a key.
        Ok(Err(_)) => Some("the ledger cannot be written".to_owned()),
        Ok(Ok(())) => ledger
            .free_bytes()
            .filter(|free| *free < MIN_FREE)
            .map(|free| format!("the disk of the ledger has {free} bytes left")),
    };
    *checked = Some((Instant::now(), reason.clone()));
    reason
}
