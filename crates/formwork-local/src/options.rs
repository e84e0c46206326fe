use std::path::PathBuf;
use std::sync::Arc;

use crate::{Hub, LocalError, Progress, Store};

/// What to open and how.
///
/// ```
/// use formwork_local::LocalOptions;
///
/// let options = LocalOptions::new().with_model("models/qwen2.5-0.5b-instruct-q8_0.gguf").with_context(4096);
/// # drop(options);
/// ```
#[derive(Debug, Clone)]
pub struct LocalOptions {
    pub(crate) model: String,
    pub(crate) context: usize,
    pub(crate) cache: Option<PathBuf>,
    pub(crate) offline: Option<bool>,
    pub(crate) progress: Option<Arc<dyn Progress>>,
    pub(crate) hub: Option<Arc<dyn Hub>>,
}

impl LocalOptions {
    /// The known model `default`, a context of 8192 tokens, the user's cache folder, downloads allowed unless
    /// `FORMWORK_OFFLINE` is set.
    pub fn new() -> Self {
        Self {
            model: "default".to_owned(),
            context: 8192,
            cache: None,
            offline: None,
            progress: None,
            hub: None,
        }
    }

    /// Another model: a name of [`KNOWN`](crate::KNOWN), a [`HubFile`](crate::HubFile), or the path of a `.gguf` file.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self
    }

    /// Another bound on prompt and answer together, in tokens. The model's own bound holds as well.
    ///
    /// Each token in use takes memory: 46 kB with SmolLM2-135M.
    #[must_use]
    pub const fn with_context(mut self, tokens: u32) -> Self {
        self.context = tokens as usize;
        self
    }

    /// Another cache folder; see [`Store`].
    #[must_use]
    pub fn with_cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// Never downloads, or may whatever the environment says.
    #[must_use]
    pub const fn with_offline(mut self, offline: bool) -> Self {
        self.offline = Some(offline);
        self
    }

    /// Says how far long steps are.
    #[must_use]
    pub fn with_progress(mut self, progress: impl Progress + 'static) -> Self {
        self.progress = Some(Arc::new(progress));
        self
    }

    /// Gets files from this hub; without one, models of a hub (`hf:…`) have to be in the cache.
    #[must_use]
    pub fn with_hub(mut self, hub: Arc<dyn Hub>) -> Self {
        self.hub = Some(hub);
        self
    }

    /// The store that these options mean.
    pub(crate) fn store(&self) -> Result<Store, LocalError> {
        let mut store = match &self.cache {
            Some(folder) => Store::at(folder),
            None => Store::open()?,
        };
        if let Some(offline) = self.offline {
            store = store.with_offline(offline);
        }
        if let Some(progress) = self.progress.clone() {
            store = store.with_shared_progress(progress);
        }
        if let Some(hub) = self.hub.clone() {
            store = store.with_hub(hub);
        }
        Ok(store)
    }
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self::new()
    }
}
