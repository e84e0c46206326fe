use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{Answer, Call, Capabilities, Fault, Time};

/// A source of answers: a model server, a model in this process, a script.
///
/// Every answer is a stream; [`Answer::collect`] waits for all of it. A provider makes no decisions: retries, delays and
/// fallbacks belong to the [`Run`](crate::Run).
///
/// ```
/// use formwork_core::{Answer, Call, Capabilities, Completion, Fault, Provider};
///
/// #[derive(Debug)]
/// struct Echo(Capabilities);
///
/// #[async_trait::async_trait]
/// impl Provider for Echo {
///     fn name(&self) -> &str {
///         "echo"
///     }
///     fn capabilities(&self) -> &Capabilities {
///         &self.0
///     }
///     async fn call(&self, call: &Call) -> Result<Answer, Fault> {
///         Ok(Completion::new(call.messages[0].text()).into())
///     }
/// }
/// ```
#[async_trait]
pub trait Provider: Send + Sync + fmt::Debug {
    /// Returns the name of the provider in messages, traces and the ledger.
    fn name(&self) -> &str;

    /// Returns the capabilities that the provider promises.
    fn capabilities(&self) -> &Capabilities;

    /// Makes one call.
    ///
    /// # Errors
    /// A [`Fault`], if no answer begins. Later failures are items of the stream.
    async fn call(&self, call: &Call) -> Result<Answer, Fault>;

    /// Asks the server for its capabilities (default: returns [`capabilities`](Self::capabilities)).
    ///
    /// # Errors
    /// A [`Fault`], if the server does not respond.
    async fn probe(&self) -> Result<Capabilities, Fault> {
        Ok(self.capabilities().clone())
    }
}

/// A provider that several runs share.
pub type SharedProvider = Arc<dyn Provider>;

/// Wraps every call of a provider with behaviour that does not depend on the question: a time limit, a trace, a permit.
///
/// A change that needs the schema, the dialogue or the budget belongs to the [`Run`](crate::Run) instead.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
/// use formwork_core::{Answer, Call, Capabilities, Fault, Layer, Provider, SharedProvider};
///
/// /// Counts the calls of the providers that it wraps.
/// #[derive(Debug, Clone, Default)]
/// struct Count(Arc<AtomicU32>);
///
/// #[derive(Debug)]
/// struct Counted(SharedProvider, Count);
///
/// #[async_trait::async_trait]
/// impl Provider for Counted {
///     fn name(&self) -> &str {
///         self.0.name()
///     }
///     fn capabilities(&self) -> &Capabilities {
///         self.0.capabilities()
///     }
///     async fn call(&self, call: &Call) -> Result<Answer, Fault> {
///         self.1.0.fetch_add(1, Ordering::Relaxed);
///         self.0.call(call).await
///     }
/// }
///
/// impl Layer for Count {
///     fn wrap(&self, inner: SharedProvider) -> SharedProvider {
///         Arc::new(Counted(inner, self.clone()))
///     }
/// }
/// ```
pub trait Layer: Send + Sync + fmt::Debug {
    /// Returns the provider wrapped in this layer.
    fn wrap(&self, inner: SharedProvider) -> SharedProvider;
}

/// The clock of a driver. The core itself never reads it.
///
/// ```
/// use formwork_core::{Clock, Time};
///
/// /// A clock for tests: sleeping ends at once.
/// #[derive(Debug)]
/// struct Stopped(Time);
///
/// #[async_trait::async_trait]
/// impl Clock for Stopped {
///     fn now(&self) -> Time {
///         self.0
///     }
///     async fn sleep_until(&self, _until: Time) {}
/// }
/// ```
#[async_trait]
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the current time.
    fn now(&self) -> Time;

    /// Waits until a time, or returns at once if it has passed.
    async fn sleep_until(&self, until: Time);
}
