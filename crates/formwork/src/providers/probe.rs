//! Probes of servers, and their usage.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use formwork_core::{Answer, Call, Delta, Fault, SharedProvider, Usage};
use formwork_layers::{Around, around};
use futures_util::{StreamExt as _, stream};

/// Probes the features of a server before its first use. [`ProbeCache`](crate::providers::ProbeCache) keeps the results.
///
/// ```
/// use std::sync::Arc;
///
/// use formwork::core::Usage;
/// use formwork::providers::{Probe, Probed};
/// use formwork_testkit::Scripted;
///
/// let probe = Probe::new(|fresh| async move {
///     // Asks the server, or reads a `ProbeCache` unless `fresh` is set.
///     let notes = if fresh { vec!["it ignores schemas".to_owned()] } else { Vec::new() };
///     Ok(Probed { provider: Arc::new(Scripted::new(["{}"])), notes, usage: Usage::default() })
/// });
/// # let _ = probe;
/// ```
#[derive(Clone)]
pub struct Probe(Arc<dyn Fn(bool) -> Probing + Send + Sync>);

pub(super) type Probing = Pin<Box<dyn Future<Output = Result<Probed, Fault>> + Send>>;

/// The result of a probe.
///
/// ```
/// use formwork::{core::Usage, providers::Probed};
/// use formwork_testkit::Scripted;
///
/// let provider = std::sync::Arc::new(Scripted::new(["{}"]));
/// let probed = Probed { provider, notes: vec!["it ignores schemas".into()], usage: Usage::default() };
/// assert_eq!(probed.notes.len(), 1);
/// ```
#[derive(Debug, Clone)]
pub struct Probed {
    /// The provider, with the verified capabilities and settings.
    pub provider: SharedProvider,
    /// The capabilities that the server lacks, one line each.
    pub notes: Vec<String>,
    /// The tokens of the probe's calls; none if the result came from a cache.
    pub usage: Usage,
}

impl Probe {
    /// Creates a probe that calls this function; its argument `fresh` is whether caches must be ignored.
    pub fn new<F>(probe: impl Fn(bool) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Probed, Fault>> + Send + 'static,
    {
        Self(Arc::new(move |fresh| Box::pin(probe(fresh))))
    }
}

impl Probe {
    pub(super) fn run(&self, fresh: bool) -> Probing {
        (self.0)(fresh)
    }
}

formwork_core::debug_fields!(Probe {});

/// Returns a provider whose first answer includes this usage, so that probes are in the ledger like other calls.
pub(super) fn booked(provider: SharedProvider, usage: Usage) -> SharedProvider {
    around(provider, Unbooked(Mutex::new(usage)))
}

#[derive(Debug)]
struct Unbooked(Mutex<Usage>);

impl Around for Unbooked {
    async fn call(&self, inner: &SharedProvider, call: &Call) -> Result<Answer, Fault> {
        let answer = inner.call(call).await?;
        let usage = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if usage == Usage::default() {
            return Ok(answer);
        }
        Ok(Answer::new(stream::iter([Ok(Delta::Probe { usage })]).chain(answer)))
    }
}
