//! A provider around another one, whose calls a layer changes.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use formwork_core::{Answer, Call, Capabilities, Fault, Provider, SharedProvider};

/// The change of a layer. The name and the capabilities of the inner provider stay.
///
/// ```
/// use formwork_core::{Answer, Call, Fault, Layer, SharedProvider};
/// use formwork_layers::{Around, around};
///
/// #[derive(Debug, Clone)]
/// struct Seeded(u64);
///
/// impl Layer for Seeded {
///     fn wrap(&self, inner: SharedProvider) -> SharedProvider {
///         around(inner, self.clone())
///     }
/// }
///
/// impl Around for Seeded {
///     async fn call(&self, inner: &SharedProvider, call: &Call) -> Result<Answer, Fault> {
///         let mut call = call.clone();
///         call.sampling.seed = Some(self.0);
///         inner.call(&call).await
///     }
/// }
/// ```
pub trait Around: Debug + Send + Sync + 'static {
    /// Makes a call of the inner provider.
    fn call(&self, inner: &SharedProvider, call: &Call)
    -> impl Future<Output = Result<Answer, Fault>> + Send;

    /// Probes the inner provider (default: without a change).
    fn probe(&self, inner: &SharedProvider) -> impl Future<Output = Result<Capabilities, Fault>> + Send {
        inner.probe()
    }
}

/// Returns a provider whose calls are changed.
pub fn around(inner: SharedProvider, layer: impl Around) -> SharedProvider {
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
