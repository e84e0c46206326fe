use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{Answer, Call, Capabilities, Fault, Time};

/// Something that answers calls: a server, a model in this process, a script.
///
/// There is one path, the stream; who wants the whole answer collects it. A provider decides nothing: retries, waits
/// and fallbacks belong to the [`Run`](crate::Run).
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
    /// Returns its name in messages, traces and the ledger.
    fn name(&self) -> &str;

    /// Returns its promises.
    fn capabilities(&self) -> &Capabilities;

    /// Makes one call.
    ///
    /// # Errors
    /// A [`Fault`], if there is no answer at all. What goes wrong later comes in the stream.
    async fn call(&self, call: &Call) -> Result<Answer, Fault>;

    /// Asks the other side what it can do; by default what is promised anyway.
    ///
    /// # Errors
    /// A [`Fault`], if it cannot be asked.
    async fn probe(&self) -> Result<Capabilities, Fault> {
        Ok(self.capabilities().clone())
    }
}

/// A provider that is shared by every run that uses it.
pub type SharedProvider = Arc<dyn Provider>;

/// Something that wraps every call of a provider and would make sense for any call: a time-out, a trace, a permit.
///
/// A change that needs the schema, the dialogue or the budget belongs to the [`Run`](crate::Run) instead.
pub trait Layer: Send + Sync + fmt::Debug {
    /// The same provider with this around it.
    fn wrap(&self, inner: SharedProvider) -> SharedProvider;
}

/// The source of a driver's time. The core itself never asks.
#[async_trait]
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the present time.
    fn now(&self) -> Time;

    /// Waits until a moment, or returns at once if that has passed.
    async fn sleep_until(&self, until: Time);
}
