//! Models whose completions a function makes.

use std::sync::Arc;

use async_trait::async_trait;
use formwork_core::{Answer, Call, Capabilities, Completion, Fault, Provider, SharedProvider};

/// Returns a model that answers a call at once, with the completion that a function makes of it.
pub(crate) fn scripted(
    capabilities: Capabilities,
    complete: impl Fn(&Call) -> Completion + Send + Sync + 'static,
) -> SharedProvider {
    Arc::new(Scripted { capabilities, complete })
}

struct Scripted<F> {
    capabilities: Capabilities,
    complete: F,
}

formwork_core::debug_fields!(Scripted<F> {});

#[async_trait]
impl<F: Fn(&Call) -> Completion + Send + Sync> Provider for Scripted<F> {
    fn name(&self) -> &str {
        "scripted"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        Ok((self.complete)(call).into())
    }
}
