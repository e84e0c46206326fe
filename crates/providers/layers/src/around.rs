//! A provider around another one, whose calls a layer changes.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use formwork_core::{Answer, Call, Capabilities, Fault, Provider, SharedProvider};

/// The change of a layer. The name and the capabilities of the inner provider stay.
pub(crate) trait Around: Debug + Send + Sync + 'static {
    /// Makes a call of the inner provider.
    fn call(&self, inner: &SharedProvider, call: &Call)
    -> impl Future<Output = Result<Answer, Fault>> + Send;

    /// Probes the inner provider (default: without a change).
    fn probe(&self, inner: &SharedProvider) -> impl Future<Output = Result<Capabilities, Fault>> + Send {
        inner.probe()
    }
}

/// Returns a provider whose calls are changed.
pub(crate) fn around(inner: SharedProvider, layer: impl Around) -> SharedProvider {
    Arc::new(Wrapped { inner, layer })
}

#[derive(Debug)]
struct Wrapped<A> {
    inner: SharedProvider,
    layer: A,
}

#[async_trait]
impl<A: Around> Provider for Wrapped<A> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        self.layer.call(&self.inner, call).await
    }

    async fn probe(&self) -> Result<Capabilities, Fault> {
        self.layer.probe(&self.inner).await
    }
}
