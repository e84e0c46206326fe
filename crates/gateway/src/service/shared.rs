//! The state that all requests share.

use std::sync::Arc;
use std::time::Duration;

use formwork_serve::{Draining, Tls};

use super::once::Once;
use super::page::Batches;
use super::page::Sessions;
use super::ready::Checked;
use super::turns::Turns;
use crate::access::Access;
use crate::contracts::Folder;
use crate::engine::Engine;
use crate::guard::Guard;
use crate::metrics::Metrics;
use crate::telemetry::Telemetry;

pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) turns: Arc<Turns>,
    pub(crate) folder: Option<Folder>,
    pub(crate) guard: Guard,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) draining: Draining,
    pub(crate) access: Arc<Access>,
    pub(crate) keeps_bodies: bool,
    pub(crate) is_view: bool,
    pub(crate) cache_ttl: Option<Duration>,
    pub(crate) tls: Option<Tls>,
    pub(crate) batches: Option<Batches>,
    pub(crate) telemetry: Option<Telemetry>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) once: Arc<Once>,
    pub(crate) ready: Arc<Checked>,
}

impl Shared {
    /// Returns whether there is a ledger that keeps the records of requests, or a collector that gets their traces.
    pub(crate) fn is_kept(&self) -> bool {
        self.access.ledger().is_some() || self.telemetry.is_some()
    }
}
