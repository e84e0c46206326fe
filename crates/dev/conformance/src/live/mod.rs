//! Tests of a provider's answers. They do not depend on the knowledge of the model.

mod trials;

use std::pin::Pin;

use formwork_core::SharedProvider;

pub(crate) use trials::TRIALS;

/// The environment variable that names the servers to test against, separated by commas.
const VARIABLE: &str = "FORMWORK_LIVE";

type Opening = Pin<Box<dyn Future<Output = Result<SharedProvider, String>>>>;

/// A provider with a real model, for [`Suite::live`](crate::Suite::live).
///
/// ```
/// use formwork_conformance::Live;
/// use formwork_core::SharedProvider;
///
/// fn ollama(provider: SharedProvider) -> Live {
///     Live::new("ollama", "start it with `ollama serve`", move || std::future::ready(Ok(provider.clone())))
/// }
/// ```
pub struct Live {
    name: String,
    always: bool,
    help: String,
    open: Box<dyn Fn() -> Opening + Send + Sync>,
}

impl Live {
    /// Creates the tests of a provider, which run if `FORMWORK_LIVE` contains `name`. `open` connects to the provider;
    /// `help` is the command that starts its server, for the message if that fails.
    pub fn new<F>(
        name: impl Into<String>,
        help: impl Into<String>,
        open: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<SharedProvider, String>> + 'static,
    {
        let open = Box::new(move || -> Opening { Box::pin(open()) });
        Self { name: name.into(), always: false, help: help.into(), open }
    }

    /// Runs the tests in any case (default: only if `FORMWORK_LIVE` names the provider).
    #[must_use]
    pub fn always(mut self) -> Self {
        self.always = true;
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_wanted(&self) -> bool {
        let named = std::env::var(VARIABLE).unwrap_or_default();
        self.always || named.split(',').any(|name| name.trim() == self.name)
    }

    pub(crate) async fn open(&self) -> Result<SharedProvider, String> {
        (self.open)().await.map_err(|why| self.blame(&why))
    }

    /// Returns the error with the command that starts the server.
    pub(crate) fn blame(&self, why: &str) -> String {
        format!("{why}\n(if {} is not running: {})", self.name, self.help)
    }
}
