//! The place of the exporter in a build without the feature `otlp`.

use std::future::Future;

use axum::http::HeaderMap;
use formwork_ledger::RunRecord;

use crate::seen::Seen;

/// The exporter of traces and metrics, which this build does not have: there is no value of this type. The feature `otlp` adds it.
#[derive(Debug, Clone)]
pub enum Telemetry {}

impl Telemetry {
    pub(crate) fn run(
        &self,
        _: &RunRecord,
        _: &HeaderMap,
        _: Option<&Seen>,
        _: impl Fn(&str) -> &'static str,
    ) {
        match *self {}
    }

    pub(crate) fn refused(&self, _: &Seen, _: u16) {
        match *self {}
    }

    pub(crate) async fn export_while<F: Future>(&self, _: F) -> F::Output {
        match *self {}
    }
}
