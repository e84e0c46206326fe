//! Trials of a provider's answers, whatever stands behind it. Models differ in what they know; nothing here depends on that.

mod trials;

use std::pin::Pin;

use formwork_core::SharedProvider;

pub(crate) use trials::TRIALS;

/// The environment variable that names the servers to test against, separated by commas.
const VARIABLE: &str = "FORMWORK_LIVE";

type Opening = Pin<Box<dyn Future<Output = Result<SharedProvider, String>>>>;

/// A provider with a real model behind it.
pub struct Live {
    name: String,
    always: bool,
    help: String,
    open: Box<dyn Fn() -> Opening + Send + Sync>,
}

impl Live {
    /// A provider that is tested when `FORMWORK_LIVE` names it. `help` is the command that starts its server.
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

    /// Runs the trials whatever the environment says (default: only if it is named there).
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

    /// Returns what went wrong, and what helps if it is the server.
    pub(crate) fn blame(&self, why: &str) -> String {
        format!("{why}\n(if {} is not running: {})", self.name, self.help)
    }
}
