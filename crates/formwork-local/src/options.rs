use std::path::PathBuf;
use std::sync::Arc;

use crate::{Hub, LocalError, Progress, Store};

/// How far a model is kept from writing on where the schema of the answer lets it.
///
/// [`Completion::restrained`](formwork_core::Completion::restrained) says of each answer whether the restraint acted: whether
/// it excluded a token that the model would have written next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Restraint {
    /// Nothing that the schema allows is excluded. A model that repeats itself does so until the tokens of the answer are
    /// used up.
    None,
    /// Ends what very small models would go on with until the tokens are used up:
    ///
    /// - **Tokens**: an answer has at most 512 where the call does not say how many.
    /// - **Strings**: from a length of 1/16 of the answer's tokens on (at least 4, at most 32) a string ends after its share:
    ///   what is left when the shortest rest of the document is subtracted, divided by the number of members still to come
    ///   and itself. The same 4 tokens in a row come at most 3 times in one string, and after 4 such interventions it ends.
    /// - **Lists**: a list ends after an item of 16 bytes or more that it had twice before, after 5 equal shorter strings in a
    ///   row, and after 17 other equal short items in a row. From the ninth item on it has to share tokens as strings do.
    /// - **Numbers**: an integer has at most 18 characters, other numbers have at most 24, an exponent at most 2 digits.
    ///
    /// It excludes no constant of the schema (`const`, `enum`, names of members), no item that `minItems` asks for and no
    /// character that `minLength` or a bound asks for.
    TinyModel,
}

impl Restraint {
    /// The number of parameters from which on a model is not tiny.
    const NOT_TINY: u64 = 500_000_000;

    /// The tokens of an answer where the call does not say, in a context that leaves more.
    pub(crate) const fn default_tokens(self) -> usize {
        match self {
            Self::None => 8192,
            Self::TinyModel => 512,
        }
    }

    /// Returns the default for a model of so many parameters.
    pub(crate) const fn of(parameters: u64) -> Self {
        if parameters < Self::NOT_TINY { Self::TinyModel } else { Self::None }
    }
}

/// The choice of a model, and how it is opened.
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
    pub(crate) restraint: Option<Restraint>,
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
            restraint: None,
            cache: None,
            offline: None,
            progress: None,
            hub: None,
        }
    }

    /// Sets the model (default: the first of [`KNOWN`](crate::KNOWN)): a name of it, a [`HubFile`](crate::HubFile), or the
    /// path of a `.gguf` file.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self
    }

    /// Limits prompt and answer together, in tokens (default: the model's own bound, which holds as well).
    ///
    /// Each token in use takes memory: 46 kB with SmolLM2-135M.
    #[must_use]
    pub const fn with_context(mut self, tokens: u32) -> Self {
        self.context = tokens as usize;
        self
    }

    /// Sets the restraint that answers are written under (default: [`Restraint::TinyModel`] for models of fewer than 500
    /// million parameters, [`Restraint::None`] for all others).
    #[must_use]
    pub const fn with_restraint(mut self, restraint: Restraint) -> Self {
        self.restraint = Some(restraint);
        self
    }

    /// Sets the cache folder (default: that of [`Store`]).
    #[must_use]
    pub fn with_cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// Sets whether nothing may be downloaded (default: what `FORMWORK_OFFLINE` says, else `false`).
    #[must_use]
    pub const fn with_offline(mut self, offline: bool) -> Self {
        self.offline = Some(offline);
        self
    }

    /// Sets a listener that is told how far long steps are (default: none).
    #[must_use]
    pub fn with_progress(mut self, progress: impl Progress + 'static) -> Self {
        self.progress = Some(Arc::new(progress));
        self
    }

    /// Sets the hub that files come from (default: none); without one, models of a hub (`hf:…`) have to be in the cache.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_below_half_a_billion_parameters_are_tiny() {
        assert_eq!(Restraint::of(134_515_008), Restraint::TinyModel);
        assert_eq!(Restraint::of(499_999_999), Restraint::TinyModel);
        assert_eq!(Restraint::of(500_000_000), Restraint::None);
    }
}
