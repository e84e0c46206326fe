use crate::Store;

/// The restraint on a model that would repeat itself where the schema allows it.
///
/// [`Completion::restrained`](formwork_core::Completion::restrained) is set on answers that the restraint changed: it
/// excluded a token that the model would have chosen.
///
/// ```
/// use formwork_local::{LocalOptions, Restraint};
///
/// let options = LocalOptions::new().with_model("models/tiny.gguf").with_restraint(Restraint::None);
/// # drop(options);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Restraint {
    /// Excludes nothing that the schema allows. A model that repeats itself uses up the token budget.
    None,
    /// Limits the values that very small models would continue until the token budget is used up:
    ///
    /// - **Tokens**: an answer has at most 512 tokens, unless the call sets `max_tokens`.
    /// - **Strings**: a string longer than 1/16 of the token budget (at least 4, at most 32 tokens) ends after its
    ///   share: the remaining budget without the shortest rest of the document, divided by the number of members still
    ///   to come and itself. The same 4 tokens in a row occur at most 3 times in one string, and after 4 such
    ///   interventions the string ends.
    /// - **Lists**: a list ends after an item of 16 bytes or more that it had twice before, after 5 equal shorter
    ///   strings in a row, and after 17 other equal short items in a row. From the ninth item on it shares the budget
    ///   like strings. A list of texts under the rule `grounded` ends before a text that stands in the source only where its
    ///   earlier items do.
    /// - **Numbers**: an integer has at most 18 characters, another number at most 24, an exponent at most 2 digits.
    ///
    /// It excludes no constant of the schema (`const`, `enum`, property names), no item that `minItems` requires and no
    /// character that `minLength` or a bound requires.
    TinyModel,
}

impl Restraint {
    /// The minimum number of parameters of a model that is not tiny.
    const NOT_TINY: u64 = 500_000_000;

    /// The default token budget of an answer, if the context has room for it.
    pub(crate) const fn default_tokens(self) -> usize {
        match self {
            Self::None => 8192,
            Self::TinyModel => 512,
        }
    }

    /// Returns the default for a model with this number of parameters.
    pub(crate) const fn of(parameters: u64) -> Self {
        if parameters < Self::NOT_TINY { Self::TinyModel } else { Self::None }
    }
}

/// The settings for opening a model.
///
/// ```
/// use formwork_local::LocalOptions;
///
/// let options = LocalOptions::new().with_model("models/qwen2.5-0.5b-instruct-q8_0.gguf").with_context(4096);
/// # drop(options);
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct LocalOptions {
    pub(crate) model: String,
    pub(crate) context: usize,
    pub(crate) restraint: Option<Restraint>,
    pub(crate) store: Option<Store>,
}

impl LocalOptions {
    /// Creates the default settings: the known model `default`, a context of 8192 tokens, and the store of
    /// [`Store::open`].
    pub fn new() -> Self {
        Self { model: "default".to_owned(), context: 8192, restraint: None, store: None }
    }

    formwork_core::setters! {
        /// Sets the model (default: the first of [`KNOWN`](crate::KNOWN)): the name of a known model, a
        /// [`HubFile`](crate::HubFile), or the path of a `.gguf` file.
        pub fn with_model(model: impl Into<String>);

        /// Sets the restraint of answers (default: [`Restraint::TinyModel`] for models with fewer than 500 million
        /// parameters, otherwise [`Restraint::None`]).
        pub const fn with_restraint(Some(restraint): Restraint);

        /// Sets the store of model files (default: [`Store::open`]): its folder, the observer of downloads, the model hub.
        pub fn with_store(Some(store): Store);
    }

    /// Sets the maximum number of tokens of prompt and answer together (default: 8192). The model's own maximum always
    /// applies as well.
    ///
    /// Each token takes memory: 46 kB with SmolLM2-135M.
    pub const fn with_context(mut self, tokens: u32) -> Self {
        self.context = tokens as usize;
        self
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
